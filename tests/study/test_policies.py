"""Runs by reward: their evaluations, which collapse, what was predicted of them, and what chapters train live."""

import pandas as pd
import pytest

from cot2lib import runs
from cot2lib.specs import GRPOSpec, Recipe
from cot2lib.specs.profiles import shortened, spec
from cot2lib.study import csft, grpo_dirichlet, grpo_mts, policies, sweeps
from cot2lib.study.printed import paper_value
from cot2lib.tasks import MNNS
from cot2lib.thoughts import MTS


def test_evaluations_of_stored_runs(store):
    start = shortened(spec("discrete", task=MNNS(1, 4, 2), d_model=16, layers=1, heads=1), 30)
    specs = [GRPOSpec(Recipe(steps=8, batch=4, lr=1e-3, evaluate_every=4), start, MTS(2))]
    runs.run(specs, retrain=True)
    points, row = policies.evaluations({"quick": specs}, "quick"), runs.run(specs, missing="error").iloc[0]
    held_out = row["inputs_a"] + row["inputs_b"]
    assert points["step"].tolist() == [0, 4, 8] and points["own"].iloc[-1] == pytest.approx(100 * row["last"])
    assert points["base"].tolist() == ((points["base_a"] + points["base_b"]) * 100 / held_out).tolist()


def test_of_one_takes_another_profile_where_nothing_is_recorded():
    rows = pd.DataFrame({"profile": ["quick"]})
    assert policies.of_one(rows, "paper")["profile"].tolist() == ["quick"]


def test_accuracies_mark_what_the_paper_states():
    """Marks of figures are in no golden file."""
    asked = {"quick": {"table": {sweeps.USUAL: sweeps.sampled("quick", (42,), (24,), (3,))}}}
    rows = grpo_mts.claimed(policies.read(asked))
    axis = policies.accuracies(rows, "own", "k", "d_model").figure.axes[0]
    marks = sorted(tuple(place) for points in axis.collections for place in points.get_offsets().tolist())
    stated = [paper_value(f"grpo-mts-d24-{name}") for name in ("sft", "k3")]
    assert [y for _, y in marks if y in stated] == stated
    printed = policies.moments(rows, "entropy_3").set_index("when")["paper"]
    assert printed.to_dict() == {
        "before": paper_value("grpo-mts-d24-k3-entropy3-sft"),
        "after": paper_value("grpo-mts-d24-k3-entropy3"),
    }
    ours = [("CoT2", 24), ("discrete CoT", 24), ("CoT2", 32)]
    assert [csft.stated_one_layer(*run) for run in ours] == [88.61, 39.76, None]


def test_dirichlet_has_a_claim_at_every_scale_from_cot2_alone():
    origins = ["discrete CoT, 1 layer"] * 2 + ["CoT2, 1 layer"] * 2
    rows = pd.DataFrame({"origin": origins, "gamma": [20.0, 10.0, 10.0, 1.0]})
    rows["started"] = rows["origin"].str.partition(",")[0]
    found = grpo_dirichlet.claimed(rows)
    known = [paper_value(f"dirichlet-{name}") for name in ("discrete-1l", "cot2-g10", "discrete-1l-sft", "cot2-sft")]
    assert found["paper"].tolist()[0::2] == known[:2] and found["paper"].isna().tolist() == [False, True, False, True]
    assert found["paper_before"].tolist() == [known[2]] * 2 + [known[3]] * 2
