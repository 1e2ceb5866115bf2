"""One look for all figures, and the one component that shows them.

A series keeps its look (`cot2lib.study.series`) in every figure. Every seed is visible. The background is opaque
white, which the book's dark theme inverts. `paper` gives the numbers of the paper (`printed.number_at`).
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from cot2lib.metrics import mean_interval
from cot2lib.study.frame import ORDER, called, ordered
from cot2lib.study.printed import Paper, number_at
from cot2lib.study.report import PERCENT
from cot2lib.study.series import told_apart

NUMBERS, FINDING = "application/vnd.cot2.numbers+csv", "application/vnd.cot2.finding+plain"
MOST_SVG = 150_000  # characters of a figure as vectors; a larger one is shown as pixels
PAPER = {"color": "black", "marker": "_", "linewidths": 2.2, "zorder": 6}
WIDE = 10.0  # inches of all panels of a row
LETTERS = 13  # of a line below a place
HANDLE, LETTER = 0.55, 0.068  # inches of a legend's entry: its mark with the space around it, and each letter
POINTS = 80  # of a learning curve; a longer one is drawn as means of neighbours
SETTINGS = {
    "figure.dpi": 150,
    "savefig.dpi": 150,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "font.size": 9.5,
    "lines.linewidth": 2,
}


@dataclass(frozen=True)
class Shown:
    """A figure as pages show it: as vectors unless these weigh too much. Claim cards have theirs as HTML.

    Pages offer its `numbers` as a file; its `finding`, a sentence, opens the caption and the alternative text.
    """

    figure: Figure | str
    numbers: pd.DataFrame
    finding: str = ""

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str | bytes]:
        """A picture, the numbers as CSV, the finding."""
        picture = {"image/svg+xml": svg} if len(svg := self.svg()) <= MOST_SVG else {"image/png": self.png()}
        return picture | {NUMBERS: self.csv(), FINDING: self.finding, "text/plain": self.finding or "a figure"}

    def csv(self) -> str:
        return self.numbers.to_csv(index=False, float_format="%.6g", lineterminator="\n")

    def svg(self) -> str:
        """The same text for the same figure."""
        drawn = io.StringIO()
        with plt.rc_context({"svg.hashsalt": "cot2"}):
            self.figure.savefig(drawn, format="svg", metadata={"Date": None})
        return drawn.getvalue()

    def png(self) -> bytes:
        drawn = io.BytesIO()
        self.figure.savefig(drawn, format="png")
        return drawn.getvalue()


class Grid(sns.FacetGrid):
    """Panels that `finished` lays out once, and not seaborn after each of its layers."""

    def tight_layout(self, *_, **__) -> "Grid":
        return self


def curves(
    frame: pd.DataFrame,
    hue: str = "method",
    col: str = "d_model",
    paper: Paper | None = None,
    finding: str = "",
    x: str = "epoch",
    y: str = "accuracy",
    labels: tuple[str, str] = ("epoch", "validation accuracy (%)"),
    height: float = 2.3,
    aspect: float | None = None,
) -> Shown:
    """Learning curves: a row of panels per recipe, a column per value of `col`; thin lines are seeds.

    Lines differ by `hue`. The number of the paper for a series and a column is marked at the right edge; `height` is
    the height of a panel (inches), `aspect` its width over that.
    """
    data, apart = told_apart(thinned(frame, [*dict.fromkeys(["recipe", col, hue])], x, y), hue)
    options = {name: apart[name] for name in ("hue", "palette", "hue_order")} | {"x": x, "y": y}
    with plt.rc_context(SETTINGS):
        facets = {"row": None if col == "recipe" else "recipe", "col": col, "sharex": "row", "height": height}
        grid = Grid(data, aspect=aspect or (1.3 if data[col].nunique() > 1 else 1.8), despine=False, **facets)
        grid.map_dataframe(sns.lineplot, units="seed", estimator=None, linewidth=0.6, alpha=0.4, **options)
        dashes = {"style": "series", "dashes": apart["dashes"], "style_order": apart["hue_order"]}
        grid.map_dataframe(sns.lineplot, errorbar=None, **options, **dashes)
        grid.set(ylim=(0, 102)).set_axis_labels(*labels)
        panel_titles(grid, col)
        if paper:
            _mark_ends(grid, hue, col, x, paper, apart["palette"])
        legend(grid.figure, apart, paper=paper is not None, markers=False)
        finished(grid.figure)
    return Shown(grid.figure, data[[*dict.fromkeys(["recipe", col]), hue, "seed", x, y]], finding)


def thinned(frame: pd.DataFrame, by: Sequence[str], x: str, y: str) -> pd.DataFrame:
    """Curves of at most `POINTS` points each, means of neighbours; runs that differ by seed share their places."""
    place = frame.groupby([*by, "seed"], observed=True)[x].rank(method="first") - 1
    count = frame.groupby([*by, "seed"], observed=True)[x].transform("size").clip(lower=POINTS)
    part = frame.assign(place=place * POINTS // count)
    points = part.groupby([*by, "seed", "place"], observed=True)[[x, y]].mean().reset_index()
    return points.assign(**{x: points.groupby([*by, "place"], observed=True)[x].transform("mean")})


def _mark_ends(grid: sns.FacetGrid, hue: str, col: str, x: str, paper: Paper, palette: dict):
    """The paper's values at the right edge of each panel."""
    for place, cell in grid.facet_data():
        for value, name in cell[[hue, "series"]].drop_duplicates().itertuples(index=False):
            said = number_at(paper, {hue: value, col: cell[col].iloc[0]})
            if said is not None:
                axis = grid.facet_axis(*place[:2])
                axis.scatter([cell[x].max()], [said], s=160, **PAPER | {"color": palette[name]})


