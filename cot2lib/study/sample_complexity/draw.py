"""Figures and tables of the chapter `sample_complexity`: lines over tokens or steps, on chains and on models."""

from collections.abc import Sequence
from functools import partial

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from cot2lib.study import look, show
from cot2lib.study.frame import at, ordered
from cot2lib.study.look import Shown
from cot2lib.study.sample_complexity.estimates import CHAINS, DELTA, EPSILON, INDEPENDENT, PRINTED, TIGHT
from cot2lib.study.sample_complexity.probes import KIND
from cot2lib.study.series import LOOKS
from cot2lib.theory import estimators

ASIDE = {"MTS, simulated": 0.96, "Dirichlet, simulated": 1.04}  # of their K, so that none hides another
DISTANCES = {
    "linear": "linear, own weights",
    "linear_random": "linear, random weights",
    "markov_other": "Markov, other's thoughts",
    "markov_mean": "Markov, mean thoughts",
    "reference": "other inputs",
}
ANSWERS = {"base": "last step as it is (%)", "linear": "last step made linear (%)"}


def barred(shown: Shown, rows: pd.DataFrame, x: str) -> None:
    """Intervals from `low` to `high` at the marks of a single panel whose series are of `kind`."""
    colours = [LOOKS["kind"][kind][0] for kind in rows["kind"]]
    shown.figure.axes[0].vlines(rows[x], rows["low"], rows["high"], colours, zorder=2)


def ticked(axes: Sequence[Axes], places: Sequence[int], **options) -> None:
    """Panels whose logarithmic axis has ticks at these places alone."""
    for axis in axes:
        axis.set(xscale="log", **options)
        axis.set_xticks(places, [str(place) for place in places])
        axis.xaxis.set_minor_locator(NullLocator())


def _doublings(ks: Sequence[int]) -> list[int]:
    return [k for k in ks if k & (k - 1) == 0] or list(ks)


def largest(rows: pd.DataFrame, columns: str, value: str, index: Sequence[str] = ("k",)) -> pd.DataFrame:
    """Values at the largest K, a column for each series."""
    return rows[rows["k"] == rows["k"].max()].pivot(index=[*index], columns=columns, values=value).reset_index()


# On chains


def ratios(rows: pd.DataFrame, finding: str = "") -> Shown:
    """The exact ratio over the number of steps at the largest K, and over K at the largest number of steps."""
    k, m = rows["k"].max(), rows["m"].max()
    of = rows.assign(
        panel=rows["over"].map({"m": f"K = {k}", "K": f"m = {m}"}),
        place=rows["m"].where(rows["over"] == "m", rows["k"]),
    )
    labels = "", "error of MTS / K traces"
    shown = look.lines(of, "place", "ratio", "chain", labels, "panel", finding, {TIGHT: 6.0}, sharex=False)
    left, right = shown.figure.axes
    left.set(xlabel="steps m", xticks=range(1, m + 1))
    ticked([right], _doublings(at(rows, over="K")["k"].unique()), xlabel="tokens K")
    return shown


def beyond(rows: pd.DataFrame) -> pd.DataFrame:
    """Chains whose ratio exceeds the printed bound at the largest K and m, worst first."""
    last = largest(at(rows, over="K"), "chain", "ratio", ["k", "m"])
    long = last.melt(["k", "m", PRINTED], [*CHAINS], value_name="ratio").rename(columns={PRINTED: "printed"})
    return long[long["ratio"] > long["printed"]].sort_values("ratio", ascending=False)


def samplers(rows: pd.DataFrame, finding: str = "") -> Shown:
    """Ratios on one chain by K, with two standard errors of those that are simulated."""
    ks = sorted(rows["k"].unique())
    levels = [(k, PRINTED, estimators.printed_bound(k)) for k in ks] + [(k, INDEPENDENT, 1.0) for k in ks]
    levels = pd.DataFrame(levels, columns=["k", "kind", "ratio"]).sort_values("k", kind="stable")
    both = pd.concat([rows, levels], ignore_index=True)
    both = both.assign(low=both["ratio"] - 2 * both["error"], high=both["ratio"] + 2 * both["error"])
    both["place"] = both["k"] * both["kind"].map(ASIDE).fillna(1.0)
    points = dict.fromkeys(ASIDE, 0.0)  # simulated ones have no line
    shown = look.lines(both, "place", "ratio", "kind", ("tokens K", "error / K traces"), None, finding, points)
    barred(shown, both, "place")
    ticked(shown.figure.axes, _doublings(ks))
    return shown


def read_outs(rows: pd.DataFrame, finding: str = "") -> Shown:
    """The errors of `estimates.read_out_errors`, a panel per chain."""
    shown = look.lines(rows, "k", "error", "estimate", ("tokens K", "mean squared error"), "chain", finding)
    levels = {"yticks": [0.03, 0.1, 0.3, 1], "yticklabels": ["0.03", "0.1", "0.3", "1"]}
    ticked(shown.figure.axes, rows["k"].unique(), yscale="log", **levels)
    return shown


