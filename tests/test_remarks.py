"""Tables behind sentences of the pages, on numbers worked out by hand."""

import pandas as pd
import pytest

from cot2lib.specs.profiles import POLICIES
from cot2lib.study import sweeps
from cot2lib.study.analysis import differences, policies
from cot2lib.study.figures import remarks

AFTER = {  # (k, ratio): entropy left, by seed 42, 43, 44
    (1, "geometric"): (0.0, 0.1, 0.2),
    (6, "geometric"): (0.5, 0.3, 0.4),
    (6, "product"): (0.5, 0.2, 0.3),
}


def points():
    """Two evaluations of each run: the first with an entropy that must not count."""
    rows = [
        {"id": f"{k}{ratio}{seed}", "profile": "quick", "seed": seed,
          "k": k, "ratio": ratio, "step": step, "base": 90.0 - step}
        | {f"entropy_{t}": (9.0 if step == 0 else left) * t for t in sweeps.STEPS}
        for (k, ratio), lefts in AFTER.items() for seed, left in zip((42, 43, 44), lefts) for step in (5, 0)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_entropies_are_compared_after_training_and_by_seed():
    apart = differences.entropies_apart(points(), 1, 6)
    assert apart["geometric", 1].mean == pytest.approx(0.3) and apart["product", 1].mean == pytest.approx(0.7 / 3)
    assert apart["product", 3].mean == pytest.approx(0.7), "token 3 has three times the entropy"
    rest = differences.entropies_apart(points(), 1, 6, without={42})
    assert rest["geometric", 2].mean == pytest.approx(0.4) and rest["product", 2].mean == pytest.approx(0.2)
    assert rest["product", 2].half_width == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("seeds, rows", [((42,), 4), ((42, 43, 44), 2)])
def test_the_table_leaves_out_what_no_seed_is_left_for(seeds, rows):
    """Those seeds collapse: every decoder ends at the most frequent answer."""
    table = points().assign(split=lambda rows: rows["seed"], change="usual", own=lambda rows: rows["base"])
    table.loc[table["ratio"] == "product", "change"] = "product"
    for decoder in ("own", "base", "discrete"):
        level = table["split"].map(policies.constant_answer)
        table[decoder] = table["base"].where(~table["seed"].isin(seeds), level)
    shown = remarks.entropy_by_ratio(table, 1, 6)
    assert list(shown["seeds"]) == ["all", "all", "not collapsed", "not collapsed"][:rows]
    assert shown.loc[0, "token 1"].startswith("0.30")
    assert rows == 2 or shown.loc[3, "token 1"].startswith("0.10")


def test_what_the_last_epoch_lacks_stands_beside_the_best_scale():
    curves = {1.0: ((50, 80, 60), (50, 80, 62)), 20.0: ((50, 81, 80), (50, 84, 84))}  # two seeds' evaluations
    rows = [
        {"id": f"{gamma}{seed}", "profile": "quick", "started": "CoT2", "layers": 1, "gamma": gamma, "seed": seed,
         "step": step, "base": float(value)}
        for gamma, runs in curves.items() for seed, run in zip((42, 43), runs) for step, value in enumerate(run)
    ]  # fmt: skip
    own, gap = differences.lost_beside(pd.DataFrame(rows), 20.0)[1.0]
    assert own.to_dict() == {42: 20.0, 43: 18.0} and gap.mean == pytest.approx(18.5)
    table = remarks.lost_by_gamma(pd.DataFrame(rows), 20.0).set_index("scale")
    assert table["start"].unique().tolist() == ["CoT2, one layer"]
    assert table.loc["1", "lost at the end"].startswith("19.0") and table.loc["1", "more than at 20"].startswith(
        "18.5"
    )
    assert table.loc["20", "lost at the end"].startswith("0.5") and table.loc["20", "more than at 20"] == ""


def test_the_papers_gains():
    """By subtraction in its Tables 1 and 2: 52.60 - 39.76, and 68.24 - 68.50, the one entry that falls."""
    table = remarks.paper_gains().set_index("model")
    assert "12.84 (K = 3)" in table.loc["MNNS, discrete CoT, d = 24", "gains (points)"]
    assert table.loc["ProsQA, discrete CoT", "gains (points)"].startswith("\N{MINUS SIGN}0.26 (K = 6)")
    assert table["gains (points)"].str.count("\N{MINUS SIGN}").sum() == 1
    tasks = table.groupby(table.index.str.partition(",").get_level_values(0))["mean gain"].mean()
    assert tasks["MNNS"] > max(tasks["ProsQA"], tasks["ProntoQA"])


def test_recipes_are_those_that_train():
    table = remarks.policy_recipes().set_index("what")
    (here,) = [column for column in table.columns if column.startswith("here")]
    assert here == "here (authors' recipe / quick recipe)" and not table.isna().any(axis=None)
    for name, field in (("learning rate, MTS", "lr"), ("prompts per step", "batch"), ("epochs", "epochs")):
        shown = [float(part) for part in table.loc[name, here].split(" / ")]
        assert shown == [getattr(POLICIES[profile], field) for profile in ("paper", "quick")]
