"""Figures and tables of the chapter `sample_complexity`: sampled thoughts on chains whose laws are known."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from cot2lib.errors import SpecError
from cot2lib.metrics import mean_interval
from cot2lib.study.figures.style import panels
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
LOOKS = {  # colour, marker, line style
    "identity": ("#D55E00", "s", "--"),
    "lazy 0.1": ("#E69F00", "^", "-."),
    "lazy 0.3": ("#B08D00", "v", ":"),
    "MNNS": ("#0072B2", "o", "-"),
    "random rows": ("#56B4E9", "D", ":"),
    "sharp rows": ("#CC79A7", "d", (0, (5, 1, 1, 1))),
}
ORANGE, BLUE, GREEN, GREY = "#D55E00", "#0072B2", "#009E73", "#7A7A7A"
LONGEST, WIDEST = 8, 64  # steps of chains and tokens, so that a change of parameters stays quick
EPSILON, DELTA = 0.1, 0.1
TRACES = 4000  # simulated per point
SIZES = ((64, 200, 0.5), (64, 200, 0.1), (32, 100, 0.1), (16, 100, 0.1), (8, 4, 0.1))  # K, m, delta
REPEATS = 8  # simulated traces per input of the coverage figure


def checked(live_chain: str, ks: Sequence, steps: object) -> None:
    """Raise SpecError for parameters that cannot be drawn."""
    if live_chain not in CHAINS:
        raise SpecError(f"live_chain={live_chain!r}: choose one of {', '.join(CHAINS)}.")
    if not ks or not all(isinstance(k, int) and 1 <= k <= WIDEST for k in ks) or len(set(ks)) < len(ks):
        raise SpecError(f"ks={list(ks)}: give different whole numbers of tokens from 1 to {WIDEST}.")
    if not isinstance(steps, int) or not 2 <= steps <= LONGEST:
        raise SpecError(f"steps={steps}: choose a whole number from 2 to {LONGEST}.")


# Dependence and consistency


def dependence(k: int = 2) -> pd.DataFrame:
    """The worked example, exact: is the chance that two slots hold the first token the product of their chances?"""
    rows, chain = [], chains.example()
    for step, law in enumerate(enumeration.count_distributions(*chain, k), start=1):
        single = enumeration.mean(law, k)[0]
        together = enumeration.both_tokens(law, 0)
        base = estimators.marginals(*chain)[step - 1]
        rows.append(
            {
                "step": str(step),
                "$E q_t(1)$, listed": str(single),
                "base CoT2's $\\alpha_t(1)$": str(Fraction(float(base[0])).limit_denominator(1000)),
                "$P(i_1 = i_2 = 1)$": str(together),
                "product of chances": str(single**2),
            }
        )
    return pd.DataFrame(rows)


def convergence(ks: Sequence[int], steps: int) -> pd.DataFrame:
    """K times the squared distance of MTS from base CoT2, by chain, and its limit: the sum of all D_s."""
    rows = []
    for name, make in CHAINS.items():
        parts = estimators.explained(*make(steps))
        scaled = {f"K = {k}": float(k * estimators.read_outs(parts, k).tokens) for k in ks}
        rows.append({"chain": name, **scaled, "limit": float(parts.sum())})
    return pd.DataFrame(rows)


# The ratio


def ratio_table(ks: Sequence[int], steps: int) -> pd.DataFrame:
    """Exact ratios of mean squared errors after `steps` steps by K, beside both bounds."""
    rows = []
    for k in ks:
        bounds = {"K": str(k), "2 - 1/K": estimators.printed_bound(k), "tight": estimators.tight_bound(k, steps)}
        rows.append(bounds | {name: estimators.mse_ratio(*make(steps), k) for name, make in CHAINS.items()})
    return pd.DataFrame(rows)


def ratios(ks: Sequence[int], steps: int) -> Figure:
    """The exact ratio over the number of steps at the largest K, and over K at the largest number of steps."""
    figure, axes = panels(1, 2, width=8.4, height=3.2, sharey=True)
    k, lengths = max(ks), list(range(1, steps + 1))
    for name, make in CHAINS.items():
        colour, marker, dash = LOOKS[name]
        style = dict(color=colour, marker=marker, linestyle=dash, markersize=4.5, linewidth=1.6, label=name)
        axes[0, 0].plot(lengths, [estimators.mse_ratio(*make(m), k) for m in lengths], **style)
        axes[0, 1].plot(ks, [estimators.mse_ratio(*make(steps), k) for k in ks], **style)
    tight = dict(color="#bbbbbb", linewidth=6, alpha=0.6, zorder=1, label="tight bound")
    printed = dict(color="black", linewidth=1.4, label="the paper's 2 − 1/K")
    axes[0, 0].plot(lengths, [estimators.tight_bound(k, m) for m in lengths], **tight)
    axes[0, 1].plot(ks, [estimators.tight_bound(k, steps) for k in ks], **tight)
    axes[0, 0].plot(lengths, [estimators.printed_bound(k)] * steps, **printed)
    axes[0, 1].plot(ks, [estimators.printed_bound(k) for k in ks], **printed)
    axes[0, 0].set(xlabel=f"steps m (K = {k})", ylabel="error of MTS / K traces", xticks=lengths)
    axes[0, 1].set(xlabel=f"tokens K (m = {steps})")
    _count_axis(axes[0, 1], ks)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    return figure


def _count_axis(axis: Axes, ks: Sequence[int]) -> None:
    """Ticks at the numbers of tokens themselves, on a logarithmic axis."""
    axis.set_xscale("log", base=2)
    shown = [k for k in ks if k & (k - 1) == 0] or ks
    axis.set_xticks(shown, [str(k) for k in shown])
    axis.xaxis.set_minor_locator(NullLocator())


def samplers(live_chain: str, ks: Sequence[int], steps: int) -> pd.DataFrame:
    """Ratios on one chain: exact, and simulated with standard errors; columns `k`, `kind`, `ratio`, `error`.

    Systematic draws have an exact value where their count vectors can be listed, else a simulated one.
    """
    chain, rows = CHAINS[live_chain](steps), []
    parts = estimators.explained(*chain)
    for k in ks:
        rows.append((k, "exact", estimators.mse_ratio(*chain, k), 0.0))
        for kind in ("multinomial", "dirichlet") if k > 1 else ("multinomial",):
            rows.append((k, kind, *_simulated(chain, parts, k, kind)))
        try:
            rows.append((k, "systematic", estimators.mse_ratio(*chain, k, "systematic"), 0.0))
        except SpecError:
            rows.append((k, "systematic", *_simulated(chain, parts, k, "systematic")))
    return pd.DataFrame(rows, columns=["k", "kind", "ratio", "error"])


def _simulated(chain: Chain, parts, k: int, kind: str) -> tuple[float, float]:
    found, unit = simulate(*chain, k, TRACES, kind), float(estimators.independent_error(parts, k))
    return found.mse / unit, found.standard_error / unit


def sampler_curves(table: pd.DataFrame) -> Figure:
    """Ratios on one chain by K: exact for MTS, simulated for MTS and Dirichlet thoughts, and for systematic draws."""
    figure, axes = panels(1, 1, width=6.4, height=3.6)
    axis, ks = axes[0, 0], sorted(table["k"].unique())
    kinds = {kind: part.set_index("k") for kind, part in table.groupby("kind")}
    axis.plot(ks, kinds["exact"]["ratio"], color=BLUE, label="MTS, exact")
    axis.plot(ks, [estimators.printed_bound(k) for k in ks], color="black", linewidth=1.2, label="the paper's 2 − 1/K")
    axis.axhline(1.0, color=GREY, linestyle=":", linewidth=1.4, label="K independent traces")
    looks = {"multinomial": ("o", BLUE, 0.96, "MTS"), "dirichlet": ("D", ORANGE, 1.04, "Dirichlet, γ = K − 1")}
    for kind, (marker, colour, aside, label) in looks.items():
        if kind in kinds:
            part = kinds[kind]
            axis.errorbar(
                part.index * aside, part["ratio"], 2 * part["error"], fmt=marker, color=colour, markersize=5,
                label=f"{label}, simulated",
            )  # fmt: skip
    axis.plot(ks, kinds["systematic"]["ratio"], color=GREEN, marker="v", linestyle="--", label="systematic")
    axis.set(xlabel="tokens K", ylabel="error / K traces")
    axis.set_ylim(bottom=min(-0.05, axis.get_ylim()[0]))
    _count_axis(axis, ks)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return figure


def sampler_table(table: pd.DataFrame) -> pd.DataFrame:
    """The numbers of `sampler_curves`, simulated ones with two standard errors."""
    shown = [f"{r:.3f} ± {2 * e:.3f}" if e else f"{r:.3f}" for r, e in zip(table["ratio"], table["error"])]
    wide = table.assign(shown=shown).pivot(index="k", columns="kind", values="shown")
    wide = wide.rename(columns={"exact": "MTS, exact", "multinomial": "MTS", "dirichlet": "Dirichlet"})
    order = [c for c in ("MTS, exact", "MTS", "Dirichlet", "systematic") if c in wide]
    return wide[order].reset_index().rename(columns={"k": "K"})


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
    """Mean squared error by K of one trace's three estimates, and of K traces; columns `chain`, `K` and estimates."""
    kinds = {
        "MNNS, mean over inputs": estimators.mnns_explained(MNNS().digits),
        "eight fixed tokens": estimators.explained(*chains.identity(V, 4)),
    }
    rows = []
    for chain, parts in kinds.items():
        for k in ks:
            found = estimators.read_outs(parts, k)
            entry = {"K tokens": found.tokens, "one token": found.token, "the law": found.law}
            entry["K independent traces"] = estimators.independent_error(parts, k)
            rows.append({"chain": chain, "K": k} | {name: float(x.mean()) for name, x in entry.items()})
    return pd.DataFrame(rows)


