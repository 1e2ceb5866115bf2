"""Figures and tables of the chapter `controls`."""

from collections.abc import Mapping
from textwrap import fill

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from cot2lib.metrics import mean_interval
from cot2lib.study import frame, look, predicted, report, show
from cot2lib.study.controls.runs import CONTROLS, GRAPHS, NUMBERS, name
from cot2lib.study.look import Shown, panels
from cot2lib.study.predicted import EXPLANATIONS, HIT, MISS, OPEN, UNRUN
from cot2lib.study.series import BLUE, GREEN, GREY, ORANGE, PINK

ON_BOTH = {NUMBERS: "numbers", GRAPHS: "graphs"}
REMOVED = {  # edits of the figure: words, colour and dashes
    "ancestors": ("removed: leading to the answer", BLUE, "-"),
    "elsewhere": ("removed: other states", ORANGE, "--"),
    "direction": ("moved: random direction", GREY, ":"),
}
FOLLOWED = {"follows": "the fed thought", "right": "its own input"}
SWAPPED = ("csft", "csft-reward", "paths-fed", "path-fed", "coconut", "fresh-path", "other-step", "discrete")
DRAWN = (  # in the main figure; the table has all
    "csft", "drawn-label", "self-fed", "other-step", "paths-fed", "path-fed", "fresh-path", "discrete",
    "deepest-nothing-fed", "nothing-fed", "other-input", "wrong-states", "no-cot", "csft-reward", "reward",
)  # fmt: skip


def main(rows: pd.DataFrame, edited: pd.DataFrame, finding: str) -> Shown:
    """Draw accuracy by labels and feed above; below, the cost of a removal, and what answers follow; of both frames of
    `outcomes.read`."""
    figure, axes = panels(2, 2, width=9.0, height=3.7)
    grid = axes[0, 0].get_gridspec()
    axes[0, 1].remove()
    axes[0, 0].set_subplotspec(grid[0, :])
    figure.get_layout_engine().set(h_pad=0.12)  # inches
    drawn = [_accuracy(axes[0, 0], rows), _removal(axes[1, 0], edited), _followed(axes[1, 1], edited)]
    return Shown(figure, pd.concat(drawn, ignore_index=True), finding)


def _accuracy(axis: Axes, rows: pd.DataFrame) -> pd.DataFrame:
    """Draw the accuracy of the controls `DRAWN` on both tasks, by rank on numbers."""
    rows = frame.at(rows, control=[*DRAWN])
    order = frame.at(rows, told=NUMBERS).groupby("control")["last"].mean().sort_values(ascending=False).index
    known = rows.assign(panel="accuracy", value=rows["last"], task=rows["told"].map(ON_BOTH))
    dots(axis, known, {control: name(control) for control in order}, "task", {"numbers": BLUE, "graphs": GREEN})
    axis.set(xlabel="right held-out answers (%)", xlim=(0, 102))
    axis.set_title("labels | what is fed", fontsize="medium")
    return known[["panel", "told", "control", "seed", "value"]]


def dots(axis: Axes, rows: pd.DataFrame, words: Mapping[str, str], hue: str, palette: Mapping[str, str]) -> None:
    """Draw every `value` as a small dot, means as large ones with 95 % t-intervals, a line for each control."""
    rows = rows.assign(place=frame.ordered(rows["control"].map(words), [*words.values()]), series=rows[hue])
    apart = dict(hue_order=[*palette], palette=palette, markers=dict.fromkeys(palette, "o"))
    look.seeds(axis, rows, apart, "value", "place", legend=True)
    axis.set(ylabel="")
    axis.tick_params(axis="y", labelsize=8)
    axis.legend(fontsize=7.5, frameon=False)


def _removal(axis: Axes, edited: pd.DataFrame) -> pd.DataFrame:
    """Draw right answers by the share of the ancestors' weight that CSFT's last thought loses; graphs are thin."""
    known = frame.at(edited, control="csft", edit=[*REMOVED])
    for (told, edit), part in known.groupby(["told", "edit"]):
        words, colour, dash = REMOVED[edit]
        graph = told == GRAPHS
        options = dict(color=colour, linestyle=dash, linewidth=1.2 if graph else 2.2, marker="s" if graph else "o")
        label = None if graph else words
        start = part.assign(dose=0.0, right=part["before"]).drop_duplicates(["seed"])
        sns.lineplot(pd.concat([start, part]), x="dose", y="right", errorbar=None, ax=axis, label=label, **options)
        axis.scatter(part["dose"], part["right"], s=8, alpha=0.4, color=colour, linewidths=0)
    scale = "share of weight removed from states that lead to the\nanswer"
    scale += " (orange: as much from others; grey: moved as far)"
    axis.set(xlabel=scale, ylabel="right answers (%)", ylim=(0, 102))
    axis.set_title("edits of CSFT's last thought (thick: numbers, thin: graphs)", fontsize="medium")
    axis.legend(fontsize=7.5, frameon=False, loc="lower left", handlelength=1.3, borderaxespad=0.1)
    return known.assign(panel="removal", value=known["right"])[
        ["panel", "told", "control", "edit", "dose", "seed", "value"]
    ]


def _followed(axis: Axes, edited: pd.DataFrame) -> pd.DataFrame:
    """Draw what the answer follows when another input's last thought is fed, by control."""
    known = frame.at(edited, told=NUMBERS, edit="swap", control=[*SWAPPED])
    long = known.melt(["control", "seed"], [*FOLLOWED], "follows", "value")
    named = long.assign(whom=long["follows"].map(FOLLOWED))
    words = {control: fill(name(control), 24) for control in SWAPPED}
    dots(axis, named, words, "whom", {"the fed thought": BLUE, "its own input": ORANGE})
    axis.legend(fontsize=7.5, frameon=False, loc="upper center")  # between the dots of the first line
    axis.set(xlabel="answers that follow (%)", xlim=(-2, 102))
    axis.set_title("another input's thought is fed", fontsize="medium")
    return long.assign(panel="swap")


