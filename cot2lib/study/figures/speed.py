"""Figures, tables and sentences of the chapter `speed`: how many steps a second, and what limits them."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from cot2lib.study.bench.machine import BASELINE
from cot2lib.study.bench.recorded import GROWS, REWARD, STEPS
from cot2lib.study.figures.style import BLUE, GREEN, GREY, ORANGE, panels

KINDS = {"fused": (BLUE, "o"), "stack": (GREEN, "D"), "others": (GREY, "^"), "share": (ORANGE, "s")}
HEADINGS = {
    "variant": "variant", "rate": "a second", "times": "times the loop", "share": "share of sgemm (%)",
    "minutes": "minutes of a paper run",
}  # fmt: skip


def rates(rows: pd.DataFrame) -> Figure | None:
    """How many steps of a run each way takes in a second, and how many prompts of reward; None without rows."""
    if rows.empty:
        return None
    shown = [rows[rows["what"] == what] for what in (STEPS, REWARD)]
    figure, axes = panels(1, 2, width=9.0, height=0.5 + 0.3 * max(map(len, shown)))
    for axis, part, unit in zip(axes[0], shown, ("steps of a run", "prompts")):
        _ladder(axis, part)
        axis.set_xlabel(f"{unit} in a second")
    return figure


def _ladder(axis: Axes, part: pd.DataFrame) -> None:
    """A row for each variant, fastest below; how many times the loop's rate stands beside its mark."""
    for place, row in enumerate(part.sort_values("rate").itertuples()):
        colour, marker = KINDS[_kind(row.variant)]
        axis.scatter([row.rate], [place], s=42, color=colour, marker=marker, zorder=3)
        said = "" if row.variant == BASELINE else f"{row.times:.1f} x"
        axis.annotate(said, (row.rate, place), (7, 0), textcoords="offset points", va="center", fontsize=8.5)
    axis.set_yticks(range(len(part)), part.sort_values("rate")["variant"])
    axis.set(xscale="log", xlim=(0.6 * part["rate"].min(), 2.6 * part["rate"].max()))
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.invert_yaxis()


def _kind(variant: str) -> str:
    return next((kind for kind in ("fused", "stack") if variant.startswith(kind)), "others")


def growth(rows: pd.DataFrame) -> Figure | None:
    """What stays of the engine's lead over the stack, and its share of the limit, as a model or batch grows."""
    part = rows[rows["what"] == GROWS]
    if part["times"].isna().all():
        return None
    figure, axes = panels(1, 2, width=9.0, height=0.6 + 0.28 * len(part), sharey=True)
    places = np.arange(len(part))
    for axis, column, kind, label in (
        (axes[0, 0], "times", "fused", "times the eager stack of as many runs"),
        (axes[0, 1], "share", "share", "share of the best matrix product (%)"),
    ):
        colour, marker = KINDS[kind]
        axis.scatter(part[column], places, s=42, color=colour, marker=marker, zorder=3)
        axis.set_xlabel(label)
        axis.set_xlim(0)
    axes[0, 0].set_yticks(places, part["variant"])
    axes[0, 0].invert_yaxis()
    return figure


def table(rows: pd.DataFrame, what: str) -> pd.DataFrame:
    """The rows of a benchmark under readable headings; columns that it does not measure are left out."""
    part = rows[rows["what"] == what].dropna(axis="columns", how="all")
    headings = HEADINGS | ({"variant": "model", "times": "times the stack"} if what == GROWS else {})
    return part[[name for name in headings if name in part]].rename(columns=headings)


def sentences(rows: pd.DataFrame) -> list[str]:
    """What the table of a training step says."""
    part = rows[rows["what"] == STEPS].set_index("variant")
    if part.empty:
        return []
    fastest, stack = part["rate"].idxmax(), part[part.index.str.startswith("stack")]
    loop, best = part.loc[BASELINE], part.loc[fastest]
    flops = 1e3 * best["sgemm"] * best["share"] / 100 / best["rate"]
    compiled = stack[stack.index.str.endswith("compiled")]
    said = [
        f"The fastest way is `{fastest}`: {best['rate']:,.0f} steps of a run in a second, {best['times']:.1f} times "
        f"the plain loop. A run by the authors' recipe then takes {best['minutes']:.1f} minutes of one core, and "
        f"{loop['minutes']:.0f} by the loop.",
        f"A step of one run is {flops:.0f} million operations of matrix products. The fastest way does "
        f"{best['share']:.0f} % of what the best matrix product of this core does ({best['sgemm']:.0f} Gflop/s), the "
        f"loop {loop['share']:.0f} %.",
    ]
    if len(compiled):
        said.append(
            f"The stack reaches {stack.drop(compiled.index)['times'].max():.1f} times the loop without a compiler and "
            f"{compiled['times'].max():.1f} with one."
        )
    return said


def made(rows: pd.DataFrame) -> list[str]:
    """Where the record was made."""
    if rows.empty:
        return []
    first = rows.iloc[0]
    return [f"Measured on one core of {first['device']}, torch {first['torch']}, on {first['date']}."]


def leads(rows: pd.DataFrame) -> list[str]:
    """Where the engine's lead over the eager stack is largest, and where smallest."""
    part = rows[rows["what"] == GROWS].dropna(subset="times").set_index("variant")["times"]
    if part.empty:
        return []
    return [
        f"The lead over the eager stack is largest at {part.idxmax()} ({part.max():.1f} times) and smallest at "
        f"{part.idxmin()} ({part.min():.1f} times)."
    ]
