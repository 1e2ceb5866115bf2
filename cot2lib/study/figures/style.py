"""One look for all figures: colours that colour-blind readers can tell apart, every seed visible.

A method, like any other series, keeps its colour, marker and line style in every figure (Okabe-Ito
palette), so that no figure depends on colour alone. What a reader adds, say another budget, gets a look
that is still free. The background is opaque white, which the book's dark theme dims.
"""

import io
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cot2lib.metrics import Values, mean_interval
from cot2lib.study.figures.points import MEAN, points
from cot2lib.study.report import recipe

Look = tuple[str, str, object]  # colour, marker, line style

OTHERS: tuple[Look, ...] = (  # for what no figure of the book has
    ("#B08D00", "P", (0, (3, 1, 1, 1))),
    ("#CC79A7", "X", (0, (4, 2))),
    ("#000000", "*", (0, (1, 1))),
    ("#7A7A7A", "h", (0, (6, 2, 2, 2))),
    ("#332288", "p", (0, (2, 1))),
    ("#882255", "8", (0, (8, 2))),
)


@dataclass(frozen=True)
class Series:
    """A column whose values a figure tells apart, each by its own colour, marker and line style.

    Attributes:
        column: of the rows that are drawn.
        known: the look of every value that the book itself draws, in the order of its legends.
        named: how a legend calls a value.
    """

    column: str
    known: Mapping[object, Look]
    named: Callable[[object], str] = str

    def looks(self, values: Iterable) -> dict[object, Look]:
        """The look of each value, in the order of legends; one that the book does not draw gets a free look."""
        values = list(dict.fromkeys(values))
        free = itertools.cycle(OTHERS)
        strange = {value: next(free) for value in sorted(value for value in values if value not in self.known)}
        order = list(self.known).index if not strange else None
        return {value: self.known.get(value) or strange[value] for value in sorted(values, key=order)}


BLUE, ORANGE, GREEN, YELLOW, SKY, PINK, BROWN, GREY = (
    "#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#B08D00", "#7A7A7A",
)  # fmt: skip
DOTTED_DASH = (0, (5, 1, 1, 1))

METHOD = Series(
    "method",
    {
        "CoT2": (BLUE, "o", "-"),
        "COCONUT": (GREEN, "D", "-."),
        "COCONUT, zero slot": (SKY, "d", (0, (5, 1, 1, 1, 1, 1))),
        "discrete CoT": (ORANGE, "s", "--"),
        "no-CoT": (GREY, "^", ":"),
        "no-CoT, pauses": (BROWN, "v", (0, (1, 3))),
    },
)
PROFILE = Series("profile", {"paper": (BLUE, "o", "-"), "quick": (YELLOW, "v", "--")}, recipe)
FED = Series(
    "fed",
    {"teacher": (BLUE, "o", "-"), "self": (PINK, "s", "--"), "teacher, then self": (GREEN, "D", "-.")},
)
BUDGET = Series(
    "budget",
    {
        1: (ORANGE, "s", "--"),
        2: (YELLOW, "^", ":"),
        4: (GREEN, "D", "-."),
        8: (SKY, "v", DOTTED_DASH),
        16: (BLUE, "o", "-"),
    },
    "B = {}".format,
)
TOKENS = Series(
    "tokens",
    {5: (ORANGE, "s", "--"), 3: (GREEN, "D", "-."), 1: (GREY, "^", ":")},
    lambda tokens: f"{tokens} tokens" if tokens > 1 else "1 token",
)
EMBEDDING = Series(
    "embedding",
    {
        "learned": (GREY, "^", ":"),
        "cosine": (BLUE, "o", "-"),
        "cosine, frozen": (ORANGE, "s", "--"),
        "fed its output": (GREEN, "D", "-."),
        "fed its mixture": (PINK, "v", DOTTED_DASH),
    },
)
WHEN = Series("when", {"before": (GREY, "^", ":"), "after": (BLUE, "o", "-")})
K = Series("k", {1: (ORANGE, "s", "--"), 3: (GREEN, "D", "-."), 6: (BLUE, "o", "-")}, "K = {}".format)
GAMMA = Series(
    "gamma",
    {1.0: (ORANGE, "s", "--"), 10.0: (GREEN, "D", "-."), 20.0: (BLUE, "o", "-"), 40.0: (PINK, "v", ":")},
    "\N{GREEK SMALL LETTER GAMMA} = {:g}".format,
)
NUMBERS = "application/vnd.cot2.numbers+csv"
MOST_SVG = 150_000  # characters of a figure as vectors; a larger one is shown as pixels
PAPER = {"color": "black", "marker": "_", "linewidths": 2.2, "zorder": 4}
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


class Drawn(Figure):
    """A figure that a page shows as vectors, unless these weigh too much, and whose numbers it offers."""

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        """The numbers alone; pictures have representations of their own."""
        return {NUMBERS: points(self).to_csv(index=False, float_format="%.6g", lineterminator="\n")}

    def _repr_svg_(self) -> str | None:
        """The same text for the same figure."""
        drawn = io.StringIO()
        with plt.rc_context({"svg.hashsalt": "cot2"}):
            self.savefig(drawn, format="svg", bbox_inches="tight", metadata={"Date": None})
        return drawn.getvalue() if len(drawn.getvalue()) <= MOST_SVG else None


def panels(rows: int, columns: int, width: float = 8.0, height: float = 2.8, **options) -> tuple[Figure, np.ndarray]:
    """A closed figure (so that a notebook shows it once) and its axes, always a (rows, columns) array."""
    with plt.rc_context(SETTINGS):
        figure, axes = plt.subplots(
            rows,
            columns,
            figsize=(width, height * rows),
            squeeze=False,
            layout="constrained",
            FigureClass=Drawn,
            **options,
        )
        plt.close(figure)
    return figure, axes


def seed_dots(axis: Axes, x: float, values: Values, look: Look, spread: float = 0.16) -> None:
    """Every seed as a dot around x, and the mean with its 95 % interval; nothing of no seed."""
    values = np.asarray(values, dtype=float)
    if not len(values):
        return
    offsets = np.linspace(-spread, spread, len(values)) if len(values) > 1 else [0.0]
    colour, marker, _ = look
    axis.scatter(x + np.asarray(offsets), values, s=16, color=colour, marker=marker, alpha=0.55, linewidths=0)
    interval = mean_interval(values, 0.0, 100.0)
    if len(values) > 1:
        axis.vlines(x, interval.low, interval.high, color=colour, linewidth=1.6)
    axis.scatter([x], [interval.mean], s=42, color=colour, marker=marker, edgecolors="white", zorder=3, gid=MEAN)


def series_legend(figure: Figure, looks: Mapping[str, Look], paper: bool = True) -> None:
    """A legend above the panels: looks by label, and the paper's mark."""
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle=dash, label=label)
        for label, (colour, marker, dash) in looks.items()
    ]
    if paper:
        handles.append(Line2D([], [], color=PAPER["color"], linewidth=2.2, label="paper"))
    figure.legend(handles=handles, loc="outside upper center", ncols=min(6, len(handles)), frameon=False)


def legend_above(figure: Figure, axis: Axes, columns: int) -> None:
    """The labelled series of one panel as a legend above all of them."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False)
