"""Figures and tables of the chapter `speed`: how many steps a second, and what limits them."""

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from cot2lib.study.frame import at
from cot2lib.study.look import SETTINGS, Shown, finished, panels
from cot2lib.study.series import BLUE, told_apart
from cot2lib.study.speed.record import GROWS, OWN, REWARD, STEPS
from cot2lib.study.speed.variants import BASELINE

UNITS = {
    STEPS: "steps of a run in a second",
    OWN: "steps of a run on own thoughts in a second",
    REWARD: "prompts in a second",
    "training": "training steps of a run in a second",
    "reward": "prompts rewarded in a second",
    "decoding": "prompts answered in a second",
}
HEADINGS = {
    "what": "what",
    "on": "on",
    "variant": "variant",
    "rate": "a second",
    "times": "times the loop",
    "share": "share of sgemm (%)",
    "minutes": "minutes of a paper run",
    "memory": "GPU memory (GiB)",
}
OF_GROWTH = {
    "times": "times the eager stack of as many runs",
    "share": "share of the best matrix product (%)",
}


def ladders(rows: pd.DataFrame, finding: str = "") -> Shown:
    """Rates, fastest below: a panel for each thing that is measured, with how many times the loop's rate each is."""
    rows = rows[["what", "variant", "rate", "times", "way"]].sort_values("rate")
    parts = {what: rows[rows["what"] == what] for what in UNITS if what in set(rows["what"])}
    heights = [len(part) + 1 for part in parts.values()]
    height = 0.25 * sum(heights) / len(parts) + 0.35
    figure, axes = panels(len(parts), 1, width=6.4, height=height, gridspec_kw={"height_ratios": heights})
    for axis, (what, part) in zip(axes[:, 0], parts.items()):
        _ladder(axis, part)
        axis.set(xlabel=UNITS[what], ylabel="")
    return Shown(figure, pd.concat(parts.values()).drop(columns="way"), finding)


def _ladder(axis: Axes, part: pd.DataFrame) -> None:
    """One panel: a dot for each way, and how many times the loop's rate it has."""
    data, apart = told_apart(part, "way")
    looks = {name: apart[name] for name in ("hue", "palette", "markers")}
    sns.scatterplot(data, x="rate", y="variant", style="series", s=55, legend=False, ax=axis, zorder=3, **looks)
    for place, (name, rate, times) in enumerate(zip(part["variant"], part["rate"], part["times"])):
        said = "" if name.endswith(BASELINE) else f"{times:,.0f} x" if times >= 100 else f"{times:.1f} x"
        axis.annotate(said, (rate, place), (7, 0), textcoords="offset points", va="center", fontsize=8.5)
    low, high = part["rate"].min(), part["rate"].max()
    room = 1.3 * (high / low) ** 0.12  # for what stands beside the last mark
    axis.set(xscale="log", xlim=(0.8 * low, room * high), ylim=(len(part) - 0.4, -0.6))
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 30 * low else (1,)))
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.xaxis.set_minor_locator(NullLocator())


def growth(rows: pd.DataFrame, finding: str = "") -> Shown:
    """The engine's lead over the stack, and its share of the limit, as a model or batch grows."""
    numbers = at(rows, what=GROWS)[["variant", *OF_GROWTH]]
    with plt.rc_context(SETTINGS):
        grid = sns.FacetGrid(
            numbers.melt("variant"), col="variable", sharex=False, height=3.8, aspect=1.1, despine=False
        )
        grid.map_dataframe(sns.scatterplot, x="value", y="variant", color=BLUE, s=55, zorder=3)
        grid.set_titles("").set(xlim=(0, None), ylabel="")
        for axis, label in zip(grid.axes.flat, OF_GROWTH.values()):
            axis.set_xlabel(label)
        finished(grid.figure)
    return Shown(grid.figure, numbers, finding)


def table(rows: pd.DataFrame, **headings: str) -> pd.DataFrame:
    """Rows under readable headings, of which some may be given anew; columns that hold nothing are left out."""
    shown = rows[[name for name in HEADINGS if name in rows]].dropna(axis="columns", how="all")
    return shown.assign(rate=shown["rate"].round().astype(int)).rename(columns=HEADINGS | headings)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """One row on a training step: the fastest way's columns, `loop`'s share and minutes, the best stacks, flop."""
    steps = at(rows, what=STEPS)
    best, loop = steps.nlargest(1, "rate"), at(steps, variant=BASELINE).iloc[0]
    stacks = at(steps, way="stack").set_index("variant")["times"]
    compiled = stacks.index.str.endswith("compiled")
    return best.assign(
        loop_share=loop["share"],
        loop_minutes=loop["minutes"],
        eager=stacks[~compiled].max(),
        compiled=stacks[compiled].max(),
        mflop=1e3 * best["sgemm"] * best["share"] / 100 / best["rate"],
    )
