"""Chapter on sampled tokens: its runs, its comparisons by hand, and its live training."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from test_policies import falls, made, table

from cot2lib.errors import SpecError
from cot2lib.specs import GRPOSpec
from cot2lib.specs.profiles import POLICIES, TEN, TWENTY, grpo, spec
from cot2lib.study import live, sweeps
from cot2lib.study.book import all_runs
from cot2lib.study.grpo_mts import draw as mts
from cot2lib.study.grpo_mts import explain, recipes
from cot2lib.study.grpo_mts import runs as runs_of
from cot2lib.study.grpo_mts.runs import PENALTY, on_split, variants
from cot2lib.study.printed import paper_value
from cot2lib.study.sweeps import USUAL
from cot2lib.thoughts import MTS

LEFT = {  # (k, ratio): entropy left, by seed 42, 43, 44
    (1, "geometric"): (0.0, 0.1, 0.2),
    (6, "geometric"): (0.5, 0.3, 0.4),
    (6, "product"): (0.5, 0.2, 0.3),
}


def left(fallen=()):
    """Rows of variants with these entropies, t times as many at token t; runs of some seeds collapse."""
    parts = []
    for (k, ratio), values in LEFT.items():
        for seed, value in zip((42, 43, 44), values):
            part = made(k=k, ratio=ratio, seeds=(seed,)).assign(change=USUAL if ratio == "geometric" else ratio)
            entropies = {
                f"entropy_{t}": (9.0 * (part["step"] == 0) + value * (part["step"] > 0)) * t for t in sweeps.STEPS
            }
            parts.append(falls(part.assign(**entropies), fallen))
    return table(*parts)


def test_entropies_are_compared_after_training_and_by_seed():
    found = mts.entropies_apart(left(), 1, 6).set_index(["seeds", "ratio", "token"])
    assert found.loc[("all", "geometric", 1), "mean"] == pytest.approx(0.3)
    assert found.loc[("all", "product", 3), "mean"] == pytest.approx(0.7), "token 3 has three times the entropy"
    rest = mts.entropies_apart(left(fallen=[42]), 1, 6).set_index(["seeds", "ratio", "token"])
    assert rest.loc[("kept", "geometric", 2), "mean"] == pytest.approx(0.4)
    assert rest.loc[("kept", "product", 2), ["low", "high"]].tolist() == pytest.approx([0.2, 0.2])


@pytest.mark.parametrize("seeds, rows", [((42,), 4), ((42, 43, 44), 2)])
def test_the_table_leaves_out_what_no_seed_is_left_for(seeds, rows):
    shown = mts.apart_table(mts.entropies_apart(left(seeds), 1, 6))
    assert list(shown["seeds"]) == ["all", "all", "not collapsed", "not collapsed"][:rows]
    assert list(shown["ratio"][:2]) == ["root", "product"] and shown.loc[0, "token 1"].startswith("0.30")


def test_best_epochs_stand_beside_the_papers():
    stated = paper_value("grpo-mts-d24-k3")
    apart = mts.from_paper(table(made(dropout=0.1)))
    assert apart["beyond"].tolist() == pytest.approx([40 - stated, 41 - stated])
    assert apart["beyond_gain"].tolist() == pytest.approx([10 - stated + paper_value("grpo-mts-d24-sft")] * 2)


def test_entropies_before_and_after_have_panels_of_their_own():
    shown = mts.entropies(table(*(made(d_model=d) for d in (24, 32))))
    titles = [axis.get_title() for axis in shown.figure.axes]
    assert titles == [f"quick recipe, d = {d}, {when}" for d in (24, 32) for when in ("before", "after")]


def test_gain_is_drawn_against_the_start():
    better = made(gain=4.0, change="better start")
    rows = table(made(change=USUAL), made(change=USUAL, d_model=32), better)
    numbers = mts.gain_against_start(rows).numbers
    assert set(numbers["begun"]) == {"d = 24", "d = 32", "d = 24, better start"}
    assert numbers.loc[numbers["begun"] == "d = 24, better start", "own_gain"].tolist() == [2.0, 2.0]
    twice = rows.set_index(rows.index % 2)  # selections that a chapter puts together share labels
    assert mts.gain_against_start(twice).finding == mts.gain_against_start(rows).finding


def test_variants_differ_in_what_they_say_is_changed():
    found = {(one.specs[0].thought.k, one.change): one.specs for one in variants("quick", (42,))}
    usual = {k: found[k, USUAL][0] for k in (1, 3, 6, 12)}
    assert len(found) == len(variants("quick", (42,))) and all(len(specs) == 1 for specs in found.values())
    changes = {
        (3, "product"): dict(ratio="product"),
        (1, PENALTY): dict(kl=0.1),
        (6, "rising from 1"): dict(first_k=1),
        (3, "logits / K"): dict(ratio="product", thought=MTS(3, temperature=3.0)),
    }
    for (k, change), fields in changes.items():
        assert found[k, change][0] == replace(usual[k], **fields)
    rates = {key: specs[0].recipe.lr for key, specs in found.items()}
    assert rates[3, "ten times the rate"] == pytest.approx(10 * rates[3, USUAL]) and rates[3, "no learning"] == 0
    assert rates[3, "a tenth of the rate"] == pytest.approx(rates[3, USUAL] / 10)
    assert found[3, "one-sided dropout"][0].recipe.dropout == 0.1
    assert found[3, "better start"][0].start.recipe != usual[3].start.recipe
    assert len({specs[0].id for specs in found.values()}) == len(found)


def test_the_runs_of_the_ledger_are_on_one_split():
    chosen = [*sweeps.sampled("paper", d_models=(24,), one_split=True), *sweeps.dirichlet("paper", one_split=True)]
    assert {run.start.split_seed for run in chosen} == {42} and {run.seed for run in chosen} == set(sweeps.SEEDS)
    usual = {*sweeps.sampled("paper"), *sweeps.dirichlet("paper")}
    assert {run.seed for run in chosen if run in usual} == {42}, "that seed's own split"
    shipped = all_runs.sweep("one_split", "paper")
    assert {run for run in on_split("paper") if run.seed != 42} < set(shipped)
    assert not any(all_runs.ships_weights("one_split", run) for run in shipped if isinstance(run, GRPOSpec))


def test_every_prediction_about_table_1_has_its_runs():
    """Twenty initialisations, ten with dropout, or five at a tenth of the rate, of every K, on the paper's split."""
    predicted = pd.read_csv(Path(runs_of.__file__).with_name("predicted.csv"))
    asked = runs_of.explaining("paper")
    assert {run.start.split_seed for run in asked} == {42}
    quick = runs_of.explaining("quick")
    assert {(r.start.model.d_model, r.recipe.dropout) for r in quick} == {(24, 0.0), (32, 0.0)} and len(quick) == 120
    for (d, dropout, lr), part in predicted.groupby(["d_model", "dropout", "lr"]):
        of = [r for r in asked if (r.start.model.d_model, r.recipe.dropout, r.recipe.lr) == (d, dropout, lr)]
        seeds = sweeps.SEEDS if lr == 5e-6 else TEN if dropout else TWENTY
        assert {(r.thought.k, r.seed) for r in of} == {(k, seed) for k in sweeps.KS for seed in seeds}
        assert set(part["measure"]) == {"best", "gain", "entropy_4"} and (part["low"] < part["high"]).all()


