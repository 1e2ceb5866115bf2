"""Runs on the whole of ProsQA: questions of three to six hops, on graphs as large as the published ones.

Every question has six thoughts, and a walk that has ended stays where it is, so no model has to notice when to answer.
Long chains are rare in the published file. Here five hops are as common as four, so that they can be learnt.

Runs differ only in the method. Each method is tried with the first seed, by the number of `TRIALS` in `TRIED`.
CoT2 made no error on held-out generated graphs in its first trial, and so had no other. No later trial of another
method was more than a point better than its first, so all are compared by their first. Runs should cost equally many
core-minutes. COCONUT makes its thoughts one by one, so it takes half as many steps.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cot2lib.specs import RunSpec
from cot2lib.specs.profiles import SEEDS, spec
from cot2lib.study import graph_runs
from cot2lib.study.graph_runs import BOTH, METHODS
from cot2lib.tasks import ProntoQA, ProsQA
from cot2lib.tasks.prontoqa import READINGS, TWINS
from cot2lib.tasks.reachability import MOST_HOPS

STEPS = 16_000  # of training
SHARES = (0.30, 0.32, 0.32, 0.06)  # of questions of 3, 4, 5 and 6 hops
TRIALS: tuple[dict[str, Any], ...] = (dict(heads=1, lr=1e-3), dict(heads=2, lr=1e-3), dict(heads=1, lr=2e-3))
TRIED = {"cot2": 1, "discrete": 3, "coconut": 3, "no-cot": 3}  # trials by method
# Seeds by method whose weights ship: the records have no room for all.
SHIPPED = {"cot2": 5, "discrete": 1, "coconut": 1, "no-cot": 1}
OF_CONCEPTS = ((READINGS[0], SEEDS, BOTH), (READINGS[0], SEEDS[:2], METHODS[2:]), (TWINS, SEEDS[:1], BOTH))


def whole(method: str, seed: int = SEEDS[0], heads: int = 1, lr: float = 1e-3) -> RunSpec:
    """Return a run on questions of all hops; targets of CoT2 spread evenly over a frontier's nodes."""
    frontier = "nodes" if method == "cot2" else ProsQA.frontier
    asked = dict(names=28, mixture=SHARES, waiting=MOST_HOPS, hops=None)  # as many names as the published file
    task = ProsQA(**asked, frontier=frontier, padding_counts=True)
    steps, cycles = (STEPS // 2, task.steps) if method == "coconut" else (STEPS, 1)
    schedule = dict(steps=steps, warmup=steps // cycles // 20, evaluate_every=steps // 50, beta2=0.98)
    return spec(method, task=task, lr=lr, seed=seed, layers=4, heads=heads, d_model=64, **schedule)


def tried() -> list[RunSpec]:
    return [whole(method, **trial) for method in METHODS for trial in TRIALS[: TRIED[method]]]


def chosen(seeds: Sequence[int] = SEEDS, methods: Sequence[str] = METHODS) -> list[RunSpec]:
    """Return each method by its first trial."""
    return [whole(method, seed) for method in methods for seed in seeds]


def with_weights() -> list[RunSpec]:
    """Return the runs of `chosen` whose weights ship."""
    return [run for method, count in SHIPPED.items() for run in chosen(SEEDS[:count], [method])]


def compared(profile: str) -> list[RunSpec]:
    """Return the runs that tests compare; the paper has no such recipe."""
    return chosen() if profile == "quick" else []


def of_concepts() -> list[RunSpec]:
    """Return runs by the same recipe on ProntoQA as the paper reads it, and on our control.

    Names are drawn anew at every visit, and all its questions have six hops.
    """
    return [
        replace(run, task=ProntoQA(reading=reading, frontier=run.task.frontier, padding_counts=True))
        for reading, seeds, methods in OF_CONCEPTS
        for run in (whole(method, seed) for method in methods for seed in seeds)
    ]


def polled(profile: str) -> list[RunSpec]:
    """Return all runs on graphs whose votes are counted; runs on all hops are by our recipe alone."""
    return graph_runs.polled(profile) + (chosen(SEEDS[:3], BOTH) if profile == "quick" else [])


def searched(profile: str) -> list[RunSpec]:
    """Return all runs on ProntoQA that answer its tests."""
    known = [*graph_runs.every(profile), *(of_concepts() if profile == "quick" else [])]
    return [run for run in known if isinstance(run, RunSpec) and isinstance(run.task, ProntoQA)]


def every(profile: str) -> list[RunSpec]:
    """Return all these runs; the paper has no such recipe."""
    return [*tried(), *chosen(), *of_concepts()] if profile == "quick" else []
