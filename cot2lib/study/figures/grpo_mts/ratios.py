"""Figures, tables and sentences of `grpo_mts` on policy ratios: exact gradients, dropout, several updates."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from cot2lib import losses
from cot2lib.study.analysis.ratios import TIME
from cot2lib.study.figures.style import BLUE, BROWN, GREY, ORANGE, PINK, YELLOW, panels
from cot2lib.study.report import recipe
from cot2lib.theory.one_parameter import Shared, entropies

RATIO_LOOKS = {"geometric": (ORANGE, "s", "--"), "product": (BLUE, "o", "-")}
WARM = (ORANGE, YELLOW, PINK, GREY, BROWN)
NAMES = {"geometric": "geometric mean", "product": "product", "per-draw": "per draw"}


def gradients(listed: pd.DataFrame, sampled: pd.DataFrame) -> Figure:
    """Direction, balance and noise of both ratios' gradients over K: exact as lines, sampled as marks."""
    figure, axes = panels(1, 3, width=9.4, height=3.0)
    labels = {
        "cosine": "cosine with the gradient of J",
        "balance": "thought part / answer part",
        "noise": "noise of a batch / signal",
    }
    for axis, (measure, label) in zip(axes[0], labels.items()):
        for ratio, (colour, marker, dash) in RATIO_LOOKS.items():
            if measure in listed:
                mine = listed[listed["ratio"] == ratio]
                for _, seed in mine.groupby("seed"):
                    axis.plot(seed["k"], seed[measure], color=colour, linestyle=dash, linewidth=1.1, alpha=0.5)
            points = sampled[(sampled["ratio"] == ratio) & (sampled["measure"] == measure)]
            axis.errorbar(
                points["k"], points["value"], 2 * points["error"], color=colour, fmt=marker, markersize=5, capsize=2,
                linestyle=dash if measure == "noise" else "none", linewidth=1.2, label=NAMES[ratio],
            )  # fmt: skip
        _count_axis(axis, sorted(sampled["k"].unique().tolist()))
        axis.set(xlabel="tokens K", ylabel=label)
    axes[0, 1].set_yscale("log")
    axes[0, 1].set_yticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
    axes[0, 1].yaxis.set_minor_locator(NullLocator())
    axes[0, 2].set_ylim(bottom=0)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
    return figure


def gradient_table(listed: pd.DataFrame, sampled: pd.DataFrame) -> pd.DataFrame:
    """The numbers of `gradients`: exact ones as mean over models, sampled ones with two standard errors."""
    rows = []
    for (k, ratio), points in sampled.groupby(["k", "ratio"], sort=False):
        row = {"K": str(k), "ratio": NAMES[ratio]}
        here = listed[(listed["k"] == k) & (listed["ratio"] == ratio)]
        if len(here):
            row |= {"cosine": here["cosine"].mean(), "length": here["length"].mean()}
            row |= {"cosine, scaled": here["scaled"].mean()}
        named = points.set_index("measure")
        for measure in ("cosine", "along", "noise"):
            if measure in named.index:
                value, error = named.loc[measure, ["value", "error"]]
                row[f"sampled {measure}"] = f"{value:.3f} ± {2 * error:.3f}"
        rows.append(row)
    return pd.DataFrame(rows)


def _count_axis(axis: Axes, ks: Sequence[int]) -> None:
    axis.set_xscale("log", base=2)
    axis.set_xticks(ks, [str(k) for k in ks])
    axis.xaxis.set_minor_locator(NullLocator())


# Examples of one parameter


def examples(ks: Sequence[int], updates: int) -> Figure:
    """Expected reward over updates where thought and answer share a parameter; final entropy where they do not."""
    figure, axes = panels(1, 2, width=8.6, height=3.2)
    left, right = axes[0]
    steps, model = np.arange(1, updates + 1), Shared()
    product = model.climb([max(ks)], "product", updates)
    left.plot(steps, product[1:, 0], color=RATIO_LOOKS["product"][0], label="product, every K", linewidth=5, alpha=0.4)
    for place, (k, climb) in enumerate(zip(ks, model.climb(ks, "geometric", updates).T)):
        colour, dash = WARM[place % len(WARM)], ("--", "-.", ":")[place % 3]
        left.plot(steps, climb[1:], color=colour, linestyle=dash, label=f"geometric mean, K = {k}")
    left.axhline(float(product[0, 0]), color="black", linewidth=1, linestyle=":", label="start")
    left.set(xscale="log", xlabel="update", ylabel="expected reward J")
    for ratio, (colour, marker, dash) in RATIO_LOOKS.items():
        found = entropies(ks, ratio, TIME)
        right.plot(ks, found, color=colour, marker=marker, linestyle=dash, label=NAMES[ratio])
    right.axhline(np.log(8), color="black", linewidth=1, linestyle=":")
    _count_axis(right, ks)
    right.set(xlabel="tokens K", ylabel="entropy of a thought (nat)", ylim=(0, None))
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return figure


