"""Figures and tables of the chapter `sampling` on what one trace holds: its entropies, and other ways to feed it."""

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from cot2lib.study.analysis.other_thoughts import plain, sampled, varied
from cot2lib.study.claims.printed import paper_value
from cot2lib.study.figures.csft import entropy_table
from cot2lib.study.figures.style import BLUE, SKY, panels
from cot2lib.study.figures.words import describe_mean

MODEL_LOOKS = ((BLUE, "o", "-"), (SKY, "v", "--"))


def sharpened(table: pd.DataFrame) -> Figure:
    """Accuracy over temperature and over threshold of the thoughts, a line per kind of model, dots are seeds."""
    figure, axes = panels(1, 2, width=8.4, height=3.0, sharey=True)
    for (label, part), (colour, marker, dash) in zip(table.groupby("model", sort=False), MODEL_LOOKS):
        for axis, field in zip(axes[0], ("temperature", "threshold")):
            values = varied(part, field)
            axis.scatter(values[field], 100 * values["accuracy"], s=14, color=colour, marker=marker, alpha=0.5)
            mean = values.groupby(field)["accuracy"].mean()
            axis.plot(mean.index, 100 * mean, color=colour, linestyle=dash, label=label)
    for axis, field in zip(axes[0], ("temperature", "threshold")):
        axis.set(xlabel=f"{field} of the thoughts", ylim=(0, 102))
    axes[0, 0].set_ylabel("validation accuracy (%)")
    axes[0, 0].legend(loc="lower center", frameon=False)
    return figure


def sharpened_table(table: pd.DataFrame) -> pd.DataFrame:
    """The numbers of `sharpened`."""
    groups = table.groupby(["model", "temperature", "threshold"], sort=False)["accuracy"]
    return groups.agg(describe_mean).rename("accuracy (%)").reset_index()


def sampled_thoughts(table: pd.DataFrame) -> Figure:
    """Accuracy over K if thoughts are means of K sampled tokens, a line per model kind; level lines are base CoT2."""
    figure, axes = panels(1, 1, width=6.0, height=3.0)
    axis, ks = axes[0, 0], sorted(sampled(table)["k"].astype(int).unique())
    for (label, part), (colour, marker, dash) in zip(table.groupby("model", sort=False), MODEL_LOOKS):
        drawn = sampled(part)
        axis.scatter(drawn["k"], 100 * drawn["accuracy"], s=14, color=colour, marker=marker, alpha=0.5)
        mean = drawn.groupby("k")["accuracy"].mean()
        axis.plot(mean.index, 100 * mean, color=colour, linestyle=dash, marker=marker, label=label)
        axis.axhline(100 * plain(part)["accuracy"].mean(), color=colour, linestyle=dash, linewidth=0.8)
    axis.set_xscale("log", base=2)
    axis.set_xticks(ks, [str(k) for k in ks])
    axis.set(xlabel="tokens K sampled per thought", ylabel="validation accuracy (%)", ylim=(0, 102))
    axis.legend(loc="lower right", frameon=False)
    return figure


def sampled_table(table: pd.DataFrame) -> pd.DataFrame:
    """The numbers of `sampled_thoughts`."""
    rows = []
    for (model, k), part in table.groupby(["model", "k"], sort=False, dropna=False):
        thoughts = "base" if pd.isna(k) else f"MTS, K = {int(k)}"
        rows.append({"model": model, "thoughts": thoughts, "accuracy (%)": describe_mean(part["accuracy"])})
    return pd.DataFrame(rows)


def probe_table(finals: pd.DataFrame, exact: Float[np.ndarray, " step"]) -> pd.DataFrame:
    """Step entropies (nat) of the paper's probe, of t ln 2, of the exact targets and of each profile's models."""
    stated = {f"t = {t}": paper_value(f"entropy-{t}") for t in range(1, len(exact) + 1)}
    table = entropy_table(finals, exact)
    return pd.concat([pd.DataFrame([{"what": "the paper's probe", **stated}]), table], ignore_index=True)
