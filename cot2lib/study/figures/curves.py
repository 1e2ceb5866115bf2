"""Learning curves and final accuracies of any series of runs: every seed visible, the paper's values marked.

A *series* (`cot2lib.study.figures.style.Series`) is a column that holds what a line or a row of dots stands for:
a method, a budget, who feeds in training.
"""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cot2lib.study.figures.style import PAPER, Look, Series, panels, seed_dots, series_legend
from cot2lib.study.report import recipe

LETTERS = 105  # that fit side by side below a row of panels
Stated = Callable[[object, object], float | None]  # the paper's accuracy (%) of a series' value in a panel


def nothing_stated(value: object, panel: object) -> None:
    """For figures of which the paper gives no numbers."""


def unique(values: pd.Series) -> list:
    """Distinct values in the order they come."""
    return list(dict.fromkeys(values.tolist()))


def in_order(values: pd.Series) -> list:
    """Distinct numbers by size, anything else in the order it comes."""
    return sorted(unique(values)) if pd.api.types.is_numeric_dtype(values) else unique(values)


def accuracy_over_epochs(
    curves: pd.DataFrame, series: Series | str, across: str, label: str, stated: Stated = nothing_stated
) -> Figure:
    """Validation accuracy over epochs: a row per profile, a column per value of `across`; thin lines are seeds.

    Panels of which nothing is recorded are left out.

    Args:
        curves: `cot2lib.runs.curves` with a column `profile`.
        series: what tells lines apart; the name of any column, too, whose values then get looks that are free.
        across: column that tells panels apart.
        label: how an x axis names a value of `across`, with a place `{}` for it.
        stated: the paper's final accuracy (%) of a series' value and a value of `across`, marked at the right edge.
    """
    profiles, values = unique(curves["profile"]), in_order(curves[across])
    series = series_of(series)
    looks = series.looks(curves[series.column])
    names = _epochs([*product(profiles, values)], label, LETTERS // len(values))
    figure, axes = panels(len(profiles), len(values), width=8.4, height=2.5, sharey=True)
    for row, profile in zip(axes, profiles):
        drawn = []
        for axis, value in zip(row, values):
            part = curves[(curves["profile"] == profile) & (curves[across] == value)]
            if part.empty:
                axis.remove()
                continue
            drawn.append(axis)
            _lines(axis, part, series.column, looks, lambda name, value=value: stated(name, value))
            axis.set(ylim=(0, 102), xlabel=names[profile, value])
        drawn[0].set_ylabel("validation accuracy (%)")
        drawn[0].tick_params(labelleft=True)
    series_legend(figure, named(series, looks), paper=stated is not nothing_stated)
    return figure


def _epochs(shown: Sequence[tuple[str, object]], label: str, letters: int) -> dict[tuple[str, object], str]:
    """What x axes are called, by profile and value: all on two lines if one has too many letters for its panel."""
    halves = {key: (f"epoch ({recipe(key[0])},", f"{label.format(key[1])})") for key in shown}
    broken = max(len(" ".join(half)) for half in halves.values()) > letters
    return {key: ("\n" if broken else " ").join(half) for key, half in halves.items()}


def series_of(series: Series | str) -> Series:
    """A series as it is, or of a column's name one that the book does not have."""
    return Series(series, {}) if isinstance(series, str) else series


def named(series: Series, looks: dict[object, Look]) -> dict[str, Look]:
    """Looks by what a legend calls them."""
    return {series.named(value): look for value, look in looks.items()}


def _lines(axis: Axes, part: pd.DataFrame, column: str, looks: dict, stated: Callable) -> None:
    for value, runs in part.groupby(column, sort=False):
        colour, _, dash = looks[value]
        for _, run in runs.groupby("seed"):
            axis.plot(run["epoch"], 100 * run["accuracy"], color=colour, linewidth=0.6, alpha=0.35)
        mean = runs.groupby("step")[["epoch", "accuracy"]].mean()
        axis.plot(mean["epoch"], 100 * mean["accuracy"], color=colour, linestyle=dash)
        if (said := stated(value)) is not None:
            axis.scatter([part["epoch"].max()], [said], s=160, **PAPER | {"color": colour})


def accuracy_at_end(
    rows: pd.DataFrame, series: Series | str, across: str, label: str, stated: Stated = nothing_stated
) -> Figure:
    """Last-epoch accuracy of every run, a panel per profile; black bars are the paper's means. Arguments as above."""
    profiles, values = unique(rows["profile"]), in_order(rows[across])
    series = series_of(series)
    looks = series.looks(rows[series.column])
    figure, axes = panels(1, len(profiles), width=4.4 * len(profiles), height=3.3, sharey=True)
    for axis, profile in zip(axes[0], profiles):
        for place, value in enumerate(values):
            for shift, (name, look) in zip(_shifts(len(looks)), looks.items()):
                cell = (rows["profile"] == profile) & (rows[series.column] == name) & (rows[across] == value)
                _dots(axis, place + shift, rows.loc[cell, "last"], look, stated(name, value))
        axis.set_xticks(range(len(values)), [label.format(value) for value in values])
        axis.set(xlabel=recipe(profile), ylim=(0, 102))
    axes[0, 0].set_ylabel("validation accuracy (%)")
    series_legend(figure, named(series, looks))
    return figure


def _shifts(count: int) -> np.ndarray:
    return np.linspace(-0.32, 0.32, count) if count > 1 else np.zeros(1)


def _dots(axis: Axes, x: float, shares: pd.Series, look: Look, stated: float | None) -> None:
    if len(shares):
        seed_dots(axis, x, 100 * shares, look, spread=0.05)
    if stated is not None:
        axis.scatter([x], [stated], s=190, **PAPER)
