"""Runs of policy gradients before and after: rows worked out by hand, and what both chapters make of them."""

import numpy as np
import pandas as pd
import pytest

from cot2lib import runs
from cot2lib.errors import RecordError
from cot2lib.specs import GRPOSpec, Recipe
from cot2lib.specs.profiles import shortened, spec
from cot2lib.study import frame, policies, sweeps, thoughts_held
from cot2lib.study.grpo_dirichlet import draw as simplex
from cot2lib.study.grpo_mts import draw as mts
from cot2lib.study.printed import paper_value
from cot2lib.tasks import MNNS
from cot2lib.thoughts import MTS


def made(gain=10.0, seeds=(42, 43), **columns):
    """Three evaluations of some runs: from 30 % up by a gain and half of it down again, entropies from 1 to .5."""
    common = {"profile": "quick", "d_model": 24, "k": 3, "gamma": 20.0, "ratio": "geometric", "dropout": 0.0}
    common |= {"started": "discrete CoT", "origin": "discrete CoT, 1 layer", "sampler": "MTS"} | columns
    rows = []
    for seed in seeds:
        name = f"{seed}-{sorted(columns.items())}"
        for step, share in ((0, 0.0), (50, 1.0), (100, 0.5)):
            row = {"id": name, "seed": seed, "split": seed, "step": step}
            row |= {"epoch": step / 50, "gradient_norm": step / 50, "reward": 40.0}
            row |= {decoder: 30.0 + gain * share + seed - 42 for decoder in policies.DECODERS}
            rows.append(common | row | {name: 1 - 0.5 * (step > 0) for name in policies.ENTROPIES})
    return frame.tidy(pd.DataFrame(rows))


def table(*parts):
    """`outcomes` of some made runs."""
    return policies.outcomes(frame.tidy(pd.concat(parts, ignore_index=True)))


def falls(points, seeds):
    """The same, where the runs of some seeds end at one answer to everything."""
    end = (points["step"] == 100) & points["seed"].isin(seeds)
    level = points["split"].map(policies.constant_answer)
    return points.assign(**{name: points[name].where(~end, level) for name in policies.DECODERS})


def test_evaluations_of_recorded_runs(store):
    start = shortened(spec("discrete", task=MNNS(1, 4, 2), d_model=16, layers=1, heads=1), 30)
    specs = [GRPOSpec(Recipe(steps=8, batch=4, lr=1e-3, evaluate_every=4), start, MTS(2))]
    runs.run(specs, retrain=True)
    points, row = policies.evaluations({"quick": specs}, "quick"), runs.run(specs, missing="error").iloc[0]
    held_out = row["inputs_a"] + row["inputs_b"]
    assert points["step"].tolist() == [0, 4, 8] and points["own"].iloc[-1] == pytest.approx(100 * row["last"])
    assert points["base"].tolist() == ((points["base_a"] + points["base_b"]) * 100 / held_out).tolist()
    assert points["reward"].iloc[1:].between(0, 100).all() and np.isnan(points["reward"].iloc[0])
    assert points["origin"].unique().tolist() == ["discrete CoT, 1 layer"]


def test_a_run_has_its_gain_its_best_and_what_it_lost():
    rows = table(made(gain=10.0)).set_index("seed")
    assert rows["own_before"].tolist() == [30, 31] and rows["own"].tolist() == [35, 36]
    assert rows["base_gain"].tolist() == [5, 5] and rows["discrete_best"].tolist() == [40, 41]
    assert rows["own_lost"].tolist() == [5, 5] and rows["gradient"].tolist() == [1.5, 1.5]
    assert rows["entropy_2_before"].tolist() == [1, 1] and rows["entropy_2"].tolist() == [0.5, 0.5]
    long = policies.by_token(rows.reset_index())
    assert long.groupby(["when", "token"], observed=True)["value"].mean().tolist() == [1.0] * 4 + [0.5] * 4


def test_collapsed_runs_are_those_at_the_most_frequent_answer():
    near = policies.constant_answer(42) + 0.2
    last = pd.DataFrame(
        {"split": [42, 42, 43], "own": [near, near, 60.0], "base": near, "discrete": [near, 50.0, 60.0]}
    )
    assert policies.collapsed(last).tolist() == [True, False, False]
    answers = MNNS().answers[~MNNS().split(43)]
    assert policies.constant_answer(43) == pytest.approx(100 * (answers == 1).double().mean().item())
    assert table(falls(made(), [43]))["collapsed"].tolist() == [False, True]


def test_variants_have_their_runs():
    a, b, c = sweeps.sampled("quick", (42, 43, 44), (24,), (3,))
    rows = table(made()).assign(id=[a.id, b.id])
    variants = {"quick": [sweeps.Variant("none", (c,)), sweeps.Variant("one", (a,)), sweeps.Variant("both", (a, b))]}
    found = policies.varied(rows, variants)
    assert list(zip(found["change"], found["seed"], found["rank"])) == [
        ("one", 42, 1),
        ("both", 42, 2),
        ("both", 43, 2),
    ]
    assert list(found["change"].cat.categories) == ["one", "both"], "in the order of the list"


def test_another_profile_is_taken_where_nothing_is_recorded():
    rows = table(made(), made(profile="paper"))
    assert set(policies.of_one(rows, "paper")["profile"]) == {"paper"}
    assert set(policies.of_one(frame.at(rows, profile="quick"), "paper")["profile"]) == {"quick"}
    with pytest.raises(RecordError, match="none of these runs is recorded"):
        policies.of_one(rows[:0], "quick")


# Figures and tables


def heights(axis):
    """Where paths and marks of an axis stand."""
    return {round(float(y), 4) for points in axis.collections for y in np.asarray(points.get_offsets())[:, 1]}


