"""Figures, tables and sentences of the chapter `capacity`: what the packing bound says of d, and what runs need."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cot2lib.study.analysis.separation import FIXED, one_hot_margin
from cot2lib.study.figures.budget import paper_accuracy
from cot2lib.study.figures.curves import named, unique
from cot2lib.study.figures.style import (
    BLUE,
    BUDGET,
    GREEN,
    GREY,
    ORANGE,
    PAPER,
    Look,
    panels,
    seed_dots,
    series_legend,
)
from cot2lib.study.report import recipe
from cot2lib.study.sweeps import D_MODELS
from cot2lib.tasks import MNNS
from cot2lib.theory import packing

BOUND_LOOKS = {  # bound: label, colour, line style
    "paper": ("the paper's formula", ORANGE, "--"),
    "volume": ("exact volumes", BLUE, "-"),
    "centred": ("volumes around the mean", GREEN, "-."),
}
EMBEDDING_LOOKS = {"random": (GREY, "o"), "widened": (BLUE, "s"), "trained": (ORANGE, "D")}


# The bound


def bounds(vocab: int, share: float) -> Figure:
    """Least d by B: the three bounds at a share of the largest margin, and the paper's formula at a fixed one."""
    figure, axes = panels(1, 2, width=8.4, height=3.2, sharey=True)
    budgets = np.arange(1, vocab // 2 + 1)
    for name, (label, colour, dash) in BOUND_LOOKS.items():
        least = [
            packing.DIMENSIONS[name](vocab, b, share * packing.largest_margin(vocab, b)) for b in budgets.tolist()
        ]
        axes[0, 0].plot(budgets, least, color=colour, linestyle=dash, label=label)
    top = 1.45 * axes[0, 0].get_ylim()[1]  # room for the legend
    axes[0, 0].set(xlabel=f"budget B (margin {share:g} of the largest)", ylabel="least dimension d", ylim=(0, top))
    axes[0, 0].legend(loc="upper left", frameon=False)
    _fixed(axes[0, 1], vocab, budgets)
    return figure


def _fixed(axis: Axes, vocab: int, budgets: np.ndarray) -> None:
    """The paper's formula at margin `FIXED`, dotted from the budget on that cannot have it."""
    formula = [packing.log_subsets_below(vocab, b) / math.log(2 / FIXED) for b in budgets.tolist()]
    last = sum(packing.largest_margin(vocab, b) >= FIXED for b in budgets.tolist())
    axis.plot(budgets[last - 1 :], formula[last - 1 :], color="#999999", linestyle=":", label="no such margin exists")
    axis.plot(
        budgets[:last], formula[:last], color=BOUND_LOOKS["paper"][1], marker="o", markersize=3, label="it can be had"
    )
    axis.set(xlabel=f"budget B (margin {FIXED:g}, the paper's formula)")
    axis.legend(loc="upper left", frameon=False)


def bounds_table(vocab: int, budgets: Sequence[int], share: float) -> pd.DataFrame:
    """By budget: both sides of the counting inequality, the largest margin, and least d at two margins."""
    rows = []
    for budget in budgets:
        largest = packing.largest_margin(vocab, budget)
        entry = {
            "B": budget,
            "$\\ln \\binom{v}{B}$": packing.log_subsets(vocab, budget),
            "$B \\ln (v/B)$": packing.log_subsets_below(vocab, budget),
            "$\\delta_{\\max}$": f"{largest:.3f}",
        }
        columns = {
            f"$\\delta = {FIXED:g}$": FIXED,
            f"${share:g}\\,\\delta_{{\\max}}$": share * largest,
        }
        rows.append(entry | {f"d at {name}": _least(vocab, budget, margin) for name, margin in columns.items()})
    return pd.DataFrame(rows)


def _least(vocab: int, budget: int, margin: float) -> str:
    """The three bounds of one margin, paper / volume / centred."""
    least = [dimension(vocab, budget, margin) for dimension in packing.DIMENSIONS.values()]
    return " / ".join(f"{d:.1f}" for d in least) if math.isfinite(least[0]) else "no such margin"


# Margins


def margins_by_dimension(task: MNNS, rows: pd.DataFrame) -> Figure:
    """Margins by d, a panel per budget; dots are draws or seeds, lines means, the level line one-hot states."""
    budgets = unique(rows["B"])
    figure, axes = panels(-(-len(budgets) // 2), min(2, len(budgets)), height=2.5)
    for axis in axes.flat[len(budgets) :]:
        axis.remove()
    for axis, budget in zip(axes.flat, budgets):
        axis.axhline(one_hot_margin(task, budget), color="black", linewidth=1.0, linestyle=":")
        for kind, (colour, marker) in EMBEDDING_LOOKS.items():
            part = rows[(rows["B"] == budget) & (rows["kind"] == kind)]
            axis.scatter(part["d"], part["margin"], s=16, color=colour, marker=marker, alpha=0.5, linewidths=0)
            if kind != "trained":
                mean = part.groupby("d")["margin"].mean()
                axis.plot(mean.index, mean, color=colour, marker=marker, markersize=4, linewidth=1.5)
        axis.set(xlabel=f"dimension d (B = {budget})", ylim=(0, None), xticks=unique(rows["d"].sort_values()))
    for row in axes:
        row[0].set_ylabel("margin")
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="" if kind == "trained" else "-", label=kind)
        for kind, (colour, marker) in EMBEDDING_LOOKS.items()
    ]
    handles.append(Line2D([], [], color="black", linewidth=1.0, linestyle=":", label="one dimension per state"))
    figure.legend(handles=handles, loc="outside upper center", ncols=4, frameon=False)
    return figure


def margins_table(task: MNNS, rows: pd.DataFrame) -> pd.DataFrame:
    """Mean margins by kind, budget and d, beside the largest any embeddings of all B-subsets could have."""
    table = []
    for (budget, d), cell in rows.groupby(["B", "d"]):
        means = cell.groupby("kind")["margin"].mean()
        table.append(
            {"B": budget, "d": d, **{kind: means.get(kind) for kind in EMBEDDING_LOOKS},
             "one-hot": one_hot_margin(task, budget),
             "$\\delta_{\\max}$, all subsets": packing.largest_margin(task.states, budget)}
        )  # fmt: skip
    return pd.DataFrame(table)


# The softmax head


def head(rows: pd.DataFrame) -> Figure:
    """Mean KL of the head by d, a line per budget."""
    figure, axes = panels(1, 1, width=6.0, height=3.2)
    axis = axes[0, 0]
    for budget, (colour, marker, dash) in BUDGET.looks(rows["B"]).items():
        part, look = rows[rows["B"] == budget], dict(color=colour, marker=marker, linestyle=dash)
        axis.plot(part["d"], part["KL"], label=BUDGET.named(budget), markersize=5, **look)
    axis.set_yscale("log")
    axis.set(xlabel="dimension d of the head", ylabel="mean KL to the targets (nat)", xticks=unique(rows["d"]))
    axis.legend(loc="upper right", frameon=False)
    return figure


# Beside the runs


def cliff(rows: pd.DataFrame, vocab: int, share: float) -> Figure:
    """Accuracy of the budget sweep by d, a column per profile, above where the bounds of each budget lie."""
    profiles, looks = unique(rows["profile"]), BUDGET.looks(rows["budget"])
    figure, axes = panels(2, len(profiles), width=8.4, height=2.5, sharex=True, sharey="row", height_ratios=[2.2, 1])
    for column, profile in enumerate(profiles):
        for place, (budget, look) in enumerate(looks.items()):
            part = rows[(rows["profile"] == profile) & (rows["budget"] == budget)]
            _accuracies(axes[0, column], part, budget, look, 0.9 * (place - (len(looks) - 1) / 2))
            _marks(axes[1, column], vocab, budget, share, look)
        axes[0, column].set(ylim=(40, 102))
        axes[1, column].set(xlabel=f"dimension d ({recipe(profile)})", xlim=(0, 35), xticks=[0, 8, *D_MODELS])
        axes[1, column].set(ylim=(len(BOUND_LOOKS) - 0.5, -0.5))
    axes[1, 0].set_yticks(range(len(BOUND_LOOKS)), [label for label, _, _ in BOUND_LOOKS.values()])
    axes[0, 0].set_ylabel("validation accuracy (%)")
    series_legend(figure, named(BUDGET, looks))
    return figure


def _accuracies(axis: Axes, part: pd.DataFrame, budget: int, look: Look, shift: float) -> None:
    for d in D_MODELS:
        shares = part.loc[part["d_model"] == d, "last"]
        if len(shares):
            seed_dots(axis, d + shift, 100 * shares, look, spread=0.25)
        if (stated := paper_accuracy(budget, d)) is not None:
            axis.scatter([d + shift], [stated], s=110, **PAPER)


def _marks(axis: Axes, vocab: int, budget: int, share: float, look: Look) -> None:
    margin = share * packing.largest_margin(vocab, budget)
    least = [dimension(vocab, budget, margin) for dimension in packing.DIMENSIONS.values()]
    axis.scatter(least, range(len(least)), s=36, color=look[0], marker=look[1])


def cliff_table(rows: pd.DataFrame, vocab: int, share: float) -> pd.DataFrame:
    """By budget: what the bounds ask for, and mean accuracies (%) by profile and d."""
    table = []
    for budget in sorted(unique(rows["budget"])):
        margin = share * packing.largest_margin(vocab, budget)
        entry = {"B": budget, "d asked for": _least(vocab, budget, margin)}
        for (profile, d), cell in rows[rows["budget"] == budget].groupby(["profile", "d_model"], sort=False):
            entry[f"{recipe(profile)}, d = {d}"] = f"{100 * cell['last'].mean():.1f}"
        table.append(entry)
    found = pd.DataFrame(table)
    return found[[*found.columns[:2], *sorted(found.columns[2:])]]


def cliff_findings(rows: pd.DataFrame, vocab: int, share: float) -> list[str]:
    """What the paper's formula asks for at most; then, per profile and d, how the largest budget's seeds fare."""
    budgets = sorted(unique(rows["budget"]))
    most = max(packing.paper_dimension(vocab, b, share * packing.largest_margin(vocab, b)) for b in budgets)
    told = [f"The paper's formula asks for at most d = {most:.1f}; the smallest d tried is {min(D_MODELS)}."]
    for (profile, d), cell in rows[rows["budget"] == budgets[-1]].groupby(["profile", "d_model"], sort=False):
        seeds = 100 * cell["last"]
        told.append(
            f"**{recipe(profile)}, d = {d}, B = {budgets[-1]}**: {seeds.mean():.1f} % in the mean of {len(seeds)} "
            f"seeds, from {seeds.min():.1f} to {seeds.max():.1f} %."
        )
    return told