def ends(
    rows: pd.DataFrame,
    hue: str = "method",
    x: str = "d_model",
    col: str | None = "recipe",
    y: str = "last",
    paper: Paper | None = None,
    finding: str = "",
    label: str = "validation accuracy (%)",
    limits: tuple[float, float] = (0.0, PERCENT),
    row: str | None = None,
    height: float = 3.1,
) -> Shown:
    """Every run as a dot beside the mean with its 95 % t-interval, a panel per value of `col`; black bars: the paper.

    Places differ by `x`, dots of one place by `hue`. The paper's number depends on both, and on `col` if that is not
    the recipe. Intervals are cut to `limits`. Panels are `height` inches high; with `row="recipe"` each has a row.
    """
    data, apart = told_apart(rows, hue)
    # short lines below a place, unless it has lines of its own: its neighbours need room
    shown = lambda name: name if "\n" in name else fill(name, LETTERS)
    data["place"] = ordered(data[x], ORDER.get(x, ())).map(lambda value: shown(called(x, value)))
    aspect = min(4.34, WIDE / (data[col].nunique() if col else 1)) / height
    with plt.rc_context(SETTINGS):
        grid = Grid(data, row=row, col=col, height=height, aspect=aspect, despine=False)
        for place, cell in grid.facet_data():
            seeds(grid.facet_axis(*place[:2]), cell, apart, "place", y, limits)
        if paper:
            _mark_places(grid, data, hue, x, col, paper, apart["hue_order"])
        top = limits[1] * 1.02 if np.isfinite(limits[1]) else None
        grid.set(ylim=(limits[0], top)).set_axis_labels("", label)
        panel_titles(grid, col)
        legend(grid.figure, apart, paper=paper is not None, lines=False)
        finished(grid.figure)
    return Shown(grid.figure, data[[*filter(None, [row, col]), x, hue, "seed", y]], finding)


def seeds(
    axis: Axes,
    data: pd.DataFrame,
    apart: Mapping,
    x: str,
    y: str,
    limits: tuple[float, float] = (0.0, PERCENT),
    legend: bool = False,
) -> None:
    """Every run as a dot, and the mean of each place and series with its 95 % t-interval, cut to `limits`.

    `apart` and the column `series` are those of `told_apart`; one of `x` and `y` is an ordered category.
    """
    names = apart["hue_order"]
    places = data[x if isinstance(data[x].dtype, pd.CategoricalDtype) else y].cat.categories
    options = dict(x=x, y=y, hue="series", palette=apart["palette"], hue_order=names, order=[*places], ax=axis)
    dodge = 0.8 - 0.8 / len(names) if len(names) > 1 else False
    marks = dict(markersize=7, markeredgecolor="white", markeredgewidth=0.7, zorder=5, linestyle="none")
    sns.stripplot(data, dodge=bool(dodge), jitter=0.12, size=3.4, alpha=0.5, legend=False, **options)
    sns.pointplot(data, dodge=dodge, errorbar=partial(_ends_of_interval, limits=limits), err_kws={"linewidth": 1.6},
                  markers=[*apart["markers"].values()], legend=legend, **options, **marks)  # fmt: skip


def _ends_of_interval(values: pd.Series, limits: tuple[float, float]) -> tuple[float, float]:
    """The 95 % t-interval of a mean, as seaborn asks for it."""
    found = mean_interval(values, *limits)
    return found.low, found.high


def _mark_places(
    grid: sns.FacetGrid, data: pd.DataFrame, hue: str, x: str, col: str | None, paper: Paper, names: Sequence[str]
):
    """The paper's values at each place and series of every panel."""
    count, places = len(names), list(data["place"].cat.categories)
    room = 46 * grid.figure.get_figwidth() / grid.axes.shape[1] / (count * len(places))  # points that a mark has
    apart = col not in (None, "recipe")
    for panel, cell in grid.facet_data():
        where = {col: cell[col].iloc[0]} if apart and len(cell) else {}
        drawn = data[data[col].isin(where.values())] if apart else data
        marks = drawn[["place", x, "series", hue]].drop_duplicates()
        for place, at, name, value in marks.itertuples(index=False):
            said = number_at(paper, {hue: value, x: at} | where)
            if said is not None:
                shift = (names.index(name) - (count - 1) / 2) * 0.8 / count
                axis = grid.facet_axis(*panel[:2])
                axis.scatter([places.index(place) + shift], [said], s=min(150, room**2), **PAPER)


