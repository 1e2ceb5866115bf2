"""Groups, tables and checks of the chapter `grpo_mts`; its proofs on exact gradients are in `figures.exact`."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from cot2lib.metrics import paired_interval
from cot2lib.study import sweeps
from cot2lib.study.figures import policies
from cot2lib.study.figures.curves import in_order
from cot2lib.study.figures.policies import Group, ends, gain_of
from cot2lib.study.figures.style import COLOURS, MARKERS, legend_above, panels
from cot2lib.study.report import describe

MOST = 0.9  # of the runs, for which a checked claim must hold
POINTS_APART = 3.0
SETTING = ("dimension", "tokens")  # columns that name a group


def by_k(points: pd.DataFrame, d_model: int) -> list[Group]:
    """The runs of one dimension in groups of one K."""
    here = points[points["d_model"] == d_model]
    claim = f"grpo-mts-d{d_model}-k"
    return [Group(f"K = {k}", here[here["k"] == k], f"{claim}{k}") for k in in_order(here["k"])]


def accuracy_by_k(points: pd.DataFrame) -> Figure:
    """Accuracy by own sampler before and after training over K, a panel per dimension."""
    titles = {d: f"tokens per thought (d = {d})" for d in in_order(points["d_model"])}
    starts = {title: f"grpo-mts-d{d}-sft" for d, title in titles.items()}
    return policies.before_after({title: by_k(points, d) for d, title in titles.items()}, "own", starts)


def entropies_by_k(points: pd.DataFrame) -> Figure:
    """Entropy of each step before and after, a row per dimension and a panel per K."""
    return policies.entropies(_by_dimension(points))


def entropy_table(points: pd.DataFrame) -> pd.DataFrame:
    """Entropies (nat) before and after, by dimension and K, means over seeds with the paper's."""
    return policies.entropy_table(_by_dimension(points), SETTING)


def accuracy_table(points: pd.DataFrame) -> pd.DataFrame:
    """Accuracy (%) by each decoder before and after, and the best epoch by own sampler."""
    return policies.accuracy_table(_by_dimension(points), SETTING, "own")


def _by_dimension(points: pd.DataFrame) -> dict[str, list[Group]]:
    return {f"d = {d}": by_k(points, d) for d in in_order(points["d_model"])}


def by_start(points: pd.DataFrame, variants: pd.DataFrame) -> list[Group]:
    """The runs of K = 3 by what they started from; `variants` has the better starts."""
    usual = [
        Group(f"d = {d}", points[(points["d_model"] == d) & (points["k"] == 3)]) for d in in_order(points["d_model"])
    ]
    better = Group("d = 24, better start", variants[variants["variant"] == "K = 3, better start"])
    return [group for group in [*usual, better] if len(group.points)]


def gain_against_start(chosen: Sequence[Group]) -> Figure:
    """Gain in accuracy (points) over the accuracy at the start, both by own sampler, a dot per run."""
    figure, axes = panels(1, 1, width=5.6, height=3.2)
    axis = axes[0, 0]
    for group in chosen:
        first, last = (table.set_index("id")["own"] for table in ends(group.points))
        axis.scatter(first, last - first, color=COLOURS[group.label], marker=MARKERS[group.label], label=group.label)
    axis.set(xlabel="accuracy at the start (%), own sampler", ylabel="gain (points)")
    axis.axhline(0, color="black", linewidth=0.8)
    legend_above(figure, axis, len(chosen))
    return figure


def findings(points: pd.DataFrame) -> list[str]:
    """A sentence per dimension and K: accuracies and entropies before and after, and how many seeds gained."""
    first, last = ends(points)
    said = []
    for (d_model, k), after in last.groupby(["d_model", "k"]):
        before = first[(first["d_model"] == d_model) & (first["k"] == k)].set_index("id").loc[after["id"]]
        gained = int((after["own"].to_numpy() > before["own"].to_numpy()).sum())
        gap = paired_interval(after["own"], before["own"])
        own, discrete = (f"{before[d].mean():.1f} % to {after[d].mean():.1f} %" for d in ("own", "discrete"))
        said.append(
            f"**d = {d_model}, K = {k}**: by its own sampler {own}, a gain of "
            f"{describe(gap.mean, gap.low, gap.high)} points, on {gained} of {len(after)} seeds; discrete "
            f"decoding {discrete}."
        )
    return said


def checks(points: pd.DataFrame, variants: pd.DataFrame) -> dict[str, bool]:
    """The chapter's claims about recorded runs."""
    first, last = ends(points)
    paired = last.merge(first, on=["profile", "id"], suffixes=("", "_first"))
    still = variants[variants["variant"].str.contains("no learning")]
    held = still.groupby("id")["discrete"].agg(lambda values: float(np.ptp(values)))
    closing = ends(variants)[1].groupby("variant")[["own", "discrete"]].mean()
    gap = lambda k: abs(closing["own"][f"K = {k}, as usual"] - closing["own"][f"K = {k}, product"])
    ks = [k for k in in_order(variants["k"]) if f"K = {k}, product" in closing.index]
    gain = lambda name, decoder="own": gain_of(variants, name, decoder).mean()
    return {
        "policy gradients raise accuracy by the own sampler on most runs": bool(
            (paired["own"] > paired["own_first"]).mean() > MOST
        ),
        "the first and the last token become more certain on most runs": bool(
            (
                (paired["entropy_1"] < paired["entropy_1_first"]) & (paired["entropy_4"] < paired["entropy_4_first"])
            ).mean()
            > MOST - 0.1
        ),
        "without a learning rate nothing changes": bool(len(held) and held.max() == 0),
        "the product and its root end within three points": bool(ks) and all(gap(k) < POINTS_APART for k in ks),
        "logits / K starts lower and brings greedy decoding no point": bool(
            first_mean(variants, "K = 3, logits / K") < first_mean(variants, "K = 3, as usual")
            and gain("K = 3, logits / K", "discrete") < 1
        ),
        "one-sided dropout takes more than half of the mean gain away": bool(
            gain("K = 3, one-sided dropout") < gain("K = 3, as usual") / 2
        ),
        "a rising K gains no less than K = 6 throughout": bool(
            gain("K = 6, rising from 1") >= gain("K = 6, as usual")
        ),
        "a penalty on divergence lowers the mean gain under every K": bool(
            all(gain(f"K = {k}, {sweeps.BETA} = 0.1") < gain(f"K = {k}, as usual") for k in in_order(points["k"]))
        ),
    }


def first_mean(variants: pd.DataFrame, name: str) -> float:
    """Mean accuracy (%) by own sampler of a variant before training."""
    first = ends(variants)[0]
    return float(first.loc[first["variant"] == name, "own"].mean())
