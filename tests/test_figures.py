"""Tables, sentences and figures of the chapters, from small frames whose answers are known by hand."""

import numpy as np
import pandas as pd
import pytest

from cot2lib.errors import SpecError
from cot2lib.study.analysis import guessing, live
from cot2lib.study.checks import budget as budget_checks
from cot2lib.study.checks import csft as csft_checks
from cot2lib.study.checks.live import live_checks
from cot2lib.study.figures import budget, csft, curves
from cot2lib.study.figures.live import live_curves
from cot2lib.study.figures.style import BUDGET, METHOD, MOST_SVG, panels
from cot2lib.study.sweeps import BUDGETS as BUDGETS_OF_THE_SWEEP
from cot2lib.tasks import MNNS


def rows(**columns):
    """Runs as `cot2lib.runs.run` gives them, three seeds of each cell."""
    cells = columns.pop("cells")
    table = []
    for cell, shares in cells.items():
        for seed, share in zip((42, 43, 44), shares):
            table.append({"seed": seed, "last": share, **dict(zip(columns["by"], cell))})
    plain = {"profile": "quick", "method": "CoT2", "d_model": 32, "budget": 16, "tokens": 4, "task": "MNNS 4 x 1-9"}
    frame = pd.DataFrame(table)
    return frame.assign(**{name: value for name, value in plain.items() if name not in frame})


BUDGETS = rows(by=("budget", "d_model"), cells={
    (1, 16): (0.50, 0.52, 0.51), (4, 16): (0.60, 0.62, 0.61), (16, 16): (0.55, 0.57, 0.56),
    (1, 32): (0.80, 0.82, 0.81), (4, 32): (0.90, 0.92, 0.91), (16, 32): (0.99, 0.98, 0.97),
})  # fmt: skip
BUDGETS["method"] = np.where(BUDGETS["budget"] == 1, "discrete CoT", "CoT2")


def marks(figure, axis=0):
    return {round(float(y), 2) for part in figure.axes[axis].collections for _, y in part.get_offsets()}


def test_budget_tables():
    table = budget.accuracy_table(BUDGETS).set_index(["d", "budget"])
    assert table.loc[(16, "B = 4"), "paper"] == 64.20 and table.loc[(32, "B = 16"), "paper"] == 98.94
    assert table.loc[(16, "B = 4"), "ours, quick recipe"].startswith("61.0")
    steps = budget.steps_up(BUDGETS).set_index("d")
    assert steps.loc[16, "B = 1 to 4"].startswith("10.0") and steps.loc[16, "B = 4 to 16"].startswith("-5.0")
    said = budget.findings(BUDGETS)
    assert "d = 16**: the best mean is that of B = 4 (61.0 %). B = 16 is 5.0" in said[0]
    assert "best mean is that of B = 16 (98.0 %)" in said[1]


def test_budget_figure_shows_every_seed_and_the_papers_value():
    shown = marks(budget.accuracies(BUDGETS))
    assert {round(100 * share, 2) for share in BUDGETS["last"]} <= shown
    assert {55.48, 64.20, 55.27, 84.92, 99.04, 98.94} <= shown


@pytest.mark.parametrize("asked", [(1, 3), (1, 2, 6), (3,), (1, 2, 3, 4, 5, 6, 7, 9, 10)])
def test_budgets_that_the_book_does_not_draw_get_looks_of_their_own(asked):
    frame = rows(by=("budget", "d_model"), cells={(b, 16): (0.5, 0.52 + b / 100, 0.51) for b in asked})
    looks = BUDGET.looks(frame["budget"])
    assert list(looks) == sorted(asked) and len({str(look) for look in looks.values()}) == len(asked)
    assert all(looks[b] == BUDGET.known[b] for b in asked if b in BUDGET.known)
    figure = budget.accuracies(frame)
    assert {round(100 * share, 2) for share in frame["last"]} <= marks(figure)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [*(f"B = {b}" for b in asked), "paper"]
    assert budget.accuracy_table(frame)["budget"].tolist() == [f"B = {b}" for b in asked]
    points = pd.concat([frame.assign(step=s, epoch=s / 10, accuracy=frame["last"]) for s in (1, 2)])
    assert len(live_curves(points[points["seed"] == 42]).axes[0].lines) == len(asked)


