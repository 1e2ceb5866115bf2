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
from cot2lib.runs import Taught
from cot2lib.specs.profiles import grpo, spec
from cot2lib.study import frame
from cot2lib.study.controls import along, draw, edits, outcomes, transfer
from cot2lib.study.controls import digits as more_digits
from cot2lib.study.controls.outcomes import EXPERIMENTS, GRAPHS, HIT, MISS, NUMBERS, OPEN, UNRUN, Answered, Gap
from cot2lib.study.controls.predicted import EXPLANATIONS, predictions
from cot2lib.study.controls.runs import (
    CONTROLS,
    DIGITS,
    FIVE,
    INPUTS,
    ON_GRAPHS,
    SEEDS,
    graphs,
    grown,
    numbers,
    own_rule,
)
from cot2lib.tasks import MNNS
from cot2lib.thoughts import MTS, Always, Base, Discrete, Hidden
from cot2lib.training.data import stack_data


def test_controls_differ_in_their_targets_alone():
    csft = numbers("csft")[0]
    assert csft.seed == 62 and csft.task == MNNS() and csft.supervision.targets is None
    for name, control in CONTROLS.items():
        for run in numbers(name, SEEDS[:1]):
            if control.rewarded:
                before = {"reward": "discrete", "csft-reward": "csft"}[name]
                assert [run.start] == numbers(before, SEEDS[:1]) and run.thought == MTS(3)
                assert [run.start for run in graphs(name)] == graphs(before) and graphs(name)[0].thought == MTS(8)
                continue
            assert run.seed == csft.seed and (run.task == csft.task or name.startswith("lengths"))
            stages = run.task.steps if name == "coconut" else 1  # its rate falls anew in each
            passes = dict(steps=csft.recipe.steps, evaluate_every=csft.recipe.evaluate_every)
            assert replace(run.recipe, cycles=1, **passes) == csft.recipe and run.recipe.cycles == stages
            assert run.recipe.steps == csft.recipe.steps or name.startswith("lengths")
            teacher = Taught(numbers("discrete", SEEDS[:1])[0]) if name == "own-teacher" else None
            assert run.supervision.targets == (teacher or control.targets) and run.model.layers == control.layers
            assert run.supervision.scoring == control.scoring and (run.fed == "self") == control.self_fed
    for quick, paper in zip(numbers("path-fed"), numbers("path-fed", profile="paper")):
        assert paper.supervision.targets == quick.supervision.targets and paper.recipe != quick.recipe
        assert paper.recipe == spec("cot2", "paper").recipe


def test_more_digits_change_the_task_alone():
    """And every control is evaluated as it is judged."""
    for (digits, name), some in grown().items():
        for run, usual in zip(some, numbers(name, FIVE), strict=True):
            assert run.task == usual.task if digits == 4 else run.task.size == min(INPUTS, 9**digits)
            assert (run.task.low, run.task.high, run.task.length) == (1, 9, digits)
            assert replace(run, task=usual.task, thought=usual.thought) == usual and run.thought == own_rule(usual)
    assert {digits for digits, _ in grown()} == set(DIGITS) == {3, 4, 5, 6, 7, 8}


def test_rules_are_those_of_all_inputs_counted_by_hand(monkeypatch):
    monkeypatch.setattr(more_digits, "DIGITS", (3,))
    (row,) = more_digits.rules().to_dict("records")
    signed = lambda *digits: {a + s * b + t * c for a, b, c in [digits] for s in (1, -1) for t in (1, -1)}
    inputs = [(a, b, c) for a in range(1, 10) for b in range(1, 10) for c in range(1, 10)]
    answers = [min(abs(total) for total in signed(*digits)) for digits in inputs]
    by_parity = [[n for n in answers if n % 2 == parity] for parity in (0, 1)]
    assert row[more_digits.COMMONEST] == pytest.approx(100 * max(map(answers.count, answers)) / 729)
    assert row[more_digits.BY_PARITY] == pytest.approx(100 * sum(max(map(p.count, p)) for p in by_parity) / 729)
    assert row["states"] == pytest.approx(
        np.mean([len({s * a + t * b for s in (1, -1) for t in (1, -1)}) for a, b, _ in inputs])
    )
    assert (row["digits"], row["inputs"], row["paths"]) == (3, 729, 4)


