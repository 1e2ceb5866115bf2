"""Figures of the chapter `csft`: learning curves, final accuracies, entropies and one model's thoughts."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from cot2lib.decode import decode, rules
from cot2lib.model import GPT2Stack
from cot2lib.specs import RunSpec
from cot2lib.study.claims.printed import claims, paper_value
from cot2lib.study.figures import curves as drawn
from cot2lib.study.figures.style import COLOURS, MARKERS, PAPER, panels
from cot2lib.study.report import recipe
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import MNNS


def paper_accuracy(method: str, d_model: int) -> float | None:
    """The paper's accuracy (%) of a method on MNNS 4 x 1-9, 2 layers, where it gives one.

    Its no-CoT number stands beside both encodings and its COCONUT number beside both variants: it does not say which
    was meant.
    """
    family = method.partition(",")[0]
    if family in ("no-CoT", "COCONUT"):
        return paper_value(f"main-mnns-{family.lower().replace('-', '')}") if d_model == 32 else None
    claim = f"budget-b{16 if method == 'CoT2' else 1}-d{d_model}"
    return paper_value(claim) if claim in claims().index else None


def paper_accuracy_one_layer(method: str, d_model: int) -> float | None:
    """The paper's accuracy (%) with one layer and one head, which it gives at d = 24 alone."""
    return paper_value({"CoT2": "passk-cot2"}.get(method, "passk-discrete-t0.0-k1")) if d_model == 24 else None


def learning_curves(curves: pd.DataFrame) -> Figure:
    """Validation accuracy of the methods over epochs, 2 layers: a row per profile, a column per dimension."""
    return drawn.learning_curves(curves, "method", "d_model", "d = {}", paper_accuracy)


def final_accuracies(rows: pd.DataFrame) -> Figure:
    """Last-epoch accuracy of the methods by dimension, 2 layers, a panel per profile."""
    return drawn.final_accuracies(rows, "method", "d_model", "d = {}", paper_accuracy)


def one_layer_curves(curves: pd.DataFrame) -> Figure:
    """The same learning curves with one layer and one head."""
    return drawn.learning_curves(curves, "method", "d_model", "d = {}", paper_accuracy_one_layer)


def feeding_curves(curves: pd.DataFrame) -> Figure:
    """CoT2 fed the targets, its own thoughts, or first one and then the other: 4 layers, a column per dimension."""
    return drawn.learning_curves(curves, "fed", "d_model", "d = {}")


def target_entropies(spec: RunSpec) -> np.ndarray:
    """Exact mean entropy (nat) of the targets of each step over the run's validation inputs."""
    held_out = ~spec.task.split(spec.seed)
    targets = hindsight_targets(spec.task, spec.supervision.budget, spec.supervision.ties)[held_out]
    return torch.special.entr(targets).sum(-1).mean(0).numpy()


def entropies(finals: pd.DataFrame, specs: Sequence[RunSpec], stated: Sequence[float] = ()) -> Figure:
    """Entropy of a CoT2 model's step-t distribution against what its targets hold.

    `finals`: last evaluation of each CoT2 run with a column `profile`. Grey bars are the exact targets, which count
    coinciding sums once; dotted lines are t ln 2, which does not. `stated`: the paper's entropies, step by step.
    """
    steps = range(1, specs[0].task.steps + 1)
    exact = np.mean([target_entropies(spec) for spec in specs], axis=0)
    profiles = list(dict.fromkeys(finals["profile"]))
    figure, axes = panels(1, 1, width=6.4, height=3.2)
    axis = axes[0, 0]
    for step in steps:
        axis.bar(step, exact[step - 1], width=0.8, color="#d9d9d9", label="exact target" if step == 1 else None)
        if step < len(steps):
            axis.hlines(step * np.log(2), step - 0.4, step + 0.4, color="black", linestyle=":", linewidth=1.4,
                        label="t ln 2" if step == 1 else None)  # fmt: skip
        for shift, profile in zip(np.linspace(-0.18, 0.18, len(profiles)), profiles):
            values = finals.loc[finals["profile"] == profile, f"entropy_{step}"]
            offsets = np.linspace(-0.07, 0.07, len(values))
            marker = MARKERS["CoT2"] if profile == "paper" else "v"
            axis.scatter(step + shift + offsets, values, s=22, marker=marker, alpha=0.7,
                         color=COLOURS["CoT2"] if profile == "paper" else "#56B4E9",
                         label=f"CoT2, {recipe(profile)}" if step == 1 else None)  # fmt: skip
    if stated:
        axis.scatter(steps, stated, s=420, label="paper", **PAPER)
    axis.set(xlabel="step t", ylabel="entropy (nat)", xticks=list(steps))
    axis.legend(loc="upper left", frameon=False)
    return figure


def thoughts(stack: GPT2Stack, spec: RunSpec, row: int) -> Figure:
    """Self-fed step distributions of one trained model on one input, above the targets it was trained on."""
    task: MNNS = spec.task
    made, wanted = made_and_wanted(stack, spec, row)
    reach = int(task.digits[row].sum()) + 1
    sums = np.arange(-reach, reach + 1)
    figure, axes = panels(task.steps, 1, width=7.0, height=1.15, sharex=True)
    for step, axis in enumerate(axes[:, 0]):
        columns = [task.state_id(int(s)) for s in sums]
        axis.bar(sums, 100 * made[step, columns], width=0.8, color=COLOURS["CoT2"], label="model")
        aimed = wanted[step, columns].numpy()
        axis.scatter(sums[aimed > 0], 100 * aimed[aimed > 0], s=70, **PAPER, label="target")
        axis.set_ylabel(f"t = {step + 1} (%)")
    axes[0, 0].legend(loc="upper right", ncols=2, frameon=False)
    axes[-1, 0].set_xlabel(f"partial sum of {' '.join(f'±{d}' for d in task.digits[row].tolist())}")
    return figure


def made_and_wanted(stack: GPT2Stack, spec: RunSpec, row: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Self-fed step distributions on one input, and the targets, each (step, vocab)."""
    task = spec.task
    prompt = task.prompt(spec.supervision.arrow)[None, row : row + 1]
    with torch.no_grad():
        rollout = decode(stack, prompt, rules(spec.thought, task.steps))
    wanted = hindsight_targets(task, spec.supervision.budget, spec.supervision.ties, slice(row, row + 1))[0]
    return rollout.logits[0, 0].softmax(-1), wanted


def thought_table(stack: GPT2Stack, spec: RunSpec, row: int) -> pd.DataFrame:
    """The numbers of `thoughts`, for sums in a target or above 1 % in the model."""
    made, wanted = made_and_wanted(stack, spec, row)
    shown = ((wanted > 0) | (made > 0.01)).nonzero().tolist()
    return pd.DataFrame(
        [
            {"t": step + 1, "sum": token - spec.task.state_id(0), "model (%)": 100 * float(made[step, token]),
             "target (%)": 100 * float(wanted[step, token])}
            for step, token in shown
        ]
    )  # fmt: skip
