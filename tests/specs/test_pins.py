"""What shipped records rest on must not move: targets bit by bit. `kinds.py` pins the ids of every kind of run."""

import hashlib

import pytest

from cot2lib.kit import random
from cot2lib.supervision import hindsight_targets
from cot2lib.targets import Apart, DrawnState, FreshPath, Renamed, Shuffled, Visits, WrongStates
from cot2lib.tasks import MNNS

TARGETS = {
    (MNNS(), "minus-first"): "40525b5aa1746e17",
    (MNNS(), "plus-first"): "b9280ed3bf1e4467",
    (MNNS(), "shared"): "054b25dad4faf73b",
    (MNNS(5, 13, 3), "minus-first"): "0bb34a6e1543982c",
    (MNNS(5, 13, 3), "plus-first"): "8bd094db2b04082d",
    (MNNS(5, 13, 3), "shared"): "7f403437d98d6ae9",
}
DRAWN = {
    DrawnState(): "49036106676edfc8",
    FreshPath(2): "0c26d42b3e18ee8e",
    Renamed(): "6a067b993c93b490",
    Shuffled(): "537ba8a5faeac175",
    WrongStates(): "2837b1751541ae41",
    Apart(DrawnState(), FreshPath(2)): "e59079df59696e38",
}


@pytest.mark.parametrize(
    "task, ties",
    # The usual ties of the usual task; the small task pins the other rules too.
    [
        pytest.param(*key, marks=[pytest.mark.thorough] * (key[0] == MNNS() and key[1] != "minus-first"))
        for key in TARGETS
    ],
    ids=str,
)
def test_targets_of_every_budget(task, ties):
    found = hashlib.sha256()
    for budget in (None, *range(1, task.trajectories + 1)):
        found.update(hindsight_targets(task, budget, ties).contiguous().numpy().tobytes())
    assert found.hexdigest()[:16] == TARGETS[task, ties]


@pytest.mark.parametrize("rule", DRAWN, ids=lambda rule: rule.label)
def test_targets_that_are_drawn(rule):
    """Which states have a share; no rounding moves that."""
    task = MNNS(1, 5, 3)
    train = task.split(42).nonzero()[:, 0]
    shown = rule(Visits(task, train, train, random.run_keys([42], random.Site.TARGETS), 0 * train))
    found = hashlib.sha256(b"".join((weights > 0).numpy().tobytes() for weights in shown))
    assert found.hexdigest()[:16] == DRAWN[rule]