def read_outs(table: pd.DataFrame) -> Figure:
    """The errors of `read_out_errors`, a panel per chain."""
    looks = {
        "one token": (ORANGE, "s", "--"),
        "K tokens": (BLUE, "o", "-"),
        "the law": (GREEN, "D", "-."),
        "K independent traces": (GREY, None, ":"),
    }
    figure, axes = panels(1, 2, width=8.4, height=3.0, sharey=True)
    for axis, (chain, part) in zip(axes[0], table.groupby("chain", sort=False)):
        for name, (colour, marker, dash) in looks.items():
            axis.plot(part["K"], part[name], color=colour, marker=marker, linestyle=dash, markersize=4.5, label=name)
        axis.set(xlabel=f"tokens K ({chain}, m = 4)", yscale="log")
        axis.set_yticks([0.03, 0.1, 0.3, 1], ["0.03", "0.1", "0.3", "1"])
        axis.yaxis.set_minor_locator(NullLocator())
        _count_axis(axis, part["K"].tolist())
    axes[0, 0].set_ylabel("mean squared error")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    return figure


# Sample size


def size_table() -> pd.DataFrame:
    """The printed and the corrected numbers of traces on two tokens that never change, with exact failure odds."""
    rows = []
    for k, steps, delta in SIZES:
        variance = sample_size.largest_variance(k, steps, 0.5)
        entry = {"K": str(k), "m": str(steps), "$\\delta$": str(delta)}
        for name, size in (
            ("printed", sample_size.printed_size(EPSILON, delta, k)),
            ("Chebyshev", sample_size.chebyshev_size(EPSILON, delta, variance)),
            ("Bernstein", sample_size.bernstein_size(EPSILON, delta, variance)),
        ):
            entry |= {f"N, {name}": str(size), f"fails, {name}": sample_size.failure(EPSILON, size, k, steps)}
        rows.append(entry)
    return pd.DataFrame(rows)


