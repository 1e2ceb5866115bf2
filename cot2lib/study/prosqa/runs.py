"""Runs on the whole of ProsQA: questions of three to six hops, on graphs as large as the published ones.

Every question has six thoughts; a walk that has ended stays where it is. So no model has to notice when to answer.
Long chains are rare in the published file. Here five hops are as common as four, so that they can be learnt.

A search serves each method alike: `TRIALS` with the first seed, chosen from on held-out generated graphs. CoT2 made no
error there in its first trial, and so had no other. Every run costs about as many core-minutes. COCONUT makes its
thoughts one by one, so it takes half as many steps.
"""

from collections.abc import Sequence
from typing import NamedTuple

from cot2lib.specs import RunSpec
from cot2lib.specs.profiles import SEEDS, spec
from cot2lib.study.graph_runs import BOTH, METHODS, OFFICIAL
from cot2lib.tasks import ProsQA
from cot2lib.tasks.reachability import MOST_HOPS

SHARES = (0.30, 0.32, 0.32, 0.06)  # of questions of 3, 4, 5 and 6 hops
STEPS = 16_000
D_MODEL = 64
NARROWER, SHALLOWER = (24, 32, 40, 48), (1, 2, 3)  # dimensions, layers


class Trial(NamedTuple):
    """A recipe that each method is tried with.

    Attributes:
        heads: of each layer.
        lr: the peak of the learning rate.
    """

    heads: int
    lr: float


TRIALS = (Trial(1, 1e-3), Trial(2, 1e-3), Trial(1, 2e-3))
CHOSEN = dict.fromkeys(METHODS, TRIALS[0])
SHIPPED = {"cot2": 5, "discrete": 3, "coconut": 3, "no-cot": 1}  # seeds by method


def whole(
    method: str,
    seed: int = SEEDS[0],
    trial: Trial = TRIALS[0],
    frontier: str = "nodes",
    waits: bool = True,
    **shape: int,
) -> RunSpec:
    """A run on questions of all hops.

    Args:
        method, seed: which.
        trial: its recipe.
        frontier: how targets of CoT2 weigh nodes; no other method has any.
        waits: whether all questions have six thoughts, or each as many as it has hops.
        **shape: `d_model` and `layers`, by default 64 and 4.
    """
    task = ProsQA(
        names=OFFICIAL,
        hops=None,
        mixture=SHARES,
        frontier=frontier if method == "cot2" else ProsQA.frontier,
        padding_counts=True,
        waiting=MOST_HOPS if waits else None,
    )
    steps, cycles = (STEPS // 2, task.steps) if method == "coconut" else (STEPS, 1)
    schedule = dict(steps=steps, warmup=steps // cycles // 20, evaluate_every=steps // 50, beta2=0.98)
    model = dict(d_model=D_MODEL, heads=trial.heads) | shape
    return spec(method, task=task, lr=trial.lr, seed=seed, **model, **schedule)


def tried(methods: Sequence[str] = METHODS) -> list[RunSpec]:
    """Every trial of some methods."""
    return [whole(method, trial=trial) for method in methods for trial in (TRIALS[:1] if method == "cot2" else TRIALS)]


def weighed(seeds: Sequence[int] = SEEDS[:1]) -> list[RunSpec]:
    """CoT2 with targets as the paper weighs them: a node by the walks that reach it."""
    return [whole("cot2", seed, CHOSEN["cot2"], frontier="walks") for seed in seeds]


def chosen(seeds: Sequence[int] = SEEDS, methods: Sequence[str] = METHODS) -> list[RunSpec]:
    """Each method by the trial that was best on held-out generated graphs."""
    return [whole(method, seed, CHOSEN[method]) for method in methods for seed in seeds]


def unwaiting(seeds: Sequence[int] = SEEDS[:1], methods: Sequence[str] = BOTH) -> list[RunSpec]:
    """Models that have as many thoughts as a question has hops, and so also learn when to answer."""
    return [whole(method, seed, CHOSEN[method], waits=False) for method in methods for seed in seeds]


def smaller(seeds: Sequence[int] = SEEDS[:1]) -> list[RunSpec]:
    """CoT2 with fewer dimensions, and with fewer layers."""
    shapes = [*({"d_model": d} for d in NARROWER), *({"layers": count} for count in SHALLOWER)]
    return [whole("cot2", seed, CHOSEN["cot2"], **shape) for shape in shapes for seed in seeds]


def compared(profile: str) -> list[RunSpec]:
    """The runs that tests compare; the paper has no such recipe."""
    return [*chosen(), *weighed(), *unwaiting(), *smaller()] if profile == "quick" else []


def every(profile: str) -> list[RunSpec]:
    """All of them, each once."""
    return list(dict.fromkeys([*tried(), *compared(profile)])) if profile == "quick" else []


def answering() -> list[RunSpec]:
    """Runs whose weights ship, so that they answer a reader's file: every seed of CoT2, and of no-CoT, which guesses,
    the first alone."""
    return [run for method, count in SHIPPED.items() for run in chosen(SEEDS[:count], (method,))]