def test_a_recipe_is_that_of_starts_and_teachers_too():
    (student,), (rewarded,) = (numbers(name, SEEDS[:1], "paper") for name in ("own-teacher", "reward"))
    (discrete,) = numbers("discrete", SEEDS[:1], "paper")
    assert student.supervision.targets == Taught(discrete) and rewarded == grpo(discrete, "paper")


def test_records_without_the_seeds_are_named():
    with pytest.raises(RecordError, match="no control of these seeds"):
        outcomes.read([1])
    with pytest.raises(RecordError, match=r"no run of more digits is recorded for the seeds \[1\]"):
        more_digits.read([1])


def test_every_predicted_experiment_has_its_measure():
    assert set(predictions()["id"]) == set(EXPERIMENTS)
    tasks = predictions().drop_duplicates("id").set_index("id")["task"]
    for name, experiment in EXPERIMENTS.items():
        assert experiment.task == tasks[name], name
        sides = experiment[1:3] if isinstance(experiment, Gap) else [experiment.control]
        assert set(sides) <= set(CONTROLS if experiment.task == NUMBERS else ON_GRAPHS), name


def test_measures_are_in_the_direction_that_the_prediction_has():
    """Gains are of the first named control above the second; losses of CSFT above the control."""
    said = predictions().drop_duplicates("id").set_index("id")["measure"]
    for name, experiment in EXPERIMENTS.items():
        if isinstance(experiment, Answered):
            column = {"lost": "accuracy lost", "right": "right answers", "follows": "answers"}[experiment.column]
            assert said[name].startswith(column), name
        elif "lost" in said[name]:
            assert experiment.above == "csft", name
        else:
            assert experiment.below in ("fresh-path", "path-fed", "discrete", "lengths-fresh-path"), name


@pytest.mark.parametrize("seeds, lacking", [(SEEDS[:1], NUMBERS), (SEEDS[4:6], GRAPHS)])
def test_outcomes_need_two_seeds_of_each_task(seeds, lacking):
    """Of graphs fewer seeds are trained."""
    with pytest.raises(RecordError, match=f"no interval over seeds for {lacking}; give two seeds or more"):
        outcomes.outcomes(*outcomes.read(seeds))


@pytest.mark.parametrize(
    "low, high, said",
    [(6, 9, HIT), (1, 4, MISS), (4, 6, OPEN), (5, 5, HIT)],
)
def test_an_explanation_is_right_if_the_whole_interval_lies_where_it_said(low, high, said):
    assert outcomes.fits(Interval((low + high) / 2, float(low), float(high), 10), 5.0, math.inf) == said
    assert outcomes.fits(None, 5.0, math.inf) == UNRUN


def test_calls_follow_the_thresholds():
    assert outcomes._call(95.0, 3.0, 96.0) == "read" and outcomes._call(5.0, 81.0, 90.0) == "not read"
    for measured in ((79.0, 5.0, 90.0), (90.0, 5.0, 49.0), (90.0, 26.0, 90.0)):
        assert outcomes._call(*measured) == "no call"


def test_controls_are_judged_as_they_were_fed():
    """A model feeds itself the kind of thing that it was fed: its likeliest token, the arrow, or a mixture."""
    rules = {name: own_rule(numbers(name, SEEDS[:1])[0]) for name in CONTROLS}
    tokens = {"path-fed", "fresh-path", "drawn-state", "discrete", "smoothed-path", "own-teacher"}
    tokens |= {"lengths-fresh-path"}
    assert {name for name, rule in rules.items() if rule == Discrete()} == tokens
    assert {name for name, rule in rules.items() if rule == Always(3)} == {
        "nothing-fed",
        "deep-nothing-fed",
        "deepest-nothing-fed",
    }
    assert {type(rules[name]) for name in rules if name not in tokens} == {Base, Always, Hidden, MTS}


