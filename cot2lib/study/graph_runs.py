"""Which runs the chapters on graphs stand on, per profile: `prosqa` and `prontoqa`.

`cot2 run search` trains them all. The sweep and its record files keep the name of the chapter that these three once
were, since no record may move.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from cot2lib.specs import GRPOSpec, Run, RunSpec
from cot2lib.specs.profiles import SEEDS, TEN, grpo, spec
from cot2lib.tasks import ProntoQA, ProsQA, Task
from cot2lib.tasks.prontoqa import READINGS, TWINS
from cot2lib.tasks.reachability import NAMINGS
from cot2lib.thoughts import MTS

SWEEP = "search"  # what `cot2 run` and the record files call all of this
METHODS = ("cot2", "discrete", "coconut", "no-cot")
BOTH, ALONE = METHODS[:2], METHODS[:1]
TASKS = ("ProsQA", "ProntoQA")
SMALL, OFFICIAL = 19, 28  # names
D_MODELS = (24, 32, 40)  # of the paper's figures
ALL_D_MODELS = (16, 24, 32, 40, 48, 64)
HEADS = (1, 2, 4)
KS = (6, 8, 12)  # tokens of a sampled thought
SIZES = ((SMALL, 32), (OFFICIAL, 32), (OFFICIAL, 64))  # names and dimension
THREE = SEEDS[:3]
SIX, SEVEN = TEN[:6], TEN[:7]
PLACED = dict(beta2=0.98, steps=12_000, warmup=600)
SEARCHED, PADDED = dict(lr=2e-3, **PLACED), dict(padding_counts=True)
UNDROPPED = {"recipe": dict(dropout=0.0, weight_decay=0.0)}
BY_AGE = ProsQA(naming="age")  # named as the published files name them
REACHED = ProntoQA(reading=READINGS[0], naming="once")  # as the paper reads it


def _each(
    profile: str, tasks: Sequence[Task], methods: Sequence[str], seeds: Sequence[int], d_models: Sequence[int] = (32,)
) -> list[RunSpec]:
    return [
        spec(method, profile, task=task, d_model=d, seed=seed)
        for task in tasks
        for d in d_models
        for method in methods
        for seed in seeds
    ]


def _with(run: RunSpec, fields: Mapping[str, Mapping]) -> RunSpec:
    """A run with new values of fields of its `recipe`, `task`, `supervision` or `model`."""
    return replace(run, **{part: replace(getattr(run, part), **new) for part, new in fields.items()})


def naming(
    profile: str = "quick",
    seeds: Sequence[int] = THREE,
    methods: Sequence[str] = METHODS,
    namings: Sequence[str] = NAMINGS,
) -> list[RunSpec]:
    """Methods on graphs of at most 19 names, named in each way; d = 32."""
    return _each(profile, [ProsQA(naming=name) for name in namings], methods, seeds)


def dimension(
    profile: str = "quick",
    seeds: Sequence[int] = THREE,
    d_models: Sequence[int] = D_MODELS,
    methods: Sequence[str] = BOTH,
    task: Task = BY_AGE,
) -> list[RunSpec]:
    """CoT2 and discrete CoT over dimensions on a task's graphs."""
    return _each(profile, [task], methods, seeds, d_models)


def placed(
    method: str, names: int, d_model: int, heads: int = 2, seed: int = SEEDS[0], naming: str = "fresh"
) -> RunSpec:
    """A run by what the search for a recipe found: places that count padding, a shorter memory and fewer steps.

    Of rates, 2e-3 and 3e-3 were tried on 19 names at d = 32, and 1e-3 alone on 28 names at d = 64.
    """
    task = ProsQA(names=names, naming=naming, padding_counts=True)
    lr = 2e-3 if d_model <= max(D_MODELS) else 1e-3
    return spec(method, task=task, d_model=d_model, heads=heads, seed=seed, lr=lr, **PLACED)


def surface() -> list[RunSpec]:
    """CoT2 over number of names, dimension and heads, discrete CoT with two heads; names fresh at every visit."""
    shapes = [*(("cot2", heads) for heads in HEADS), ("discrete", 2)]
    return [placed(m, n, d, heads) for n in (SMALL, OFFICIAL) for d in ALL_D_MODELS for m, heads in shapes]


def sized(
    seeds: Sequence[int] = THREE, sizes: Sequence[tuple[int, int]] = SIZES, naming: str = "fresh"
) -> list[RunSpec]:
    """Both methods on graphs of each size (names, dimension), by default with names fresh at every visit."""
    return [placed(method, *size, seed=seed, naming=naming) for size in sizes for method in BOTH for seed in seeds]


def of_published_size(seeds: Sequence[int] = THREE) -> list[RunSpec]:
    """Both methods at d = 64 on graphs as large as the published ones, with fresh names, and with ages as there."""
    return [run for naming in ("fresh", "age") for run in sized(seeds, sizes=SIZES[-1:], naming=naming)]


