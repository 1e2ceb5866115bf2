"""Figures of the chapter `tasks`: trajectories, budgets and exact targets of MNNS."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Int
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from cot2lib.errors import SpecError
from cot2lib.specs.profiles import METHODS, spec
from cot2lib.study.analysis.targets import kept_name
from cot2lib.study.analysis.trees import kept_trajectories, one_input
from cot2lib.study.figures.style import BLUE, ORANGE, panels
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import MNNS


def trajectories(digits: Sequence[int], budgets: Sequence[int], ties: str = "minus-first") -> Figure:
    """All signed sums of an input as a tree, one panel per budget.

    Lines: kept trajectories blue, the others grey. Discs: targets alpha*_t, area proportional to the share; the last
    step's target is the answer alone. Raises SpecError for digits, budgets or ties that cannot be drawn.
    """
    if not budgets:
        raise SpecError("budgets=[]: give at least one budget to draw.")
    task = one_input(digits)
    figure, axes = panels(1, len(budgets), width=2.9 * len(budgets), height=3.1, sharey=True)
    for axis, budget in zip(axes[0], budgets):
        _tree(axis, task, budget, ties)
    axes[0, 0].set_ylabel("partial sum")
    return figure


def _tree(axis: Axes, task: MNNS, budget: int, ties: str) -> None:
    for kept, style in (
        (task.trajectories, dict(color="#cccccc", linewidth=1.2, zorder=1)),
        (budget, dict(color=BLUE, linewidth=1.8, zorder=2)),
    ):
        axis.add_collection(LineCollection(_branches(kept_trajectories(task, kept, ties)), **style))
    targets = hindsight_targets(task, budget, ties)[0]
    axis.scatter([0], [0], s=30, color="black", zorder=3)
    for step, distribution in enumerate(targets.numpy(), start=1):
        tokens = distribution.nonzero()[0]
        share = distribution[tokens]
        colour = ORANGE if step == task.length else BLUE
        axis.scatter(
            np.full(len(tokens), step), tokens - task.state_id(0), s=260 * share, color=colour, edgecolors="white",
            zorder=4,
        )  # fmt: skip
    axis.set_xticks(range(task.length + 1), ["start", *(f"±{d}" for d in task.digits[0].tolist())])
    axis.set(xlabel=f"budget B = {budget}", xlim=(-0.2, task.length + 0.25))
    axis.autoscale_view(scalex=False)


def _branches(paths: Int[np.ndarray, "path place"]) -> Int[np.ndarray, "branch end 2"]:
    """Every branch of a tree of paths once, as (branch, end, step and sum)."""
    steps = [np.unique(paths[:, step : step + 2], axis=0) for step in range(paths.shape[1] - 1)]
    at = lambda step, sums: np.stack([np.broadcast_to([step, step + 1], sums.shape), sums], axis=-1)
    return np.concatenate([at(step, sums) for step, sums in enumerate(steps)])


def target_heatmap(task: MNNS, row: int, budgets: Sequence[int]) -> Figure:
    """Exact targets of one long input, a panel per budget: share of the kept trajectories at each sum."""
    figure, axes = panels(1, len(budgets), width=3.1 * len(budgets), height=3.2, sharey=True)
    first = task.state_id(-task.bound)
    for axis, budget in zip(axes[0], budgets):
        targets = hindsight_targets(task, budget, "shared", slice(row, row + 1))[0]
        shares = targets[:, first : first + task.states].T.numpy()
        image = axis.pcolormesh(
            np.arange(1, task.length + 1), np.arange(-task.bound, task.bound + 1), np.sqrt(shares), cmap="cividis"
        )
        reach = int(task.digits[row].sum()) * 2 // 3
        axis.set(xlabel="step", ylim=(-reach, reach))
        axis.grid(False)
        axis.text(0.04, 0.95, kept_name(task, budget), transform=axis.transAxes, color="white", va="top")
    axes[0, 0].set_ylabel("partial sum")
    figure.colorbar(image, ax=axes[0, -1], label="square root of the share")
    return figure


def answers(shares: pd.DataFrame) -> Figure:
    """How often each sum is the answer (`cot2lib.study.analysis.guessing.answer_shares`)."""
    figure, axes = panels(1, 1, width=5.2, height=2.6)
    axis = axes[0, 0]
    axis.bar(shares["answer"], shares["inputs (%)"], color=BLUE)
    axis.set(xlabel="answer", ylabel="share of inputs (%)", xticks=shares["answer"])
    return figure


def formats(task: MNNS, profile: str) -> list[str]:
    """One line per method: what it reads and writes for the task's first input, and what it is scored on."""
    tokens, told = task.tokens, []
    for method in METHODS:
        run = spec(method, profile, task=task)
        shown = run.supervision
        prompt = [tokens[i] for i in task.prompt(shown.arrow, shown.pauses)[0].tolist()]
        outputs = ["S?"] * run.outputs + ["<EOS>"] * shown.eos
        told.append(f"{method}: `{' '.join(prompt)}` then `{' '.join(outputs)}`, loss on the {shown.loss_on}")
    return told
