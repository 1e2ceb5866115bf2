"""Figures and tables of the chapter `sample_complexity` on chains whose laws are known."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from cot2lib.study.analysis.estimates import CHAINS, DELTA, EPSILON
from cot2lib.study.figures.style import BLUE, GREEN, GREY, ORANGE, panels
from cot2lib.theory import estimators, sample_size

CHAIN_LOOKS = {  # colour, marker, line style
    "identity": ("#D55E00", "s", "--"),
    "lazy 0.1": ("#E69F00", "^", "-."),
    "lazy 0.3": ("#B08D00", "v", ":"),
    "MNNS": ("#0072B2", "o", "-"),
    "random rows": ("#56B4E9", "D", ":"),
    "sharp rows": ("#CC79A7", "d", (0, (5, 1, 1, 1))),
}


# The ratio


def ratios(ks: Sequence[int], steps: int) -> Figure:
    """The exact ratio over the number of steps at the largest K, and over K at the largest number of steps."""
    figure, axes = panels(1, 2, width=8.4, height=3.2, sharey=True)
    k, lengths = max(ks), list(range(1, steps + 1))
    for name, make in CHAINS.items():
        colour, marker, dash = CHAIN_LOOKS[name]
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


# What is read at the last step


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
