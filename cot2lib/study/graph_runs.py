"""Which runs the chapters on graphs stand on, per profile: `prosqa` and `prontoqa`.

`cot2 run search` trains these, on four hops of ProsQA and on ProntoQA. The sweep and its record files keep the name of
the chapter that these once were, since no record may move. `whole` makes runs on ProsQA of all hops, which
`cot2lib.study.prosqa.runs` lists.
"""

from collections.abc import Sequence
from dataclasses import replace

from cot2lib.specs import Run, RunSpec
from cot2lib.specs.profiles import SEEDS, TEN, spec
from cot2lib.study.sweeps import BOTH, BY_AGE, METHODS, REACHED, UNDROPPED, WIDTHS, distinct, expanded, sweep
from cot2lib.tasks import ProntoQA, ProsQA, Task
from cot2lib.tasks.prontoqa import READINGS, TWINS
from cot2lib.tasks.reachability import MOST_HOPS, NAMINGS

WITHOUT_COCONUT = (*BOTH, "no-cot")
TASKS = {"ProsQA": BY_AGE, "ProntoQA": REACHED}
HEADS = (2, 4)  # our recipe's, and the paper's
THREE = SEEDS[:3]
SIX, SEVEN = TEN[:6], TEN[:7]
SEARCHED = dict(lr=2e-3, beta2=0.98, steps=12_000, warmup=600)  # for large graphs
SIGNED, TWINNED = (replace(REACHED, reading=reading) for reading in ("sign", TWINS))  # as the source asks; our control


# ProsQA of four hops


def naming(
    profile: str = "quick",
    seeds: Sequence[int] = THREE,
    methods: Sequence[str] = METHODS,
    namings: Sequence[str] = NAMINGS,
    **recipe,
) -> list[RunSpec]:
    """Methods on graphs of at most 19 names, named in each way; d = 32."""
    tasks = [ProsQA(naming=name) for name in namings]
    return expanded(dict(task=tasks, method=tuple(methods), **recipe), profile, seeds)


def dimension(
    profile: str, seeds: Sequence[int] = THREE, d_models: Sequence[int] = WIDTHS, task: Task = BY_AGE
) -> list[RunSpec]:
    """CoT2 and discrete CoT over dimensions on a task's graphs."""
    return expanded(dict(task=task, d_model=tuple(d_models), method=BOTH), profile, seeds)


def bare(
    seeds: Sequence[int] = THREE, namings: Sequence[str] = ("fresh", "age"), methods: Sequence[str] = BOTH
) -> list[RunSpec]:
    """Methods on ProsQA by the authors' recipe without the dropout and the decay of their code for MNNS; the paper
    states neither for graphs."""
    return naming("paper", seeds, methods, namings, **UNDROPPED)


def bare_by_age(seeds: Sequence[int] = TEN) -> list[RunSpec]:
    """`bare` with ages as names: discrete CoT has all seeds, for five left its row open, other methods have five."""
    first, rest = seeds[: len(SEEDS)], seeds[len(SEEDS) :]
    return [*bare(first, ("age",), METHODS), *bare(rest, ("age",), ("discrete",))]


def worded() -> list[RunSpec]:
    """`bare` with ages as names, and prompts as the paper writes them: four tokens an edge."""
    return expanded(dict(task=replace(BY_AGE, grammar="sentences"), method=BOTH, **UNDROPPED), "paper", THREE)


def placed(method: str, seed: int = SEEDS[0], **shown) -> RunSpec:
    """A run by what the search for a recipe found: places that count padding, a lower rate, a shorter memory and
    fewer steps."""
    task = ProsQA(padding_counts=True)
    return spec(method, task=task, heads=2, seed=seed, **SEARCHED, **shown)


