"""The ladder and the table of the chapter `speed`: how many steps a second."""

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from cot2lib.study.look import Shown, panels
from cot2lib.study.series import told_apart
from cot2lib.study.speed.record import BASELINE, OWN, REWARD, STEPS

UNITS = {
    STEPS: "steps of a run in a second",
    OWN: "steps of a run on own thoughts in a second",
    REWARD: "prompts in a second",
}
HEADINGS = {
    "what": "what",
    "variant": "variant",
    "rate": "a second",
    "times": "times the loop",
    "memory": "GPU memory (GiB)",
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


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows under readable headings."""
    shown = rows[[*HEADINGS]]
    return shown.assign(rate=shown["rate"].round().astype(int)).rename(columns=HEADINGS)
