"""Runs on the whole of ProsQA: questions of three to six hops, on graphs as large as the published ones.

Every question has six thoughts, and a walk that has ended stays where it is, so no model has to notice when to answer.
Long chains are rare in the published file. Here five hops are as common as four, so that they can be learnt.

Runs differ only in the method. Each method is tried with the first seed, by the number of `TRIALS` in `TRIED`.
CoT2 made no error on held-out generated graphs in its first trial, and so had no other. No later trial of another
method was more than a point better than its first, so all are compared by their first. Runs should cost equally many
core-minutes. COCONUT makes its thoughts one by one, so it takes half as many steps.

Other runs are of the same recipe on ProntoQA.
"""

from collections.abc import Sequence
from typing import Any

from cot2lib.specs import RunSpec
from cot2lib.specs.profiles import SEEDS
from cot2lib.study import graph_runs
from cot2lib.study.graph_runs import BOTH, METHODS, of_concepts, whole
from cot2lib.tasks import ProntoQA

TRIALS: tuple[dict[str, Any], ...] = (dict(heads=1, lr=1e-3), dict(heads=2, lr=1e-3), dict(heads=1, lr=2e-3))
TRIED = {"cot2": 1, "discrete": 3, "coconut": 3, "no-cot": 3}  # trials by method
# Seeds by method whose weights ship: the records have no room for all.
SHIPPED = {"cot2": 5, "discrete": 1, "coconut": 1, "no-cot": 1}


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
