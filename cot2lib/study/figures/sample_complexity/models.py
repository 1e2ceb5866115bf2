"""Figures and tables of the chapter `sample_complexity` on trained models: how far they are from Assumption 1."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from cot2lib.metrics import mean_interval
from cot2lib.study.analysis.probes import KIND
from cot2lib.study.figures.style import BLUE, BROWN, GREEN, ORANGE, SKY, YELLOW, panels

SHAPE_LOOKS = {  # of one method, in the order of the models
    "CoT2": ((BLUE, "o", "-"), (SKY, "v", "--"), (GREEN, "D", "-.")),
    "discrete CoT": ((ORANGE, "s", "-"), (YELLOW, "^", "--"), (BROWN, "P", "-.")),
}
ANSWERS = {"base": "last step as it is", "linear": "last step made linear"}
STEP_COLOURS = (SKY, YELLOW, BLUE, GREEN)


def linearity(table: pd.DataFrame) -> Figure:
    """Distance from linearity by step, a panel per method: dots are seeds; grey, the laws of other inputs."""
    figure, axes = panels(1, 2, width=8.4, height=3.1, sharey=True)
    for axis, (method, looks) in zip(axes[0], SHAPE_LOOKS.items()):
        here = table[table["method"] == method]
        shapes = here.groupby(["layers", "d_model"], sort=False)
        for ((layers, d), part), (colour, marker, dash), aside in zip(shapes, looks, (-0.07, 0.0, 0.07)):
            mean = part.groupby("step")["linear"].mean()
            axis.scatter(part["step"] + aside, part["linear"], s=14, color=colour, marker=marker, alpha=0.5)
            look = dict(color=colour, marker=marker, linestyle=dash)
            axis.plot(mean.index + aside, mean, label=shape_name(layers, d), **look)
        reference = here.groupby("step")["reference"].mean()
        axis.plot(reference.index, reference, color="#7A7A7A", linewidth=1.2, linestyle=":", label="other inputs")
        steps = reference.index.tolist()
        axis.set_xticks(steps, [f"{t} to {t + 1}" for t in steps])
        axis.set(xlabel=f"step ({method})", ylim=(-0.02, 1.28), xlim=(steps[0] - 0.25, steps[-1] + 0.25))
        axis.legend(loc="upper center", ncols=2, frameon=False, fontsize=8.5)
    axes[0, 0].set_ylabel("distance from linear (TV)")
    return figure


def shape_name(layers: int, d_model: int) -> str:
    """How figures call a shape of models."""
    return f"{layers} layer{'s' * (layers > 1)}, d = {d_model}"


def model_name(method: str, layers: int, d_model: int) -> str:
    """How figures call models of a method and shape."""
    return f"{method}, {shape_name(layers, d_model)}"


def distance_table(table: pd.DataFrame) -> pd.DataFrame:
    """Distances from Assumption 1, mean over seeds with 95 % t-interval."""
    names = {
        "linear": "linear, own weights",
        "linear_random": "linear, random weights",
        "markov_other": "Markov, other's thoughts",
        "markov_mean": "Markov, mean thoughts",
        "reference": "other inputs",
    }
    rows = []
    for (*kind, step), part in table.groupby([*KIND, "step"], sort=False):
        cells = {shown: _shown(part[column], 3) for column, shown in names.items()}
        rows.append({"model": model_name(*kind), "step": f"{step} to {step + 1}", **cells})
    return pd.DataFrame(rows)


def answer_table(table: pd.DataFrame) -> pd.DataFrame:
    """Accuracy (%) with the last step as it is and made linear, mean over seeds with 95 % t-interval."""
    rows = []
    for kind, part in table.groupby(KIND, sort=False):
        cells = {f"{column} (%)": _shown(100 * part[name], 1) for name, column in ANSWERS.items()}
        rows.append({"model": model_name(*kind), **cells})
    return pd.DataFrame(rows)


def gap_curves(table: pd.DataFrame) -> Figure:
    """Squared bias of sampled thoughts by K, a panel per model, a line per step; dotted: slopes of 1/K^2."""
    kinds = table.groupby(KIND, sort=False)
    figure, axes = panels(1, len(kinds), width=8.4, height=3.1, sharey=True)
    for axis, (kind, part) in zip(axes[0], kinds):
        ks = sorted(part["k"].unique())
        for (step, steps), colour, marker in zip(part.groupby("step"), STEP_COLOURS, "ovsD"):
            mean = steps.groupby("k")["gap"].mean()
            shown = steps[steps["gap"] > 0]
            axis.scatter(shown["k"], shown["gap"], s=12, color=colour, marker=marker, alpha=0.45)
            axis.plot(mean[mean > 0], color=colour, marker=marker, markersize=4.5, label=f"law of step {step}")
        first = part[(part["step"] == part["step"].min()) & (part["k"] == ks[0])]["gap"].mean()
        axis.plot(
            ks, [first * (ks[0] / k) ** 2 for k in ks], color="#7A7A7A", linewidth=1, linestyle=":", label="1/K²"
        )
        axis.set(xscale="log", yscale="log", xlabel=f"tokens K ({model_name(*kind)})", ylim=(1e-6, 3))
        axis.set_xticks(ks, [str(k) for k in ks])
        axis.xaxis.set_minor_locator(NullLocator())
    axes[0, 0].set_ylabel("squared bias")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False)
    return figure


def gap_table(table: pd.DataFrame) -> pd.DataFrame:
    """The numbers of `gap_curves`, means over seeds, with the mean probability of the right answer."""
    rows = []
    for (*kind, k), part in table.groupby([*KIND, "k"], sort=False):
        steps = {f"bias, step {step}": f"{gap:.5f}" for step, gap in part.groupby("step")["gap"].mean().items()}
        rows.append(
            {"model": model_name(*kind), "K": str(k), **steps, "P(right answer)": f"{part['right'].mean():.3f}"}
        )
    return pd.DataFrame(rows)


def model_findings(table: pd.DataFrame, right: pd.DataFrame) -> list[str]:
    """One sentence per group of CoT2 models: how far its last step is from linear, and what that is worth."""
    sentences = []
    answered = dict(list(right.groupby(KIND)))
    for kind, part in table[table["method"] == "CoT2"].groupby(KIND, sort=False):
        last, share = part[part["step"] == part["step"].max()], answered[kind]
        sentences.append(
            f"**{model_name(*kind)}**: the last step is {_shown(last['linear'], 2)} from linear, where the laws of "
            f"other inputs are {last['reference'].mean():.2f} away; made linear, it would be right on "
            f"{_shown(100 * share['linear'], 1)} % instead of {_shown(100 * share['base'], 1)} %. Other earlier "
            f"thoughts move a law by {part.groupby('step')['markov_other'].mean().max():.3f} on average, at the step "
            "where they do most."
        )
    return sentences


def _shown(values: pd.Series, digits: int) -> str:
    if values.isna().any():
        return ""
    interval = mean_interval(values)
    return (
        f"{interval.mean:.{digits}f} ± {interval.half_width:.{digits}f}"
        if interval.n > 1
        else f"{interval.mean:.{digits}f}"
    )