def test_panels_of_which_nothing_is_recorded_are_left_out():
    points = pd.DataFrame(
        [
            {"profile": profile, "tokens": 5, "task": task, "seed": 42, "step": step, "epoch": step, "accuracy": 0.5}
            for profile, task in (("paper", "b"), ("quick", "a"), ("quick", "b")) for step in (1, 2)
        ]
    )  # fmt: skip
    figure = budget.path_learning(points)
    assert [axis.get_xlabel() for axis in figure.axes] == [
        "epoch (authors' recipe, b)", "epoch (quick recipe, b)", "epoch (quick recipe, a)"
    ]  # fmt: skip
    assert [axis.get_ylabel() for axis in figure.axes] == ["validation accuracy (%)", "validation accuracy (%)", ""]


PATHS = rows(by=("task", "tokens"), cells={
    ("MNNS 5 x 5-13", 5): (0.90, 0.92, 0.91), ("MNNS 5 x 5-13", 3): (0.8, 0.82, 0.81),
    ("MNNS 5 x 5-13", 1): (0.3, 0.32, 0.31), ("MNNS 5 x 11-19", 5): (0.6, 0.7, 0.8),
    ("MNNS 5 x 11-19", 1): (0.95, 0.96, 0.97),
})  # fmt: skip


def test_path_tables():
    optimum = pd.DataFrame(
        {
            "task": ["MNNS 5 x 5-13", "MNNS 5 x 11-19"],
            "smallest minus largest (%)": [56.9, 97.9],
            "commonest answer (%)": 20.0,
        }
    )
    table = budget.path_table(PATHS, optimum).set_index(["task", "shown"])["ours, quick recipe"]
    assert table["MNNS 5 x 11-19", "always the smallest minus the largest"] == "97.9"
    assert table["MNNS 5 x 5-13", "5 tokens"].startswith("91.0") and table["MNNS 5 x 11-19", "3 tokens"] == ""
    said = budget.path_findings(PATHS)
    assert "best is 5 tokens (91.0 %), by 10.0" in said[0] and "points over 1 token" in said[0]
    assert "MNNS 5 x 11-19**: best is 1 token (96.0 %)" in said[1]


def test_simple_optimum_counts():
    """Digits 11-19: 97.9 % by the paper's authors' own count; three digits 1, 1, 9 have 9-1-1 and not 2-9."""
    assert guessing.simple_optimum(MNNS(11, 19, 5)) == pytest.approx(97.9, abs=0.05)
    assert guessing.simple_optimum(MNNS(5, 13, 5)) == pytest.approx(57.0, abs=0.05)
    assert guessing.simple_optimum(MNNS(3, 3, 3)) == 100


LAYERS = ("method", "d_model")
SINGLE = rows(by=LAYERS, cells={("CoT2", 24): (0.97, 0.98, 0.99), ("discrete CoT", 24): (0.7, 0.72, 0.71)})
DOUBLE = rows(by=LAYERS, cells={("CoT2", 24): (0.98, 0.98, 0.98), ("discrete CoT", 24): (0.88, 0.88, 0.88)})


def test_layers():
    table = csft.layers_table(SINGLE, DOUBLE).set_index(["method", "d"])
    assert table.loc[("CoT2", 24), "1 layer, quick recipe"].startswith("98.0")
    assert table.loc[("discrete CoT", 24), "2 layers, quick recipe"].startswith("88.0")
    (said,) = csft.layers_findings(SINGLE, DOUBLE)
    assert said.index("27.0") < said.index("with 1 layer and") < said.index("10.0") < said.index("with 2 layers")


FED = rows(by=("fed", "d_model"), cells={
    ("teacher", 24): (0.9, 0.91, 0.92), ("self", 24): (0.8, 0.81, 0.82), ("teacher, then self", 24): (0.9, 0.92, 0.91)
})  # fmt: skip


def test_feeding():
    table = csft.feeding_table(FED).set_index("fed")
    assert table.loc["self", "d = 24"].startswith("81.0") and table.loc["teacher", "d = 24"].startswith("91.0")
    (said,) = csft.feeding_findings(FED)
    assert "self-feeding costs 10.0" in said and "the curriculum adds 0.0" in said


