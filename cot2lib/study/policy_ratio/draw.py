"""Figures and tables of the chapter `policy_ratio`: exact and sampled gradients, dropout, several updates."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from cot2lib.study import series, show
from cot2lib.study.frame import at, called
from cot2lib.study.look import Shown, panels
from cot2lib.study.report import recipe
from cot2lib.study.series import LOOKS, SKY

MEASURES = {
    "cosine": "cosine with the gradient of J",
    "balance": "thought part / answer part",
    "noise": "noise of a batch / signal",
}
DRAWN = 200  # updates of an example that are drawn
SHARES = {
    "thoughts": "thoughts outside (%)",
    "thoughts_cut": "thoughts cut (%)",
    "answers_cut": "answers cut (%)",
}
ENDS = {"after": "J after", "reweighted": "J after, reweighted by geometric means", "divergence": "KL from start"}


def gradients(listed: pd.DataFrame, sampled: pd.DataFrame, finding: str = "") -> Shown:
    """Direction, balance and noise of both ratios' gradients over K: exact ones as lines, sampled ones as marks."""
    known = listed.melt(["k", "ratio", "seed"], [name for name in MEASURES if name in listed], "measure")
    figure, axes = panels(1, len(MEASURES), width=9.4, height=3.0)
    for axis, (measure, label) in zip(axes[0], MEASURES.items()):
        for ratio, points in at(sampled, measure=measure).groupby("ratio"):
            colour, marker, _ = LOOKS["ratio"][ratio]
            exact = at(known, measure=measure, ratio=ratio).pivot(index="k", columns="seed", values="value")
            axis.plot(exact, color=colour, linewidth=1.1, alpha=0.5)
            axis.errorbar(
                points["k"], points["value"], 2 * points["error"], color=colour, fmt=marker, markersize=5, capsize=2,
                linestyle="--" if measure == "noise" else "none", linewidth=1.2, label=called("ratio", ratio),
            )  # fmt: skip
        _count_axis(axis, sorted(sampled["k"].unique()))
        axis.set_ylabel(label)
    axes[0, 1].set(yscale="log", yticks=[0.1, 0.3, 1, 3, 10], yticklabels=["0.1", "0.3", "1", "3", "10"])
    axes[0, 1].yaxis.set_minor_locator(NullLocator())
    axes[0, 2].set_ylim(bottom=0)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
    drawn = sampled[sampled["measure"].isin(MEASURES)]
    return Shown(figure, pd.concat([known, drawn], ignore_index=True), finding)


def _count_axis(axis: Axes, ks: Sequence[int]) -> None:
    axis.set_xscale("log", base=2)
    axis.set_xticks(ks, [str(k) for k in ks])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlabel("tokens K")


def examples(climbs: pd.DataFrame, ends: pd.DataFrame, finding: str = "") -> Shown:
    """Expected reward over updates where thought and answer share a parameter; final entropy where they do not.

    Tables are of `measure.example_climbs` and `measure.example_ends`.
    """
    figure, axes = panels(1, 2, width=8.6, height=3.2)
    left, right = axes[0]
    kept = np.unique(np.geomspace(1, climbs["update"].max(), DRAWN).round())
    data = climbs[climbs["update"].isin(kept)]
    alike = at(data, ratio="product", k=data["k"].max())
    sns.lineplot(alike, x="update", y="J", linewidth=5, alpha=0.4, color=SKY, label="product, every K", ax=left)
    rooted = at(data, ratio="geometric")
    named = rooted.assign(series=rooted["k"].map("geometric mean, K = {}".format))
    sns.lineplot(named, x="update", y="J", hue="series", style="series", palette="flare", ax=left)
    left.axhline(climbs.loc[climbs["update"] == 0, "J"].iloc[0], color="black", linewidth=1, ls=":", label="start")
    left.set(xscale="log", ylabel="expected reward J")
    marks, apart = series.told_apart(ends, "ratio")
    shown = {name: apart[name] for name in ("hue", "hue_order", "palette", "markers")}
    sns.lineplot(marks, x="k", y="entropy", style="series", style_order=apart["hue_order"], ax=right, **shown)
    right.legend(frameon=False, loc="center right")
    right.axhline(np.log(8), color="black", linewidth=1, linestyle=":")
    _count_axis(right, sorted(ends["k"].unique()))
    right.set(ylabel="entropy of a thought (nat)", ylim=(0, None))
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    left.get_legend().remove()
    return Shown(figure, pd.concat([data, ends.drop(columns="J")], ignore_index=True), finding)


def dropout_table(found: pd.DataFrame) -> pd.DataFrame:
    """Shares (%) of ratios outside the clip range, mean and range over seeds, by models, rule and K."""
    divided = found["divided"].map({True: ", logits / K", False: ""})
    rules = [called("ratio", ratio) for ratio in found["ratio"]] + divided
    named = found.assign(models=found["profile"].map(recipe), rule=rules)
    long = named.melt(["models", "rule", "k", "seed"], ["thoughts", "answers"], "step")
    wide = long.groupby(["models", "rule", "step", "k"], sort=False)["value"].agg(_range).unstack(["step", "k"])
    wide.columns = [f"{step}, K = {k}" for step, k in wide.columns]
    return wide.reset_index()


def _range(shares: pd.Series) -> str:
    """Mean and range in percent."""
    return "{:.0f} ({:.0f}–{:.0f})".format(*(100 * shares.agg(["mean", "min", "max"])))


def updates_table(found: pd.DataFrame) -> pd.DataFrame:
    """Means over models: shares outside the clip range and without gradient (%), J after, divergence (nat)."""
    means = found.groupby(["updates", "ratio"])[[*SHARES, *ENDS]].mean()
    means = means.assign(**{name: (100 * means[name]).map("{:.1f}".format) for name in SHARES})
    return show.headed(means).rename(columns=SHARES | ENDS | {"updates": "updates per batch"})


# Rows behind sentences


def away(listed: pd.DataFrame) -> pd.DataFrame:
    """A row on the geometric mean's gradients for the largest K: angles (degrees) to that of J."""
    found = at(listed, k=listed["k"].max(), ratio="geometric")
    angles = np.degrees(np.arccos(found["cosine"].clip(-1, 1)))
    return pd.DataFrame([{"least": angles.min(), "most": angles.max(), "k": listed["k"].max()}])


def largest(table: pd.DataFrame, value: str) -> pd.DataFrame:
    """A row with a value under each ratio, for the largest K."""
    return table.pivot(index="k", columns="ratio", values=value).reset_index().tail(1)