# Changes of our recipe, one at a time: new values by part of a run. A discrete target is one way's next node: it has
# no other definition, and no use once a model has gone another way, so those of `ALONE` have CoT2 alone.
CONSTANT, PADDED = dict(schedule="constant"), dict(padding_counts=True)
CHOICES: dict[str, dict[str, dict]] = {
    "usual": {},
    "batch": {"recipe": dict(batch=128, steps=5000, warmup=250, evaluate_every=100)},
    "lr_1e-3": {"recipe": dict(lr=1e-3)},
    "lr_1e-4": {"recipe": dict(lr=1e-4)},  # the paper's
    "beta2": {"recipe": dict(beta2=0.98)},
    "constant": {"recipe": CONSTANT},
    "dropout": {"recipe": dict(dropout=0.1)},
    "twice": {"recipe": dict(steps=40_000, warmup=2000, evaluate_every=800)},
    "embeddings": {"model": dict(embedding_sd=0.02)},
    "layers": {"model": dict(layers=2)},
    "inputs": {"task": dict(inputs=2 * ProsQA.inputs)},
    "padding": {"task": PADDED},
    "large": {"recipe": SEARCHED, "task": PADDED},
    "large_constant": {"recipe": SEARCHED | CONSTANT, "task": PADDED},
    "large_twice": {"recipe": SEARCHED | dict(steps=24_000, warmup=1200, evaluate_every=480), "task": PADDED},
    "once": {"task": dict(naming="once")},
    "hops": {"task": dict(hops=5)},
    "first": {"supervision": dict(curriculum="first")},
    "growing": {"supervision": dict(curriculum="growing")},
    "first_constant": {"supervision": dict(curriculum="first"), "recipe": CONSTANT},
    "growing_constant": {"supervision": dict(curriculum="growing"), "recipe": CONSTANT},
    "own": {"supervision": dict(feeding="self", switch=10_000)},
    "nodes": {"task": dict(frontier="nodes")},
    "complete": {"task": dict(frontier="complete")},
    "sentences": {"task": dict(grammar="sentences")},  # the paper's grammar
}
ALONE = {"own", "nodes", "complete"}
WITH_COCONUT = {"usual", "lr_1e-3", "constant", "twice", "padding", "large", "large_twice", "once"}
CHOSEN = {"cot2": "padding", "discrete": "large_twice"}  # of equals the shorter


def _changed(choice: str, method: str, seed: int, heads: int | None = None) -> RunSpec:
    """Our recipe with one of `CHOICES`; fresh names, at most 19, d = 32, two heads or others."""
    run = spec(method, task=ProsQA(), seed=seed, heads=heads)
    return replace(run, **{part: replace(getattr(run, part), **new) for part, new in CHOICES[choice].items()})


def changes() -> list[RunSpec]:
    """Every choice with the first seed."""
    count = {choice: 1 if choice in ALONE else 3 if choice in WITH_COCONUT else 2 for choice in CHOICES}
    return [_changed(choice, method, SEEDS[0]) for choice in CHOICES for method in METHODS[: count[choice]]]


def chosen(seeds: Sequence[int] = THREE) -> list[RunSpec]:
    """Each method by the choice that served it best on validation graphs with the first seed and two heads; with two
    heads, and with four as in the paper."""
    return [
        _changed(choice, method, seed, heads) for heads in HEADS for method, choice in CHOSEN.items() for seed in seeds
    ]


# ProntoQA


def prontoqa(profile: str, seeds: Sequence[int] = TEN) -> list[RunSpec]:
    """Methods on ProntoQA as the paper reads it and as its source asks it, names drawn for every question; d = 32.

    By our recipe seeds part the most where it is asked what is reached. There CoT2 and discrete chain of thought have
    all seeds, other methods and the control, which no rule but a search answers, the first six. The other reading has
    the first three. So has the authors' recipe, by which no run leaves chance. COCONUT has the paper's reading alone.
    """
    first, few = seeds[: len(SIX)], seeds[: len(THREE)]
    signs = expanded(dict(task=SIGNED, method=WITHOUT_COCONUT), profile, few)
    if profile == "paper":
        return expanded(dict(task=REACHED, method=METHODS), profile, few) + signs
    others = expanded(dict(task=REACHED, method=METHODS[2:]), profile, first) + signs
    others += expanded(dict(task=TWINNED, method=WITHOUT_COCONUT), profile, first)
    return widened(profile, seeds, (32,)) + others


