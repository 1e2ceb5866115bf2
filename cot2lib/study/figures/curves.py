"""Learning curves and final accuracies of any series of runs: every seed visible, the paper's values marked.

A *series* is a column that holds what a line or a row of dots stands for (a method, a budget, who
feeds in training); its entries have their colour, marker and line style in `cot2lib.study.figures.style`.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cot2lib.study.figures.style import COLOURS, DASHES, PAPER, panels, seed_dots, series_legend
from cot2lib.study.report import recipe

Stated = Callable[[str, object], float | None]


def nothing_stated(series: str, cell: object) -> None:
    """For figures of which the paper gives no numbers."""


def unique(values: pd.Series) -> list:
    """Distinct values in the order they come."""
    return list(dict.fromkeys(values.tolist()))


def in_order(values: pd.Series) -> list:
    """Distinct numbers by size, anything else in the order it comes."""
    return sorted(unique(values)) if pd.api.types.is_numeric_dtype(values) else unique(values)


def learning_curves(
    curves: pd.DataFrame, series: str, across: str, label: str, stated: Stated = nothing_stated
) -> Figure:
    """Validation accuracy over epochs: a row per profile, a column per value of `across`; thin lines are seeds.

    Args:
        curves: `cot2lib.runs.run.curves` with a column `profile`.
        series: column that tells lines apart.
        across: column that tells panels apart.
        label: how an x axis names a value of `across`, with a place `{}` for it.
        stated: the paper's final accuracy (%) of a series and a value of `across`, marked at the right edge.
    """
    profiles, values = unique(curves["profile"]), in_order(curves[across])
    figure, axes = panels(len(profiles), len(values), width=8.4, height=2.5, sharey=True)
    for row, profile in zip(axes, profiles):
        for axis, value in zip(row, values):
            part = curves[(curves["profile"] == profile) & (curves[across] == value)]
            _lines(axis, part, series, lambda name, value=value: stated(name, value))
            axis.set(ylim=(0, 102), xlabel=f"epoch ({recipe(profile)}, {label.format(value)})")
        row[0].set_ylabel("validation accuracy (%)")
    series_legend(figure, _names(curves[series]), paper=stated is not nothing_stated)
    return figure


def _names(values: pd.Series) -> list[str]:
    """Series in the one order that all figures have."""
    return sorted(unique(values), key=list(COLOURS).index)


def _lines(axis: Axes, part: pd.DataFrame, series: str, stated: Callable[[str], float | None]) -> None:
    if part.empty:
        axis.text(0.5, 0.5, "no records yet", transform=axis.transAxes, ha="center", color="#777777")
        axis.set_xticks([])
        return
    for name, runs in part.groupby(series, sort=False):
        for _, run in runs.groupby("seed"):
            axis.plot(run["epoch"], 100 * run["accuracy"], color=COLOURS[name], linewidth=0.6, alpha=0.35)
        mean = runs.groupby("step")[["epoch", "accuracy"]].mean()
        axis.plot(mean["epoch"], 100 * mean["accuracy"], color=COLOURS[name], linestyle=DASHES[name])
        if (value := stated(name)) is not None:
            axis.scatter([part["epoch"].max()], [value], s=160, **PAPER | {"color": COLOURS[name]})


def final_accuracies(
    rows: pd.DataFrame, series: str, across: str, label: str, stated: Stated = nothing_stated
) -> Figure:
    """Last-epoch accuracy of every run, a panel per profile; black bars are the paper's means. Arguments as above."""
    profiles, values = unique(rows["profile"]), in_order(rows[across])
    names = _names(rows[series])
    figure, axes = panels(1, len(profiles), width=4.4 * len(profiles), height=3.3, sharey=True)
    for axis, profile in zip(axes[0], profiles):
        for place, value in enumerate(values):
            for shift, name in zip(_shifts(names), names):
                chosen = rows[(rows["profile"] == profile) & (rows[series] == name) & (rows[across] == value)]
                _dots(axis, place + shift, chosen["last"], name, stated(name, value))
        axis.set_xticks(range(len(values)), [label.format(value) for value in values])
        axis.set(xlabel=recipe(profile), ylim=(0, 102))
    axes[0, 0].set_ylabel("validation accuracy (%)")
    series_legend(figure, names)
    return figure


def _shifts(names: Sequence[str]) -> np.ndarray:
    return np.linspace(-0.32, 0.32, len(names)) if len(names) > 1 else np.zeros(1)


def _dots(axis: Axes, x: float, shares: pd.Series, name: str, stated: float | None) -> None:
    if len(shares):
        seed_dots(axis, x, 100 * shares, name, spread=0.05)
    if stated is not None:
        axis.scatter([x], [stated], s=190, **PAPER)