def test_runs_stand_beside_what_was_predicted():
    """Of three runs one collapses, one keeps to the prediction of 43 to 57, and one does not; by hand."""
    rows = pd.DataFrame(
        {"d_model": 32, "dropout": 0.1, "lr": 5e-5, "k": 1, "seed": [42, 43, 44], "own_best": [34.0, 50.0, 60.0],
         "discrete_before": [40.0, 45.0, 59.0], "entropy_4": [0.0, 0.1, 0.2], "collapsed": [True, False, False]}
    )  # fmt: skip
    found = explain.found(rows).set_index(["measure", "seed"])
    assert found["value"]["best"].to_dict() == {43: 50.0, 44: 60.0} and found["value"]["gain", 43] == 5.0
    assert found["inside"]["best"].to_dict() == {43: True, 44: False} and found["inside"]["entropy_4"].all()
    row = explain.table(rows).query("explanation == 'dropout in the current policy'").iloc[0]
    assert row[["K = 1", "K = 3", "as predicted", "the paper"]].tolist() == [
        "50.0 to 60.0", "", "1 of 2", "51.6, 55.7, 50.4"
    ]  # fmt: skip
    assert (
        explain.stated("gain", 32, 3) == pytest.approx(55.66 - 43.50) and explain.stated("entropy_4", 24, 1) == 0.1718
    )
    assert explain.table(rows)["as predicted"].tolist().count("not run") == 9


