"""Figures and tables of the chapter `sample_complexity` on trained models: how far they are from Assumption 1."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from cot2lib.metrics import mean_interval
from cot2lib.model import GPT2Stack
from cot2lib.specs import RunSpec
from cot2lib.study.analysis import probes
from cot2lib.study.analysis.probes import Probed
from cot2lib.study.figures.style import panels

LOOKS = {
    "CoT2": (("#0072B2", "o", "-"), ("#56B4E9", "v", "--"), ("#009E73", "D", "-.")),
    "discrete CoT": (("#D55E00", "s", "-"), ("#E69F00", "^", "--"), ("#B08D00", "P", "-.")),
}
STEPS = ("#56B4E9", "#E69F00", "#0072B2", "#009E73")


def own_thoughts(stacks: Mapping[str, tuple[GPT2Stack, Sequence[RunSpec]]], inputs: int) -> dict[str, Probed]:
    """What each group of models thinks on some of its validation inputs."""
    return {label: probes.probed(stack, specs, inputs) for label, (stack, specs) in stacks.items()}


def distances(own: Mapping[str, Probed]) -> pd.DataFrame:
    """`probes.linearity` of every group, with its `model`."""
    return pd.concat([probes.linearity(one).assign(model=label) for label, one in own.items()], ignore_index=True)


def answers(own: Mapping[str, Probed]) -> pd.DataFrame:
    """`probes.linear_answers` of every group, with its `model`."""
    return pd.concat([probes.linear_answers(one).assign(model=label) for label, one in own.items()], ignore_index=True)


def linearity(table: pd.DataFrame) -> Figure:
    """Distance from linearity by step, a panel per method: dots are seeds; grey, the laws of other inputs."""
    figure, axes = panels(1, 2, width=8.4, height=3.1, sharey=True)
    for axis, (method, looks) in zip(axes[0], LOOKS.items()):
        groups = table[table["model"].str.startswith(method)].groupby("model", sort=False)
        for (label, part), (colour, marker, dash), aside in zip(groups, looks, (-0.07, 0.0, 0.07)):
            mean = part.groupby("step")["linear"].mean()
            axis.scatter(part["step"] + aside, part["linear"], s=14, color=colour, marker=marker, alpha=0.5)
            axis.plot(
                mean.index + aside, mean, color=colour, marker=marker, linestyle=dash, label=label.split(", ", 1)[1]
            )
        reference = table[table["model"].str.startswith(method)].groupby("step")["reference"].mean()
        axis.plot(reference.index, reference, color="#7A7A7A", linewidth=1.2, linestyle=":", label="other inputs")
        steps = reference.index.tolist()
        axis.set_xticks(steps, [f"{t} to {t + 1}" for t in steps])
        axis.set(xlabel=f"step ({method})", ylim=(-0.02, 1.28), xlim=(steps[0] - 0.25, steps[-1] + 0.25))
        axis.legend(loc="upper center", ncols=2, frameon=False, fontsize=8.5)
    axes[0, 0].set_ylabel("distance from linear (TV)")
    return figure


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
    for (model, step), part in table.groupby(["model", "step"], sort=False):
        cells = {shown: _shown(part[column], 3) for column, shown in names.items()}
        rows.append({"model": model, "step": f"{step} to {step + 1}", **cells})
    return pd.DataFrame(rows)


def answer_table(table: pd.DataFrame) -> pd.DataFrame:
    """Accuracy (%) with the last step as it is and made linear, mean over seeds with 95 % t-interval."""
    rows = []
    for model, part in table.groupby("model", sort=False):
        cells = {f"{column} (%)": _shown(100 * part[name], 1) for name, column in _ANSWERS.items()}
        rows.append({"model": model, **cells})
    return pd.DataFrame(rows)


_ANSWERS = {"base": "last step as it is", "linear": "last step made linear"}


def _shown(values: pd.Series, digits: int) -> str:
    if values.isna().any():
        return ""
    interval = mean_interval(values)
    return (
        f"{interval.mean:.{digits}f} ± {interval.half_width:.{digits}f}"
        if interval.n > 1
        else f"{interval.mean:.{digits}f}"
    )


def gaps(own: Mapping[str, Probed], ks: Sequence[int], rollouts: int) -> pd.DataFrame:
    """`probes.consistency` of every group, with its `model`."""
    parts = [probes.consistency(one, ks, rollouts).assign(model=label) for label, one in own.items()]
    return pd.concat(parts, ignore_index=True)


def gap_curves(table: pd.DataFrame) -> Figure:
    """Squared bias of sampled thoughts by K, a panel per model, a line per step; dotted: slopes of 1/K^2."""
    models = list(table["model"].unique())
    figure, axes = panels(1, len(models), width=8.4, height=3.1, sharey=True)
    for axis, model in zip(axes[0], models):
        part = table[table["model"] == model]
        ks = sorted(part["k"].unique())
        for (step, steps), colour, marker in zip(part.groupby("step"), STEPS, "ovsD"):
            mean = steps.groupby("k")["gap"].mean()
            shown = steps[steps["gap"] > 0]
            axis.scatter(shown["k"], shown["gap"], s=12, color=colour, marker=marker, alpha=0.45)
            axis.plot(mean[mean > 0], color=colour, marker=marker, markersize=4.5, label=f"law of step {step}")
        first = part[(part["step"] == part["step"].min()) & (part["k"] == ks[0])]["gap"].mean()
        axis.plot(
            ks, [first * (ks[0] / k) ** 2 for k in ks], color="#7A7A7A", linewidth=1, linestyle=":", label="1/K²"
        )
        axis.set(xscale="log", yscale="log", xlabel=f"tokens K ({model})", ylim=(1e-6, 3))
        axis.set_xticks(ks, [str(k) for k in ks])
        axis.xaxis.set_minor_locator(NullLocator())
    axes[0, 0].set_ylabel("squared bias")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False)
    return figure


def gap_table(table: pd.DataFrame) -> pd.DataFrame:
    """The numbers of `gap_curves`, means over seeds, with the mean probability of the right answer."""
    rows = []
    for (model, k), part in table.groupby(["model", "k"], sort=False):
        steps = {f"bias, step {step}": f"{gap:.5f}" for step, gap in part.groupby("step")["gap"].mean().items()}
        rows.append({"model": model, "K": str(k), **steps, "P(right answer)": f"{part['right'].mean():.3f}"})
    return pd.DataFrame(rows)


def findings(table: pd.DataFrame, right: pd.DataFrame) -> list[str]:
    """One sentence per group of CoT2 models: how far its last step is from linear, and what that is worth."""
    sentences = []
    for model, part in table[table["model"].str.startswith("CoT2")].groupby("model", sort=False):
        last = part[part["step"] == part["step"].max()]
        share = right[right["model"] == model]
        sentences.append(
            f"**{model}**: the last step is {_shown(last['linear'], 2)} from linear, where the laws of other inputs "
            f"are {last['reference'].mean():.2f} away; made linear, it would be right on "
            f"{_shown(100 * share['linear'], 1)} % instead of {_shown(100 * share['base'], 1)} %. Other earlier "
            f"thoughts move a law by {part.groupby('step')['markov_other'].mean().max():.3f} on average, at the step "
            "where they do most."
        )
    return sentences


def checks(table: pd.DataFrame, right: pd.DataFrame, bias: pd.DataFrame) -> dict[str, bool]:
    """The chapter's claims on trained models."""
    cot2 = table[table["model"].str.startswith("CoT2")]
    mean = cot2.groupby(["model", "step"])["linear"].mean().unstack()
    markov = table[["markov_other", "markov_mean"]].max(axis=1).groupby([table["model"], table["step"]]).median()
    share = right[right["model"].str.startswith("CoT2")].groupby("model")[["base", "linear"]].mean()
    by_k = bias.groupby(["model", "step", "k"])["gap"].mean().unstack()
    return {
        "every CoT2 model is furthest from linear at the answer": bool(
            (mean.idxmax(axis=1) == mean.columns[-1]).all()
        ),
        "and that step made linear loses 20 points": bool((share["base"] - share["linear"] > 0.2).all()),
        "laws hardly depend on earlier thoughts, in the median over seeds": bool(markov.max() < 0.15),
        "sampled thoughts are biased, less so for more tokens": bool((by_k.iloc[:, -1] < by_k.iloc[:, 0]).all()),
    }