def test_accuracies_stand_beside_the_papers():
    rows = table(*(made(d_model=d, k=k) for d in (24, 32) for k in (1, 3)))
    shown = policies.accuracies(rows, "own", "k", "d_model", mts.stem, mts.start, "A finding.")
    left, right = shown.figure.axes
    for axis, d in ((left, 24), (right, 32)):
        stated = {round(paper_value(f"grpo-mts-d{d}-{name}"), 4) for name in ("sft", "k1", "k3")}
        assert stated | {30.0, 31.0, 35.0, 36.0} <= heights(axis)
    assert sorted(shown.numbers["value"].unique()) == [30, 31, 35, 36] and shown.finding == "A finding."


def test_the_papers_marks_stand_only_where_it_has_runs():
    two = made(origin="discrete CoT, 2 layers")
    rows = table(made(gamma=1.0), made(), two)
    shown = policies.accuracies(rows, "base", "gamma", "origin", simplex.stem, simplex.start, "")
    first, second = ({*heights(axis)} for axis in shown.figure.axes)
    assert round(paper_value("dirichlet-discrete-1l"), 4) in first - second
    marks = [points for points in shown.figure.axes[1].collections if len(points.get_offsets()) == 1]
    assert len(marks) == 2, "one before and one after"


def test_tables_give_means_gains_and_the_papers():
    rows = table(made(k=1), made(k=3))
    row = policies.accuracy_table(rows, ["recipe", "d_model", "k"], "own", mts.stem).iloc[1]
    assert (row["recipe"], row["d"], row["K"], row["before"]) == ("quick recipe", 24, 3, "30.5")
    assert row["best epoch"].startswith("40.5") and row["gain, discrete"].startswith("5.0")
    assert row["paper, best"] == paper_value("grpo-mts-d24-k3")
    split = policies.split_table(table(falls(made(dropout=0.1), [42])), ["recipe", "dropout", "k"], "own", mts.stem)
    assert split.loc[0, "dropout"] == "dropout 0.1" and split.loc[0, "collapsed"] == "1 of 2"
    gains = policies.gain_table(rows, ["k"], ("own", "base"), "base").iloc[0]
    assert gains["start, own sampler"].startswith("30.5") and gains["lost at the end"].startswith("5.0")
    assert gains["gradient"].startswith("1.5") and "gain, discrete" not in gains


def test_what_thoughts_hold_is_drawn_by_moment():
    rows = table(made(k=1))
    held = pd.DataFrame(
        {"id": run, "when": when, "step": step, "support": 2.0 + step, "reachable": 90.0, "on_the_way": value + step}
        for run in rows["id"] for when, value in (("before", 20.0), ("after", 40.0)) for step in sweeps.STEPS
    )  # fmt: skip
    shown = policies.held(rows, held, "k")
    way = frame.at(shown.numbers, measure="weight on the way (%)")
    assert len(shown.figure.axes) == 6 and sorted(frame.at(way, when="after")["value"].unique()) == [41, 42, 43, 44]


def test_gains_are_drawn_line_by_line():
    rows = policies.by_decoder(table(made(k=1), made(k=3, gain=20.0)), ("own", "base"))
    shown = policies.gains(
        rows.assign(line=frame.ordered(rows["k"].map("K = {}".format))), "line", "recipe", "decoder"
    )
    assert [axis.get_title() for axis in shown.figure.axes] == [
        "quick recipe, own sampler",
        "quick recipe, base decoding",
    ]
    assert [label.get_text() for label in shown.figure.axes[0].get_yticklabels()] == ["K = 1", "K = 3"]
    assert shown.numbers.groupby("line", observed=True)["gain"].mean().tolist() == [5.0, 10.0]


def test_learning_leaves_the_first_evaluation_out():
    shown = policies.learning(made(), "k", "own")
    assert [axis.get_ylabel() for axis in shown.figure.axes] == [""] * 3 and shown.numbers["epoch"].min() == 1
    assert len(shown.numbers) == 3 * 2 * 2, "measures, runs, evaluations after the first"


def test_entropies_of_base_decoding_are_by_moment():
    held = pd.DataFrame(
        {"id": "a", "when": when, "step": step, "base_entropy": step + (when == "before")}
        for when in ("before", "after") for step in (1, 2)
    )  # fmt: skip
    found = thoughts_held.base_entropies(held).loc["a"]
    assert found.to_dict() == {"entropy_1": 1, "entropy_1_before": 2, "entropy_2": 2, "entropy_2_before": 3}


def test_the_best_and_the_worst_are_told_by_recipe():
    rows = table(made(gain=10.0, k=3), made(gain=-6.0, k=6), made(gain=20.0, k=1, profile="paper"))
    rows = rows.assign(setting=frame.ordered("K = " + rows["k"].astype(str), ("K = 1", "K = 3", "K = 6")))
    said = policies.extremes(rows, "setting")
    quick = said[said.index("By the quick recipe") :]
    plain = quick.replace("\N{LEFT DOUBLE QUOTATION MARK}", "'").replace("\N{RIGHT DOUBLE QUOTATION MARK}", "'")
    assert plain.endswith("'K = 3' brings most, a gain of 5.0 points, and 'K = 6' least, a loss of 3.0 points.")
    assert "brings most, a gain of 10.0 points" in said.replace(quick, "")


def test_figures_of_learning_say_where_it_begins_and_ends():
    points = made(gain=10.0)
    points["reward"] = 40.0 + points["step"] / 10
    shown = policies.learning(points, "k", "own")
    assert "quick recipe 45.0 % of rollouts are right in the first epoch, 50.0 % in the last" in shown.finding