def failures(rows: pd.DataFrame, finding: str = "") -> Shown:
    """The probabilities of `estimates.failures`, a panel per K."""
    allowed = rows.drop_duplicates(["k", "m"]).assign(size="allowed", missed=DELTA)
    labels = "steps m", f"P(error > {EPSILON})"
    shown = look.lines(pd.concat([rows, allowed]), "m", "missed", "size", labels, "k", finding, aspect=1.0)
    ticked(shown.figure.axes, [3, 10, 30, 100])
    return shown


def coverages(rows: pd.DataFrame, finding: str = "") -> Shown:
    """Coverage by K; intervals are mostly narrower than the marks."""
    labels = "tokens, or traces, K", "inputs covered (%)"
    shown = look.lines(rows, "k", "share", "kind", labels, finding=finding)
    barred(shown, rows, "k")
    ticked(shown.figure.axes, rows["k"].unique(), ylim=(0, 104))
    return shown


# On trained models


def linearity(rows: pd.DataFrame, finding: str = "") -> Shown:
    """Distance from linearity by step, a panel per method: dots are seeds; grey, the laws of other inputs."""
    own = rows.rename(columns={"linear": "distance"})[["method", "models", "step", "seed", "distance"]]
    others = show.groups(rows, ["method", "step"])["reference"].mean().rename("distance").reset_index()
    both = pd.concat([own, others.assign(models="other inputs")])
    labels = "step", "distance from linear (TV)"
    shown = look.lines(both, "step", "distance", "models", labels, "method", finding, limits=(0, 1))
    steps = sorted(rows["step"].unique())
    for axis in shown.figure.axes:
        axis.set_xticks(steps, [f"{step} to {step + 1}" for step in steps])
        axis.set_xlim(steps[0] - 0.25, steps[-1] + 0.25)
    return shown


def distance_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Distances from Assumption 1, mean over seeds with 95 % t-interval."""
    long = rows.melt([*KIND, "step"], [*DISTANCES], "kind", "distance").dropna()
    long["kind"] = ordered(long["kind"].map(DISTANCES), DISTANCES.values())
    return show.cells(long, [*KIND, "step"], "kind", "distance", partial(show.mean_of, high=1.0, digits=3)).fillna("")


def answer_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Accuracy (%) with the last step as it is and made linear, mean over seeds with 95 % t-interval."""
    long = rows.rename(columns=ANSWERS).melt(KIND, [*ANSWERS.values()], "read", "accuracy")
    return show.cells(long, KIND, "read", "accuracy", show.mean_of)


def last_steps(distances: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """A row for each group of CoT2 models: how far its last step is from linear, and what that is worth.

    Columns `linear`, and `base` and `made` (accuracy as it is and made linear) are in words; `reference` is the
    distance of other inputs' laws; `markov` that of other earlier thoughts, at the step where it is largest.
    """
    own = at(distances, method="CoT2")
    last = show.groups(at(own, step=own["step"].max()), "models")
    right = show.groups(at(answers, method="CoT2"), "models")
    found = {
        "linear": last["linear"].agg(partial(show.mean_of, high=1.0, digits=2)),
        "reference": last["reference"].mean(),
        "base": right["base"].agg(show.mean_of),
        "made": right["linear"].agg(show.mean_of),
        "markov": show.groups(own, ["models", "step"])["markov_other"].mean().groupby("models").max(),
    }
    return pd.DataFrame(found).reset_index()


def biases(rows: pd.DataFrame, finding: str = "") -> Shown:
    """Squared bias of sampled thoughts by K, a panel per group of models, a line per step; dotted: slopes of 1/K^2."""
    ks = sorted(rows["k"].unique())
    named = rows.assign(output="step " + rows["step"].astype(str))[["models", "output", "k", "seed", "gap"]]
    first = show.groups(at(rows, step=rows["step"].min(), k=ks[0]), "models")["gap"].mean()
    slopes = [(name, "1/K\N{SUPERSCRIPT TWO}", k, gap * (ks[0] / k) ** 2) for name, gap in first.items() for k in ks]
    both = pd.concat([named, pd.DataFrame(slopes, columns=["models", "output", "k", "gap"])])
    shown = look.lines(both, "k", "gap", "output", ("tokens K", "squared bias"), "models", finding)
    ticked(shown.figure.axes, ks, yscale="log", ylim=(1e-6, 3))
    return shown


def falls(rows: pd.DataFrame) -> pd.DataFrame:
    """Factors by which the squared bias falls from the smallest to the largest K, a column per step."""
    means = show.groups(rows, ["models", "step", "k"])["gap"].mean().unstack("k")
    factors = means.iloc[:, 0] / means.iloc[:, -1]
    return factors.unstack("step").add_prefix("step ").reset_index()
