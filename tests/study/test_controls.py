"""Runs, outcomes and figures of the controls, from made-up numbers."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
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
    GROWING,
    INPUTS,
    MAIN,
    ON_GRAPHS,
    SEEDS,
    every,
    graphs,
    grown,
    numbers,
    own_rule,
    thinking,
)
from cot2lib.tasks import MNNS
from cot2lib.thoughts import MTS, Always, Base, Discrete, Hidden
from cot2lib.training.data import stack_data

NOT_YET = {"own-teacher", "lengths"}  # experiments without runs in some tests


@pytest.fixture(scope="module")
def rows():
    """Accuracies that fall by a point from control to control, and by a tenth from seed to seed."""
    some = [(NUMBERS, c, s) for c in CONTROLS for s in SEEDS] + [(GRAPHS, c, s) for c in ON_GRAPHS for s in FIVE]
    table = pd.DataFrame(some, columns=["told", "control", "seed"])
    place = table["control"].map({c: i for i, c in enumerate(CONTROLS)})
    return table.assign(last=98 - place - table["seed"] % 62 / 10)


@pytest.fixture(scope="module")
def edited():
    """Answers after edits: each dose of removal costs as many points as it takes per cent."""
    table = []
    for told, control, seed in [(NUMBERS, c, s) for c in ("csft", "fresh-path") for s in SEEDS] + [
        (GRAPHS, "csft", s) for s in FIVE
    ]:
        wiggle, base = seed % 62 / 10, dict(told=told, control=control, seed=seed, inputs=100, before=99.0)
        for name in ("ancestors", "elsewhere", "direction"):
            costs = {"ancestors": 100, "elsewhere": 1, "direction": 10}[name]
            table += [base | dict(edit=name, dose=d, right=99 - costs * d * 0.9 - wiggle) for d in edits.DOSES]
        for name in ("swap", "mean", "noise", "zero", "early digit", "late digit", "decoded by Base", "longer"):
            table.append(base | dict(edit=name, dose=1.0, right=3.0 + wiggle, follows=95.0 - wiggle))
        table += [base | dict(edit="inserted", dose=d, right=50.0, follows=300 * d + wiggle) for d in edits.INSERTED]
    found = pd.DataFrame(table)
    return found.assign(lost=found["before"] - found["right"])


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
    both = 5 * len({"csft", "discrete", "no-cot"})  # runs on four digits that stand beside those on more
    more = 5 * len(DIGITS) * len(GROWING) - both
    assert len(every("quick")) == len(set(every("quick"))) == 10 * len(CONTROLS) + 5 * len(ON_GRAPHS) + more
    assert len(set(every("paper"))) == 5 * len(MAIN) and thinking("paper") == every("paper")
    for quick, paper in zip(numbers("path-fed"), numbers("path-fed", profile="paper")):
        assert paper.supervision.targets == quick.supervision.targets and paper.recipe != quick.recipe
        assert paper.recipe == spec("cot2", "paper").recipe
    assert {run.method for run in every("quick")} - {run.method for run in thinking("quick")} == {
        "no-CoT",
        "no-CoT, pauses",
    }
    assert {run.seed for run in graphs("csft")} == set(FIVE)


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


def test_more_digits_are_drawn_and_told(monkeypatch):
    told = [(run.id, run.seed, digits / 10) for (digits, _), some in grown().items() for run in some]
    known = pd.DataFrame(told, columns=["id", "seed", "last"])
    asked = lambda specs: known[known["id"].isin([spec.id for spec in specs])].reset_index(drop=True)
    monkeypatch.setattr(more_digits.runs, "recorded", asked)
    rows, rules = more_digits.read(FIVE[:2]), more_digits.rules()
    assert len(rows) == 2 * len(DIGITS) * len(GROWING) and (rows["last"] == 10 * rows["digits"]).all()
    table = more_digits.table(rows, rules)
    assert table["digits"].tolist() == list(DIGITS) and table["frontier | frontier"].str.startswith("30.0").iloc[0]
    bars = more_digits.draw(rows, rules, "found").figure.axes[0].get_lines()[-1]
    assert bars.get_ydata().tolist() == rules[more_digits.BY_PARITY].tolist()
    monkeypatch.setattr(more_digits.runs, "recorded", lambda specs: pd.DataFrame())
    with pytest.raises(RecordError, match=r"no run of more digits is recorded for the seeds \[1\]"):
        more_digits.read([1])


def test_a_recipe_is_that_of_starts_and_teachers_too():
    (student,), (rewarded,) = (numbers(name, SEEDS[:1], "paper") for name in ("own-teacher", "reward"))
    (discrete,) = numbers("discrete", SEEDS[:1], "paper")
    assert student.supervision.targets == Taught(discrete) and rewarded == grpo(discrete, "paper")


def test_five_controls_stand_by_both_recipes(rows):
    theirs = frame.at(rows, told=NUMBERS, control=list(MAIN), seed=list(FIVE)).assign(last=lambda t: t["last"] - 1)
    table = draw.recipes_table(rows, theirs)
    assert len(table) == len(MAIN) and list(table)[2:] == [
        "authors' recipe (%)", "authors' recipe, minus CSFT", "quick recipe (%)", "quick recipe, minus CSFT",
    ]  # fmt: skip
    assert table["authors' recipe (%)"][0].startswith("96.8") and table["quick recipe (%)"][0].startswith("97.8")
    assert (table["authors' recipe, minus CSFT"] == table["quick recipe, minus CSFT"]).all()


def test_records_without_the_seeds_are_named(monkeypatch, rows, edited):
    known = [run for some in outcomes.trained("quick").values() for run in some]
    monkeypatch.setattr(outcomes.runs, "recorded", lambda *a, **o: pd.DataFrame({"id": [run.id for run in known]}))
    monkeypatch.setattr(outcomes.edits, "shipped", lambda profile: pd.DataFrame({"id": [known[0].id]}))
    with pytest.raises(RecordError, match="no control of these seeds"):
        outcomes.read([SEEDS[1]])


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


def test_differences_pair_seeds(rows, edited):
    found = outcomes.measured(rows, edited)
    assert set(found) == set(EXPERIMENTS)
    place = list(CONTROLS).index("path-fed")
    assert np.allclose(found["feed-alone"], place) and list(found["feed-alone"].index) == list(SEEDS)
    assert np.allclose(found["removed"], [9 - s % 62 / 10 for s in SEEDS])
    assert np.allclose(found["elsewhere"], [0.9 + s % 62 / 10 for s in SEEDS])
    lacking = outcomes.measured(rows[rows["control"] != "path-fed"], edited[edited["edit"] != "swap"])
    assert set(EXPERIMENTS) - set(lacking) == {
        "labels-alone", "feed-alone", "paths-fed", "swap", "swap-fresh-path", "graph-feed-alone",
    }  # fmt: skip


@pytest.mark.parametrize("seeds, lacking", [(SEEDS[:1], NUMBERS), (SEEDS[4:6], GRAPHS)])
def test_outcomes_need_two_seeds_of_each_task(rows, edited, seeds, lacking):
    """Of graphs fewer seeds are trained."""
    here = [part[part["seed"].isin(seeds)] for part in (rows, edited)]
    with pytest.raises(RecordError, match=f"no interval over seeds for {lacking}; give two seeds or more"):
        outcomes.outcomes(*here)


@pytest.mark.parametrize(
    "low, high, said",
    [(6, 9, HIT), (1, 4, MISS), (4, 6, OPEN), (5, 5, HIT)],
)
def test_an_explanation_is_right_if_the_whole_interval_lies_where_it_said(low, high, said):
    assert outcomes.fits(Interval((low + high) / 2, float(low), float(high), 10), 5.0, math.inf) == said
    assert outcomes.fits(None, 5.0, math.inf) == UNRUN


def test_outcomes_stand_beside_every_prediction(rows, edited):
    lacking = rows[~rows["control"].isin(NOT_YET)]
    table = outcomes.outcomes(lacking, edited).set_index("id")
    assert set(table.index[table["mean"].isna()]) == NOT_YET
    assert (table.loc[sorted(NOT_YET), [*EXPLANATIONS]] == UNRUN).to_numpy().all()
    assert list(table.loc["swap", [*EXPLANATIONS]]) == [HIT, MISS, MISS, MISS]
    assert list(table.loc["gap", [*EXPLANATIONS]]) == [MISS, MISS, MISS, MISS]  # 4 points
    assert table.loc["removed", "sure"] is None and table.loc["feed-alone", "sure"]
    score = outcomes.score(table.reset_index())
    apart = predictions().groupby("id")[["low", "high"]].nunique().max(axis=1) > 1
    assert score.sum(axis=1).max() == apart.sum() - len(NOT_YET - {"own-teacher"})  # of which all say the same


def test_calls_follow_the_thresholds(edited):
    table = outcomes.called(edited)
    assert list(table["call"]) == ["read", "read"]
    assert outcomes._call(79.0, 5.0, 90.0) == "no call" and outcomes._call(90.0, 5.0, 49.0) == "no call"
    assert outcomes._call(90.0, 26.0, 90.0) == "no call" and outcomes._call(5.0, 81.0, 90.0) == "not read"


def test_the_figures_draw_every_seed(rows, edited):
    shown = draw.main(rows, edited, "A finding.")
    drawn = shown.numbers[shown.numbers["panel"] == "accuracy"]
    assert shown.finding == "A finding."
    assert set(ON_GRAPHS) <= set(draw.DRAWN) and len(drawn) == len(draw.DRAWN) * len(SEEDS) + len(ON_GRAPHS) * len(
        FIVE
    )
    removed = shown.numbers[shown.numbers["panel"] == "removal"]
    assert len(removed) == 3 * len(edits.DOSES) * (len(SEEDS) + len(FIVE))
    assert set(shown.numbers.loc[shown.numbers["panel"] == "swap", "follows"]) == {"follows", "right"}
    table = outcomes.outcomes(rows, edited)
    known = draw.predicted(table, "").numbers
    assert set(known["id"]) == set(EXPERIMENTS)


def test_tables_say_what_came_out(rows, edited):
    table = draw.accuracy_table(rows)
    assert list(table["labels"]) == [control.labels for control in CONTROLS.values()]
    assert len(draw.accuracy_table(rows[rows["control"] != "no-cot"])) == len(CONTROLS) - 1
    assert table.loc[2, "numbers, minus CSFT"] == "-2.0 [-2.0,\xa0-2.0]" and table.loc[0, "numbers, minus CSFT"] == ""
    whole = outcomes.outcomes(rows[~rows["control"].isin(NOT_YET)], edited)
    folds = draw.outcome_tables(whole, "tab-x").folds
    assert sum(len(fold.table.cells) for fold in folds) == len(whole) == predictions()["id"].nunique()
    edit = folds[1].table.cells.set_index("experiment").filter(like="another input's last thought", axis=0).iloc[0]
    assert edit["set"] == "≥ 80 ✓" and edit["labels"] == "≤ 25 ×"
    lacking = folds[0].table.cells.set_index("experiment").filter(like="a discrete teacher", axis=0).iloc[0]
    assert lacking["found"] == UNRUN and lacking["set"] == "± 5"
    told = draw.verdicts(whole).set_index(whole["id"].to_numpy())
    assert told.loc["swap", "verdict"] == "as predicted" and told.loc["gap", "verdict"] == "not as predicted"
    assert told.loc["lengths", "verdict"] == UNRUN and told.loc["feed-alone", "found"].endswith("*")
    assert list(draw.decoders(edited).columns) == ["control", "mixture"]


def test_controls_are_judged_as_they_were_fed(rows):
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
    known = rows.assign(id=[run.id for some in outcomes.trained("quick").values() for run in some])
    decoded = known[["id", "control"]].assign(edit="decoded by Discrete", right=12.5)
    found = outcomes._by_own_decoder(known, decoded, outcomes.trained("quick")).set_index("id")["last"].to_numpy()
    told = known["control"].isin(tokens).to_numpy()
    assert (found[told] == 12.5).all() and (found[~told] == rows["last"].to_numpy()[~told]).all()


def test_a_control_of_tokens_answers_otherwise_by_mixtures(rows, edited):
    """CSFT feeds itself mixtures either way; a model of fresh paths falls to what it gets right by them."""
    named = rows.assign(id=rows["told"] + rows["control"] + rows["seed"].astype(str))
    asked = edited.assign(id=edited["told"] + edited["control"] + edited["seed"].astype(str))
    asked.loc[asked["control"].eq("csft") & asked["edit"].eq("decoded by Base"), "right"] = (
        98 - asked["seed"] % 62 / 10
    )
    found = draw.moved_by_mixtures(named, asked).set_index("experiment")
    assert "gap" in found.index and "other-input" not in found.index
    judged, alike = (float(found.loc["gap", column].partition(" ")[0]) for column in ("as judged", "by mixtures"))
    assert judged == 4 and alike > 90


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


def test_edits_along_training_are_drawn_by_control():
    shares = along.shares(along.asked(SEEDS[:2]))
    assert len(shares) == 2 * 2 * 12 * len(along.MEASURES) and shares["epoch"].max() == 100
    shown = draw.along_training(shares, "said")
    titles = [axis.get_title().partition(", ")[2] for axis in shown.figure.axes]
    assert titles == [draw.name(control) for control in along.NAMES]
    assert set(shown.numbers["answers"]) == set(along.MEASURES.values()) and set(shown.numbers["seed"]) == {62, 63}
    assert along.shares(along.asked([1])).empty


def test_a_trained_model_is_asked_as_it_is_and_learns_from_the_few(monkeypatch):
    """Before a step it answers what the trained stack answers; a fresh one guesses; both see the same few inputs."""
    monkeypatch.setattr(transfer, "STEPS", 40)
    run = spec("cot2", "quick", seed=42)
    stack = runs.load(run, missing="error")
    carried, fresh = (transfer.tuned([run], start, 0.01).iloc[0] for start in (stack, None))
    asked = [replace(run, task=transfer.MORE)]
    found = evaluate(stack, stack_data(asked, "cpu"), asked)
    held = transfer.MORE.size - int(transfer.MORE.split(42).sum())
    right = found["correct_a"][0] + found["correct_b"][0]
    assert right > 200 and carried["before"] == pytest.approx(100 * right / held, abs=0.1)
    assert carried["shown"] == fresh["shown"] == round(0.01 * (transfer.MORE.size - held))
    assert fresh["before"] < 5 < fresh["right"] and carried["right"] > carried["before"]


def test_the_few_are_of_the_training_inputs_and_differ_by_seed():
    rows = torch.arange(100, 1100)
    one, other = transfer.some(rows, 62, 0.1), transfer.some(rows, 63, 0.1)
    assert len(one) == len(one.unique()) == 100 and set(one.tolist()) <= set(rows.tolist())
    assert not torch.equal(one, other) and torch.equal(one, transfer.some(rows, 62, 0.1))