def answering(
    profile: str = "quick",
    seeds: Sequence[int] = THREE,
    methods: Sequence[str] = METHODS,
    readings: Sequence[str] = READINGS,
) -> list[RunSpec]:
    """Methods on ProntoQA as the paper reads it and as its source asks it, names drawn for every question; d = 32.

    COCONUT has the paper's reading alone.
    """
    asked = [ProntoQA(reading=reading, naming="once") for reading in readings]
    without = [name for name in methods if name != "coconut"]
    return [run for task in asked for run in _each(profile, [task], methods if task == REACHED else without, seeds)]


def twinned(seeds: Sequence[int] = SIX) -> list[RunSpec]:
    """Methods on the control of ProntoQA, which no rule but a search answers; our recipe, d = 32."""
    return answering("quick", seeds, (*BOTH, "no-cot"), (TWINS,))


def prontoqa(profile: str, seeds: Sequence[int] = TEN) -> list[RunSpec]:
    """Runs on ProntoQA at d = 32.

    By our recipe seeds part the most where it is asked what is reached. There CoT2 and discrete chain of thought have
    all seeds, other methods and the control the first six. The other reading has the first three. So has the authors'
    recipe, by which no run leaves chance.
    """
    first, few = seeds[: len(SIX)], seeds[: len(THREE)]
    if profile == "paper":
        return answering(profile, few)
    others = answering(profile, first, METHODS[2:], READINGS[:1])
    return [*widened(profile, seeds, (32,)), *others, *answering(profile, few, readings=READINGS[1:]), *twinned(first)]


def widened(
    profile: str, seeds: Sequence[int] = TEN, d_models: Sequence[int] = D_MODELS, methods: Sequence[str] = BOTH
) -> list[RunSpec]:
    """`dimension` on ProntoQA as the paper reads it; by the authors' recipe the first three seeds."""
    return dimension(profile, seeds[: len(THREE)] if profile == "paper" else seeds, d_models, methods, REACHED)


def followed(seeds: Sequence[int]) -> list[RunSpec]:
    """Models that are asked whether they follow the chain: over dimensions and COCONUT on ProntoQA as the paper reads
    it, and those of its control."""
    first = seeds[: len(SIX)]
    return [*widened("quick", seeds), *answering("quick", first, ("coconut",), READINGS[:1]), *twinned(first)]


def bare(
    seeds: Sequence[int] = THREE, namings: Sequence[str] = ("fresh", "age"), methods: Sequence[str] = BOTH
) -> list[RunSpec]:
    """Methods on ProsQA by the authors' recipe without the dropout and the decay of their code for MNNS; the paper
    states neither for graphs."""
    return [_with(run, UNDROPPED) for run in naming("paper", seeds, methods, namings)]


def by_age(seeds: Sequence[int] = TEN) -> list[RunSpec]:
    """CoT2 and discrete CoT on ProsQA by the authors' recipe with ages as names: the first seven seeds, for three left
    rows open."""
    return naming("paper", seeds[: len(SEVEN)], BOTH, ("age",))


def bare_by_age(seeds: Sequence[int] = TEN) -> list[RunSpec]:
    """`bare` with ages as names: discrete CoT has all seeds, for five left its row open, other methods have five."""
    first, rest = seeds[: len(SEEDS)], seeds[len(SEEDS) :]
    return [*bare(first, ("age",), METHODS), *bare(rest, ("age",), ("discrete",))]


def bare_answering(seeds: Sequence[int] = THREE, methods: Sequence[str] = METHODS) -> list[RunSpec]:
    """`bare` on ProntoQA as the paper reads it."""
    return [_with(run, UNDROPPED) for run in answering("paper", seeds, methods, READINGS[:1])]


class Choice(NamedTuple):
    """A change of our recipe.

    Attributes:
        fields: new values by part of a run: its `recipe`, `task`, `supervision` or `model`.
        methods: that were trained with it. A discrete target is one way's next node: it has no other definition, and
            no use once a model has gone another way.
    """

    fields: dict[str, dict]
    methods: Sequence[str] = BOTH


