"""Figures and tables of the chapter `construction` on what the variants solve."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from cot2lib.study.analysis.solving import PRECISIONS, SOLVED
from cot2lib.study.figures.construction.circle import VARIANT_LOOKS
from cot2lib.study.figures.style import legend_above, panels
from cot2lib.theory.construction import VARIANTS

SCALES = {  # which variants read pairs of which length
    "pairs of length $2^{-n}$": ("biased", "as-written", "mirrored"),
    "pairs of length 1": ("repaired", "fused", "residual"),
}


def exact_match_by_sharpness(curves: pd.DataFrame) -> Figure:
    """Exact match against c, a panel per scale; lines are float64, markers float32."""
    figure, axes = panels(1, 2, width=8.4, height=3.2, sharey=True)
    for axis, (scale, names) in zip(axes[0], SCALES.items()):
        for name, width in zip(names, (4.5, 2.8, 1.4)):
            colour, marker, dash = VARIANT_LOOKS[name]
            own = curves[curves["variant"] == name].set_index("precision")
            double, single = own.loc["float64"], own.loc["float32"]
            axis.plot(double["c"], double[SOLVED], color=colour, linestyle=dash, linewidth=width)
            axis.scatter(single["c"], single[SOLVED], s=9 * width + 8, color=colour, marker=marker, zorder=3)
            axis.plot([], [], color=colour, linestyle=dash, marker=marker, label=name)
        axis.set(xscale="log", xlabel=f"sharpness c, {scale}", ylim=(0, 104))
        axis.legend(frameon=True, edgecolor="none", loc="center right" if "1$" not in scale else "lower right")
    axes[0, 0].set_ylabel("inputs solved (%)")
    return figure


def curve_table(curves: pd.DataFrame) -> pd.DataFrame:
    """The numbers of `exact_match_by_sharpness` at whole powers of ten."""
    chosen = curves[np.isclose(np.log10(curves["c"]) % 1, 0)]
    wide = chosen.pivot(index=["variant", "precision"], columns="c", values=SOLVED)
    wide.columns = [f"c = {c:.0e}" for c in wide.columns]
    return wide.loc[[(name, precision) for name in VARIANTS for precision in PRECISIONS]].reset_index()


# Sharpness and dimension


def smallest_by_length(table: pd.DataFrame) -> Figure:
    """Smallest c (points) and ln(2 d / w) / gap (lines) against the number of digits."""
    figure, axes = panels(1, 1, width=5.6, height=3.3)
    axis = axes[0, 0]
    for name, part in table.groupby("variant", sort=False):
        colour, marker, dash = VARIANT_LOOKS[name]
        axis.scatter(part["n"], part["smallest c"], s=36, color=colour, marker=marker, label=f"{name}, measured")
        axis.plot(
            part["n"], part["sufficient c"], color=colour, linestyle=dash, label=f"{name}, sufficient", linewidth=1.4
        )
    axis.set(yscale="log", xlabel="digits n", ylabel="sharpness c", xticks=sorted(table["n"].unique()))
    legend_above(figure, axis, 2)
    return figure


def dimension_curves(table: pd.DataFrame) -> Figure:
    """Both dimensions (`cot2lib.study.analysis.solving.dimensions`) against the number of digits."""
    figure, axes = panels(1, 1, width=5.2, height=3.0)
    axis = axes[0, 0]
    axis.plot(
        table["n"],
        table.iloc[:, 1],
        color=VARIANT_LOOKS["as-written"][0],
        linestyle="--",
        marker="s",
        label=table.columns[1],
    )
    axis.plot(table["n"], table.iloc[:, 2], color=VARIANT_LOOKS["biased"][0], marker="o", label=table.columns[2])
    axis.set(yscale="log", xlabel="digits n", ylabel="content dimension", xticks=table["n"].tolist())
    axis.legend(frameon=False)
    return figure


def tagged_window(table: pd.DataFrame) -> Figure:
    """Inputs solved against the c of the tagged vocabulary's softmax, a panel per length."""
    lengths = list(table["n"].unique())
    figure, axes = panels(1, len(lengths), width=4.2 * len(lengths), height=3.0, sharey=True)
    for axis, (length, part) in zip(axes[0], table.groupby("n")):
        for (precision, line), (colour, marker, dash) in zip(
            part.groupby("precision", sort=False), (VARIANT_LOOKS["biased"], VARIANT_LOOKS["as-written"])
        ):
            axis.plot(
                line["c"],
                line[SOLVED],
                color=colour,
                marker=marker,
                linestyle=dash,
                markersize=4,
                label=precision,
            )
        axis.set(xscale="log", xlabel=f"c of the vocabulary's softmax (n = {length})", ylim=(0, 103))
    axes[0, 0].set_ylabel("inputs solved (%)")
    legend_above(figure, axes[0, 0], 2)
    return figure
