"""Figures and table of what chapters train live (`cot2lib.study.analysis.live`)."""

import pandas as pd
from matplotlib.figure import Figure

from cot2lib.study.figures.style import BUDGET, WHEN, panels


def live_curves(found: pd.DataFrame, recorded: pd.DataFrame | None = None) -> Figure:
    """Learning curves of live runs (`cot2lib.runs.curves`), a line per budget.

    Behind each line is the range of the recorded seeds, where the same task has records.
    """
    figure, axes = panels(1, 1, width=6.0, height=3.2)
    axis, looks = axes[0, 0], BUDGET.looks(found["budget"])
    for budget, run in found.sort_values("step", kind="stable").groupby("budget"):
        colour, _, dash = looks[budget]
        label = f"{run['method'].iloc[0]}, {BUDGET.named(budget)}"
        look = dict(color=colour, linestyle=dash, marker="o", markersize=3)
        axis.plot(run["epoch"], 100 * run["accuracy"], label=label, **look)
        if recorded is not None:
            steps = recorded[recorded["budget"] == budget].groupby("step")
            low, high = (100 * steps["accuracy"].agg(end) for end in ("min", "max"))
            axis.fill_between(steps["epoch"].mean(), low, high, color=colour, alpha=0.2, linewidth=0)
    axis.set(xlabel="epoch", ylabel="validation accuracy (%)", ylim=(0, 102))
    axis.legend(loc="lower right", frameon=False)
    return figure


def live_table(rows: pd.DataFrame) -> pd.DataFrame:
    """What live training gave: task, method, budget, dimension, steps, accuracy (%), seconds."""
    chosen = rows[["task", "method", "budget", "d_model", "steps"]].rename(columns={"d_model": "d"})
    return chosen.assign(**{"validation accuracy (%)": 100 * rows["last"], "seconds": rows["seconds"]})


def live_rewards(found: pd.DataFrame, start: float) -> Figure:
    """Share (%) of right rollouts over steps: thin lines are seeds, smoothed; the thick one their mean.

    A dashed line is the share before training, `start`.
    """
    smooth = found.ewm(span=max(2, len(found) // 5)).mean()
    colour = WHEN.known["after"][0]
    figure, axes = panels(1, 1, width=6.0, height=3.0)
    axis = axes[0, 0]
    axis.plot(smooth, color=colour, linewidth=0.8, alpha=0.5)
    axis.plot(smooth.mean(axis=1), color=colour, label="in training, mean")
    axis.axhline(start, color=WHEN.known["before"][0], linestyle="--", label="before training")
    axis.set(xlabel="step", ylabel="right rollouts (%)", ylim=(0, 100))
    axis.legend(loc="upper left", frameon=False)
    return figure
