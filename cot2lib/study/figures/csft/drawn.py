"""Figures of the chapter `csft`: learning curves, final accuracies, entropies and one model's thoughts."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from cot2lib.study.claims.printed import claims, paper_value
from cot2lib.study.figures.curves import accuracy_at_end, accuracy_over_epochs, unique
from cot2lib.study.figures.style import FED, METHOD, PAPER, SKY, panels
from cot2lib.study.report import recipe
from cot2lib.tasks import MNNS

COT2 = METHOD.known["CoT2"]
ENTROPY_LOOKS = {"paper": COT2, "quick": (SKY, "v", "--")}
AT_ONE_DIMENSION = {  # the article does not say which COCONUT, nor which no-CoT, it ran; d = 32
    "COCONUT": "main-mnns-coconut",
    "COCONUT, zero slot": "main-mnns-coconut",
    "no-CoT": "main-mnns-nocot",
    "no-CoT, pauses": "main-mnns-nocot",
}
ONE_LAYER = {"CoT2": "passk-cot2", "discrete CoT": "passk-discrete-t0.0-k1"}  # d = 24


def paper_accuracy(method: str, d_model: int) -> float | None:
    """The paper's accuracy (%) of a method on MNNS 4 x 1-9, 2 layers, where it gives one."""
    if method in AT_ONE_DIMENSION:
        return paper_value(AT_ONE_DIMENSION[method]) if d_model == 32 else None
    claim = f"budget-b{16 if method == 'CoT2' else 1}-d{d_model}"
    return paper_value(claim) if claim in claims().index else None


def paper_accuracy_one_layer(method: str, d_model: int) -> float | None:
    """The paper's accuracy (%) with one layer and one head, which its Pass@k experiment gives for d = 24."""
    return paper_value(ONE_LAYER[method]) if d_model == 24 and method in ONE_LAYER else None


def learning_curves(curves: pd.DataFrame) -> Figure:
    """Validation accuracy of the methods over epochs, 2 layers: a row per profile, a column per dimension."""
    return accuracy_over_epochs(curves, METHOD, "d_model", "d = {}", paper_accuracy)


def final_accuracies(rows: pd.DataFrame) -> Figure:
    """Last-epoch accuracy of the methods by dimension, 2 layers, a panel per profile."""
    return accuracy_at_end(rows, METHOD, "d_model", "d = {}", paper_accuracy)


def one_layer_curves(curves: pd.DataFrame) -> Figure:
    """The same learning curves with one layer and one head."""
    return accuracy_over_epochs(curves, METHOD, "d_model", "d = {}", paper_accuracy_one_layer)


def feeding_curves(curves: pd.DataFrame) -> Figure:
    """CoT2 fed the targets, its own thoughts, or first one and then the other: 4 layers, a column per dimension."""
    return accuracy_over_epochs(curves, FED, "d_model", "d = {}")


def entropies(finals: pd.DataFrame, exact: Float[np.ndarray, " step"], stated: Sequence[float] = ()) -> Figure:
    """Entropy of a CoT2 model's step-t distribution against what its targets hold.

    Args:
        finals: last evaluation of each CoT2 run, with a column `profile`.
        exact: entropy (nat) of the targets of each step, which count coinciding sums once; grey bars. Dotted lines are
            t ln 2, which does not.
        stated: the paper's entropies, step by step.
    """
    steps, profiles = range(1, len(exact) + 1), unique(finals["profile"])
    figure, axes = panels(1, 1, width=6.4, height=3.2)
    axis = axes[0, 0]
    axis.bar(steps, exact, width=0.8, color="#d9d9d9", label="exact target")
    thoughts = np.arange(1, len(exact))
    axis.hlines(thoughts * np.log(2), thoughts - 0.4, thoughts + 0.4, color="black", linestyle=":", linewidth=1.4,
                label="t ln 2")  # fmt: skip
    for shift, profile in zip(np.linspace(-0.18, 0.18, len(profiles)), profiles):
        colour, marker, _ = ENTROPY_LOOKS[profile]
        for step in steps:
            values = finals.loc[finals["profile"] == profile, f"entropy_{step}"]
            axis.scatter(step + shift + np.linspace(-0.07, 0.07, len(values)), values, s=22, marker=marker, alpha=0.7,
                         color=colour, label=f"CoT2, {recipe(profile)}" if step == 1 else None)  # fmt: skip
    if stated:
        axis.scatter(steps, stated, s=420, label="paper", **PAPER)
    axis.set(xlabel="step t", ylabel="entropy (nat)", xticks=list(steps))
    axis.legend(loc="upper left", frameon=False)
    return figure


def thoughts(task: MNNS, row: int, made: Float[Tensor, "step vocab"], wanted: Float[Tensor, "step vocab"]) -> Figure:
    """Step distributions of one trained model on the input `row`, above the targets it was trained on."""
    reach = int(task.digits[row].sum()) + 1
    sums = np.arange(-reach, reach + 1)
    columns = [task.state_id(int(s)) for s in sums]
    figure, axes = panels(task.steps, 1, width=7.0, height=1.15, sharex=True)
    for step, axis in enumerate(axes[:, 0]):
        axis.bar(sums, 100 * made[step, columns], width=0.8, color=COT2[0], label="model")
        aimed = wanted[step, columns].numpy()
        axis.scatter(sums[aimed > 0], 100 * aimed[aimed > 0], s=70, **PAPER, label="target")
        axis.set_ylabel(f"t = {step + 1} (%)")
    axes[0, 0].legend(loc="upper right", ncols=2, frameon=False)
    axes[-1, 0].set_xlabel(f"partial sum of {' '.join(f'±{d}' for d in task.digits[row].tolist())}")
    return figure


def thought_table(task: MNNS, made: Float[Tensor, "step vocab"], wanted: Float[Tensor, "step vocab"]) -> pd.DataFrame:
    """The numbers of `thoughts`, for sums in a target or above 1 % in the model."""
    shown = ((wanted > 0) | (made > 0.01)).nonzero().tolist()
    return pd.DataFrame(
        [
            {"t": step + 1, "sum": token - task.state_id(0), "model (%)": 100 * float(made[step, token]),
             "target (%)": 100 * float(wanted[step, token])}
            for step, token in shown
        ]
    )  # fmt: skip
