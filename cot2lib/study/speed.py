"""Chapter `speed`: our ways to train, reward and decode and others', timed on one core and on one GPU.

The tables ship; `benchmarks/record.py` times anew.
"""

import pandas as pd
import seaborn as sns
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from cot2lib.errors import RecordError
from cot2lib.runs import records
from cot2lib.study.look import Shown, panels
from cot2lib.study.series import told_apart

STEPS, OWN, REWARD = "a training step", "a step on own thoughts", "a step of reward"  # `what` on one core
BASELINE = "Hugging Face loop"
UNITS = {
    STEPS: "steps of a run in a second",
    OWN: "steps of a run on own thoughts in a second",
    REWARD: "prompts in a second",
}


def timed(record: str) -> pd.DataFrame:
    """A row for each way and `what`, on one core (`speed.quick`) or a GPU (`rehearsal.gpu`).

    `way` is the engine, the stack, or one of the others. `rate` is steps of one run, or prompts, in a second. `times`
    is the ratio to the loop's rate, a median over rounds. On one core `share` is the rate of the operations that our
    stack needs, in percent of the best measured matrix product `sgemm` (Gflop/s), and `minutes` what a run takes by
    the authors' recipe. On a GPU `memory` (GiB) is what a stack took. RecordError where nothing is recorded.
    """
    rows = records.shipped_table(f"{record}.measured")
    if rows.empty:
        raise RecordError("no speed is recorded here; `python benchmarks/record.py` measures it.")
    way = rows["variant"].str.extract(r"^(fused|stack)", expand=False).fillna("others")
    names = rows["variant"].replace("fused, 1 runs", "fused, 1 run")
    return rows.assign(variant=names, way=way).dropna(subset="what")


def ladders(rows: pd.DataFrame, finding: str = "") -> Shown:
    """Rates, fastest below: a panel for each thing that is measured, with the ratio of each to the loop's."""
    rows = rows[["what", "variant", "rate", "times", "way"]].sort_values("rate")
    parts = {what: rows[rows["what"] == what] for what in UNITS if what in set(rows["what"])}
    heights = [len(part) + 1 for part in parts.values()]
    height = 0.25 * sum(heights) / len(parts) + 0.35
    figure, axes = panels(len(parts), 1, width=6.4, height=height, gridspec_kw={"height_ratios": heights})
    for axis, (what, part) in zip(axes[:, 0], parts.items()):
        data, apart = told_apart(part, "way")
        looks = {name: apart[name] for name in ("hue", "palette", "markers")}
        sns.scatterplot(data, x="rate", y="variant", style="series", s=55, legend=False, ax=axis, zorder=3, **looks)
        for place, (name, rate, times) in enumerate(zip(part["variant"], part["rate"], part["times"])):
            said = "" if name.endswith(BASELINE) else f"{times:,.0f} x" if times >= 100 else f"{times:.1f} x"
            axis.annotate(said, (rate, place), (7, 0), textcoords="offset points", va="center", fontsize=8.5)
        low, high = part["rate"].min(), part["rate"].max()
        room = 1.3 * (high / low) ** 0.12  # for the label of the last mark
        axis.set(
            xscale="log", xlim=(0.8 * low, room * high), ylim=(len(part) - 0.4, -0.6), xlabel=UNITS[what], ylabel=""
        )
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 30 * low else (1,)))
        axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axis.xaxis.set_minor_locator(NullLocator())
    return Shown(figure, pd.concat(parts.values()).drop(columns="way"), finding)