def beside_csft(parts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Tabulate accuracies (%) and differences from CSFT, paired by seed: a row for each control, two columns for each
    of `parts`, which are rows of one task and recipe."""
    columns = {}
    for words, part in parts.items():
        wide = part.pivot_table("last", "seed", "control")
        less = wide.drop(columns="csft").sub(wide["csft"], axis=0)
        columns[f"{words} (%)"] = wide.agg(lambda values: show.mean_of(values.dropna()))
        columns[f"{words}, minus CSFT"] = less.agg(lambda values: show.shown(mean_interval(values.dropna())))
    about = pd.DataFrame(CONTROLS.values(), [*CONTROLS])[["labels", "fed"]]
    return about.join(pd.DataFrame(columns), how="inner").fillna("").reset_index(drop=True)


def digits(rows: pd.DataFrame, by_parity: Mapping[int, float], finding: str) -> Shown:
    """Draw `outcomes.by_digits`, every seed as a dot; grey bars: answers by parity alone."""
    named = rows.assign(trained=rows["control"].map(name))
    shown = look.ends(named, "trained", "digits", None, finding=finding, label="held-out accuracy (%)")
    axis = shown.figure.axes[0]
    axis.plot(range(len(by_parity)), [*by_parity.values()], "_", markersize=40, color=GREY, zorder=1)
    axis.set_xlabel("grey bars: answers by parity alone")
    return shown


def verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """Tabulate each experiment's measure, its outcome, and whether the explanation `set` predicted it. A star marks a
    difference that is significant by Holm's test."""
    words = {HIT: "as predicted", MISS: "not as predicted", OPEN: "undecided", UNRUN: UNRUN}
    said = predicted.predictions().query("explanation == 'set'").set_index("id")["said"]
    found = [
        UNRUN if row.mean != row.mean else report.describe(row.mean, row.low, row.high) + "*" * bool(row.sure)
        for row in table[["mean", "low", "high", "sure"]].itertuples()
    ]
    shown = table[["task", "experiment", "measure"]].assign(found=found, predicted=table["id"].map(said))
    return shown.assign(verdict=table["set"].map(words))


def over_predictions(table: pd.DataFrame, finding: str, *blocks: str, unit: str = "points, or % of answers") -> Shown:
    """Draw every outcome with its interval over what each explanation predicted, coloured where it was right.

    The first of the blocks has all explanations; the table has outcomes of each block.
    """
    known, columns = table[table["mean"].notna()].reset_index(drop=True), EXPLANATIONS[blocks[0]]
    figure, axes = panels(1, len(columns), width=9.0, height=0.16 * len(known) + 0.9, sharey=True, sharex=True)
    said = pd.concat(map(predicted.predictions, blocks)).set_index(["id", "explanation"])
    for axis, who in zip(axes[0], columns):
        asked = known[known[who].fillna(predicted.SILENT) != predicted.SILENT]
        for place, row in asked.iterrows():
            low, high = (max(-105.0, min(105.0, end)) for end in said.loc[(row["id"], who), ["low", "high"]])
            colour = {HIT: GREEN, MISS: PINK}.get(row[who], GREY)
            axis.barh(place, high - low, left=low, height=0.8, color=colour, alpha=0.28, linewidth=0)
            axis.plot([row["low"], row["high"]], [place, place], color="black", linewidth=1.4)
            axis.scatter([row["mean"]], [place], s=14, color="black", zorder=4)
        axis.set_title(f"{who}: {(asked[who] == HIT).sum()} of {len(asked)}", fontsize=9)
        axis.set(xlim=(-105, 105), ylim=(max(len(known), 1) - 0.5, -0.5))
    axes[0, 0].set_yticks(range(len(known)), known["task"].map(ON_BOTH) + ": " + known["id"], fontsize=7.5)
    figure.supxlabel(unit, fontsize=9)
    return Shown(figure, known.drop(columns="experiment"), finding)


TOLD = {  # edits of the table, of all of the weight, in words; the figures have the others
    "none": "none",
    "swap": "another input's thought",
    "ancestors": "without states that lead to the answer",
    "one side": "without these, but with their mirrors",
    "elsewhere": "without as much weight of other states",
    "early digit": "prompt changed in an early digit",
}
CELLS = {  # columns of the table: the task, the control and what is shown
    "CSFT: right": (NUMBERS, "csft", "right"),
    "CSFT: follow": (NUMBERS, "csft", "follows"),
    "fresh path: right": (NUMBERS, "fresh-path", "right"),
    "CSFT on graphs: right": (GRAPHS, "csft", "right"),
}


def edit_table(edited: pd.DataFrame) -> pd.DataFrame:
    """Tabulate right answers (%) and answers that follow, after each edit of `TOLD`, by training."""
    plain = frame.at(edited, edit="mean").assign(edit="none", follows=float("nan"), right=lambda rows: rows["before"])
    edited = pd.concat([plain, frame.at(edited, dose=1.0)])
    table = pd.DataFrame({words: by_edit(edited, *cell) for words, cell in CELLS.items()}).reindex([*TOLD]).fillna("")
    table.insert(0, "edit", [*TOLD.values()])
    return table


def by_edit(answers: pd.DataFrame, told: str, control: str, value: str) -> pd.Series:
    """Return means of the answers of a control, with intervals, by edit; empty where an edit has none."""
    mean = lambda values: show.mean_of(values.dropna()) if values.notna().any() else ""
    return frame.at(answers, told=told, control=control).groupby("edit")[value].agg(mean)
