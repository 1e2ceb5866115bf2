"""Figures and tables of runs before and after policy gradients, and of their variants, for several chapters.

`rows` are of `cot2lib.study.policies.outcomes`, a row for each run.
"""

from collections.abc import Callable, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from cot2lib.study import look, policies, show
from cot2lib.study.frame import ordered
from cot2lib.study.look import SETTINGS, Shown
from cot2lib.study.policies import DECODERS
from cot2lib.study.printed import claims, paper_value
from cot2lib.study.series import told_apart
from cot2lib.study.sweeps import STEPS

SHORT = {"own": "own sampler", "base": "base", "discrete": "discrete"}
HELD = {"support": "tokens held", "reachable": "weight in reach (%)", "on_the_way": "weight on the way (%)"}
ABOVE_ZERO = (0.0, np.inf)
GAIN = ("a gain of {} points", "a loss of {} points")

Stem = Callable[..., str]  # the paper's claim about runs, from the columns that tell them apart; "" where none is


def printed(claim: str) -> float | None:
    """The paper's number, where there is such a claim."""
    return paper_value(claim) if claim in claims().index else None


def gained(rows: pd.DataFrame, by: Sequence[str], decoder: str) -> pd.DataFrame:
    """Gains in accuracy by a decoder in each group of runs, as `show.gaps`."""
    return show.gaps(policies.moments(rows, decoder), by, "when", "after", "before", value="value", words=GAIN)


def differences(values: pd.Series) -> str:
    """Mean with its 95 % t-interval, which may be below zero."""
    return show.mean_of(values, -np.inf, np.inf)


# Figures


def accuracies(rows: pd.DataFrame, decoder: str, x: str, col: str, stem: Stem, start: Stem, finding: str) -> Shown:
    """Accuracy by a decoder before and after, a row of panels per recipe; black bars are the paper's.

    Args:
        rows: a row for each run.
        decoder: one of `policies.DECODERS`.
        x, col: what places and columns of panels are told apart by.
        stem, start: the paper's claims about runs, and about what they start from, by `x` and `col`.
        finding: what the figure shows.
    """
    long, claim = policies.moments(rows, decoder), {"before": start, "after": stem}
    stated = lambda when, at, panel: printed(claim[when](**{x: at, col: panel}))
    return look.ends(long, "when", x, col, "value", stated, finding, f"accuracy (%), {SHORT[decoder]}", row="recipe")


def held(rows: pd.DataFrame, table: pd.DataFrame, hue: str, finding: str = "") -> Shown:
    """Contents of the distributions of all steps, a row of panels per measure, before and after side by side.

    `table` is of `cot2lib.study.thoughts_held`.
    """
    long = table.merge(rows[["id", hue, "seed"]], on="id").rename(columns={"step": "token"})
    long["when"] = ordered(long["when"], ("before", "after"))
    long = long.rename(columns=HELD).melt(["when", "token", hue, "seed"], [*HELD.values()], "measure")
    return look.ends(long, hue, "token", "when", "value", finding=finding, label="", row="measure")


def learning(points: pd.DataFrame, hue: str, decoder: str, finding: str = "") -> Shown:
    """Reward of rollouts, accuracy by a decoder and gradient norm over epochs; a row of panels per recipe."""
    names = {"reward": "reward of rollouts (%)", decoder: f"accuracy (%), {SHORT[decoder]}"}
    names |= {"gradient_norm": "gradient norm"}
    told = points[points["step"] > 0].rename(columns=names)
    long = told.melt(["recipe", hue, "seed", "epoch"], [*names.values()], "measure")
    long["measure"] = ordered(long["measure"], tuple(names.values()))
    return look.curves(long, hue, "measure", finding=finding, y="value", labels=("epoch", ""), free=True)


def gains(rows: pd.DataFrame, y: str, hue: str, col: str, finding: str = "", value: str = "gain") -> Shown:
    """Gain in accuracy of every run, a line for each `y` and a panel for each `col`; larger marks are means."""
    data, apart = told_apart(rows, hue)
    lines, names = [*data[y].cat.remove_unused_categories().cat.categories], apart["hue_order"]
    options = dict(x=value, y=y, order=lines, hue="series", hue_order=names, palette=apart["palette"])
    dodge = 0.8 - 0.8 / len(names) if len(names) > 1 else False
    with plt.rc_context(SETTINGS):
        height = 1.2 + 0.35 * len(lines)
        panels = data[col].nunique()
        grid = sns.FacetGrid(data, col=col, height=height, aspect=look.WIDE / panels / height, despine=False)
        grid.map_dataframe(sns.stripplot, dodge=len(names) > 1, jitter=False, size=3.4, alpha=0.5, **options)
        grid.map_dataframe(sns.pointplot, dodge=dodge, errorbar=None, linestyle="none", markersize=6, zorder=5,
                           markers=[*apart["markers"].values()], markeredgecolor="white", markeredgewidth=0.7,
                           **options)  # fmt: skip
        grid.refline(x=0, color="black", linestyle="-", linewidth=0.8).set_axis_labels("gain (points)", "")
        look.panel_titles(grid, col)
        look.legend(grid.figure, apart, lines=False)
        look.finished(grid.figure)
    return Shown(grid.figure, data[[*dict.fromkeys([col, y, hue, "seed", value])]], finding)


