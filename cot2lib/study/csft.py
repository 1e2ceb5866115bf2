"""Chapter `csft`: training on superpositions; its figures and tables, and the paper's numbers beside them."""

import numpy as np
import pandas as pd
from jaxtyping import Float
from torch import Tensor

from cot2lib.metrics import at_widest_gap
from cot2lib.study import frame, printed, show
from cot2lib.study.look import PAPER, Shown, panels
from cot2lib.study.printed import paper_value
from cot2lib.study.report import PERCENT, ends
from cot2lib.study.series import LOOKS
from cot2lib.tasks import MNNS

AT_ONE_DIMENSION = {  # the article does not say which COCONUT, nor which no-CoT, it ran; d = 32
    "COCONUT": "main-mnns-coconut",
    "COCONUT, zero slot": "main-mnns-coconut",
    "no-CoT": "main-mnns-nocot",
    "no-CoT, pauses": "main-mnns-nocot",
}
ONE_LAYER = {"CoT2": "passk-cot2", "discrete CoT": "passk-discrete-t0.0-k1"}  # d = 24
FEWEST, APART = 5, 20.0  # runs of a cell, and points between two groups of them, that a sentence tells


def stated(method: str, d_model: int) -> float | None:
    """The paper's accuracy (%) of a method on MNNS 4 x 1-9, two layers, where it gives one."""
    if method in AT_ONE_DIMENSION:
        return paper_value(AT_ONE_DIMENSION[method]) if d_model == 32 else None
    return printed.stated(f"budget-b{16 if method == 'CoT2' else 1}-d{d_model}")


def stated_one_layer(method: str, d_model: int) -> float | None:
    """The paper's accuracy (%) with one layer and one head, which its Pass@k experiment gives for d = 24."""
    return paper_value(ONE_LAYER[method]) if d_model == 24 and method in ONE_LAYER else None


def thoughts(task: MNNS, row: int, made: Float[Tensor, "step vocab"], wanted: Float[Tensor, "step vocab"]) -> Shown:
    """Step distributions of one trained model on the input `row`, above the targets it was trained on.

    The numbers are of sums in a target or above 1 % in the model.
    """
    reach = int(task.digits[row].sum()) + 1
    sums = np.arange(-reach, reach + 1)
    columns = [task.state_id(int(s)) for s in sums]
    figure, axes = panels(task.steps, 1, width=7.0, height=1.15, sharex=True)
    for step, axis in enumerate(axes[:, 0]):
        axis.bar(sums, 100 * made[step, columns].numpy(), width=0.8, color=LOOKS["method"]["CoT2"][0], label="model")
        aimed = wanted[step, columns].numpy()
        axis.scatter(sums[aimed > 0], 100 * aimed[aimed > 0], s=70, **PAPER, label="target")
        axis.set_ylabel(f"t = {step + 1} (%)")
    axes[0, 0].legend(loc="upper right", ncols=2, frameon=False)
    axes[-1, 0].set_xlabel(f"partial sum of {' '.join(f'±{d}' for d in task.digits[row].tolist())}")
    aimed = [f"{PERCENT * share:.1f}" for share in made.where(wanted > 0, 0.0).sum(-1).tolist()]
    finding = f"Of the model's thoughts {', '.join(aimed[:-1])} and {aimed[-1]} % lie on sums in the targets."
    steps, tokens = ((wanted > 0) | (made > 0.01)).nonzero().T
    shares = {name: 100 * part[steps, tokens].numpy() for name, part in (("model (%)", made), ("target (%)", wanted))}
    return Shown(figure, pd.DataFrame({"t": steps + 1, "sum": tokens - task.state_id(0), **shares}), finding)


def two_outcomes(rows: pd.DataFrame) -> list[str]:
    """One sentence per cell whose runs end in two groups far apart."""
    sentences = []
    for (recipe, method, d_model), cell in show.groups(rows, ["recipe", "method", "d_model"]):
        if len(cell) < FEWEST:
            continue
        low, high = at_widest_gap(cell["last"])
        if high.min() - low.max() >= APART:
            ending = lambda part: f"{'ends' if len(part) == 1 else 'end'} at {ends(part, 0)}"
            groups = [f"{len(part)} of {len(cell)} runs {ending(part)} %" for part in (high, low)]
            sentences.append(f"**{recipe}, {method}, d = {d_model}**: {groups[0]}, {groups[1]}.")
    return sentences


def cost(rows: pd.DataFrame) -> str:
    """The time that a run took on each kind of machine, beside the paper's three hours."""
    sentences = []
    on_cpu = rows["device"].str.startswith("cpu")
    for (recipe, cpu), runs in rows.groupby(["recipe", on_cpu], observed=True):
        minutes = 60 * frame.hours(runs).mean()
        unit, places = "core-minutes" if cpu else "GPU-minutes", ", ".join(sorted(set(runs["device"])))
        sentences.append(f"A run of the {recipe} took {minutes:.1f} {unit} on average ({places}).")
    return " ".join(sentences) + f" The paper states about {paper_value('train-cost'):g} hours a run on one L40S GPU."