def failures(ks: Sequence[int] = (16, 32, 64)) -> Figure:
    """Exact probability of missing epsilon by the number of steps, with the printed and the corrected N."""
    figure, axes = panels(1, len(ks), width=8.6, height=2.8, sharey=True)
    lengths = [round(10 ** (x / 5)) for x in range(2, 12)]
    for axis, k in zip(axes[0], ks):
        variances = [sample_size.largest_variance(k, m, 0.5) for m in lengths]
        printed = sample_size.printed_size(EPSILON, DELTA, k)
        sizes = [sample_size.chebyshev_size(EPSILON, DELTA, x) for x in variances]
        fails = [sample_size.failure(EPSILON, printed, k, m) for m in lengths]
        kept = [sample_size.failure(EPSILON, n, k, m) for n, m in zip(sizes, lengths)]
        axis.plot(lengths, fails, color=ORANGE, marker="s", linestyle="--", markersize=4.5, label="the paper's N")
        axis.plot(lengths, kept, color=BLUE, marker="o", markersize=4.5, label="corrected N (Chebyshev)")
        axis.axhline(DELTA, color="black", linewidth=1.0, linestyle=":", label=f"allowed, δ = {DELTA}")
        axis.set(xlabel=f"steps m (K = {k})", xscale="log")
        axis.set_xticks([3, 10, 30, 100], ["3", "10", "30", "100"])
        axis.xaxis.set_minor_locator(NullLocator())
    axes[0, 0].set_ylabel(f"P(error > {EPSILON})")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return figure


