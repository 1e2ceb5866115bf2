"""The numbers that a figure shows, read off what is drawn: every line, dot, interval, bar, band and cell.

The legend's name of a colour names the series. On an axis of names the nearest one stands for the place.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import LineCollection, PathCollection, PolyCollection, QuadMesh
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator

COLUMNS = ["panel", "x axis", "y axis", "series", "mark", "line", "x", "y", "low", "high", "value"]
MEAN = "mean"  # the group id of dots that are means of others
Place = Callable[[float], object]
Row = dict[str, object]


def points(figure: Figure) -> pd.DataFrame:
    """A row for each number that is drawn (`COLUMNS`).

    `mark` says what is drawn; `line` numbers the lines of a panel. `x` and `y` are a place, `low` and `high` the ends
    of an interval or band, and `value` that of a cell.
    """
    known, rows = _names(figure.legends, *(axis.get_legend() for axis in figure.axes)), []
    panels = [axis for axis in figure.axes if axis.get_label() != "<colorbar>"]
    for number, axis in enumerate(panels, start=1):
        names = known | _names(figure.legends, axis.get_legend())
        about = {"panel": axis.get_title() or number, "x axis": axis.get_xlabel(), "y axis": axis.get_ylabel()}
        x, y = _place(axis.xaxis), _place(axis.yaxis)
        for row in _drawn(axis, names):
            at = {"x": x(row["x"])} if "x" in row else {}
            at |= {"y": y(row["y"])} if "y" in row else {}
            rows.append(about | row | at)
    return pd.DataFrame(rows, columns=COLUMNS).dropna(axis="columns", how="all")


def _names(shared: list[Legend], *own: Legend | None) -> dict[str, str]:
    """What legends call each colour; several names of one colour are joined."""
    names: dict[str, list[str]] = {}
    for legend in [*shared, *filter(None, own)]:
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
    """What a coordinate stands for: the nearest tick where ticks have names or count by one, else itself."""
    ticks = np.asarray(axis.get_majorticklocs(), dtype=float)
    if not isinstance(axis.get_major_locator(), FixedLocator) or not len(ticks):
        return lambda value: value
    labels = axis.get_major_formatter().format_ticks(ticks)
    if any(_number(label) != tick for label, tick in zip(labels, ticks)):
        return lambda value: labels[_nearest(ticks, value)] if np.isfinite(value) else value
    if len(ticks) > 1 and (np.diff(ticks) == 1).all():
        return lambda value: ticks[_nearest(ticks, value)] if np.isfinite(value) else value
    return lambda value: value


def _number(label: str) -> float | None:
    try:
        return float(label.replace("\N{MINUS SIGN}", "-").replace(",", ""))
    except ValueError:
        return None


def _nearest(ticks: np.ndarray, value: float) -> int:
    return int(np.abs(ticks - value).argmin())


def _drawn(axis: Axes, names: dict[str, str]) -> Iterator[Row]:
    """What lies in the axes' own coordinates; lines across a whole panel have one coordinate and are left out."""
    for number, artist in enumerate([*axis.lines, *axis.collections, *axis.patches], start=1):
        label = str(artist.get_label())
        series = {"series": names.get(_colour(artist), "") if label.startswith("_") else label}
        if isinstance(artist, Line2D) and artist.get_transform() == axis.transData:
            for x, y in zip(*(np.asarray(data, float) for data in artist.get_data())):
                yield series | {"mark": "line", "line": number, "x": x, "y": y}
        elif isinstance(artist, PathCollection):
            mark = MEAN if artist.get_gid() == MEAN else "dot"
            for x, y in np.ma.filled(artist.get_offsets().astype(float), np.nan):
                yield series | {"mark": mark, "x": x, "y": y}
        elif isinstance(artist, LineCollection) and artist.get_transform() == axis.transData:
            yield from (series | row for part in artist.get_segments() if (row := _interval(part)))
        elif isinstance(artist, Rectangle):
            middle, top = artist.get_x() + artist.get_width() / 2, artist.get_y() + artist.get_height()
            yield series | {"mark": "bar", "x": middle, "y": top}
        elif isinstance(artist, PolyCollection):
            yield from (series | row for row in _band(artist))
        elif isinstance(artist, QuadMesh):
            yield from _cells(artist)


def _interval(ends: np.ndarray) -> Row | None:
    """An upright or level line between two ends; None for others."""
    (x, y), (to_x, to_y) = ends[0], ends[-1]
    if len(ends) != 2 or (x != to_x and y != to_y):
        return None
    if x == to_x:
        return {"mark": "interval of y", "x": x, "low": min(y, to_y), "high": max(y, to_y)}
    return {"mark": "interval of x", "y": y, "low": min(x, to_x), "high": max(x, to_x)}


def _band(area: PolyCollection) -> Iterator[Row]:
    """The least and the largest y of an area at each x."""
    for path in area.get_paths():
        corners = pd.DataFrame(path.vertices, columns=["x", "y"]).groupby("x")["y"]
        for x, low, high in zip(corners.groups, corners.min(), corners.max()):
            yield {"mark": "band of y", "x": x, "low": low, "high": high}


def _cells(mesh: QuadMesh) -> Iterator[Row]:
    """The value of each cell, at its middle."""
    corners = mesh.get_coordinates()
    middles = (corners[:-1, :-1] + corners[1:, 1:]) / 2
    for (x, y), value in zip(middles.reshape(-1, 2), np.ma.filled(mesh.get_array().astype(float), np.nan).ravel()):
        yield {"series": "", "mark": "cell", "x": x, "y": y, "value": value}