def widened(profile: str, seeds: Sequence[int] = TEN, d_models: Sequence[int] = WIDTHS) -> list[RunSpec]:
    """`dimension` on ProntoQA as the paper reads it; by the authors' recipe the first three seeds."""
    return dimension(profile, seeds[: len(THREE)] if profile == "paper" else seeds, d_models, REACHED)


def followed(seeds: Sequence[int]) -> list[RunSpec]:
    """Models that are asked whether they follow the chain: over dimensions and COCONUT on ProntoQA as the paper reads
    it, and those of its control."""
    first = seeds[: len(SIX)]
    coconut = expanded(dict(task=REACHED, method="coconut"), "quick", first)
    return widened("quick", seeds) + coconut + expanded(dict(task=TWINNED, method=WITHOUT_COCONUT), "quick", first)


# Votes on both


def voting(task: str, profile: str, seeds: Sequence[int]) -> list[RunSpec]:
    """Runs whose samples are counted: on ProsQA with names by age, and on ProntoQA as the paper reads it; d = 32."""
    return dimension(profile, seeds, (32,), TASKS[task])


def polled(profile: str) -> list[RunSpec]:
    """All runs whose samples are counted; seven seeds settle the row of ProsQA by the authors' recipe, and ProntoQA
    has those of `prontoqa`."""
    by_task = {"paper": (SEVEN, THREE), "quick": (THREE, TEN)}[profile]
    return [run for task, seeds in zip(TASKS, by_task) for run in voting(task, profile, seeds)]


def looked_into() -> list[RunSpec]:
    """Runs whose weights are shipped: pages look into them, and policy gradients start from them."""
    return sweep("prosqa_starts", seeds=THREE) + sweep("prontoqa_starts", seeds=THREE)


def every(profile: str) -> list[Run]:
    """All of them, each once."""
    found = naming(profile) + dimension(profile) + widened(profile) + prontoqa(profile) + polled(profile)
    found += changes() + chosen() if profile == "quick" else bare() + bare_by_age() + worded()
    named = {"prontoqa_bare": SEEDS, "prosqa_mts": THREE, "prontoqa_mts": SIX}
    return distinct(found, *(sweep(name, profile, seeds) for name, seeds in named.items()))


# ProsQA of all hops


SHARES = (0.30, 0.32, 0.32, 0.06)  # of questions of 3, 4, 5 and 6 hops
OF_CONCEPTS = ((READINGS[0], SEEDS, BOTH), (READINGS[0], SEEDS[:2], METHODS[2:]), (TWINS, SEEDS[:1], BOTH))


def whole(method: str, seed: int = SEEDS[0], heads: int = 1, lr: float = 1e-3) -> RunSpec:
    """A run on questions of all hops; targets of CoT2 spread evenly over a frontier's nodes."""
    frontier = "nodes" if method == "cot2" else ProsQA.frontier
    asked = dict(names=28, mixture=SHARES, waiting=MOST_HOPS, hops=None)  # as many names as the published file
    task = ProsQA(**asked, frontier=frontier, padding_counts=True)
    steps, cycles = (8000, task.steps) if method == "coconut" else (16_000, 1)
    schedule = dict(steps=steps, warmup=steps // cycles // 20, evaluate_every=steps // 50, beta2=0.98)
    return spec(method, task=task, lr=lr, seed=seed, layers=4, heads=heads, d_model=64, **schedule)


def of_concepts() -> list[RunSpec]:
    """The same recipe on ProntoQA as the paper reads it, and on our control.

    Names are drawn anew at every visit, and all its questions have six hops.
    """
    return [
        replace(run, task=ProntoQA(reading=reading, frontier=run.task.frontier, padding_counts=True))
        for reading, seeds, methods in OF_CONCEPTS
        for run in (whole(method, seed) for method in methods for seed in seeds)
    ]
