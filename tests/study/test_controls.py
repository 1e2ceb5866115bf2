"""Runs of the controls, how their outcomes are judged, and what the recorded ones hold."""

import itertools
import math

import pandas as pd
import pytest

from cot2lib.errors import RecordError
from cot2lib.locality import masks
from cot2lib.metrics import Interval
from cot2lib.study import frame, predicted
from cot2lib.study.controls import outcomes, steps
from cot2lib.study.controls.runs import (
    CONTROLS,
    GRAPHS,
    NUMBERS,
    ON_GRAPHS,
    SEEDS,
    numbers,
    own_rule,
)
from cot2lib.study.predicted import EXPLANATIONS, HIT, MISS, OPEN, UNRUN, fits, predictions
from cot2lib.thoughts import MTS, Always, Base, Discrete


def test_answers_by_parity_by_hand(monkeypatch):
    monkeypatch.setattr(outcomes.controls, "DIGITS", (3,))
    signs = [(1, s, t) for s in (1, -1) for t in (1, -1)]
    inputs = itertools.product(range(1, 10), repeat=3)
    answers = [min(abs(a * s + b * t + c * u) for s, t, u in signs) for a, b, c in inputs]
    by_parity = [[n for n in answers if n % 2 == parity] for parity in (0, 1)]
    assert outcomes.by_parity() == {3: pytest.approx(100 * sum(max(map(p.count, p)) for p in by_parity) / 729)}


def test_experiments_measure_what_was_predicted():
    """The same task and direction: gains of the first control above the second, losses of CSFT above the control."""
    asked = predictions().drop_duplicates("id").set_index("id")
    assert [*asked.index] == [*outcomes.experiments().index]
    for experiment in outcomes.experiments().itertuples():
        said, name = asked.loc[experiment.Index], experiment.Index
        assert {experiment.one, experiment.other} - {""} <= set(CONTROLS if said["task"] == NUMBERS else ON_GRAPHS)
        if not experiment.other:
            column = {"lost": "accuracy lost", "right": "right answers", "follows": "answers"}[experiment.column]
            assert said["measure"].startswith(column), name
        elif "lost" in said["measure"]:
            assert experiment.one == "csft", name
        else:
            assert experiment.other in ("fresh-path", "path-fed", "discrete", "lengths-fresh-path"), name


@pytest.mark.parametrize("seeds, task", [(SEEDS[:1], NUMBERS), (SEEDS[4:6], GRAPHS)])
def test_outcomes_names_a_task_with_runs_of_one_seed(seeds, task):
    with pytest.raises(RecordError, match=f"no interval .* for {task}; give two seeds"):
        outcomes.outcomes(*outcomes.read(seeds))


def test_fits_needs_the_whole_interval():
    for low, high, said in ((6, 9, HIT), (1, 4, MISS), (4, 6, OPEN), (5, 5, HIT)):
        assert fits(Interval((low + high) / 2, float(low), float(high), 10), 5.0, math.inf) == said
    assert fits(None, 5.0, math.inf) == UNRUN


def test_own_rule_is_that_of_what_was_fed():
    """A model feeds itself the kind of thing that it was fed: its likeliest token, the arrow, or a mixture."""
    rules = {name: own_rule(numbers(control, SEEDS[:1])[0]) for name, control in CONTROLS.items()}
    for rule, names in (
        (Discrete(), ("path-fed", "fresh-path", "drawn-state", "discrete", "own-teacher")),
        (Always(3), ("nothing-fed", "deepest-nothing-fed")),
        (Base(), ("csft", "paths-fed", "self-fed")),
        (MTS(3), ("reward",)),
    ):
        assert [rules[name] for name in names] == [rule] * len(names)


def test_experiments_on_steps_measure_what_was_predicted():
    """Each names cells that are trained and interventions that are measured; differences are called so."""
    said = predictions(predicted.STEPS).drop_duplicates("id").set_index("id")
    known = {*steps.trained("quick")}
    masked = {*masks(steps.numbers(steps.Cell("csft"))[0].task, 6)}
    for name, one, other, edit, _, against, column, task in outcomes.experiments(predicted.STEPS).itertuples():
        assert {(task, cell) for cell in (one, other) if cell} <= known, name
        assert column == ("last" if not edit else column) and (edit or other), name
        for intervention in filter(None, (edit, against)):
            kind = intervention.removesuffix(", kept")
            assert kind in masked | {"walks", "first thought"} or kind.split()[0] in ("swap", "ancestors", "elsewhere")
        difference = bool(other or against or column == "lost")
        assert difference == said.loc[name, "measure"].endswith("(points)"), name
    assert [*outcomes.experiments(predicted.STEPS).index] == [*said.index]


def test_measures_on_steps_are_differences_by_seed():
    """One minus the other, where both have the seed; an experiment of one seed has no interval."""
    ends = {"csft": {72: 90.0, 73: 80.0}, "csft strict": {73: 75.0, 72: 95.0}, "csft local": {72: 9.0}}
    made = [dict(control=cell, seed=seed, last=last) for cell in ends for seed, last in ends[cell].items()]
    rows = pd.DataFrame(made).assign(told="MNNS")
    right = {"elsewhere 2": {72: 90.0, 73: 80.0}, "ancestors 2": {73: 30.0, 72: 20.0}}
    made = [dict(edit=edit, seed=seed, right=value) for edit in right for seed, value in right[edit].items()]
    answers = pd.DataFrame(made).assign(told="MNNS", control="csft", dose=1.0, lost=0.0, follows=0.0)
    found = outcomes.measures(rows, answers, predicted.STEPS)
    assert set(found) == {"strict-csft", "removed-2", "specific-2"}
    assert found["strict-csft"].to_dict() == {72: -5, 73: 5} and found["specific-2"].to_dict() == {72: 70, 73: 50}


def test_mixtures_change_verdicts_on_the_smoothed_path_alone():
    """As the page of predictions says: every explanation is open there, and most leads on numbers that change grow."""
    rows, edited = outcomes.read(SEEDS)
    assert rows["commit"].str.startswith("5cf5852").sum() == 150, "the page says so"
    mixed = outcomes.decoded(rows, frame.at(edited, edit=f"decoded by {Base().label}"))
    judged, alike = (outcomes.outcomes(part, edited).set_index("id") for part in (rows, mixed))
    explained = [*EXPLANATIONS[predicted.CONTROLS]]
    assert judged[explained].drop("smoothed-path").equals(alike[explained].drop("smoothed-path"))
    before, after = (set(part.loc["smoothed-path", explained]) for part in (judged, alike))
    assert (before, after) == ({HIT}, {OPEN})
    more = (alike["mean"] - judged["mean"])[judged["task"] == NUMBERS]
    assert (more > 0).sum() > (more < 0).sum()
