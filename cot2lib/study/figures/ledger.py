"""Figures of the ledger and the landing page: the paper's numbers and ours on one axis."""

import pandas as pd
from matplotlib.figure import Figure

from cot2lib.study.claims.ledger import is_series
from cot2lib.study.claims.printed import claims, paper_value
from cot2lib.study.figures.style import BLUE, PAPER, YELLOW, panels
from cot2lib.study.report import recipe

PROFILE_LOOKS = {"paper": dict(color=BLUE, marker="o"), "quick": dict(color=YELLOW, marker="v")}


def scoreboard(ledger: pd.DataFrame, unit: str = "%") -> Figure:
    """Every measured number of one unit: black mark the paper's, dots ours with 95 % intervals, by profile.

    Ours is of the epoch that the paper prints: the last one, or after policy gradients the best. The
    figure of their chapter shows the points of a long printed series.
    """
    known = claims()
    ledger = ledger[~is_series(ledger)].join(known[["unit", "setting", "task"]], on="id")
    measured = ledger[ledger["last"].notna() & (ledger["unit"] == unit)]
    measured = measured.drop_duplicates(["setting", "task", "paper_value", "profile"])
    measured = measured.assign(shown=measured["best"].where(measured["judged"] == "best", measured["last"]))
    names = list(dict.fromkeys(measured["id"]))
    figure, axes = panels(1, 1, width=7.6, height=0.9 + 0.34 * len(names))
    axis = axes[0, 0]
    for profile, style in PROFILE_LOOKS.items():
        part = measured[measured["profile"] == profile]
        places = [names.index(claim) + (0.14 if profile == "quick" else -0.14) for claim in part["id"]]
        axis.hlines(places, part["judged_low"], part["judged_high"], color=style["color"], linewidth=1.6)
        axis.scatter(part["shown"], places, s=34, label=f"ours, {recipe(profile)}", **style)
    stated = [paper_value(name) for name in names]
    axis.scatter(stated, range(len(names)), s=180, label="paper", **PAPER | {"marker": "|"})
    axis.set_yticks(range(len(names)), [f"{known.loc[n, 'task']} {known.loc[n, 'setting']}" for n in names])
    axis.set(ylim=(len(names) - 0.5, -0.5), xlabel=f"validation accuracy ({unit})")
    axis.grid(axis="y", visible=False)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure
