"""Chapter `sample_complexity`: what sampled thoughts estimate, on chains of known distribution and on trained models.

How far models are from the paper's assumption is measured in `cot2lib.study.probes` and drawn here.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

import pandas as pd
import torch

from cot2lib.errors import SpecError
from cot2lib.study import look, show
from cot2lib.study.frame import at
from cot2lib.study.look import Shown
from cot2lib.study.series import BOUND
from cot2lib.theory import chains, enumeration, estimators
from cot2lib.theory.chains import Chain

V = 8  # tokens of the chains drawn
CHAINS: dict[str, Callable[[int], Chain]] = {
    "identity": lambda m: chains.identity(V, m),
    "lazy 0.1": lambda m: chains.lazy_walk(V, m, 0.1),
    "lazy 0.3": lambda m: chains.lazy_walk(V, m, 0.3),
    "MNNS": lambda m: chains.mnns(2 ** torch.arange(m)),
    "random rows": lambda m: chains.random_rows(V, m, 1.0),
    "sharp rows": lambda m: chains.random_rows(V, m, 0.02),
}
LONGEST, WIDEST = 8, 64  # steps of chains and tokens, so that a change of parameters stays quick
EPSILON = 0.1
SIZES = ((64, 200, 0.5), (64, 200, 0.1), (32, 100, 0.1), (16, 100, 0.1), (8, 4, 0.1))  # K, m, delta
LENGTHS = [round(10 ** (x / 5)) for x in range(2, 12)]  # m of the chains whose failures are drawn
FLAT = dict(height=2.3, aspect=1.8)  # of two panels (inches)


def checked(ks: Sequence[int], steps: int) -> None:
    """Raise SpecError for parameters that cannot be drawn."""
    if not all(1 <= k <= WIDEST for k in ks):
        raise SpecError(f"ks={list(ks)}: give numbers of tokens from 1 to {WIDEST}.")
    if not 2 <= steps <= LONGEST:
        raise SpecError(f"steps={steps}: choose 2 to {LONGEST}.")


def dependence() -> pd.DataFrame:
    """The worked example, exact: does the first token stand in two slots with the product of its probabilities?"""
    rows, chain, k = [], chains.example(), 2
    laws = enumeration.count_distributions(*chain, k)
    for step, (law, base) in enumerate(zip(laws, estimators.marginals(*chain)), start=1):
        single, alpha = enumeration.mean(law, k)[0], Fraction(float(base[0])).limit_denominator(1000)
        rows.append((step, single, alpha, enumeration.both_tokens(law, 0), single**2))
    means = r"$\mathbb{E}\,q_t(1)$, listed", r"base CoT2's $\alpha_t(1)$"
    heads = ["step", *means, "$P(i_1 = i_2 = 1)$", "product of probabilities"]
    return pd.DataFrame(rows, columns=heads).map(str)


def exact_ratios(ks: Sequence[int], steps: int) -> pd.DataFrame:
    """Exact ratios of mean squared errors by chain, and both bounds: columns `over`, `k`, `m`, `chain`, `ratio`.

    Rows over "m" have the largest K, rows over "K" the largest number of steps.
    """
    of_chains = {name: lambda k, m, make=make: estimators.mse_ratio(*make(m), k) for name, make in CHAINS.items()}
    found = {BOUND: lambda k, m: estimators.printed_bound(k), "tight bound": estimators.tight_bound} | of_chains
    places = [("m", max(ks), m) for m in range(1, steps + 1)] + [("K", k, steps) for k in ks]
    rows = [(*place, name, ratio(*place[1:])) for place in places for name, ratio in found.items()]
    return pd.DataFrame(rows, columns=["over", "k", "m", "chain", "ratio"])


def ratios(rows: pd.DataFrame, finding: str = "") -> Shown:
    """The exact ratio over the number of steps at the largest K, and over K at the largest number of steps."""
    k, m = rows["k"].max(), rows["m"].max()
    of = rows.assign(
        panel=rows["over"].map({"m": f"K = {k}", "K": f"m = {m}"}),
        place=rows["m"].where(rows["over"] == "m", rows["k"]),
    )
    options = dict(labels=("", "error ratio"), col="panel", widths={"tight bound": 6.0}, sharex=False, height=2.7)
    shown = look.lines(of, "place", "ratio", "chain", finding=finding, **options)
    left, right = shown.figure.axes
    left.set(xlabel="steps m", xticks=range(1, m + 1))
    ks = at(rows, over="K")["k"].unique()
    look.ticked([right], [k for k in ks if k & (k - 1) == 0] or ks, xlabel="tokens K")  # at powers of two
    return shown


def size_table() -> pd.DataFrame:
    """Printed and corrected numbers of traces on two tokens that never change, with exact failure probabilities."""
    rows = []
    for k, steps, delta in SIZES:
        variance = estimators.largest_variance(k, steps, 0.5)
        sizes = {
            "printed": estimators.printed_size(EPSILON, delta, k),
            "Chebyshev": estimators.chebyshev_size(EPSILON, delta, variance),
            "Bernstein": estimators.bernstein_size(EPSILON, delta, variance),
        }
        entry = {"K": k, "m": steps, "$\\delta$": delta}
        for name, size in sizes.items():
            entry |= {f"N, {name}": size, f"fails, {name}": estimators.failure(EPSILON, size, k, steps)}
        rows.append(entry)
    return pd.DataFrame(rows)


def linearity(rows: pd.DataFrame, finding: str = "") -> Shown:
    """Distance from linearity by step, a panel per method: dots are seeds; grey, the distributions of other inputs."""
    own = rows.rename(columns={"linear": "distance"})[["method", "models", "step", "seed", "distance"]]
    others = show.groups(rows, ["method", "step"])["reference"].mean().rename("distance").reset_index()
    both = pd.concat([own, others.assign(models="other inputs")])
    labels = "step", "distance (TV)"
    shown = look.lines(both, "step", "distance", "models", labels, "method", finding, limits=(0.0, 1.0), **FLAT)
    steps = sorted(rows["step"].unique())
    for axis in shown.figure.axes:
        axis.set_xticks(steps, [f"{step} to {step + 1}" for step in steps])
        axis.set_xlim(steps[0] - 0.25, steps[-1] + 0.25)
    return shown


def biases(rows: pd.DataFrame, finding: str = "") -> Shown:
    """Squared bias of sampled thoughts by K, a panel per group of models, a line per step; dotted: slopes of 1/K^2."""
    ks = sorted(rows["k"].unique().tolist())
    named = rows.assign(output="step " + rows["step"].astype(str))[["models", "output", "k", "seed", "gap"]]
    first = show.groups(at(rows, step=rows["step"].min(), k=ks[0]), "models")["gap"].mean()
    slopes = [(name, "1/K\N{SUPERSCRIPT TWO}", k, gap * (ks[0] / k) ** 2) for name, gap in first.items() for k in ks]
    both = pd.concat([named, pd.DataFrame(slopes, columns=["models", "output", "k", "gap"])])
    shown = look.lines(both, "k", "gap", "output", ("tokens K", "squared bias"), "models", finding, **FLAT)
    look.ticked(shown.figure.axes, ks, yscale="log", ylim=(1e-6, 3))
    return shown
