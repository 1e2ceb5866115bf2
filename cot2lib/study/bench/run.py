"""Benchmarks: ratios measured side by side in one process, never a verdict of a test.

`train` times the paper's training step (batch 16, dropout, AdamW) of the main experiment's CoT2 model,
written with Hugging Face's model and a plain loop, and with our stack at several sizes, eager and
compiled. `sampling` times training on own thoughts beside teacher forcing, and the whole Pass@k of the
paper's experiment. `decoding` times what a continuous token costs beside a discrete one. `grpo` times steps of
policy gradients, rollouts and update, beside the same steps with Hugging Face's model. Variants take turns,
so that a machine that speeds up or slows down does so for all.
"""

import gc
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch
from torch.utils.flop_counter import FlopCounterMode

from cot2lib.kit.provenance import device_name
from cot2lib.kit.timing import in_turns, ratio, seconds, threads
from cot2lib.losses import soft_nll
from cot2lib.runs import load, load_stack, sgemm_rate
from cot2lib.specs import GRPOSpec, Recipe
from cot2lib.specs.profiles import spec
from cot2lib.study.analysis import overhead
from cot2lib.study.analysis.passk import SAMPLES, measure
from cot2lib.study.bench.plain_grpo import PlainGRPO
from cot2lib.thoughts import MTS
from cot2lib.training.data import stack_data
from cot2lib.training.grpo import GRPOTrainer
from cot2lib.training.supervised import SupervisedTrainer
from cot2lib.training.trainer import SEGMENT, StackTrainer

SIZES = (1, 16, 64)
POLICIES = (1, 8, 16)  # runs side by side in `grpo`
STACK = 8  # runs side by side in `sampling`
ROUNDS = 15
STEPS = 10  # steps of one run's worth of work in a turn
BASELINE = "Hugging Face loop"
DECODERS = ((32, 2, 2), (768, 12, 12))  # width, layers, heads of the models in `decoding`


@dataclass
class Variant:
    """Something that takes training steps.

    Attributes:
        name: how the table calls it.
        runs: runs that one step trains.
        turn: takes `STEPS` steps.
        peak: peak memory of the process during its first turn, in GiB; NaN where unknown.
    """

    name: str
    runs: int
    turn: Callable[[], None]
    peak: float = float("nan")


def train(quick: bool = False) -> str:
    """The benchmark as printed text: machine, table, and what the numbers are."""
    with threads(1):
        table, flops, sgemm = train_table(rounds=3 if quick else ROUNDS, compiled=not quick)
    return (
        f"Training step of CoT2, 2 layers, 2 heads, d=32, batch 16, dropout .1; one core of {device_name(_cpu())}, "
        f"torch {torch.__version__}.\nOne step of one run is {flops / 1e6:.1f} Mflop of matrix products; sgemm here "
        f"{sgemm / 1e9:.0f} Gflop/s. Medians of turns taken in alternation.\n\n{table.round(2).to_string(index=False)}"
    )


def train_table(rounds: int, compiled: bool) -> tuple[pd.DataFrame, float, float]:
    """Speed of every variant; the flop of one run's step; the machine's measured sgemm rate."""
    variants = [hugging_face_variant(), *(stack_variant(runs, False) for runs in SIZES)]
    if compiled:
        variants += [stack_variant(runs, True) for runs in SIZES]
    for variant in variants:
        variant.turn()  # compile and allocate
        variant.peak = _peak_memory(variant.turn)
    sgemm = []
    turns = {variant.name: variant.turn for variant in variants}
    taken = in_turns(turns | {"sgemm": lambda: sgemm.append(sgemm_rate(_cpu(), repeats=1))}, rounds)
    each = {v.name: [spent / (STEPS * v.runs) for spent in taken[v.name]] for v in variants}
    flops, rate = step_flops(SupervisedTrainer([spec("cot2", "paper")])), statistics.median(sgemm)
    rows = [_row(variant, each, flops, rate) for variant in variants]
    return pd.DataFrame(rows), flops, rate


def _row(variant: Variant, each: dict[str, list[float]], flops: float, rate: float) -> dict:
    """A variant's row from everybody's seconds per step of one run, round by round."""
    median = statistics.median(each[variant.name])
    return {
        "variant": variant.name,
        "run-steps/s": round(1 / median),
        "times the loop": ratio(each[BASELINE], each[variant.name]),
        "share of sgemm (%)": 100 * flops / median / rate,
        "peak memory (GiB)": variant.peak,
        "minutes per paper run": median * spec("cot2", "paper").recipe.steps / 60,
    }