def lines(
    rows: pd.DataFrame,
    x: str,
    y: str,
    hue: str,
    labels: tuple[str, str],
    col: str | None = None,
    finding: str = "",
    widths: Mapping[object, float] | None = None,
    limits: tuple[float, float] = (-np.inf, np.inf),
    **facets,
) -> Shown:
    """A line of means with markers for each value of `hue`, a panel per value of `col`.

    With a column `seed` every row is a small dot besides, and means have a 95 % t-interval, cut to `limits`. `widths`
    are of the lines of some series, by their name in legends; 0 leaves the markers alone. `facets` are options of
    `seaborn.FacetGrid`.
    """
    data, apart = told_apart(rows, hue)
    options = {"x": x, "y": y, **{name: apart[name] for name in ("hue", "palette", "hue_order", "markers")}}
    options |= {"style": "series", "style_order": apart["hue_order"]}
    means = {"size": "series", "sizes": {name: (widths or {}).get(name, 1.6) for name in apart["hue_order"]}}
    means |= {"dashes": apart["dashes"], "markersize": 6, "err_style": "bars"}
    interval = partial(_ends_of_interval, limits=limits) if "seed" in rows else None
    with plt.rc_context(SETTINGS):
        grid = Grid(data, col=col, despine=False, **{"height": 3.0, "aspect": 1.4 if col else 1.9} | facets)
        if "seed" in rows:
            grid.map_dataframe(sns.scatterplot, s=16, alpha=0.5, linewidth=0, **options)
        grid.map_dataframe(sns.lineplot, errorbar=interval, **options, **means)
        grid.set_axis_labels(*labels)
        for line in [line for axis in grid.axes.flat for line in axis.lines]:
            if line.get_marker() == ".":  # of a reference, whose line their white edges would cut
                line.set_markeredgewidth(0)
        panel_titles(grid, col)
        legend(grid.figure, apart, lines=[name for name in apart["hue_order"] if (widths or {}).get(name, 1.6)])
        finished(grid.figure)
    return Shown(grid.figure, rows, finding)


def finished(figure: Figure) -> None:
    """Lay a figure out by its contents, and close it, so that a notebook shows it once."""
    figure.set_layout_engine("constrained")
    plt.close(figure)


def ticked(axes: Sequence[Axes], places: Sequence[float], **options) -> None:
    """Give panels a logarithmic axis with ticks at these places alone; `options` are those of `Axes.set`."""
    for axis in axes:
        axis.set(xscale="log", **options)
        axis.set_xticks(places, [f"{place:g}" for place in places])
        axis.xaxis.set_minor_locator(NullLocator())


def panel_titles(grid: sns.FacetGrid, col: str | None) -> None:
    """Titles of the panels: their recipe and value of `col`, where they have one. One without runs is taken away."""
    told = [*dict.fromkeys(name for name in ("recipe", col) if name in grid.data)]
    for place, cell in grid.facet_data():
        if cell.empty:
            grid.facet_axis(*place[:2]).remove()
            continue
        names = [called(name, cell[name].iloc[0]) for name in told if cell[name].nunique() == 1]
        grid.facet_axis(*place[:2]).set_title(", ".join(names), fontsize=9.5)


def legend(
    figure: Figure, apart: Mapping, paper: bool = False, markers: bool = True, lines: bool | Sequence[str] = True
) -> None:
    """A legend above the panels: the look of each series, with `lines` for all or for these, and the paper's mark."""
    names = apart["hue_order"] if lines is True else lines or ()
    handles = [
        Line2D([], [], color=colour, label=name, marker=apart["markers"][name] if markers else "",
               linestyle=(0, apart["dashes"][name]) if apart["dashes"][name] else "-", linewidth=2 * (name in names))
        for name, colour in apart["palette"].items()
    ]  # fmt: skip
    mark = "#8c8c8c" if lines else PAPER["color"]  # beside lines its marks have several colours
    handles += [Line2D([], [], color=mark, linewidth=2.2, label="paper")] * paper
    above(figure, handles, [str(handle.get_label()) for handle in handles])


def above(figure: Figure, handles: Sequence[Artist], labels: Sequence[str]) -> None:
    """Put a legend above the panels, in as many columns as fit."""
    widest = HANDLE + LETTER * max(map(len, labels))
    columns = min(len(labels), max(1, int(figure.get_figwidth() / widest)))
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False)


def panels(rows: int, columns: int, width: float = 8.0, height: float = 2.8, **options) -> tuple[Figure, np.ndarray]:
    """A closed figure and its axes, always a (rows, columns) array: for what seaborn has no word for."""
    with plt.rc_context(SETTINGS):
        figure, axes = plt.subplots(rows, columns, figsize=(width, height * rows), squeeze=False, **options)
        finished(figure)
    return figure, axes
