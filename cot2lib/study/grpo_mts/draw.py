"""Figures and tables of the chapter `grpo_mts`, and the paper's numbers beside them.

`rows` are of `cot2lib.study.policies.outcomes`, a row for each run.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from cot2lib.study import look, policies, series, show
from cot2lib.study.frame import at, called, ordered
from cot2lib.study.look import SETTINGS, Shown
from cot2lib.study.printed import stated
from cot2lib.study.report import describe
from cot2lib.study.sweeps import STEPS, USUAL

SEEDS = {"all": "all", "kept": "not collapsed"}  # of a comparison
RATIOS = {"geometric": "root", "product": "product"}
PANELS = [f"d = {d}, {when}" for d in (24, 32) for when in ("before", "after")]


def stem(k: int, d_model: int = 24, **_) -> str:
    """The paper's claim about a run."""
    return f"grpo-mts-d{d_model}-k{k}"


def start(d_model: int = 24, **_) -> str:
    """The paper's claim about what such a run starts from."""
    return f"grpo-mts-d{d_model}-sft"


def entropies(rows: pd.DataFrame, finding: str = "") -> Shown:
    """Entropy of each step's distribution, a row of panels per recipe, before and after apart."""
    long = policies.by_token(rows)
    panel = long["d_model"].map("d = {}, ".format) + long["when"].astype(str)
    known = {f"d = {d}, {when}": (d, when) for d, when in zip(long["d_model"], long["when"])}

    def printed(k: int, token: int, panel: str) -> float | None:
        d_model, when = known[panel]
        return stated(f"{stem(k, d_model)}-entropy{token}{'-sft' if when == 'before' else ''}")

    long = long.assign(panel=ordered(panel, PANELS))
    limits = (0.0, np.inf)
    return look.ends(long, "k", "token", "panel", "value", printed, finding, "entropy (nat)", limits, row="recipe")


def entropies_apart(rows: pd.DataFrame, few: int, many: int) -> pd.DataFrame:
    """Entropy (nat) that `many` tokens per thought leave more than `few`, by recipe, seeds, ratio and token.

    `rows` are of variants. For K = 1 both ratios are the same, so that those runs serve either. The seeds `kept` are
    those of which no such run collapsed.
    """
    alike = at(rows, k=[few, many], change=[USUAL, "product"])
    both = pd.concat([alike, at(alike, k=few).assign(ratio="product")])
    fallen = both.groupby(["recipe", "seed"], observed=True)["collapsed"].transform("any")
    chosen = pd.concat([both.assign(seeds="all"), both[~fallen].assign(seeds="kept")])
    long = pd.concat([chosen.assign(token=step, value=chosen[f"entropy_{step}"]) for step in STEPS])
    return show.gaps(long, ["recipe", "seeds", "ratio", "token"], "k", many, few, value="value")


def apart_table(found: pd.DataFrame) -> pd.DataFrame:
    """The intervals of `entropies_apart`, a column per token."""
    told = [describe(*ends, 2) for ends in zip(found["mean"], found["low"], found["high"])]
    found = found.assign(told=told, ratio=found["ratio"].map(RATIOS), seeds=found["seeds"].map(SEEDS))
    wide = found.pivot(index=["recipe", "seeds", "ratio"], columns="token", values="told")
    return wide.rename(columns="token {}".format).sort_index(ascending=[True, True, False]).reset_index()


def gain_against_start(rows: pd.DataFrame) -> Shown:
    """Gain in accuracy (points) over the accuracy at the start, both by own sampler, a dot per run.

    `rows` are of K = 3; those of the change "better start" are told apart from the others.
    """
    better = rows["change"].eq("better start").map({True: ", better start", False: ""})
    begun = rows["d_model"].map(lambda d: called("d_model", d)) + better
    data, apart = series.told_apart(rows.assign(begun=begun), "begun")
    with plt.rc_context(SETTINGS):
        grid = sns.FacetGrid(data, col="recipe", height=2.9, aspect=1.4, despine=False)
        grid.map_dataframe(
            sns.scatterplot, "own_before", "own_gain", hue="series", style="series", legend=False, s=36,
            palette=apart["palette"], markers=apart["markers"], hue_order=apart["hue_order"],
            style_order=apart["hue_order"],
        )  # fmt: skip
        grid.refline(y=0, color="black", linestyle="-", linewidth=0.8)
        grid.set_axis_labels("accuracy at the start (%), own sampler", "gain (points)")
        look.panel_titles(grid, "recipe")
        look.legend(grid.figure, apart, lines=False)
        look.finished(grid.figure)
    numbers = data[["recipe", "begun", "seed", "own_before", "own_gain"]].reset_index(drop=True)  # parts share labels
    told = []
    for (recipe,), part in show.groups(numbers, ["recipe"]):
        least, most = part.loc[part["own_gain"].idxmin()], part.loc[part["own_gain"].idxmax()]
        told.append(
            f"By the {recipe} the start of {least.own_before:.1f} % ends with {_gain(least.own_gain)}, the least; "
            f"that of {most.own_before:.1f} % with {_gain(most.own_gain)}, the most."
        )
    return Shown(grid.figure, numbers, " ".join(told))


def _gain(value: float) -> str:
    return show.in_points(value, policies.GAIN)


def from_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with points that the best epoch, and its gain, are above the paper's; d = 24.

    A gain is that over greedy discrete decoding before, from which the paper's start is printed.
    """
    paper = rows["k"].map(lambda k: stated(stem(k)))
    gain = paper - stated(start())
    return rows.assign(beyond=rows["own_best"] - paper, beyond_gain=rows["own_best"] - rows["discrete_before"] - gain)