def sampling(quick: bool = False) -> str:
    """The second benchmark as printed text: steps of self-feeding and COCONUT, and one model's Pass@k."""
    with threads(1):
        table = feeding_table(rounds=3 if quick else ROUNDS)
        spent = pass_at_k_seconds(samples=28 if quick else SAMPLES)
    return (
        f"Training step of one run in a stack of {STACK}, 2 layers, 2 heads, d=32, batch 64; one core of "
        f"{device_name(_cpu())}, torch {torch.__version__}.\n\n{table.round(2).to_string(index=False)}\n\n"
        f"Pass@k and Maj@k of one discrete model, 1 layer, d=24, k = 1..14, four temperatures, "
        f"{28 if quick else SAMPLES} samples of each validation input: {spent:.1f} s."
    )


def feeding_table(rounds: int) -> pd.DataFrame:
    """Milliseconds of a run's training step by who is fed, and the ratio to teacher forcing."""
    made = {
        "teacher forcing": (dict(method="cot2"), 0),
        "self-feeding": (dict(method="cot2", self_fed_from=0.0), 0),
        "COCONUT, last stage": (dict(method="coconut"), -1),
        "COCONUT with zero slots, last stage": (dict(method="coconut-slot"), -1),
    }
    turns = {}
    for name, (options, place) in made.items():
        trainer = SupervisedTrainer([spec(**options, seed=42 + run) for run in range(STACK)])
        trainer.progress.step = place % trainer.recipe.steps
        trainer.advance(1)
        turns[name] = _steps(trainer)
    taken = in_turns(turns, rounds)
    return pd.DataFrame(
        [
            {
                "fed": name,
                "ms per run-step": 1000 * statistics.median(own) / (STEPS * STACK),
                "times teacher forcing": ratio(own, taken["teacher forcing"]),
            }
            for name, own in taken.items()
        ]
    )


def pass_at_k_seconds(samples: int) -> float:
    """How long the whole measurement of one shipped discrete model takes."""
    run = spec("discrete", d_model=24, layers=1, heads=1)
    model = load(run, missing="error")
    return seconds(lambda: measure(model, [run], samples))


def decoding(quick: bool = False) -> str:
    """The third benchmark as printed text: E^T alpha beside the projection and a whole step, over vocabularies."""
    with threads(1):
        shapes = DECODERS[:1] if quick else DECODERS
        table = pd.concat([overhead.measured(*shape, rounds=3 if quick else ROUNDS) for shape in shapes])
    return (
        f"One decoding step at batch 1 with {overhead.CONTEXT} positions in the cache, d=32 with 2 layers"
        f"{'' if quick else ', d=768 with 12'}; one core of {device_name(_cpu())}, torch {torch.__version__}. "
        f"Ratios are medians of turns taken in alternation.\n\n{table.round(2).to_string(index=False)}"
    )


def grpo(quick: bool = False) -> str:
    """The fourth benchmark as printed text: machine, table, and what the numbers are."""
    with threads(1):
        table, flops, sgemm = grpo_table(rounds=3 if quick else ROUNDS, compiled=not quick)
    run = policy_run()
    return (
        f"GRPO step, rollouts and update, 1 layer, 1 head, d=24, G={run.group}, K={run.thought.k}, {run.recipe.batch} "
        f"prompts; one core of {device_name(_cpu())}, torch {torch.__version__}.\nOne prompt of ours is "
        f"{flops / 1e6:.2f} Mflop of matrix products; sgemm here {sgemm / 1e9:.0f} Gflop/s. Medians of turns taken in "
        f"alternation.\n\n{table.round(2).to_string(index=False)}"
    )