def test_stage_findings():
    stages = rows(by=("method", "d_model"), cells={("COCONUT", 32): (0.8, 0.82, 0.84), ("CoT2", 32): (0.9, 0.9, 0.9)})
    stages = stages.assign(best=stages["last"] + 0.1, best_step=40, steps=100)
    (said,) = csft.stage_findings(stages)
    assert said == (
        "**quick recipe, COCONUT**: 82.0 % at the last epoch, 92.0 % at the best one, which comes 40 % into the "
        "training. The paper says 92.58 %."
    )


def test_paper_marks_of_the_baselines():
    assert csft.paper_accuracy("COCONUT, zero slot", 32) == csft.paper_accuracy("COCONUT", 32) == 92.58
    assert csft.paper_accuracy("no-CoT, pauses", 32) == csft.paper_accuracy("no-CoT", 32) == 68.35
    assert csft.paper_accuracy("COCONUT", 24) is None and csft.paper_accuracy("CoT2", 20) is None
    assert csft.paper_accuracy_one_layer("CoT2", 24) == 88.61
    assert csft.paper_accuracy_one_layer("discrete CoT", 24) == 39.76
    assert csft.paper_accuracy_one_layer("CoT2", 32) is None


def test_learning_curves_draw_every_seed_and_their_mean():
    points = [
        {"profile": "quick", "method": "CoT2", "d_model": d, "seed": seed, "step": step, "epoch": step / 10,
         "accuracy": 0.1 * step + 0.01 * seed}
        for d in (16, 32) for seed in (1, 2, 3) for step in (1, 2)
    ]  # fmt: skip
    figure = curves.accuracy_over_epochs(pd.DataFrame(points), METHOD, "d_model", "d = {}", lambda name, d: 90.0)
    assert len(figure.axes) == 2 and figure.axes[0].get_xlabel() == "epoch (quick recipe, d = 16)"
    lines = [line.get_ydata() for line in figure.axes[0].lines]
    assert len(lines) == 4 and np.allclose(lines[-1], [12.0, 22.0])
    assert marks(figure) == {90.0}


@pytest.mark.parametrize("name, shown", [("short", " short"), ("so long that " * 4, "\n" + "so long that " * 4)])
def test_a_name_too_long_for_its_panel_stands_on_two_lines(name, shown):
    points = pd.DataFrame({"step": [1, 2] * 2, "seed": 42, "profile": "quick", "method": "CoT2"})
    points = points.assign(epoch=points["step"], accuracy=0.5, naming=["one"] * 2 + [name] * 2)
    figure = curves.accuracy_over_epochs(points, METHOD, "naming", "{}")
    separator = shown[0]
    assert [axis.get_xlabel() for axis in figure.axes] == [
        f"epoch (quick recipe,{separator}one)", f"epoch (quick recipe,{shown})",
    ]  # fmt: skip


# Live


def test_live_curves_lie_before_the_range_of_the_recorded_seeds():
    asked = live.specs(MNNS(), "quick", [1, 16], 24, 2, 42)
    band = live.recorded(asked, "quick")
    assert set(band["budget"]) == {1, 16} and set(band["seed"]) == set(live.TEN) and set(band["d_model"]) == {24}
    found = band[band["seed"] == 42]
    areas = live_curves(found, band).axes[0].collections
    then = band[(band["budget"] == 1) & (band["step"] == band["step"].unique()[20])]
    inside = lambda value: areas[0].get_paths()[0].contains_point((then["epoch"].mean(), 100 * value))
    assert len(areas) == 2 and inside(then["accuracy"].mean()) and not inside(then["accuracy"].max() + 0.01)
    assert live.recorded(live.specs(live.task(1, 5, 3), "quick", [1], 24, 2, 42), "quick") is None


def test_live_specs():
    task = live.task(1, 9, 4)
    asked = live.specs(task, "quick", [16, 1, 99, 4], 24, 3, 42)
    assert [(s.method, s.supervision.budget) for s in asked] == [("CoT2", None), ("discrete CoT", 1), ("CoT2", 4)]
    assert all(s.recipe.steps == 246 and s.recipe.evaluate_every == 9 for s in asked)
    assert live.task(1, 9, 6).size == live.SAMPLED
    with pytest.raises(SpecError, match="fewer than 5 different multisets"):
        live.task(3, 4, 2)
    with pytest.raises(SpecError, match="no live budget"):
        live.specs(task, "quick", [], 24, 3, 42)


