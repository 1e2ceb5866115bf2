"""Figures of the ledger and the landing page: the paper's numbers and ours on one axis."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cot2lib.study.book.index import places
from cot2lib.study.book.ledger import is_series
from cot2lib.study.look import PAPER, panels
from cot2lib.study.printed import claims, paper_value, readable, sources
from cot2lib.study.report import RECIPES
from cot2lib.study.series import LOOKS

SHARED = "four layers, d = 32, "  # what all numbers on graphs share


def scoreboard(ledger: pd.DataFrame, unit: str = "%") -> Figure:
    """Every measured number of one unit, by table or figure of the paper: black mark the paper's, dots ours.

    Ours is of the epoch that the paper prints: the last one, or after policy gradients the best. Bars are 95 %
    intervals over seeds. The figure of their chapter shows the points of a long printed series.
    """
    ledger = ledger[~is_series(ledger)].join(claims()["unit"], on="id")
    measured = ledger[ledger["last"].notna() & (ledger["unit"] == unit)]
    measured = measured.assign(
        shown=measured["best"].where(measured["judged"] == "best", measured["last"]),
        source=measured["id"].map(sources()),
    )
    groups = {
        f"{place.printed}: {place.what}": measured[measured["source"] == place.source]
        for place in places().drop_duplicates("source", keep="last").itertuples()
        if (measured["source"] == place.source).any()
    }
    heights = [part["id"].nunique() + 1.6 for part in groups.values()]
    figure, axes = panels(
        len(groups), 1, width=7.6, height=0.27 * sum(heights) / len(groups), sharex=True, height_ratios=heights
    )
    for axis, (title, part) in zip(axes[:, 0], groups.items()):
        _numbers(axis, part)
        axis.set_title(title, loc="left", fontsize="medium")
    axes[-1, 0].set_xlabel(f"validation accuracy ({unit})")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return figure


def _numbers(axis: Axes, measured: pd.DataFrame) -> None:
    """One row per number, with the look of each profile."""
    names = list(dict.fromkeys(measured["id"]))
    for profile, recipe in RECIPES.items():
        colour, marker, _ = LOOKS["recipe"][recipe]
        part = measured[measured["profile"] == profile]
        places = [names.index(claim) + (0.14 if profile == "quick" else -0.14) for claim in part["id"]]
        axis.hlines(places, part["judged_low"], part["judged_high"], color=colour, linewidth=1.6)
        axis.scatter(part["shown"], places, s=30, color=colour, marker=marker, label=f"ours, {recipe}")
    stated = [paper_value(name) for name in names]
    axis.scatter(stated, range(len(names)), s=150, label="the paper", **PAPER | {"marker": "|"})
    axis.set_yticks(range(len(names)), [readable(name).replace(SHARED, "") for name in names])
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.grid(axis="y", visible=False)