# Coverage


def coverages(ks: Sequence[int]) -> pd.DataFrame:
    """Share (%) of MNNS inputs whose answer K sampled paths hold: columns `K`, `kind`, `share`, `low`, `high`."""
    task, rows = MNNS(), []
    for k in ks:
        exact = 100 * coverage.independent_coverage(task, k)
        rows.append((k, "K independent traces", exact, exact, exact))
        for kind, sampler in (("MTS", "multinomial"), ("systematic", "systematic")):
            share = mean_interval(100 * coverage.coverage(task, k, sampler, REPEATS).numpy(), 0.0, 100.0)
            rows.append((k, kind, share.mean, share.low, share.high))
    return pd.DataFrame(rows, columns=["K", "kind", "share", "low", "high"])


def coverage_curves(table: pd.DataFrame) -> Figure:
    """Coverage by K; intervals are drawn and mostly narrower than the marks."""
    looks = {
        "systematic": (GREEN, "v", "--"),
        "K independent traces": (GREY, "^", ":"),
        "MTS": (BLUE, "o", "-"),
    }
    figure, axes = panels(1, 1, width=6.0, height=3.0)
    axis = axes[0, 0]
    for name, (colour, marker, dash) in looks.items():
        part = table[table["kind"] == name]
        axis.plot(part["K"], part["share"], color=colour, marker=marker, linestyle=dash, label=name)
        axis.vlines(part["K"], part["low"], part["high"], color=colour)
    axis.set(xlabel="tokens, or traces, K", ylabel="inputs covered (%)", ylim=(0, 104))
    _count_axis(axis, sorted(table["K"].unique()))
    axis.legend(loc="lower right", frameon=False)
    return figure


def coverage_table(table: pd.DataFrame) -> pd.DataFrame:
    """The numbers of `coverage_curves`."""
    half = (table["high"] - table["low"]) / 2
    shown = [f"{share:.1f} ± {h:.1f}" if h else f"{share:.1f}" for share, h in zip(table["share"], half)]
    wide = table.assign(shown=shown).pivot(index="K", columns="kind", values="shown")
    return wide[["K independent traces", "MTS", "systematic"]].reset_index()


# What holds


def checks(live: pd.DataFrame, sizes: pd.DataFrame, covered: pd.DataFrame) -> dict[str, bool]:
    """The chapter's claims on chains."""
    exact = live[live["kind"] == "exact"].set_index("k")["ratio"]
    near = lambda kind: all(
        math.isclose(row.ratio, exact[row.k], abs_tol=5 * row.error + 1e-9)
        for row in live[live["kind"] == kind].itertuples()
    )
    shares = covered.pivot(index="K", columns="kind", values="share")
    long = sizes["m"].astype(int) >= 100
    allowed = sizes["$\\delta$"].astype(float)
    most = float(estimators.ratio(estimators.mnns_explained(MNNS().digits), 10**9).max())
    return {
        "simulated MTS agrees with the exact ratio": near("multinomial"),
        "Dirichlet thoughts of concentration K - 1 do too": near("dirichlet"),
        "two tokens that never change break 2 - 1/K at K = 2, m = 3": estimators.mse_ratio(*chains.identity(2, 3), 2)
        > 1.5,
        "no four-digit input does, at any K": most < 2,
        "the printed N fails more often than allowed on every long chain": bool(
            (sizes["fails, printed"] > allowed)[long].all()
        ),
        "the corrected N never does": bool(
            (sizes[["fails, Chebyshev", "fails, Bernstein"]].max(axis=1) <= allowed).all()
        ),
        "MTS covers fewer answers than independent traces, systematic draws more, from K = 2 on": bool(
            (shares["MTS"] < shares["K independent traces"]).loc[2:].all()
            and (shares["systematic"] > shares["K independent traces"]).loc[2:].all()
        ),
    }
