"""The numbers that figures offer, from figures that are drawn here."""

import io

import numpy as np
import pandas as pd

from cot2lib.study.figures.points import points
from cot2lib.study.figures.style import BUDGET, NUMBERS, panels, seed_dots, series_legend


def drawn():
    """Seeds of two budgets at two dimensions; a curve with its end; bars; cells."""
    figure, axes = panels(2, 2)
    dots, curve, bars, cells = axes.ravel()
    for place, shift in ((0, -0.2), (1, 0.2)):
        seed_dots(dots, place + shift, [50.0 + place, 60.0 + place], BUDGET.known[16])
    seed_dots(dots, 1, [70.0], BUDGET.known[1])
    dots.set_xticks([0, 1], ["d = 16", "d = 32"])
    dots.set(xlabel="dimension", ylabel="accuracy")
    dots.axhline(10, color="black")
    curve.plot([1, 2], [3, 4.5], color="#123456", label="own")
    curve.fill_between([1, 2], [2, 3], [5, 6])
    bars.bar([0, 2], [5, 6], color="#654321")
    bars.set_title("bars")
    figure.colorbar(cells.pcolormesh([0, 1, 2], [0, 1], [[7.0, 8.0]]))
    series_legend(figure, {"B = 16": BUDGET.known[16], "B = 1": BUDGET.known[1]}, paper=False)
    return figure


def test_dots_and_intervals_have_their_series_and_place():
    rows = points(drawn())
    first = rows[rows["panel"] == 1]
    assert set(first["x axis"]) == {"dimension"} and set(first["y axis"]) == {"accuracy"}
    at = lambda **values: first[np.logical_and.reduce([first[name] == value for name, value in values.items()])]
    assert sorted(at(series="B = 16", mark="dot", x="d = 16")["y"]) == [50, 60]
    assert at(series="B = 16", mark="mean", x="d = 32")["y"].tolist() == [56]
    assert sorted(at(series="B = 1", x="d = 32")["mark"]) == ["dot", "mean"]
    interval = at(mark="interval of y", x="d = 32")
    assert interval["low"].item() < 56 < interval["high"].item() and interval["series"].item() == "B = 16"
    assert 10 not in set(first["y"]), "a line across the panel is no number of it"


def test_lines_bars_and_cells():
    rows = points(drawn())
    line = rows[rows["mark"] == "line"]
    assert line[["series", "x", "y"]].values.tolist() == [["own", 1, 3], ["own", 2, 4.5]]
    assert line["line"].nunique() == 1
    band = rows[rows["mark"] == "band of y"]
    assert band[["x", "low", "high"]].values.tolist() == [[1, 2, 5], [2, 3, 6]]
    bars = rows[rows["mark"] == "bar"]
    assert bars[["panel", "x", "y"]].values.tolist() == [["bars", 0, 5], ["bars", 2, 6]]
    assert rows[rows["mark"] == "cell"][["x", "value"]].values.tolist() == [[0.5, 7], [1.5, 8]]
    assert rows["panel"].nunique() == 4, "the bar of colours has no numbers of its own"


def test_names_of_one_colour_are_joined_and_missing_values_stay_missing():
    figure, axes = panels(1, 1)
    axes[0, 0].plot([0, 1], [np.nan, 2], color="black", label="_hidden")
    axes[0, 0].plot([], [], color="black", label="one")
    axes[0, 0].plot([], [], color="black", label="two", linestyle="--")
    axes[0, 0].legend()
    rows = points(figure)
    assert set(rows["series"]) == {"one or two"} and rows["y"].isna().tolist() == [True, False]


def test_places_of_shared_axes_and_of_numbers():
    """Names of rows stand in every panel; what is drawn beside a whole number belongs to it; other numbers stay."""
    figure, axes = panels(1, 3, sharey=True)
    for axis in axes[0]:
        axis.scatter([0.8, 2.1], [0, 1], color="black")
    axes[0, 0].set_yticks([0, 1], ["main", "other"])
    axes[0, 0].set_xticks([1, 2])
    axes[0, 1].set_xticks([0, 1, 2], ["8192", "16", "8"])
    axes[0, 2].set_xticks([0, 0.5, 2.5])
    axes[0, 1].legend([axes[0, 1].collections[0]], ["black"])
    rows = points(figure)
    assert rows["y"].tolist() == ["main", "other"] * 3 and set(rows["series"]) == {"black"}
    assert rows["x"].tolist() == [1, 2, "16", "8", 0.8, 2.1]


def test_a_figure_offers_its_numbers_beside_its_pictures():
    bundle = drawn()._repr_mimebundle_()
    assert list(bundle) == [NUMBERS]
    assert len(pd.read_csv(io.StringIO(bundle[NUMBERS]))) == len(points(drawn())) > 10
