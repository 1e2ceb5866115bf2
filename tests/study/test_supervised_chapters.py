"""Tables of the chapters csft and budget from frames known by hand, and what chapters train live."""

import numpy as np
import pandas as pd
import pytest

from cot2lib.specs.profiles import TWENTY
from cot2lib.study import draw, frame, live
from cot2lib.study.budget import draw as budget
from cot2lib.study.budget.measure import simple_optimum
from cot2lib.study.csft import draw as csft
from cot2lib.tasks import MNNS


def runs(shares, **columns):
    """One run per share, as `cot2lib.study.frame.read` gives them."""
    shares = pd.Series(shares, dtype=float)
    made = {"last": shares, "closing_mean": shares - 0.01, "best": shares + 0.02, "split_half": shares + 0.01}
    usual = dict(profile="paper", method="CoT2", d_model=32, seed=range(42, 42 + len(shares)), task="MNNS 4 x 1-9")
    return pd.DataFrame(made | usual | columns)


def tidy(*parts):
    return frame.tidy(pd.concat(parts, ignore_index=True))


BUDGETS = tidy(
    *(
        runs(shares, budget=budget, d_model=d_model)
        for (budget, d_model), shares in {
            (1, 16): (0.50, 0.52, 0.51), (4, 16): (0.60, 0.62, 0.61), (16, 16): (0.55, 0.57, 0.56),
            (1, 32): (0.80, 0.82, 0.81), (4, 32): (0.90, 0.92, 0.91), (16, 32): (0.99, 0.98, 0.97),
        }.items()
    )
)  # fmt: skip
PATHS = tidy(
    *(
        runs(shares, tokens=tokens, task=task)
        for (task, tokens), shares in {
            ("MNNS 5 x 5-13", 5): (0.90, 0.92, 0.91), ("MNNS 5 x 5-13", 3): (0.8, 0.82, 0.81),
            ("MNNS 5 x 5-13", 1): (0.3, 0.32, 0.31), ("MNNS 5 x 11-19", 5): (0.6, 0.7, 0.8),
            ("MNNS 5 x 11-19", 1): (0.95, 0.96, 0.97),
        }.items()
    )
)  # fmt: skip


def test_a_cell_of_two_outcomes_is_told():
    apart = runs([0.31, 0.70, 0.16, 0.42, 0.71], method="no-CoT")
    (sentence,) = csft.two_outcomes(tidy(apart, runs([0.90, 0.92, 0.94])))
    assert sentence.startswith(
        "**authors' recipe, no-CoT, d = 32**: 2 of 5 runs end at 70 to 71 %, 3 of 5 runs end at"
    )
    alone = tidy(runs([0.5, 0.5, 0.704, 0.5, 0.5]))
    assert csft.two_outcomes(alone)[0].endswith("1 of 5 runs ends at 70 %, 4 of 5 runs end at 50 %.")
    assert csft.two_outcomes(alone.assign(last=alone["last"].clip(upper=69))) == [], "not far enough apart"
    assert csft.two_outcomes(alone[1:]) == [], "too few runs to speak of groups"


def test_cost_tells_cores_from_graphics_processors():
    said = csft.cost(
        tidy(
            runs([0.9, 0.9], device="cpu (a)", seconds=60.0, threads=2),
            runs([0.9], device="NVIDIA H100", seconds=30.0, threads=16),
        )
    )
    assert "took 2.0 core-minutes on average (cpu (a))" in said
    assert "took 0.5 GPU-minutes on average (NVIDIA H100)" in said


def test_entropies_of_the_exact_targets_and_of_models():
    finals = tidy(runs([0.9, 0.9], entropy_1=[0.6, 0.8], entropy_2=[1.0, 1.2]))
    table = draw.entropy_table(finals, np.array([0.69, 1.3])).set_index("what")
    assert table.loc["CoT2, authors' recipe"].tolist() == pytest.approx([0.7, 1.1])
    assert table.loc["exact targets", "t = 2"] == 1.3 and np.isnan(table.loc["t ln 2", "t = 2"])
    shown = draw.entropies(finals, np.array([0.69, 1.3]))
    assert sorted(shown.numbers["entropy"]) == [0.6, 0.8, 1.0, 1.2]
    assert shown.finding == "By the authors' recipe thought 1 holds 0.700 nat, its targets 0.690."


