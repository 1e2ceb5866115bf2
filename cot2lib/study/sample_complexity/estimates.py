"""Estimates by sampled thoughts on chains whose laws are known: exact errors, simulations, sizes and coverage."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

import pandas as pd
import torch

from cot2lib.errors import SpecError
from cot2lib.metrics import mean_interval
from cot2lib.study.frame import ordered
from cot2lib.tasks import MNNS
from cot2lib.theory import chains, coverage, enumeration, estimators, sample_size
from cot2lib.theory.chains import Chain
from cot2lib.theory.simulation import simulate

V = 8  # tokens of the chains drawn
CHAINS: dict[str, Callable[[int], Chain]] = {
    "identity": lambda m: chains.identity(V, m),
    "lazy 0.1": lambda m: chains.lazy_walk(V, m, 0.1),
    "lazy 0.3": lambda m: chains.lazy_walk(V, m, 0.3),
    "MNNS": lambda m: chains.mnns(2 ** torch.arange(m)),
    "random rows": lambda m: chains.random_rows(V, m, 1.0),
    "sharp rows": lambda m: chains.random_rows(V, m, 0.02),
}
PRINTED, TIGHT, INDEPENDENT = "the paper's 2 \N{MINUS SIGN} 1/K", "tight bound", "K independent traces"
LONGEST, WIDEST = 8, 64  # steps of chains and tokens, so that a change of parameters stays quick
EPSILON, DELTA = 0.1, 0.1
TRACES = 4000  # simulated per point
SIZES = ((64, 200, 0.5), (64, 200, 0.1), (32, 100, 0.1), (16, 100, 0.1), (8, 4, 0.1))  # K, m, delta
REPEATS = 8  # simulated traces per input of the coverage figure
SAMPLERS = ("MTS, exact", "MTS, simulated", "Dirichlet, simulated", "systematic")
LENGTHS = [round(10 ** (x / 5)) for x in range(2, 12)]  # m of the chains whose failures are drawn


def checked(live_chain: str, ks: Sequence, steps: object) -> None:
    """Raise SpecError for parameters that cannot be drawn."""
    if live_chain not in CHAINS:
        raise SpecError(f"live_chain={live_chain!r}: choose one of {', '.join(CHAINS)}.")
    if not ks or not all(isinstance(k, int) and 1 <= k <= WIDEST for k in ks) or len(set(ks)) < len(ks):
        raise SpecError(f"ks={list(ks)}: give different whole numbers of tokens from 1 to {WIDEST}.")
    if not isinstance(steps, int) or not 2 <= steps <= LONGEST:
        raise SpecError(f"steps={steps}: choose a whole number from 2 to {LONGEST}.")


# Dependence and consistency


def dependence() -> pd.DataFrame:
    """The worked example, exact: is the chance that two slots hold the first token the product of their chances?"""
    rows, chain, k = [], chains.example(), 2
    laws = enumeration.count_distributions(*chain, k)
    for step, (law, base) in enumerate(zip(laws, estimators.marginals(*chain)), start=1):
        single, alpha = enumeration.mean(law, k)[0], Fraction(float(base[0])).limit_denominator(1000)
        rows.append((step, single, alpha, enumeration.both_tokens(law, 0), single**2))
    heads = ["step", "$E q_t(1)$, listed", "base CoT2's $\\alpha_t(1)$", "$P(i_1 = i_2 = 1)$", "product of chances"]
    return pd.DataFrame(rows, columns=heads).map(str)


# The ratio


def ratios(ks: Sequence[int], steps: int) -> pd.DataFrame:
    """Exact ratios of mean squared errors by chain, and both bounds: columns `over`, `k`, `m`, `chain`, `ratio`.

    Rows over "m" have the largest K, rows over "K" the largest number of steps.
    """
    of_chains = {name: lambda k, m, make=make: estimators.mse_ratio(*make(m), k) for name, make in CHAINS.items()}
    found = {PRINTED: lambda k, m: estimators.printed_bound(k), TIGHT: estimators.tight_bound} | of_chains
    places = [("m", max(ks), m) for m in range(1, steps + 1)] + [("K", k, steps) for k in ks]
    rows = [(*place, name, ratio(*place[1:])) for place in places for name, ratio in found.items()]
    return pd.DataFrame(rows, columns=["over", "k", "m", "chain", "ratio"])


def samplers(live_chain: str, ks: Sequence[int], steps: int) -> pd.DataFrame:
    """Ratios on one chain: exact, and simulated with standard errors; columns `k`, `kind`, `ratio`, `error`.

    Systematic draws have an exact value where their count vectors can be listed, else a simulated one.
    """
    chain, rows = CHAINS[live_chain](steps), []
    parts = estimators.explained(*chain)
    for k in ks:
        unit = float(estimators.independent_error(parts, k))
        simulated = {"MTS, simulated": "multinomial"} | ({"Dirichlet, simulated": "dirichlet"} if k > 1 else {})
        exact = {"MTS, exact": estimators.mse_ratio(*chain, k)}
        try:
            exact["systematic"] = estimators.mse_ratio(*chain, k, "systematic")
        except SpecError:
            simulated["systematic"] = "systematic"
        rows += [(k, kind, ratio, 0.0) for kind, ratio in exact.items()]
        for kind, sampler in simulated.items():
            found = simulate(*chain, k, TRACES, sampler)
            rows.append((k, kind, found.mse / unit, found.standard_error / unit))
    table = pd.DataFrame(rows, columns=["k", "kind", "ratio", "error"])
    return table.assign(kind=ordered(table["kind"], SAMPLERS)).sort_values(["k", "kind"], ignore_index=True)


def mnns_table(ks: Sequence[int]) -> pd.DataFrame:
    """Exact ratios on the partial sums of MNNS, mean over all inputs of four digits, with the range at the end."""
    task, rows = MNNS(), []
    parts = [estimators.mnns_explained(task.digits[:, :m]) for m in range(1, task.length + 1)]
    for k in ks:
        found = [estimators.ratio(part, k) for part in parts]
        means = {f"m = {m}": float(x.mean()) for m, x in enumerate(found, start=1)}
        ends = {"least, m = 4": float(found[-1].min()), "most, m = 4": float(found[-1].max())}
        rows.append({"K": str(k), "2 - 1/K": estimators.printed_bound(k), **means, **ends})
    return pd.DataFrame(rows)


def largest_ratio() -> float:
    """The largest ratio of any input of four digits, for so many tokens that more change nothing."""
    return float(estimators.ratio(estimators.mnns_explained(MNNS().digits), 10**9).max())


def five_digit_exceptions(k: int) -> str:
    """One sentence: on how many inputs of five digits the printed bound fails at this K, and the worst of them."""
    task = MNNS(length=5)
    found = estimators.ratio(estimators.mnns_explained(task.digits), k)
    share, worst = float((found > estimators.printed_bound(k)).double().mean()), int(found.argmax())
    digits = ", ".join(map(str, task.digits[worst].tolist()))
    return (
        f"Of the {task.size:,} inputs of five digits, {100 * share:.2f} % exceed the printed bound at K = {k}; the "
        f"worst, {digits}, has ratio {found[worst]:.5f} against {estimators.printed_bound(k):.4f}."
    )


# What is read at the last step


def read_out_errors(ks: Sequence[int]) -> pd.DataFrame:
    """Mean squared error of a trace's three estimates, and of K traces; columns `chain`, `k`, `estimate`, `error`."""
    kinds = {
        "MNNS, mean over inputs": estimators.mnns_explained(MNNS().digits),
        "eight fixed tokens": estimators.explained(*chains.identity(V, 4)),
    }
    rows = []
    for chain, parts in kinds.items():
        for k in ks:
            found = estimators.read_outs(parts, k)
            errors = {"one token": found.token, "K tokens": found.tokens, "the distribution": found.law}
            errors[INDEPENDENT] = estimators.independent_error(parts, k)
            rows += [(chain, k, name, float(error.mean())) for name, error in errors.items()]
    return pd.DataFrame(rows, columns=["chain", "k", "estimate", "error"])