def by_decoder(rows: pd.DataFrame, decoders: Sequence[str] = DECODERS) -> pd.DataFrame:
    """Each run once for each decoder, with its `gain`."""
    parts = [rows.assign(decoder=name, gain=rows[f"{name}_gain"]) for name in decoders]
    found = pd.concat(parts, ignore_index=True)
    return found.assign(decoder=ordered(found["decoder"], tuple(decoders)))


# Tables


def accuracy_table(rows: pd.DataFrame, by: Sequence[str], best_by: str, stem: Stem) -> pd.DataFrame:
    """Accuracy (%) before and at the best epoch by one decoder, beside the paper's, and gains by all.

    `stem` names the paper's claim, from what tells the runs of a recipe apart.
    """
    told = {"before": (f"{best_by}_before", "mean"), "best epoch": (f"{best_by}_best", show.mean_of)}
    table = show.groups(rows, by).agg(**told | _gains(DECODERS))
    table["before"] = table["before"].map("{:.1f}".format)
    table.insert(2, "paper, best", _stated(table, by, stem))
    return show.headed(table)


def split_table(rows: pd.DataFrame, by: Sequence[str], best_by: str, stem: Stem) -> pd.DataFrame:
    """Accuracy (%) before, by discrete decoding, and at the best epoch beside the paper's; how many runs collapsed."""
    told = {"discrete, before": ("discrete_before", show.mean_of)}
    told |= {f"{SHORT[best_by]}, best epoch": (f"{best_by}_best", show.mean_of)}
    table = show.groups(rows, by).agg(**told, collapsed=("collapsed", how_many))
    table.insert(2, "paper, best epoch", _stated(table, by, stem))
    return show.headed(table)


def entropy_table(rows: pd.DataFrame, by: Sequence[str], stem: Stem) -> pd.DataFrame:
    """Entropies (nat) before and after, means over seeds, and the paper's in brackets."""
    means = show.groups(rows, by)[[f"entropy_{step}{end}" for step in STEPS for end in ("_before", "")]].mean()
    table = pd.DataFrame(index=means.index)
    for step in STEPS:
        ours = [means[f"entropy_{step}{end}"] for end in ("_before", "")]
        stated = [_stated(means, by, stem, f"-entropy{step}{end}") for end in ("-sft", "")]
        table[f"token {step} (paper)"] = [
            "{:.2f} to {:.2f} ({:.2f} to {:.2f})".format(*cell) for cell in zip(*ours, *stated)
        ]
    return show.headed(table)


def gain_table(
    rows: pd.DataFrame, by: Sequence[str], decoders: Sequence[str] = DECODERS, lost: str = "own"
) -> pd.DataFrame:
    """Accuracy (%) at the start and gains (points) by some decoders, and how runs fared.

    That is: what the last epoch lacks of the best by the decoder `lost`, how long gradients are on average, and how
    many runs collapsed.
    """
    told = {f"start, {SHORT[name]}": (f"{name}_before", show.mean_of) for name in [decoders[0]]} | _gains(decoders)
    told |= {"lost at the end": (f"{lost}_lost", show.mean_of), "gradient": ("gradient", _length)}
    return show.headed(show.groups(rows, by).agg(**told, collapsed=("collapsed", how_many)))


def _stated(table: pd.DataFrame, by: Sequence[str], stem: Stem, end: str = "") -> list[float | None]:
    """The paper's number for each row of a table whose index is `by`."""
    return [printed(stem(**dict(zip(by, key))) + end) for key in table.index]


def _gains(decoders: Sequence[str]) -> dict[str, tuple[str, Callable]]:
    return {f"gain, {SHORT[name]}": (f"{name}_gain", differences) for name in decoders}


def _length(values: pd.Series) -> str:
    return show.mean_of(values, *ABOVE_ZERO)


def how_many(values: pd.Series) -> str:
    """A count of the runs of which something is true."""
    return f"{int(values.sum())} of {len(values)}"