def grpo_table(rounds: int, compiled: bool) -> tuple[pd.DataFrame, float, float]:
    """Speed of policy gradients by stack; matrix product flop of our step per prompt; the measured sgemm rate."""
    sgemm, turns, prompts = [], {BASELINE: (plain_policy(), 1)}, policy_run().recipe.batch
    for size in POLICIES:
        for fast in (False, True) if compiled else (False,):
            turns[f"stack of {size}{', compiled' if fast else ''}"] = _steps(policy_trainer(size, fast)), size
    taken = in_turns(
        {name: turn for name, (turn, _) in turns.items()}
        | {"sgemm": lambda: sgemm.append(sgemm_rate(_cpu(), repeats=1))},
        rounds,
    )
    each = {name: [spent / (STEPS * size * prompts) for spent in taken[name]] for name, (_, size) in turns.items()}
    flops, rate = step_flops(policy_trainer(1)) / prompts, statistics.median(sgemm)
    rows = [
        {
            "variant": name,
            "prompts/s": round(1 / statistics.median(own)),
            "times the loop": ratio(each[BASELINE], own),
            "share of sgemm (%)": 100 * flops / statistics.median(own) / rate,
        }
        for name, own in each.items()
    ]
    return pd.DataFrame(rows), flops, rate


def policy_run(seed: int = 42) -> GRPOSpec:
    """The paper's GRPO at K = 3 from a discrete start of the smaller model."""
    start = spec("discrete", d_model=24, layers=1, heads=1, seed=seed)
    return GRPOSpec(Recipe(steps=1000, batch=16, lr=5e-5, evaluate_every=1000), start, MTS(3))


def policy_trainer(runs: int, compiled: bool = False) -> GRPOTrainer:
    """Runs of several seeds, all from one shipped model."""
    stack = load_stack([policy_run().start] * runs, missing="error")
    return GRPOTrainer([policy_run(42 + run) for run in range(runs)], stack, compile=compiled)


def plain_policy() -> Callable[[], None]:
    """The same run's steps with Hugging Face's model."""
    trainer = policy_trainer(1)
    data, plain = trainer.data, PlainGRPO(trainer.spec, trainer.stack.to_hf(0))
    batches = data.order([trainer.spec.seed], 0, STEPS, trainer.recipe.batch)[0]

    def turn() -> None:
        for index in batches:
            plain.step(data.prompts[index], data.answers[index])

    return turn


def stack_variant(runs: int, compiled: bool) -> Variant:
    """Our stacked trainer with `runs` runs."""
    trainer = SupervisedTrainer([spec("cot2", "paper", seed=42 + r) for r in range(runs)], compile=compiled)
    return Variant(f"stack of {runs}{', compiled' if compiled else ''}", runs, _steps(trainer))


def _steps(trainer: StackTrainer) -> Callable[[], None]:
    """Takes `STEPS` training steps, the same ones each time it is called."""
    trainer.order[:] = trainer.data.order([s.seed for s in trainer.specs], 0, SEGMENT, trainer.recipe.batch)

    def turn() -> None:
        trainer.position.zero_()
        for _ in range(STEPS):
            trainer.take_step()

    return turn


def hugging_face_variant() -> Variant:
    """The same model, loss and optimiser the usual way: one model, one batch, fused AdamW."""
    from transformers import GPT2Config, GPT2LMHeadModel

    run = spec("cot2", "paper")
    data, task = stack_data([run], "cpu"), run.task
    config = GPT2Config(
        vocab_size=task.vocab_size,
        n_positions=task.positions,
        n_embd=32,
        n_layer=2,
        n_head=2,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = GPT2LMHeadModel(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    batches = data.order([run.seed], 0, STEPS, run.recipe.batch)[0]
    table = model.transformer.wte.weight

    def turn() -> None:
        for index in batches:
            prompts, outputs = data.prompts[index], data.outputs[0, index]
            inputs = torch.cat([model.transformer.wte(prompts), outputs[:, :-1] @ table], dim=1)
            logits = model(inputs_embeds=inputs).logits[:, -outputs.shape[1] :]
            optimizer.zero_grad()
            soft_nll(logits[None], outputs[None]).sum(-1).mean().backward()
            optimizer.step()

    return Variant(BASELINE, 1, turn)


def step_flops(trainer: StackTrainer) -> float:
    """Matrix product flop of one training step, forward and backward."""
    with FlopCounterMode(display=False) as counter:
        trainer.take_step()
    return float(counter.get_total_flops())


def _peak_memory(turn: Callable[[], None]) -> float:
    """Peak resident memory of the process over one turn, in GiB (Linux only, else NaN)."""
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5")
        turn()
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 2**20
    except OSError:
        return float("nan")


def _cpu() -> torch.device:
    return torch.device("cpu")