def example_table(ends: pd.DataFrame) -> pd.DataFrame:
    """Where both examples end (`cot2lib.study.analysis.ratios.example_ends`), a row per K."""
    wide = ends.pivot(index="k", columns="ratio", values=["J", "entropy"])
    wide.columns = [f"{value}, {NAMES[ratio]}" for value, ratio in wide.columns]
    return wide.reset_index(names="K").astype({"K": str})


def dropout_table(found: pd.DataFrame) -> pd.DataFrame:
    """Shares (%) of ratios outside the clip range, mean and range over seeds, by models, rule and K."""
    rows = []
    for (profile, ratio, divided), part in found.groupby(["profile", "ratio", "divided"], sort=False):
        row = {"models": recipe(profile), "ratio": NAMES[ratio] + ", logits / K" * divided}
        for step in ("thoughts", "answers"):
            for k, seeds in part.groupby("k"):
                row[f"{step}, K = {k}"] = _range(100 * seeds[step])
        rows.append(row)
    return pd.DataFrame(rows)


def _range(values: pd.Series) -> str:
    return f"{values.mean():.0f} ({values.min():.0f}–{values.max():.0f})"


def updates_table(found: pd.DataFrame) -> pd.DataFrame:
    """Means over models: shares outside the clip range and without gradient (%), J after, divergence (nat)."""
    columns = {
        "thoughts": "thoughts outside (%)",
        "thoughts_cut": "thoughts cut (%)",
        "answers_cut": "answers cut (%)",
        "after": "J after",
        "reweighted": "J after, reweighted by geometric means",
        "divergence": "KL from start",
    }
    means = found.groupby(["updates", "ratio"], sort=False)[[*columns]].mean().reset_index()
    for name in ("thoughts", "thoughts_cut", "answers_cut"):
        means[name] = [f"{100 * share:.1f}" for share in means[name]]
    means = means.assign(updates=means["updates"].astype(str), ratio=means["ratio"].map(NAMES))
    return means.sort_values("updates", kind="stable").rename(columns={**columns, "updates": "updates per batch"})


def ratio_findings(
    listed: pd.DataFrame, sampled: pd.DataFrame, dropped: pd.DataFrame, updates: pd.DataFrame
) -> list[str]:
    """What the section's tables say, a sentence or two each."""
    k = int(listed["k"].max())
    away = listed[(listed["k"] == k) & (listed["ratio"] == "geometric")]
    angles = np.degrees(np.arccos(away["cosine"].clip(-1, 1)))
    scaled = listed.loc[listed["ratio"] == "product", "scaled"].min()
    noise = sampled[sampled["measure"] == "noise"].pivot(index="k", columns="ratio", values="value")
    most = int(noise.index.max())
    shares = 100 * dropped.groupby(["profile", "ratio", "divided", "k"])["thoughts"].mean()
    mean = updates.groupby(["updates", "ratio"])["after"].mean().unstack()
    fewest, last, before = mean.index.min(), mean.index.max(), updates["before"].mean()
    said = lambda count: ", ".join(f"{NAMES[ratio]} {mean.loc[count, ratio]:.3f}" for ratio in losses.RATIOS)
    return [
        f"**Direction**: at K = {k} the geometric mean's expected gradient is {angles.min():.0f} to "
        f"{angles.max():.0f} degrees away from that of J, and {away['length'].min():.2f} to "
        f"{away['length'].max():.2f} times as long. "
        f"Division by the group's standard deviation changes the product's direction little: its cosine stays at or "
        f"above {scaled:.3f}.",
        f"**Noise**: at K = {most} one batch's deviation is {noise.loc[most, 'product']:.1f} times the signal for the "
        f"product and {noise.loc[most, 'geometric']:.1f} times for the geometric mean, each against "
        "its own expectation.",
        f"**Dropout**: with dropout in the current policy alone, {shares.min():.0f} to {shares.max():.0f} % of the "
        "thoughts' ratios are outside the clip range before anything was learnt.",
        f"**Updates**: J was {before:.3f} at the start (mean over models); after equally many batches it is, with "
        f"{fewest} per batch, {said(fewest)}, and with {last}, {said(last)}. In so short a training "
        f"the ratios differ by at most {(mean.max(axis=1) - mean.min(axis=1)).max():.3f}.",
    ]
