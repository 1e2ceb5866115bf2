"""One look for all figures: colours that colour-blind readers can tell apart, every seed visible.

A method, like any other series, keeps its colour, marker and line style in every figure (Okabe-Ito
palette), so that no figure depends on colour alone. The background is opaque white, which the book's
dark theme dims.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cot2lib.metrics import Values, mean_interval

_SERIES = {  # name: colour, marker, line style
    "CoT2": ("#0072B2", "o", "-"),
    "COCONUT": ("#009E73", "D", "-."),
    "COCONUT, zero slot": ("#56B4E9", "d", (0, (5, 1, 1, 1, 1, 1))),
    "discrete CoT": ("#D55E00", "s", "--"),
    "no-CoT": ("#7A7A7A", "^", ":"),
    "no-CoT, pauses": ("#B08D00", "v", (0, (1, 3))),
    "teacher": ("#0072B2", "o", "-"),
    "self": ("#CC79A7", "s", "--"),
    "teacher, then self": ("#009E73", "D", "-."),
    "B = 1": ("#D55E00", "s", "--"),
    "B = 2": ("#E69F00", "^", ":"),
    "B = 4": ("#009E73", "D", "-."),
    "B = 8": ("#56B4E9", "v", (0, (5, 1, 1, 1))),
    "B = 16": ("#0072B2", "o", "-"),
    "5 tokens": ("#D55E00", "s", "--"),
    "3 tokens": ("#009E73", "D", "-."),
    "1 token": ("#7A7A7A", "^", ":"),
    "learned": ("#7A7A7A", "^", ":"),
    "cosine": ("#0072B2", "o", "-"),
    "cosine, frozen": ("#D55E00", "s", "--"),
    "fed its output": ("#009E73", "D", "-."),
    "fed its mixture": ("#CC79A7", "v", (0, (5, 1, 1, 1))),
    "before": ("#7A7A7A", "^", ":"),
    "after": ("#0072B2", "o", "-"),
    "K = 1": ("#D55E00", "s", "--"),
    "K = 3": ("#009E73", "D", "-."),
    "K = 6": ("#0072B2", "o", "-"),
    "d = 24": ("#0072B2", "o", "-"),
    "d = 32": ("#D55E00", "s", "--"),
    "d = 24, better start": ("#009E73", "D", "-."),
    "\N{GREEK SMALL LETTER GAMMA} = 1": ("#D55E00", "s", "--"),
    "\N{GREEK SMALL LETTER GAMMA} = 10": ("#009E73", "D", "-."),
    "\N{GREEK SMALL LETTER GAMMA} = 20": ("#0072B2", "o", "-"),
    "\N{GREEK SMALL LETTER GAMMA} = 40": ("#CC79A7", "v", ":"),
}
COLOURS, MARKERS, DASHES = ({name: look[part] for name, look in _SERIES.items()} for part in range(3))
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


def panels(rows: int, columns: int, width: float = 8.0, height: float = 2.8, **options) -> tuple[Figure, np.ndarray]:
    """A closed figure (so that a notebook shows it once) and its axes, always a (rows, columns) array."""
    with plt.rc_context(SETTINGS):
        figure, axes = plt.subplots(
            rows, columns, figsize=(width, height * rows), squeeze=False, layout="constrained", **options
        )
        plt.close(figure)
    return figure, axes


def seed_dots(axis: Axes, x: float, values: Values, name: str, spread: float = 0.16) -> None:
    """Every seed as a dot around x, and the mean with its 95 % interval."""
    values = np.asarray(values, dtype=float)
    offsets = np.linspace(-spread, spread, len(values)) if len(values) > 1 else [0.0]
    colour, marker = COLOURS[name], MARKERS[name]
    axis.scatter(x + np.asarray(offsets), values, s=16, color=colour, marker=marker, alpha=0.55, linewidths=0)
    interval = mean_interval(values, 0.0, 100.0)
    if len(values) > 1:
        axis.vlines(x, interval.low, interval.high, color=colour, linewidth=1.6)
    axis.scatter([x], [interval.mean], s=42, color=colour, marker=marker, edgecolors="white", zorder=3)


def series_legend(figure: Figure, names: Sequence[str], paper: bool = True) -> None:
    """A legend above the panels that names the series and the paper's mark."""
    handles = [
        Line2D([], [], color=COLOURS[name], marker=MARKERS[name], linestyle=DASHES[name], label=name) for name in names
    ]
    if paper:
        handles.append(Line2D([], [], color=PAPER["color"], linewidth=2.2, label="paper"))
    figure.legend(handles=handles, loc="outside upper center", ncols=min(6, len(handles)), frameon=False)


def legend_above(figure: Figure, axis: Axes, columns: int) -> None:
    """The labelled series of one panel as a legend above all of them."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False)