def test_the_papers_values_are_counted_that_lie_among_the_runs_that_stand():
    """K = 1 at d = 32: best 51.61 lies between 50 and 52, the gain of 8.11 not between 2 and 8, and of the entropies
    (.0143, .0395, .2631, .1182) the last two do; by hand."""
    rows = pd.DataFrame(
        {"d_model": 32, "dropout": 0.1, "lr": 5e-5, "k": 1, "seed": [42, 43, 44], "own_best": [34.0, 50.0, 52.0],
         "discrete_before": [20.0, 48.0, 44.0], "entropy_1": [0.0143, 0.02, 0.03], "entropy_2": [0.0, 0.01, 0.03],
         "entropy_3": [0.0, 0.2, 0.2631], "entropy_4": [0.0, 0.1, 0.2], "collapsed": [True, False, False]}
    )  # fmt: skip
    (row,) = explain.fits(rows).to_dict("records")
    assert row == {
        "explanation": "dropout in the current policy", "d": 32, "runs": 2, "accuracies": "1 of 1", "gains": "0 of 1",
        "entropies": "2 of 4",
    }  # fmt: skip


def test_recipes_of_policy_gradients():
    one = grpo(spec("discrete", "paper", d_model=24, layers=1, heads=1), "paper")
    assert (one.recipe.batch, one.recipe.lr, one.group, one.clip, one.thought) == (16, 5e-5, 8, 0.1, MTS(3))
    assert one.recipe.steps == 100 * one.recipe.evaluate_every and one.recipe.weight_decay == 0.01
    with pytest.raises(SpecError, match="profile 'slow'"):
        grpo(one.start, "slow")
    assert len({run.id for run in all_runs.sweep("grpo_mts", "quick")}) == len(all_runs.sweep("grpo_mts", "quick"))


def test_the_papers_gains():
    """By subtraction in its Tables 1 and 2: 52.60 - 39.76, and 68.24 - 68.50, the one entry that falls."""
    found = recipes.paper_gains().set_index("model")
    assert "12.84 (K = 3)" in found.loc["MNNS, discrete CoT, d = 24", "gains (points)"]
    assert found.loc["ProsQA, discrete CoT", "gains (points)"].startswith("\N{MINUS SIGN}0.26 (K = 6)")
    assert found["gains (points)"].str.count("\N{MINUS SIGN}").sum() == 1
    tasks = found.groupby(found.index.str.partition(",").get_level_values(0))["mean gain"].mean()
    assert tasks["MNNS"] > max(tasks["ProsQA"], tasks["ProntoQA"])


def test_recipes_are_those_that_train():
    found = recipes.policy_recipes().set_index("what")
    (here,) = [column for column in found.columns if column.startswith("here")]
    assert here == "here (authors' recipe / quick recipe)" and not found.isna().any(axis=None)
    for name, field in (("learning rate, MTS", "lr"), ("prompts per step", "batch"), ("epochs", "epochs")):
        shown = [float(part) for part in found.loc[name, here].split(" / ")]
        assert shown == [getattr(POLICIES[profile], field) for profile in ("paper", "quick")]


def test_live_training_is_short_and_checked():
    starts = [s for s in sweeps.small("quick", (42,)) if s.method == "discrete CoT"]
    rewards = live.rewards(starts, MTS(2), 3, 1e-3)
    assert rewards.shape == (3, 1) and rewards.to_numpy().min() >= 0 and rewards.to_numpy().max() <= 100
    with pytest.raises(SpecError, match="live_steps=1"):
        live.rewards(starts, MTS(2), 1, 1e-3)


def test_the_start_level_is_what_an_untrained_policy_earns(monkeypatch):
    starts = sweeps.starts([42])
    monkeypatch.setattr(live, "STILL_STEPS", 5)
    still = live.rewards(starts, MTS(2), 5, 0.0)
    level = live.start_level(starts, MTS(2))
    assert level == pytest.approx(float(still.to_numpy().mean())) and 0 < level < 100
