"""The paper's training step: Hugging Face's model in a plain loop beside other ways to train many runs, and ours."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec

import pandas as pd
import torch

from cot2lib.kit.fields import positive
from cot2lib.kit.timing import threads
from cot2lib.losses import soft_nll
from cot2lib.specs import RunSpec
from cot2lib.specs.profiles import spec
from cot2lib.study.costs import STEPS, Variant, steps_of, timed
from cot2lib.study.speed import peers
from cot2lib.study.speed.variants import BASELINE, CPU, beside_the_limit, step_flops
from cot2lib.tasks import MNNS, ProsQA
from cot2lib.training.data import stack_data
from cot2lib.training.engines import preferred, unfit
from cot2lib.training.supervised import SupervisedTrainer

SIZES = (1, 16, 64)
MOST = 16  # runs of peers, and of what is compared in growth
FEW = 2  # of those on graphs, which take longer
LOOP, PEERS = {"transformers": "llm"}, {"jax": "peers", "threadpoolctl": "peers"}  # packages, and their extra
FUSED_STEPS = 100  # in a turn of the engine, which is called once for a segment
MAIN = partial(spec, "cot2", "paper")
OWN = partial(MAIN, self_fed_from=0.0)
PAIRS = partial(MAIN, task=ProsQA(inputs=2000))  # four layers, batch 64, inputs of many lengths
GROWTH: dict[str, Callable[..., RunSpec]] = {  # what grows, beside the main model
    "main": MAIN,
    "one layer": partial(MAIN, layers=1, heads=1),
    "four layers": partial(MAIN, layers=4, heads=4),
    "d = 16": partial(MAIN, d_model=16),
    "d = 64": partial(MAIN, d_model=64),
    "batch 64": partial(MAIN, batch=64),
    "eight digits": partial(MAIN, task=MNNS(1, 9, 8, inputs=4000)),
    "1,017 tokens": partial(MAIN, task=MNNS(1, 9, 4, max_sum=500)),
    "graphs, pairs": PAIRS,
    "graphs, one head": partial(PAIRS, heads=1),
    "graphs, no dropout": partial(PAIRS, dropout=0.0),
    "graphs, sentences": partial(MAIN, task=ProsQA(inputs=2000, grammar="sentences")),
}


# Tables


def steps(rounds: int, compiled: bool) -> pd.DataFrame:
    """Steps of a run in a second by every way, beside the limit, with `minutes` of a run by the authors' recipe."""
    stacks = [stack(runs, fast) for fast in ((False, True) if compiled else (False,)) for runs in SIZES]
    rows = beside_the_limit([hugging_face(), *stacks, *peers_of_ours(), *fused(SIZES[:2])], rounds, one_step())
    return rows.assign(minutes=MAIN().recipe.steps / rows["rate"] / 60)


def own_steps(rounds: int, compiled: bool) -> pd.DataFrame:
    """The same through the model's own thoughts, which the loop makes with a cache; without peers."""
    stacks = [stack(runs, fast, OWN) for fast in ((False, True) if compiled else (False,)) for runs in SIZES[:2]]
    return beside_the_limit([hugging_face(model=OWN), *stacks, *fused(SIZES[:2], OWN)], rounds, one_step(OWN))


def one_step(model: Callable[..., RunSpec] = MAIN) -> float:
    """Matrix product flop of a step of one run."""
    return step_flops(SupervisedTrainer([model()]))


def growth(rounds: int, names: Sequence[str], sgemm: float) -> pd.DataFrame:
    """The fused engine beside the eager stack as width, depth, batch, length and vocabulary grow.

    Columns `variant`, `stack` and `rate` (steps of a run in a second by the stack and the engine), `times` the
    stack's, `share` of the matrix product `sgemm` (Gflop/s), in percent; the last three only where the engine works.
    """
    rows = []
    for name in names:
        runs, model = FEW if name.startswith("graphs") else MOST, GROWTH[name]
        found = timed([stack(runs, model=model), *fused([runs], model)], rounds)
        row = {"variant": name, "stack": found["rate"][0]}
        if len(found) > 1:
            row |= found.loc[1, ["rate", "times"]].to_dict()
            row["share"] = 100 * one_step(model) * row["rate"] / (1e9 * sgemm)
        rows.append(row)
    return pd.DataFrame(rows)