# Sample size


def failures() -> pd.DataFrame:
    """Exact probability of missing epsilon by the printed and the corrected N; columns `k`, `m`, `size`, `missed`."""
    rows = []
    for k, m in product((16, 32, 64), LENGTHS):
        enough = sample_size.chebyshev_size(EPSILON, DELTA, sample_size.largest_variance(k, m, 0.5))
        sizes = {"the paper's N": sample_size.printed_size(EPSILON, DELTA, k), "corrected N (Chebyshev)": enough}
        rows += [(k, m, name, sample_size.failure(EPSILON, size, k, m)) for name, size in sizes.items()]
    return pd.DataFrame(rows, columns=["k", "m", "size", "missed"])


def size_table() -> pd.DataFrame:
    """The printed and the corrected numbers of traces on two tokens that never change, with exact failure odds."""
    rows = []
    for k, steps, delta in SIZES:
        variance = sample_size.largest_variance(k, steps, 0.5)
        sizes = {
            "printed": sample_size.printed_size(EPSILON, delta, k),
            "Chebyshev": sample_size.chebyshev_size(EPSILON, delta, variance),
            "Bernstein": sample_size.bernstein_size(EPSILON, delta, variance),
        }
        entry = {"K": k, "m": steps, "$\\delta$": delta}
        for name, size in sizes.items():
            entry |= {f"N, {name}": size, f"fails, {name}": sample_size.failure(EPSILON, size, k, steps)}
        rows.append(entry)
    return pd.DataFrame(rows)


# Coverage


def coverages(ks: Sequence[int]) -> pd.DataFrame:
    """Share (%) of MNNS inputs whose answer K sampled paths hold: columns `k`, `kind`, `share`, `low`, `high`."""
    task, rows = MNNS(), []
    for k in ks:
        exact = 100 * coverage.independent_coverage(task, k)
        rows.append((k, INDEPENDENT, exact, exact, exact))
        for kind, sampler in (("MTS", "multinomial"), ("systematic", "systematic")):
            share = mean_interval(100 * coverage.coverage(task, k, sampler, REPEATS).numpy(), 0.0, 100.0)
            rows.append((k, kind, share.mean, share.low, share.high))
    return pd.DataFrame(rows, columns=["k", "kind", "share", "low", "high"])
