"""The numbers that a figure shows, read off what is drawn: every line, dot, interval, bar and cell.

The legend's name of a colour names the series. On an axis of names the nearest one stands for the place.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import LineCollection, PathCollection, QuadMesh
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator

COLUMNS = ["panel", "x axis", "y axis", "series", "mark", "x", "y", "low", "high"]
Place = Callable[[float], object]
Row = tuple[str, str, float, float, float, float]  # series, mark, x, y, low, high


def points(figure: Figure) -> pd.DataFrame:
    """A row for each number that is drawn (`COLUMNS`): x and y, or the ends of an interval or line."""
    rows = []
    for number, axis in enumerate(figure.axes, start=1):
        names = _names([*figure.legends, axis.get_legend()])
        x, y = _place(axis.xaxis), _place(axis.yaxis)
        about = (axis.get_title() or number, axis.get_xlabel(), axis.get_ylabel())
        for series, mark, at, value, low, high in _drawn(axis, names):
            rows.append((*about, series, mark, x(at), y(value), low, high))
    return pd.DataFrame(rows, columns=COLUMNS).dropna(axis="columns", how="all")


def _names(legends: list[Legend | None]) -> dict[str, str]:
    """What legends call each colour; several names of one colour are joined."""
    names: dict[str, list[str]] = {}
    for legend in filter(None, legends):
        for handle, text in zip(legend.legend_handles, legend.texts):
            names.setdefault(_colour(handle), []).append(text.get_text())
    return {colour: " or ".join(dict.fromkeys(found)) for colour, found in names.items()}


def _colour(artist) -> str:
    """The colour of a line, of the first dot, or of an area."""
    if isinstance(artist, Line2D):
        return to_hex(artist.get_color())
    colours = artist.get_edgecolor() if isinstance(artist, LineCollection) else artist.get_facecolor()
    colours = np.atleast_2d(colours)
    return to_hex(colours[0]) if colours.size else ""


def _place(axis: Axis) -> Place:
    """What a coordinate stands for: itself, or the nearest name on an axis of names."""
    labels = [label.get_text() for label in axis.get_majorticklabels()]
    names = isinstance(axis.get_major_locator(), FixedLocator) and labels and not all(map(_is_number, labels))
    if not names:
        return lambda value: value
    ticks = np.asarray(axis.get_majorticklocs())
    return lambda value: labels[int(np.abs(ticks - value).argmin())] if np.isfinite(value) else value


def _is_number(label: str) -> bool:
    return label.replace("\N{MINUS SIGN}", "").replace(".", "", 1).isdigit()


def _drawn(axis: Axes, names: dict[str, str]) -> Iterator[Row]:
    """What lies in the axes' own coordinates; lines across a whole panel have one coordinate and are left out."""
    nan = np.nan
    for artist in [*axis.lines, *axis.collections, *axis.patches]:
        series = names.get(_colour(artist), "") if artist.get_label().startswith("_") else artist.get_label()
        if isinstance(artist, Line2D) and artist.get_transform() == axis.transData:
            for x, y in zip(*(np.asarray(data, float) for data in artist.get_data())):
                yield series, "line", x, y, nan, nan
        elif isinstance(artist, PathCollection):
            for x, y in np.ma.filled(artist.get_offsets().astype(float), nan):
                yield series, "dot", x, y, nan, nan
        elif isinstance(artist, LineCollection) and artist.get_transform() == axis.transData:
            yield from (row for part in artist.get_segments() if (row := _interval(series, part)))
        elif isinstance(artist, Rectangle):
            yield (
                series,
                "bar",
                artist.get_x() + artist.get_width() / 2,
                artist.get_y() + artist.get_height(),
                nan,
                nan,
            )
        elif isinstance(artist, QuadMesh):
            yield from _cells(artist)


def _interval(series: str, ends: np.ndarray) -> Row | None:
    """An upright or level line between two ends; None for others."""
    (x, y), (to_x, to_y) = ends[0], ends[-1]
    if len(ends) != 2 or (x != to_x and y != to_y):
        return None
    if x == to_x:
        return series, "interval of y", x, np.nan, min(y, to_y), max(y, to_y)
    return series, "interval of x", np.nan, y, min(x, to_x), max(x, to_x)


def _cells(mesh: QuadMesh) -> Iterator[Row]:
    """The value of each cell, as an interval of no length, at its middle."""
    corners = mesh.get_coordinates()
    middles = (corners[:-1, :-1] + corners[1:, 1:]) / 2
    for (x, y), value in zip(middles.reshape(-1, 2), np.ma.filled(mesh.get_array().astype(float), np.nan).ravel()):
        yield "", "cell", x, y, value, value
