"""What shipped records rest on must not move: targets bit by bit, and the id of one run of every kind."""

import hashlib
from dataclasses import replace

import pandas as pd
import pytest
from builders import ROOT

from cot2lib.kit import random
from cot2lib.specs import Supervision
from cot2lib.specs.profiles import METHODS, grpo, spec
from cot2lib.supervision import hindsight_targets
from cot2lib.targets import Apart, DrawnState, FreshPath, Renamed, Shuffled, Visits, WrongStates
from cot2lib.tasks import MNNS, ProntoQA, ProsQA
from cot2lib.thoughts import MTS, Base, Dirichlet, Discrete, Gaussian, Gumbel

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


def runs_of_every_kind():
    """Every method under both profiles, every thought rule that samples, and what else a spec can say."""
    start = spec("discrete", "paper", layers=1, heads=1, d_model=24)
    runs = {f"{method}, {profile}": spec(method, profile) for method in METHODS for profile in ("paper", "quick")}
    runs |= {f"B = {b}": spec("cot2", budget=b, d_model=16, seed=44) for b in (2, 4, 8)}
    runs["self-fed"] = spec("cot2", layers=4, heads=4, self_fed_from=0.5)
    runs["sparse"] = spec("discrete", task=MNNS(5, 13, 5), every=2)
    runs["trigonometric"] = spec("cot2", embedding="cosine, frozen")
    rules = [MTS(3), MTS(3, 3.0), Discrete(1.0), Dirichlet(20.0), Dirichlet(20.0, masked=True)]
    rules += [Gumbel(0.1), Gaussian(0.1)]
    runs |= {
        f"{rule}, {profile}": grpo(start, profile, thought=rule) for rule in rules for profile in ("paper", "quick")
    }
    runs["whole vocabulary"] = grpo(start, thought=Dirichlet(20.0, 0.0, most=None), ratio="product")
    runs["rising K"] = grpo(start, thought=MTS(6), first_k=1)
    runs["divergence"] = grpo(start, kl=0.1)
    runs["one-sided dropout"] = grpo(start, dropout=0.1)
    runs["a mask per rollout"] = grpo(start, thought=Base(), mask=0.1)
    runs["d = 16"] = spec("discrete", "quick", d_model=16, seed=46)
    runs["ProsQA"] = spec("cot2", "quick", task=ProsQA())
    runs["ProsQA, paper"] = spec("cot2", "paper", task=ProsQA(naming="age"))
    runs["ProsQA, MTS"] = grpo(runs["ProsQA"], "quick")
    runs["ProntoQA, paper"] = spec("cot2", "paper", task=ProntoQA(naming="once"))
    runs["drawn and fed"] = replace(spec(), supervision=Supervision(targets=Apart(DrawnState(), FreshPath(2))))
    runs["B = 4, quick"] = spec("cot2", "quick", budget=4)
    return runs


def test_ids():
    known = pd.read_csv(ROOT / "tests" / "data" / "ids.csv", index_col="run")["id"].to_dict()
    assert {name: run.id for name, run in runs_of_every_kind().items()} == known