def here(sizes: Sequence[int], rounds: int) -> pd.DataFrame:
    """Training steps by the loop, where its package is installed, by eager stacks of some sizes and by the engine."""
    positive(live_rounds=rounds, **{f"live_sizes[{place}]": size for place, size in enumerate(sizes)})
    with threads(1):
        loop = [hugging_face()] if find_spec("transformers") else []
        return timed([*loop, *map(stack, sizes), *fused(sizes)], rounds)


def is_whole(found: pd.DataFrame, sizes: Sequence[int]) -> bool:
    """Whether `here` has timed all that works here: the loop, and stacks and the engine for each size."""
    loop, engine = bool(find_spec("transformers")), not unfit(MAIN())
    return len(found) == loop + len(sizes) * (1 + engine) and bool((found["rate"] > 0).all())


def left_out(needed: Mapping[str, str]) -> list[str]:
    """Reasons why rows are missing: the engine does not work, or packages, given with their extra, are not there."""
    reasons = [reason] if (reason := unfit(MAIN())) else []
    missing = [(module, extra) for module, extra in needed.items() if find_spec(module) is None]
    return reasons + [f"{module} is not installed; pip install 'cot2lib[{extra}]'." for module, extra in missing]


# Ways


def runs_of(count: int, model: Callable[..., RunSpec] = MAIN) -> list[RunSpec]:
    """Runs of the main model, or of another, that differ in their seeds."""
    return [model(seed=42 + run) for run in range(count)]


def stack(
    runs: int, compiled: bool = False, model: Callable[..., RunSpec] = MAIN, device: torch.device = CPU
) -> Variant:
    """Our stacked trainer."""
    trainer = SupervisedTrainer(runs_of(runs, model), device)
    if compiled:
        trainer.loss = torch.compile(trainer.loss, dynamic=False)
    return Variant(f"stack of {runs}{', compiled' if compiled else ''}", runs, steps_of(trainer, STEPS), STEPS)


def fused(sizes: Sequence[int], model: Callable[..., RunSpec] = MAIN) -> list[Variant]:
    """The fused engine on one thread; none where it does not work."""
    if unfit(model()):
        return []
    engines = {size: preferred(SupervisedTrainer(runs_of(size, model)), 1) for size in sizes}
    turns = {size: steps_of(engine, FUSED_STEPS) for size, engine in engines.items()}
    return [Variant(f"fused, {size} runs", size, turn, FUSED_STEPS) for size, turn in turns.items()]


def peers_of_ours() -> list[Variant]:
    """Other ways to batch over runs, as far as they are installed."""
    specs = runs_of(min(MOST, SIZES[-1]))
    made = {"torch.func.vmap": peers.vmap_turn(specs, STEPS)}
    with suppress(ImportError):
        made["JAX"] = peers.jax_turn(specs, STEPS)
    return [Variant(f"{name}, {len(specs)} runs", len(specs), turn, STEPS) for name, turn in made.items()]


def hugging_face(device: torch.device = CPU, model: Callable[..., RunSpec] = MAIN) -> Variant:
    """The same model, loss and optimiser the usual way: one model, one batch, fused AdamW."""
    run = model()
    data, plain = stack_data([run], device), peers.hugging_face_model().to(device)
    optimizer = torch.optim.AdamW(plain.parameters(), lr=run.recipe.lr, fused=True)
    batches = data.order([run.seed], 0, STEPS, run.recipe.batch)[0]
    scores = peers.taught_logits if run.supervision.feeding == "teacher" else peers.own_logits

    def turn() -> None:
        for index in batches:
            outputs = data.outputs[0, index]
            logits = scores(plain, data.prompts[index], outputs)
            optimizer.zero_grad()
            soft_nll(logits[None], outputs[None]).sum(-1).mean().backward()
            optimizer.step()

    return Variant(BASELINE, 1, turn, STEPS)
