"""Runs on the whole of ProsQA: questions of three to six hops, on graphs as large as the published ones.

Every question has six thoughts; a walk that has ended stays where it is. So no model has to notice when to answer.
Long chains are rare in the published file. Here five hops are as common as four, so that they can be learnt.

Methods differ in nothing but the method. Each is tried with the first seed, by as many of `TRIALS` as `TRIED` says.
CoT2 made no error on held-out generated graphs in its first trial, and so had no other. No later trial of another
method was more than a point better than the first, by which all are compared. Runs are to cost as many core-minutes.
COCONUT makes its thoughts one by one, so it takes half as many steps.
"""

from collections.abc import Sequence
from typing import NamedTuple

from cot2lib.specs import RunSpec
from cot2lib.specs.profiles import SEEDS, spec
from cot2lib.study.graph_runs import METHODS, OFFICIAL
from cot2lib.tasks import ProsQA
from cot2lib.tasks.reachability import MOST_HOPS

SHARES = (0.30, 0.32, 0.32, 0.06)  # of questions of 3, 4, 5 and 6 hops
STEPS = 16_000
D_MODEL = 64


class Trial(NamedTuple):
    """A recipe that each method is tried with.

    Attributes:
        heads: of each layer.
        lr: the peak of the learning rate.
    """

    heads: int
    lr: float


TRIALS = (Trial(1, 1e-3), Trial(2, 1e-3), Trial(1, 2e-3))
TRIED = {"cot2": 1, "discrete": 3, "coconut": 3, "no-cot": 3}  # trials by method
# Seeds by method whose weights ship: the records have no room for all.
SHIPPED = {"cot2": 5, "discrete": 1, "coconut": 1, "no-cot": 1}


def whole(method: str, seed: int = SEEDS[0], trial: Trial = TRIALS[0]) -> RunSpec:
    """A run on questions of all hops; targets of CoT2 spread evenly over a frontier's nodes."""
    task = ProsQA(
        names=OFFICIAL,
        hops=None,
        mixture=SHARES,
        frontier="nodes" if method == "cot2" else ProsQA.frontier,
        padding_counts=True,
        waiting=MOST_HOPS,
    )
    steps, cycles = (STEPS // 2, task.steps) if method == "coconut" else (STEPS, 1)
    schedule = dict(steps=steps, warmup=steps // cycles // 20, evaluate_every=steps // 50, beta2=0.98)
    return spec(method, task=task, d_model=D_MODEL, heads=trial.heads, lr=trial.lr, seed=seed, **schedule)


def tried(methods: Sequence[str] = METHODS) -> list[RunSpec]:
    """Every trial of some methods."""
    return [whole(method, trial=trial) for method in methods for trial in TRIALS[: TRIED[method]]]


def chosen(seeds: Sequence[int] = SEEDS, methods: Sequence[str] = METHODS) -> list[RunSpec]:
    """Each method by its first trial."""
    return [whole(method, seed) for method in methods for seed in seeds]


def with_weights() -> list[RunSpec]:
    """Those of `chosen` whose weights ship."""
    return [run for method, count in SHIPPED.items() for run in chosen(SEEDS[:count], [method])]


def compared(profile: str) -> list[RunSpec]:
    """The runs that tests compare; the paper has no such recipe."""
    return chosen() if profile == "quick" else []


def every(profile: str) -> list[RunSpec]:
    """All of them, each once."""
    return list(dict.fromkeys([*tried(), *compared(profile)])) if profile == "quick" else []