@pytest.mark.parametrize("share, holds", [(0.70, False), (0.75, True)])
def test_live_check_is_above_the_parity_rule(share, holds):
    """The rule knows 61 % of four digits 1-9; ten points above are asked for."""
    found = pd.DataFrame({"budget": [1, 16], "last": [0.99, share]})
    assert list(live_checks(found, MNNS()).values()) == [holds]


# Checks can fail


METHODS = ("method", "d_model")


def claims_with(other=0.8, one=0.7, own=0.8):
    others = rows(by=METHODS, cells={("CoT2", 32): (0.9, 0.9), ("COCONUT", 32): (other, other)})
    cells = {(m, d): (v, v) for d in (16, 24, 32) for m, v in (("CoT2", 0.75), ("discrete CoT", one))}
    single = rows(by=METHODS, cells=cells)
    fed = rows(by=("fed", "d_model"), cells={
        (way, d): (v, v) for d in (16, 24, 32) for way, v in (("teacher", 0.8), ("self", own))
    })  # fmt: skip
    return csft_checks.more_checks(others, single, fed)


def test_checks_of_the_other_baselines():
    assert list(claims_with().values()) == [True, True, True]
    assert list(claims_with(other=0.95).values()) == [False, True, True]
    assert list(claims_with(one=0.8).values()) == [True, False, True]
    assert list(claims_with(own=0.85).values()) == [True, True, False]


def test_checks_leave_out_what_is_not_recorded():
    part = rows(by=METHODS, cells={("CoT2", 24): (0.9, 0.9), ("discrete CoT", 24): (0.5, 0.5)})
    fed = rows(by=("fed", "d_model"), cells={("teacher", 24): (0.9, 0.9)})
    assert csft_checks.more_checks(part, part, fed) == {}
    optimum = pd.DataFrame({"task": ["MNNS 5 x 11-19"], "smallest minus largest (%)": [97.9]})
    assert list(budget_checks.checks(BUDGETS, PATHS, optimum)) == [
        "of 11-19 nearly all optima are the three smallest minus the two largest",
        "of MNNS 5 x 5-13 the whole path has the best mean, the answer alone the worst (quick)",
    ]


@pytest.mark.parametrize("low, holds", [(0.5, True), (0.95, False)])
def test_check_of_the_budgets(low, holds):
    cells = {(b, d): (0.9, 0.91, 0.92) if b > 1 else (low, low, low) for b in BUDGETS_OF_THE_SWEEP for d in (24, 32)}
    optimum = pd.DataFrame({"task": ["MNNS 5 x 11-19"], "smallest minus largest (%)": [97.9]})
    found = budget_checks.checks(rows(by=("budget", "d_model"), cells=cells), PATHS, optimum)
    assert found["every budget above 1 is better than discrete CoT (quick, d = 24, 32)"] is holds
    swapped = PATHS.assign(last=1 - PATHS["last"])
    assert not budget_checks.checks(BUDGETS, swapped, optimum)[
        "of MNNS 5 x 5-13 the whole path has the best mean, the answer alone the worst (quick)"
    ]
    low_share = optimum.assign(**{"smallest minus largest (%)": [50.0]})
    assert not budget_checks.checks(BUDGETS, PATHS, low_share)[
        "of 11-19 nearly all optima are the three smallest minus the two largest"
    ]


def test_method_findings():
    both = rows(by=METHODS, cells={("CoT2", 32): (0.9, 0.92, 0.91), ("no-CoT", 32): (0.4, 0.42, 0.41)})
    (said,) = csft.method_findings(both, 32)
    assert said.startswith("**quick recipe, no-CoT**: CoT2 is 50.0")
    assert said.endswith("In the paper it is 30.6 above.")


def test_a_figure_offers_vectors_unless_these_weigh_too_much():
    drawings = []
    for points in (10, 20_000):
        figure, axes = panels(1, 1)
        axes[0, 0].plot(np.random.default_rng(0).random(points))
        drawings.append((figure._repr_svg_(), figure._repr_svg_()))
    (first, again), (heavy, _) = drawings
    assert first == again and first.lstrip().startswith("<?xml") and len(first) < MOST_SVG
    assert heavy is None