def test_papers_numbers_beside_the_methods():
    assert csft.stated("COCONUT, zero slot", 32) == csft.stated("COCONUT", 32) == 92.58
    assert csft.stated("no-CoT, pauses", 32) == csft.stated("no-CoT", 32) == 68.35
    assert csft.stated("COCONUT", 24) is None and csft.stated("CoT2", 20) is None
    assert csft.stated_one_layer("CoT2", 24) == 88.61 and csft.stated_one_layer("discrete CoT", 24) == 39.76
    assert csft.stated_one_layer("CoT2", 32) is None
    assert budget.stated(4, 16) == 64.20 and budget.stated(16, 32) == 98.94 and budget.stated(2, 16) is None


def test_what_larger_budgets_add():
    steps = budget.steps_up(BUDGETS).set_index("d")
    assert steps.loc[16, "B = 1 to 4"].startswith("10.0") and steps.loc[16, "B = 4 to 16"].startswith("-5.0")
    small, large = budget.best(BUDGETS).to_dict("records")
    assert (small["budget"], small["most"]) == (4, pytest.approx(61.0))
    assert (large["budget"], large["most"]) == (16, pytest.approx(98.0))


def test_paths():
    optimum = pd.DataFrame({"task": ["MNNS 5 x 5-13", "MNNS 5 x 11-19"], "smallest minus largest (%)": [56.9, 97.9]})
    table = budget.path_table(PATHS, optimum).set_index(["task", "shown"])["ours, authors' recipe"]
    assert table["MNNS 5 x 11-19", "always the smallest minus the largest"] == "97.9"
    assert table["MNNS 5 x 5-13", "5 tokens"].startswith("91.0") and ("MNNS 5 x 11-19", "3 tokens") not in table


def test_simple_optimum_counts():
    """Digits 11-19: 97.9 % by the paper's authors' own count; three digits 1, 1, 9 have 9-1-1 and not 2-9."""
    assert simple_optimum(MNNS(11, 19, 5)) == pytest.approx(97.9, abs=0.05)
    assert simple_optimum(MNNS(5, 13, 5)) == pytest.approx(57.0, abs=0.05)
    assert simple_optimum(MNNS(3, 3, 3)) == 100


# Live


def test_live_curves_lie_before_the_range_of_the_recorded_seeds():
    asked = live.specs(MNNS(), "quick", [1, 16], 24, 2, 42)
    band = live.recorded(asked, "quick")
    assert set(band["budget"]) == {1, 16} and set(band["seed"]) == set(TWENTY) and set(band["d_model"]) == {24}
    found = band[band["seed"] == 42]
    shown = draw.live_curves(found, band)
    areas = shown.figure.axes[0].collections
    then = band[(band["budget"] == 1) & (band["step"] == band["step"].unique()[20])]
    inside = lambda value: areas[0].get_paths()[0].contains_point((then["epoch"].mean(), value))
    assert len(areas) == 2 and inside(then["accuracy"].mean()) and not inside(then["accuracy"].max() + 1)
    assert len(shown.numbers) == len(found)
    ends = found.sort_values("epoch").groupby("budget")["accuracy"].last()
    assert all(f"{end:.1f} %" in shown.finding for end in ends) and shown.finding.count("ends at") == 2
    assert live.recorded(live.specs(live.task(1, 5, 3), "quick", [1], 24, 2, 42), "quick") is None


def test_live_specs():
    task = live.task(1, 9, 4)
    asked = live.specs(task, "quick", [16, 1, 99, 4], 24, 3, 42)
    assert [(s.method, s.supervision.budget) for s in asked] == [("CoT2", None), ("discrete CoT", 1), ("CoT2", 4)]
    assert all(s.recipe.steps == 246 and s.recipe.evaluate_every == 9 for s in asked)
    assert task.inputs is None and live.task(1, 9, 6).inputs == live.SAMPLED


def test_a_rule_without_search_knows_the_parity():
    assert 60 < live.without_search(MNNS()) < 62