EVERY = METHODS[:3]
CONSTANT = dict(schedule="constant")
CHOICES: dict[str, Choice] = {
    "usual": Choice({}, EVERY),
    "batch": Choice({"recipe": dict(batch=128, steps=5000, warmup=250, evaluate_every=100)}),
    "lr_1e-3": Choice({"recipe": dict(lr=1e-3)}, EVERY),
    "lr_1e-4": Choice({"recipe": dict(lr=1e-4)}),  # the paper's
    "beta2": Choice({"recipe": dict(beta2=0.98)}),
    "constant": Choice({"recipe": CONSTANT}, EVERY),
    "dropout": Choice({"recipe": dict(dropout=0.1)}),
    "twice": Choice({"recipe": dict(steps=40_000, warmup=2000, evaluate_every=800)}, EVERY),
    "embeddings": Choice({"model": dict(embedding_sd=0.02)}),
    "layers": Choice({"model": dict(layers=2)}),
    "inputs": Choice({"task": dict(inputs=2 * ProsQA.inputs)}),
    "padding": Choice({"task": PADDED}, EVERY),
    "large": Choice({"recipe": SEARCHED, "task": PADDED}, EVERY),  # the recipe for large graphs
    "large_constant": Choice({"recipe": SEARCHED | CONSTANT, "task": PADDED}),
    "large_twice": Choice(
        {"recipe": SEARCHED | dict(steps=24_000, warmup=1200, evaluate_every=480), "task": PADDED}, EVERY
    ),
    "once": Choice({"task": dict(naming="once")}, EVERY),
    "hops": Choice({"task": dict(hops=5)}),
    "first": Choice({"supervision": dict(curriculum="first")}),
    "growing": Choice({"supervision": dict(curriculum="growing")}),
    "first_constant": Choice({"supervision": dict(curriculum="first"), "recipe": CONSTANT}),
    "growing_constant": Choice({"supervision": dict(curriculum="growing"), "recipe": CONSTANT}),
    "own": Choice({"supervision": dict(feeding="self", switch=10_000)}, ALONE),
    "nodes": Choice({"task": dict(frontier="nodes")}, ALONE),
    "complete": Choice({"task": dict(frontier="complete")}, ALONE),
    "sentences": Choice({"task": dict(grammar="sentences")}),  # the paper's grammar
}
CHOSEN = {"cot2": "padding", "discrete": "large_twice"}  # of equals the shorter


def changed(
    choice: str, seeds: Sequence[int] = SEEDS[:1], methods: Sequence[str] | None = None, heads: int | None = None
) -> list[RunSpec]:
    """Our recipe with one of `CHOICES`; fresh names, at most 19, d = 32, two heads or others."""
    given = CHOICES[choice]
    return [
        _with(spec(name, task=ProsQA(), seed=seed, heads=heads), given.fields)
        for name in methods or given.methods
        for seed in seeds
    ]


def changes() -> dict[str, list[RunSpec]]:
    """Runs of one seed by choice."""
    return {choice: changed(choice) for choice in CHOICES}


def chosen(seeds: Sequence[int] = THREE) -> list[RunSpec]:
    """Each method by the choice that served it best on validation graphs with the first seed and two heads; with two
    heads, and with four as in the paper."""
    return [
        run
        for heads in HEADS[1:]
        for method, choice in CHOSEN.items()
        for run in changed(choice, seeds, (method,), heads)
    ]


def starts(task: str, seeds: Sequence[int] = THREE, methods: Sequence[str] = BOTH) -> list[RunSpec]:
    """Starts of policy gradients: models of our recipe, on ProsQA with fresh names, on ProntoQA as the paper
    reads it; d = 32."""
    if task == "ProntoQA":
        return answering("quick", seeds, methods, READINGS[:1])
    return naming("quick", seeds, methods, ("fresh",))


def rewarded(
    profile: str = "quick",
    seeds: Sequence[int] = THREE,
    methods: Sequence[str] = BOTH,
    ks: Sequence[int] = KS,
    tasks: Sequence[str] = TASKS,
) -> list[GRPOSpec]:
    """MTS of K tokens from `starts`."""
    return [
        grpo(start, profile, thought=MTS(k)) for task in tasks for k in ks for start in starts(task, seeds, methods)
    ]


def voting(
    profile: str,
    seeds: Sequence[int] = THREE,
    methods: Sequence[str] = BOTH,
    tasks: Sequence[str] = TASKS,
) -> list[RunSpec]:
    """Runs whose samples are counted: on ProsQA with names by age, and on ProntoQA as the paper reads it; d = 32."""
    asked = {
        "ProsQA": dimension(profile, seeds, (32,), methods),
        "ProntoQA": answering(profile, seeds, methods, READINGS[:1]),
    }
    return [run for task in tasks for run in asked[task]]


def polled(profile: str) -> list[RunSpec]:
    """All runs whose samples are counted; seven seeds settle the row of ProsQA by the authors' recipe, and ProntoQA
    has those of `prontoqa`."""
    by_task = {"paper": (SEVEN, THREE), "quick": (THREE, TEN)}[profile]
    return [run for task, seeds in zip(TASKS, by_task) for run in voting(profile, seeds, tasks=(task,))]


def looked_into() -> list[RunSpec]:
    """Runs whose weights are shipped: pages look into them, and policy gradients start from them."""
    return [run for task in TASKS for run in starts(task)]


def every(profile: str) -> list[Run]:
    """All of them, each once."""
    found = [*naming(profile), *dimension(profile), *widened(profile), *prontoqa(profile), *polled(profile)]
    if profile == "quick":
        found += [*surface(), *sized(), *of_published_size()]
        found += [run for part in changes().values() for run in part]
        found += chosen()
    else:
        found += [*bare(), *bare_by_age(), *bare_answering(SEEDS)]
    rewards = [run for task, seeds in zip(TASKS, (THREE, SIX)) for run in rewarded(profile, seeds, tasks=(task,))]
    return list(dict.fromkeys([*found, *rewards]))


def supervised(profile: str) -> list[RunSpec]:
    """Those that are not trained by reward."""
    return [run for run in every(profile) if isinstance(run, RunSpec)]