def test_by_mixtures_no_recorded_row_turns_against_the_set():
    """The page of predictions says so, and which row is then open for every explanation."""
    rows, edited = outcomes.read(SEEDS)
    others = outcomes.by_mixtures(rows, edited)
    judged, alike = (outcomes.outcomes(part, edited) for part in (rows, others))
    means, moved = (frame.at(part, told=NUMBERS).groupby("control")["last"].mean() for part in (rows, others))
    fed = {name: own_rule(numbers(name)[0]) for name in CONTROLS if CONTROLS[name].targets and name in means}
    apart = [name for name, rule in fed.items() if rule != Base()]
    assert len(apart) > 5 and (moved[apart] < means[apart]).all() and "nothing-fed" in apart
    assert not ((alike["set"] == MISS) & (judged["set"] != MISS)).any()
    turned = judged.loc[(judged[[*EXPLANATIONS]] != alike[[*EXPLANATIONS]]).any(axis=1), "id"]
    assert list(turned) == ["smoothed-path"]
    assert set(judged.set_index("id").loc["smoothed-path", [*EXPLANATIONS]]) == {HIT}
    assert set(alike.set_index("id").loc["smoothed-path", [*EXPLANATIONS]]) == {OPEN}
    shown = draw.moved_by_mixtures(rows, edited).set_index("experiment")["verdicts that change"]
    assert set(shown.drop("smoothed-path")) == {"none"} and {"gap", "feed-alone"} < set(shown.index)


def test_the_recorded_trainings_end_where_the_recorded_models_are():
    """Trained once more, a run ends elsewhere by rounding: a few points on a seed, one on average."""
    along_training, edited = along.shipped(), edits.shipped()
    ids = [run.id for name in along.NAMES for run in numbers(name)]
    assert set(along_training["id"]) == set(ids) and along_training.groupby("id")["step"].nunique().eq(12).all()
    last = along_training[along_training["step"] == along_training["step"].max()]
    both = last.merge(edited, on=["id", "edit", "dose"], suffixes=("", "_recorded"))
    apart = both[["before", "right"]] - both[["before_recorded", "right_recorded"]].to_numpy()
    assert len(both) == len(ids) * len(along.ASKED) and apart.abs().max().max() < 8
    assert both.assign(apart=apart["right"]).groupby("edit")["apart"].mean().abs().max() < 1


def test_a_trained_model_is_asked_as_it_is_and_learns_from_the_few(monkeypatch):
    """Before a step it answers what the trained stack answers; a fresh one guesses; both see the same few inputs."""
    monkeypatch.setattr(transfer, "STEPS", 40)
    monkeypatch.setattr(transfer, "MORE", replace(transfer.MORE, inputs=3000))
    run = spec("cot2", "quick", seed=42)
    stack = runs.load(run, missing="error")
    carried, fresh = (transfer.tuned([run], start, 0.05).iloc[0] for start in (stack, None))
    asked = [replace(run, task=transfer.MORE)]
    found = evaluate(stack, stack_data(asked, "cpu"), asked)
    held = transfer.MORE.size - int(transfer.MORE.split(42).sum())
    right = found["correct_a"][0] + found["correct_b"][0]
    assert right > 100 and carried["before"] == pytest.approx(100 * right / held, abs=0.1)
    assert carried["shown"] == fresh["shown"] == round(0.05 * (transfer.MORE.size - held))
    assert fresh["before"] < 5 < fresh["right"] and carried["right"] > carried["before"]


def test_the_few_are_of_the_training_inputs_and_differ_by_seed():
    rows = torch.arange(100, 1100)
    one, other = transfer.some(rows, 62, 0.1), transfer.some(rows, 63, 0.1)
    assert len(one) == len(one.unique()) == 100 and set(one.tolist()) <= set(rows.tolist())
    assert not torch.equal(one, other) and torch.equal(one, transfer.some(rows, 62, 0.1))
