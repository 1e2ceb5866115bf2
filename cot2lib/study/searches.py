"""Which runs the chapter on graphs stands on, per profile; `cot2lib.study.sweeps` lists them with all others."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from cot2lib.specs import GRPOSpec, Run, RunSpec
from cot2lib.specs.graphs import graph_grpo, graph_spec
from cot2lib.specs.profiles import SEEDS
from cot2lib.tasks import ProntoQA, ProsQA, Task
from cot2lib.tasks.prontoqa import READINGS, TWINS
from cot2lib.tasks.reachability import NAMINGS

Change = Callable[[RunSpec], RunSpec]

METHODS = ("cot2", "discrete", "coconut", "no-cot")
TASKS = ("ProsQA", "ProntoQA")
SMALL, OFFICIAL = 19, 28  # names
D_MODELS = (24, 32, 40)  # of the paper's figures
ALL_D_MODELS = (16, 24, 32, 40, 48, 64)
HEADS = (1, 2, 4)
KS = (6, 8, 12)  # tokens of a sampled thought
SIZES = ((SMALL, 32), (OFFICIAL, 32), (OFFICIAL, 64))  # names and dimension
THREE = SEEDS[:3]
PLACED = dict(beta2=0.98, steps=12_000, warmup=600)
BY_AGE = ProsQA(naming="age")  # named as the published files name them
REACHED = ProntoQA(reading=READINGS[0], naming="once")  # as the paper reads it
WIDENED = (BY_AGE, REACHED)


def naming(
    profile: str = "quick",
    seeds: Sequence[int] = THREE,
    methods: Sequence[str] = METHODS,
    namings: Sequence[str] = NAMINGS,
) -> list[RunSpec]:
    """Methods on graphs of at most 19 names, named in each way; d = 32."""
    return [
        graph_spec(method, profile, task=ProsQA(naming=name), seed=seed)
        for name in namings
        for method in methods
        for seed in seeds
    ]


def dimension(
    profile: str = "quick",
    seeds: Sequence[int] = THREE,
    d_models: Sequence[int] = D_MODELS,
    methods: Sequence[str] = ("cot2", "discrete"),
    task: Task = BY_AGE,
) -> list[RunSpec]:
    """CoT2 and discrete CoT over dimensions, on a task's graphs: without another one ProsQA's, of at most 19 names
    that are ages."""
    return [
        graph_spec(method, profile, task=task, d_model=d, seed=seed)
        for d in d_models
        for method in methods
        for seed in seeds
    ]


def widened(profile: str, seeds: Sequence[int] = THREE) -> list[RunSpec]:
    """`dimension` on both tasks."""
    return [run for task in WIDENED for run in dimension(profile, seeds, task=task)]


def placed(
    method: str, names: int, d_model: int, heads: int = 2, seed: int = SEEDS[0], naming: str = "fresh"
) -> RunSpec:
    """A run by what the search for a recipe found: places that count padding, a shorter memory and fewer steps.

    Of rates, 2e-3 and 3e-3 were tried on 19 names at d = 32, and 1e-3 alone on 28 names at d = 64.
    """
    task = ProsQA(names=names, naming=naming, padding_counts=True)
    lr = 2e-3 if d_model <= max(D_MODELS) else 1e-3
    return graph_spec(method, task=task, d_model=d_model, heads=heads, seed=seed, lr=lr, **PLACED)


def surface(
    seeds: Sequence[int] = SEEDS[:1],
    names: Sequence[int] = (SMALL, OFFICIAL),
    d_models: Sequence[int] = ALL_D_MODELS,
    heads: Sequence[int] = HEADS,
) -> list[RunSpec]:
    """CoT2 over number of names, dimension and heads, discrete CoT with two heads; names fresh at every visit."""
    shapes = [*(("cot2", each) for each in heads), ("discrete", 2)]
    return [placed(m, n, d, h, seed) for n in names for d in d_models for m, h in shapes for seed in seeds]


def sized(
    seeds: Sequence[int] = THREE,
    methods: Sequence[str] = ("cot2", "discrete"),
    sizes: Sequence[tuple[int, int]] = SIZES,
    naming: str = "fresh",
) -> list[RunSpec]:
    """Both methods on graphs of each size (names, dimension), by default with names fresh at every visit."""
    return [placed(method, *size, seed=seed, naming=naming) for size in sizes for method in methods for seed in seeds]


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
    return [
        graph_spec(method, profile, task=ProntoQA(reading=reading, naming="once"), seed=seed)
        for reading in readings
        for method in methods
        if method != "coconut" or reading == READINGS[0]
        for seed in seeds
    ]


def twinned(seeds: Sequence[int] = THREE) -> list[RunSpec]:
    """Methods on the control of ProntoQA, which no rule but a search answers; our recipe, d = 32."""
    return answering("quick", seeds, ("cot2", "discrete", "no-cot"), (TWINS,))


def followed(seeds: Sequence[int] = THREE) -> list[RunSpec]:
    """Models that are asked whether they follow the chain: over dimensions and COCONUT on ProntoQA as the paper reads
    it, and those of its control."""
    return [
        *dimension("quick", seeds, task=REACHED),
        *answering("quick", seeds, ("coconut",), READINGS[:1]),
        *twinned(seeds),
    ]


def bare(seeds: Sequence[int] = THREE, namings: Sequence[str] = ("fresh", "age")) -> list[RunSpec]:
    """CoT2 and discrete CoT by the authors' recipe without the dropout and the decay of their code for MNNS; the paper
    states neither for graphs."""
    return list(map(_trained(dropout=0.0, weight_decay=0.0), naming("paper", seeds, METHODS[:2], namings)))


def changed(
    change: str,
    seeds: Sequence[int] = SEEDS[:1],
    methods: Sequence[str] = ("cot2", "discrete"),
    heads: int | None = None,
) -> list[RunSpec]:
    """Our recipe with one thing changed, see `CHANGES`; fresh names, at most 19, d = 32, two heads or others."""
    return [CHANGES[change](graph_spec(method, seed=seed, heads=heads)) for method in methods for seed in seeds]


def _trained(**fields) -> Change:
    return lambda run: replace(run, recipe=replace(run.recipe, **fields))


def _asked(**fields) -> Change:
    return lambda run: replace(run, task=replace(run.task, **fields))


def _shown(**fields) -> Change:
    return lambda run: replace(run, supervision=replace(run.supervision, **fields))


def _made(**fields) -> Change:
    return lambda run: replace(run, model=replace(run.model, **fields))


def _both(one: Change, other: Change) -> Change:
    return lambda run: other(one(run))


def _found(**fields) -> Change:
    """The recipe of `placed`, with fields of its training changed."""
    return lambda run: _trained(**dict(lr=2e-3, **PLACED) | fields)(_asked(padding_counts=True)(run))


CHANGES: dict[str, Change] = {
    "usual": lambda run: run,
    "batch 128, as many examples": _trained(batch=128, steps=5000, warmup=250, evaluate_every=100),
    "rate 1e-3": _trained(lr=1e-3),
    "rate 1e-4": _trained(lr=1e-4),
    "beta_2 .98": _trained(beta2=0.98),
    "constant rate": _trained(schedule="constant"),
    "dropout .1": _trained(dropout=0.1),
    "twice as long": _trained(steps=40_000, warmup=2000, evaluate_every=800),
    "embeddings .02": _made(embedding_sd=0.02),
    "two layers": _made(layers=2),
    "twice the graphs": _asked(inputs=2 * ProsQA.inputs),
    "padding counts": _asked(padding_counts=True),
    "all four of the last search": _found(),
    "those four, constant rate": _found(schedule="constant"),
    "those four, twice as long": _found(steps=24_000, warmup=1200, evaluate_every=480),
    "names drawn once": _asked(naming="once"),
    "five hops": _asked(hops=5),
    "one hop first": _shown(curriculum="first"),
    "hops one by one": _shown(curriculum="growing"),
    "one hop first, constant rate": _both(_shown(curriculum="first"), _trained(schedule="constant")),
    "hops one by one, constant rate": _both(_shown(curriculum="growing"), _trained(schedule="constant")),
    "own thoughts from half on": _shown(feeding="self", switch=10_000),
    "targets of nodes": _asked(frontier="nodes"),
    "targets of complete walks": _asked(frontier="complete"),
    "the paper's grammar": _asked(grammar="sentences"),
}


# A discrete target is one way's next node: it has no other definition, and no use once a model has gone another way.
ALONE = ("own thoughts from half on", "targets of nodes", "targets of complete walks")  # of CoT2
OF_COCONUT = (
    "usual", "rate 1e-3", "constant rate", "twice as long", "padding counts", "all four of the last search",
    "those four, twice as long", "names drawn once",
)  # fmt: skip

CHOSEN = {"cot2": "padding counts", "discrete": "those four, twice as long"}  # of equals the shorter


def changes() -> dict[str, list[RunSpec]]:
    """Runs with one thing changed, by what it is: of CoT2, of discrete CoT but for `ALONE`, and `OF_COCONUT`."""
    return {change: changed(change, methods=_methods(change)) for change in CHANGES}


def _methods(change: str) -> tuple[str, ...]:
    sides = METHODS[:1] if change in ALONE else METHODS[:2]
    return (*sides, *METHODS[2:3]) if change in OF_COCONUT else sides


def chosen(seeds: Sequence[int] = THREE) -> list[RunSpec]:
    """Each method by the change that served it best on validation graphs with the first seed and two heads, see
    `CHOSEN`; with two heads, and with four as in the paper."""
    return [
        run
        for heads in HEADS[1:]
        for method, change in CHOSEN.items()
        for run in changed(change, seeds, (method,), heads)
    ]


def starts(task: str, seeds: Sequence[int] = THREE, methods: Sequence[str] = ("cot2", "discrete")) -> list[RunSpec]:
    """What policy gradients start from: models of our recipe, on ProsQA with fresh names, on ProntoQA as the paper
    reads it; d = 32."""
    if task == "ProntoQA":
        return answering("quick", seeds, methods, READINGS[:1])
    return naming("quick", seeds, methods, ("fresh",))


def rewarded(
    profile: str = "quick",
    seeds: Sequence[int] = THREE,
    methods: Sequence[str] = ("cot2", "discrete"),
    ks: Sequence[int] = KS,
    tasks: Sequence[str] = TASKS,
) -> list[GRPOSpec]:
    """MTS of K tokens from `starts`."""
    return [graph_grpo(start, profile, k) for task in tasks for k in ks for start in starts(task, seeds, methods)]


def voting(
    profile: str,
    seeds: Sequence[int] = THREE,
    methods: Sequence[str] = ("cot2", "discrete"),
    tasks: Sequence[str] = TASKS,
) -> list[RunSpec]:
    """Runs whose samples are counted: on ProsQA with names by age, and on ProntoQA as the paper reads it; d = 32."""
    asked = {
        "ProsQA": dimension(profile, seeds, (32,), methods),
        "ProntoQA": answering(profile, seeds, methods, READINGS[:1]),
    }
    return [run for task in tasks for run in asked[task]]


def looked_into() -> list[RunSpec]:
    """Runs whose weights are shipped: pages look into them, and policy gradients start from them."""
    return [run for task in TASKS for run in starts(task)]


def searches(profile: str) -> list[Run]:
    """All of them, each once."""
    found = [*naming(profile), *widened(profile), *answering(profile)]
    if profile == "quick":
        found += [*twinned(), *surface(), *sized(), *of_published_size()]
        found += [run for part in changes().values() for run in part]
        found += chosen()
    else:
        found += bare()
    return list(dict.fromkeys([*found, *rewarded(profile)]))
