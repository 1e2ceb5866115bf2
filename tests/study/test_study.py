"""The study's shared layer: tidy frames, tables and gaps from frames known by hand, checks that can fail, figures."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection, PathCollection

from cot2lib.metrics import paired_interval
from cot2lib.study import check, frame, look, printed, series, show, sweeps

METHODS = {"CoT2": (0.90, 0.92, 0.94), "discrete CoT": (0.80, 0.85, 0.84)}


def rows(**columns):
    """Three seeds of two methods, as `cot2lib.runs` gives them."""
    table = [
        {"profile": "quick", "method": method, "d_model": 32, "seed": seed, "last": share} | columns
        for method, shares in METHODS.items()
        for seed, share in zip((42, 43, 44), shares)
    ]
    return pd.DataFrame(table)


TIDY = frame.tidy(pd.concat([rows(), rows(profile="paper")], ignore_index=True))


def test_tidy_is_in_percent_and_in_the_books_order():
    assert TIDY["last"].max() == 94.0 and rows()["last"].max() == 0.94
    assert list(TIDY["recipe"].cat.categories) == ["authors' recipe", "quick recipe"]
    strange = frame.tidy(rows(method="my rule").assign(method=["my rule", "CoT2", "no-CoT"] * 2))
    assert list(strange["method"].cat.categories) == ["CoT2", "no-CoT", "my rule"]


def test_ordered_leaves_out_categories_without_rows():
    few = TIDY[TIDY["recipe"] == "quick recipe"]["recipe"]
    assert list(frame.ordered(few, ("authors' recipe", "quick recipe")).categories) == ["quick recipe"]


def test_gaps_pair_by_seed():
    part = TIDY.drop(TIDY.index[(TIDY["seed"] == 44) & (TIDY["method"] == "CoT2") & (TIDY["profile"] == "paper")])
    found = show.gaps(part, ["recipe"], "method", "CoT2", "discrete CoT").set_index("recipe")
    sides = [100 * pd.Series(METHODS[name], index=(42, 43, 44)) for name in METHODS]
    wanted = paired_interval(*sides)
    quick, paper = found.loc["quick recipe"], found.loc["authors' recipe"]
    assert (quick["mean"], quick["low"], quick["n"]) == pytest.approx((wanted.mean, wanted.low, 3))
    assert paper["n"] == 2 and paper["mean"] == pytest.approx(8.5) and paper["below"] == pytest.approx(82.5)
    assert quick["ahead"] == 3 and "points above" in quick["told"]
    assert "points below" in show.gaps(TIDY, ["recipe"], "method", "discrete CoT", "CoT2")["told"][0]
    assert show.gaps(TIDY[TIDY["method"] == "CoT2"], ["recipe"], "method", "CoT2", "discrete CoT").empty


@pytest.mark.parametrize(
    "holds",
    [False, np.False_, pd.Series([True, False]), pd.Series(dtype=bool), [[True], [pd.Series(dtype=bool)]], []],
)
def test_check_that_does_not_hold_raises_at_the_shipped_parameters_alone(holds, capsys):
    with pytest.raises(AssertionError, match="a sentence"):
        check.Check(True)("a sentence", holds)
    said = capsys.readouterr().out
    assert "FAILS: a sentence" in said or "cannot be said: a sentence" in said
    check.Check(False)("a sentence", holds)
    said = capsys.readouterr().out
    assert "holds: a sentence" not in said and "FAILS" not in said


@pytest.mark.parametrize("holds", ["yes", 1, {"a": True}, None])
def test_check_of_what_is_neither_true_nor_false(holds):
    with pytest.raises(TypeError, match="neither true nor false"):
        check.Check(False)("a sentence", holds)


def test_check_that_holds_or_lacks_its_runs_says_so(capsys):
    check.Check(False)("a sentence", lambda: {}["quick"])
    check.Check(False)("another", lambda: None.low > 0)
    assert capsys.readouterr().out.count("cannot be said") == 2
    for holds in (True, np.True_, pd.Series([True]), [pd.Series([True]), True], lambda: True):
        check.Check(True)("a sentence", holds)
    assert capsys.readouterr().out.count("holds: a sentence\n") == 5


def dots(figure):
    """Heights of all marks."""
    parts = [part for axis in figure.axes for part in axis.collections if isinstance(part, PathCollection)]
    return {round(float(y), 2) for part in parts for y in part.get_offsets()[:, 1]}


def test_ends_draw_every_seed_and_the_papers_value():
    claimed = printed.paper_value("budget-b16-d32")
    for paper, value in ((lambda method, d: 77.0, 77.0), ("budget-b16-d{d_model}", claimed)):
        shown = look.ends(TIDY, paper=paper)
        assert {*TIDY["last"].round(2), value} <= dots(shown.figure)
    assert len(shown.numbers) == len(TIDY) and not plt.get_fignums()


def test_lines_draw_means_intervals_and_seeds():
    quick = TIDY[TIDY["profile"] == "quick"].astype({"d_model": float})
    figure = look.lines(quick, "d_model", "last", "method", ("d", "%"), widths={"CoT2": 0.0}).figure
    assert dots(figure) == {*quick["last"].round(2)}
    lines = [part for part in figure.axes[0].collections if isinstance(part, LineCollection)]
    bars = [path.vertices[:, 1].round(0).tolist() for part in lines for path in part.get_paths()]
    assert [87.0, 97.0] in bars, "mean 92 with its 95 % t-interval"


def test_looks_of_a_readers_series_are_free():
    looks = series.looks("method", ["CoT2", "my rule", "another"])
    assert len({look for look in looks.values()}) == 3 and looks["CoT2"] == series.LOOKS["method"]["CoT2"]


def test_shown_carries_its_numbers_and_its_finding():
    shown = look.ends(TIDY, finding="CoT2 is above.")
    data = shown._repr_mimebundle_()
    assert data[look.FINDING] == data["text/plain"] == "CoT2 is above." and "image/svg+xml" in data
    assert data[look.NUMBERS].splitlines()[0] == "recipe,d_model,method,seed,last"
    assert shown.svg() == shown.svg()


def test_shown_in_pixels_where_vectors_weigh_too_much():
    kinds = []
    for points in (10, 20_000):
        figure, axes = look.panels(1, 1)
        axes[0, 0].plot(np.random.default_rng(0).random(points))
        kinds.append(set(look.Shown(figure, pd.DataFrame())._repr_mimebundle_()) & {"image/png", "image/svg+xml"})
    assert kinds == [{"image/svg+xml"}, {"image/png"}]


def test_number_at_fills_a_template_and_knows_no_other_claims():
    place = {"budget": 16, "d_model": 32}
    assert printed.number_at("budget-b{budget}-d{d_model}", place) == printed.paper_value("budget-b16-d32")
    assert printed.number_at("budget-b{budget}-d{d_model}", place | {"budget": 3}) is None
    assert printed.number_at(lambda budget, d: budget + d, place) == 48


def test_where_knows_the_fields_of_all_runs():
    """The chapter begins with supervised runs, which have no K."""
    left = sweeps.where(sweeps.of_chapter("one_split", "quick"), ["k=3"])
    assert {run.columns()["k"] for run in left} == {3}
