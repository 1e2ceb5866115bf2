"""Runs of the controls, how their outcomes are judged, and what the recorded ones hold."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from builders import evaluate

from cot2lib import runs
from cot2lib.errors import RecordError
from cot2lib.metrics import Interval
from cot2lib.specs.profiles import spec
from cot2lib.study.controls import draw, measure, outcomes
from cot2lib.study.controls.outcomes import EXPLANATIONS, GRAPHS, HIT, MISS, NUMBERS, OPEN, UNRUN, predictions
from cot2lib.study.controls.runs import (
    CONTROLS,
    ON_GRAPHS,
    SEEDS,
    numbers,
    own_rule,
)
from cot2lib.thoughts import MTS, Always, Base, Discrete
from cot2lib.training.data import stack_data


def test_rules_by_hand(monkeypatch):
    monkeypatch.setattr(outcomes.controls, "DIGITS", (3,))
    (row,) = outcomes.rules().to_dict("records")
    signed = lambda *digits: {a + s * b + t * c for a, b, c in [digits] for s in (1, -1) for t in (1, -1)}
    inputs = [(a, b, c) for a in range(1, 10) for b in range(1, 10) for c in range(1, 10)]
    answers = [min(abs(total) for total in signed(*digits)) for digits in inputs]
    by_parity = [[n for n in answers if n % 2 == parity] for parity in (0, 1)]
    assert row[outcomes.COMMONEST] == pytest.approx(100 * max(map(answers.count, answers)) / 729)
    assert row[outcomes.BY_PARITY] == pytest.approx(100 * sum(max(map(p.count, p)) for p in by_parity) / 729)
    assert row["states"] == pytest.approx(
        np.mean([len({s * a + t * b for s in (1, -1) for t in (1, -1)}) for a, b, _ in inputs])
    )
    assert (row["digits"], row["inputs"], row["paths"]) == (3, 729, 4)


def test_experiments_measure_what_was_predicted():
    """The same task and direction: gains of the first control above the second, losses of CSFT above the control."""
    predicted = predictions().drop_duplicates("id").set_index("id")
    assert [*predicted.index] == [*outcomes.experiments().index]
    for experiment in outcomes.experiments().itertuples():
        said, name = predicted.loc[experiment.Index], experiment.Index
        assert {experiment.control, experiment.beside} - {""} <= set(
            CONTROLS if said["task"] == NUMBERS else ON_GRAPHS
        )
        if not experiment.beside:
            column = {"lost": "accuracy lost", "right": "right answers", "follows": "answers"}[experiment.column]
            assert said["measure"].startswith(column), name
        elif "lost" in said["measure"]:
            assert experiment.control == "csft", name
        else:
            assert experiment.beside in ("fresh-path", "path-fed", "discrete", "lengths-fresh-path"), name


@pytest.mark.parametrize("seeds, task", [(SEEDS[:1], NUMBERS), (SEEDS[4:6], GRAPHS)])
def test_outcomes_names_a_task_with_runs_of_one_seed(seeds, task):
    with pytest.raises(RecordError, match=f"no interval .* for {task}; give two seeds"):
        outcomes.outcomes(*outcomes.read(seeds))


def test_fits_needs_the_whole_interval():
    for low, high, said in ((6, 9, HIT), (1, 4, MISS), (4, 6, OPEN), (5, 5, HIT)):
        assert outcomes.fits(Interval((low + high) / 2, float(low), float(high), 10), 5.0, math.inf) == said
    assert outcomes.fits(None, 5.0, math.inf) == UNRUN


def test_own_rule_is_that_of_what_was_fed():
    """A model feeds itself the kind of thing that it was fed: its likeliest token, the arrow, or a mixture."""
    rules = {name: own_rule(numbers(name, SEEDS[:1])[0]) for name in CONTROLS}
    for rule, names in (
        (Discrete(), ("path-fed", "fresh-path", "drawn-state", "discrete", "own-teacher")),
        (Always(3), ("nothing-fed", "deepest-nothing-fed")),
        (Base(), ("csft", "paths-fed", "self-fed")),
        (MTS(3), ("reward",)),
    ):
        assert [rules[name] for name in names] == [rule] * len(names)


def test_moved_by_mixtures_is_what_the_page_says():
    """No row turns against the set, and the smoothed path is then open for every explanation."""
    rows, edited = outcomes.read(SEEDS)
    judged, alike = (
        outcomes.outcomes(part, edited).set_index("id")[[*EXPLANATIONS]]
        for part in (rows, outcomes.by_mixtures(rows, edited))
    )
    assert not ((alike["set"] == MISS) & (judged["set"] != MISS)).any()
    assert set(judged.loc["smoothed-path"]) == {HIT} and set(alike.loc["smoothed-path"]) == {OPEN}
    shown = draw.moved_by_mixtures(rows, edited).set_index("experiment")["verdicts that change"]
    assert set(shown.drop("smoothed-path")) == {"none"} and {"gap", "feed-alone"} < set(shown.index)
    assert judged.drop("smoothed-path").equals(alike.drop("smoothed-path"))


def test_tuned_begins_as_trained_and_learns_from_the_few(monkeypatch):
    """Before a step it answers what the trained stack answers; a fresh one guesses; both see the same few inputs."""
    monkeypatch.setattr(measure, "STEPS", 40)
    monkeypatch.setattr(measure, "MORE", replace(measure.MORE, inputs=3000))
    run = spec("cot2", "quick", seed=42)
    stack = runs.load(run, missing="error")
    carried, fresh = (measure.tuned([run], start, 0.05).iloc[0] for start in (stack, None))
    asked = [replace(run, task=measure.MORE)]
    found = evaluate(stack, stack_data(asked, "cpu"), asked)
    held = measure.MORE.size - int(measure.MORE.split(42).sum())
    right = found["correct_a"][0] + found["correct_b"][0]
    assert right > 100 and carried["before"] == pytest.approx(100 * right / held, abs=0.1)
    assert carried["shown"] == fresh["shown"] == round(0.05 * (measure.MORE.size - held))
    assert fresh["before"] < 5 < fresh["right"] and carried["right"] > carried["before"]


def test_some_of_the_training_inputs_differ_by_seed():
    rows = torch.arange(100, 1100)
    one, other = measure.some(rows, 62, 0.1), measure.some(rows, 63, 0.1)
    assert len(one) == len(one.unique()) == 100 and set(one.tolist()) <= set(rows.tolist())
    assert not torch.equal(one, other) and torch.equal(one, measure.some(rows, 62, 0.1))
