"""What an arrow at the end of the prompt does, and what a mask does to hops: pairs of cells, and their predictions."""

import pandas as pd
import pytest

from cot2lib.specs import profiles
from cot2lib.study import arrow, predicted, sweeps
from cot2lib.study.controls import reading, steps

PAIRS = {predicted.ARROW: arrow.EXPERIMENTS, predicted.HOPS: reading.HOPS}


@pytest.mark.parametrize("block", PAIRS)
def test_every_prediction_has_its_pair_of_cells(block):
    assert [*PAIRS[block]] == [*predicted.predictions(block)["id"].unique()]


def test_pairs_name_cells_that_are_trained():
    asked = {
        (name, run.model.d_model, run.supervision.budget or 16, "yes" if run.supervision.arrow else "no")
        for name in profiles.PROFILES
        for each in ("budgets", "other_prompt")
        for run in sweeps.sweep(each, name)
    }
    assert {cell for pair in arrow.EXPERIMENTS.values() for cell in pair} <= asked
    assert {cell for pair in reading.HOPS.values() for cell in pair} <= {*steps.hops()}


def test_runs_with_the_other_prompt_differ_in_the_arrow_alone():
    """From a run of the budgets with the same seed, but for how often they are evaluated."""
    for name in profiles.PROFILES:
        shown = lambda run: (run.model, run.seed, run.supervision.budget)
        own = {shown(run): run for run in sweeps.sweep("budgets", name) if run.supervision.budget != 1}
        for run in sweeps.sweep("other_prompt", name):
            usual = own[shown(run)]
            recipe = usual.recipe.__class__(**vars(usual.recipe) | {"evaluate_every": run.recipe.evaluate_every})
            other = vars(run.supervision) | {"arrow": not run.supervision.arrow}
            assert recipe == run.recipe and usual.supervision == run.supervision.__class__(**other)


def test_a_pair_is_a_difference_by_seed():
    """One minus the other where both have the seed; without two of them there is no outcome."""
    ends = {"csft": [90.0, 80.0], "csft strict": [89.0, 81.0], "discrete": [70.0], "discrete strict": [20.0]}
    last = pd.Series({(cell, 67 + place): end for cell, some in ends.items() for place, end in enumerate(some)})
    last.index.names = ["control", "seed"]
    table = predicted.of_pairs(last[::-1], reading.HOPS, predicted.HOPS).set_index("id")
    assert table.loc["hops-csft-strict", ["mean", "n"]].tolist() == [0, 2]
    assert table["n"].notna().sum() == 1 and table.loc["hops-discrete-strict", "look-ahead"] == predicted.UNRUN
