"""One look for all figures: colours that colour-blind readers can tell apart, every seed visible.

A method keeps its colour, marker and line style in every figure (Okabe-Ito palette), so that no
figure depends on colour alone. The background is opaque white, which the book's dark theme dims.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cot2lib.metrics import Values, mean_interval

COLOURS = {"CoT2": "#0072B2", "COCONUT": "#009E73", "discrete CoT": "#D55E00", "no-CoT": "#7A7A7A"}
MARKERS = {"CoT2": "o", "COCONUT": "D", "discrete CoT": "s", "no-CoT": "^"}
DASHES = {"CoT2": "-", "COCONUT": "-.", "discrete CoT": "--", "no-CoT": ":"}
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


def seed_dots(axis: Axes, x: float, values: Values, method: str, spread: float = 0.16) -> None:
    """Every seed as a dot around x, and the mean with its 95 % interval."""
    values = np.asarray(values, dtype=float)
    offsets = np.linspace(-spread, spread, len(values)) if len(values) > 1 else [0.0]
    colour, marker = COLOURS[method], MARKERS[method]
    axis.scatter(x + np.asarray(offsets), values, s=16, color=colour, marker=marker, alpha=0.55, linewidths=0)
    interval = mean_interval(values, 0.0, 100.0)
    if len(values) > 1:
        axis.vlines(x, interval.low, interval.high, color=colour, linewidth=1.6)
    axis.scatter([x], [interval.mean], s=42, color=colour, marker=marker, edgecolors="white", zorder=3)


def method_legend(figure: Figure, methods: Sequence[str]) -> None:
    """A legend above the panels that names the methods and the paper's mark."""
    handles = [
        Line2D([], [], color=COLOURS[method], marker=MARKERS[method], linestyle=DASHES[method], label=method)
        for method in methods
    ]
    handles.append(Line2D([], [], color=PAPER["color"], linewidth=2.2, label="paper"))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)
