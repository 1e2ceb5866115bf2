"""Which runs the chapter on graphs stands on, per profile; `cot2lib.study.sweeps` lists them with all others."""

from collections.abc import Sequence

from cot2lib.specs import RunSpec
from cot2lib.specs.profiles import SEEDS, graph_spec
from cot2lib.tasks import ProntoQA, ProsQA, Task
from cot2lib.tasks.prontoqa import READINGS
from cot2lib.tasks.reachability import NAMINGS

METHODS = ("cot2", "discrete", "coconut", "no-cot")
SMALL, OFFICIAL = 19, 28  # names
D_MODELS = (24, 32, 40)  # of the paper's figures
ALL_D_MODELS = (16, 24, 32, 40, 48, 64)
HEADS = (1, 2, 4)
WIDE = 64  # a dimension that holds all names of an official graph
THREE = SEEDS[:3]
PUBLISHED = ProsQA(naming="age")  # named as the published files name them


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
    task: Task = PUBLISHED,
) -> list[RunSpec]:
    """CoT2 and discrete CoT over dimensions, on graphs of at most 19 names that are ages."""
    return [
        graph_spec(method, profile, task=task, d_model=d, seed=seed)
        for d in d_models
        for method in methods
        for seed in seeds
    ]


def surface(
    profile: str = "quick",
    seeds: Sequence[int] = SEEDS[:1],
    names: Sequence[int] = (SMALL, OFFICIAL),
    d_models: Sequence[int] = ALL_D_MODELS,
    heads: Sequence[int] = HEADS,
) -> list[RunSpec]:
    """CoT2 over number of names, dimension and heads, names fresh at every visit."""
    return [
        graph_spec("cot2", profile, task=ProsQA(names=n), d_model=d, heads=h, seed=seed)
        for n in names
        for d in d_models
        for h in heads
        for seed in seeds
    ]


def official(
    profile: str = "quick",
    seeds: Sequence[int] = THREE,
    methods: Sequence[str] = ("cot2", "discrete"),
    d_models: Sequence[int] = (32, WIDE),
) -> list[RunSpec]:
    """Graphs as large as the published ones, names fresh at every visit."""
    return [
        graph_spec(method, profile, task=ProsQA(names=OFFICIAL), d_model=d, seed=seed)
        for d in d_models
        for method in methods
        for seed in seeds
    ]


def answering(
    profile: str = "quick",
    seeds: Sequence[int] = THREE,
    methods: Sequence[str] = ("cot2", "discrete", "no-cot"),
    readings: Sequence[str] = READINGS,
) -> list[RunSpec]:
    """Methods on ProntoQA as the paper reads it and as its source asks it, names drawn for every question; d = 32."""
    return [
        graph_spec(method, profile, task=ProntoQA(reading=reading, naming="once"), seed=seed)
        for reading in readings
        for method in methods
        for seed in seeds
    ]


def searches(profile: str) -> list[RunSpec]:
    """All of them, each once."""
    found = [*naming(profile), *dimension(profile), *answering(profile)]
    if profile == "quick":
        found += [*surface(profile), *official(profile)]
    return list(dict.fromkeys(found))
