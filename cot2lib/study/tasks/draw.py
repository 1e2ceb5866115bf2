"""Figures of the chapter `tasks`: trajectories and budgets of one input, answers of all, targets of a long input."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from jaxtyping import Int
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from cot2lib.specs.profiles import METHODS, spec
from cot2lib.study.look import Shown, panels
from cot2lib.study.series import BLUE, ORANGE
from cot2lib.study.tasks.measure import kept_name, kept_trajectories, one_input, target_shares
from cot2lib.tasks import MNNS

TICKS = 20  # sums between two labels of a long input


def trajectories(digits: Sequence[int], budgets: Sequence[int], ties: str = "minus-first") -> Shown:
    """All signed sums of an input as a tree, one panel per budget.

    Lines: kept trajectories blue, the others grey. Discs: targets alpha*_t, area proportional to the share; the last
    step's target is the answer alone. Raises SpecError for digits, budgets or ties that cannot be drawn.
    """
    task = one_input(digits)
    shares = target_shares(task, budgets, ties)
    figure, axes = panels(1, len(budgets), width=2.9 * len(budgets), height=3.1, sharey=True)
    for axis, budget in zip(axes[0], budgets):
        for kept, colour, width in ((task.trajectories, "#cccccc", 1.2), (budget, BLUE, 1.8)):
            lines = _branches(kept_trajectories(task, kept, ties))
            axis.add_collection(LineCollection(lines, color=colour, linewidth=width, zorder=1 + (colour == BLUE)))
        _discs(axis, shares[shares["budget"] == budget], task)
        axis.set_xlabel(f"budget B = {budget}")
    axes[0, 0].set_ylabel("partial sum")
    answer = int(task.answers[0])
    right = int((task.signed_sums()[0, :, -1] == answer).sum())
    finding = f"Of {task.trajectories} trajectories {right} {'ends' if right == 1 else 'end'} in the answer {answer}."
    return Shown(figure, shares[["budget", "step", "sum", "share"]], finding)


def _discs(axis: Axes, shares: pd.DataFrame, task: MNNS) -> None:
    """The targets of one budget, and the ticks of the steps."""
    colours = np.where(shares["step"] == task.length, ORANGE, BLUE)
    axis.scatter([0], [0], s=30, color="black", zorder=3)
    axis.scatter(shares["step"], shares["sum"], s=260 * shares["share"], c=colours, edgecolors="white", zorder=4)
    axis.set_xticks(range(task.length + 1), ["start", *(f"±{d}" for d in task.digits[0].tolist())])
    axis.set_xlim(-0.2, task.length + 0.25)
    axis.autoscale_view(scalex=False)


def _branches(paths: Int[np.ndarray, "path place"]) -> Int[np.ndarray, "branch end 2"]:
    """Every branch of a tree of paths once, as (branch, end, step and sum)."""
    steps = [np.unique(paths[:, step : step + 2], axis=0) for step in range(paths.shape[1] - 1)]
    at = lambda step, sums: np.stack([np.broadcast_to([step, step + 1], sums.shape), sums], axis=-1)
    return np.concatenate([at(step, sums) for step, sums in enumerate(steps)])


def answers(shares: pd.DataFrame) -> Shown:
    """How often each sum is the answer (`answer_shares`)."""
    figure, axes = panels(1, 1, width=5.2, height=2.6)
    sns.barplot(shares, x="answer", y="inputs (%)", color=BLUE, saturation=1, ax=axes[0, 0])
    axes[0, 0].set_ylabel("share of inputs (%)")
    most = shares.loc[shares["inputs (%)"].idxmax()]
    return Shown(figure, shares, f"{most['answer']:.0f} is the answer of {most['inputs (%)']:.0f} % of the inputs.")


def heatmap(task: MNNS, shares: pd.DataFrame) -> Shown:
    """Exact targets of a long input (`target_shares`), a panel per budget: share of kept trajectories at each sum."""
    figure, axes = panels(1, shares["budget"].nunique(), width=9.3, height=3.2, sharey=True)
    reach = TICKS * (1 + int(shares["sum"].abs().max()) // 2 // TICKS)
    for axis, (budget, part) in zip(axes[0], shares.groupby("budget", sort=False)):
        sums = part.pivot(index="sum", columns="step", values="share").reindex(range(reach, -reach - 1, -1)).fillna(0)
        last = axis is axes[0, -1]
        options = {"cbar_kws": {"label": "square root of the share"}} if last else {}
        sns.heatmap(np.sqrt(sums), cmap="cividis", cbar=last, yticklabels=TICKS, rasterized=True, ax=axis, **options)
        axis.text(0.04, 0.95, kept_name(task, budget), transform=axis.transAxes, color="white", va="top")
        axis.set(xlabel="step", ylabel="")
        axis.tick_params(rotation=0)
    axes[0, 0].set_ylabel("partial sum")
    late = 3 * task.length // 4
    held = shares[shares["step"] == late].groupby("budget", sort=False).size()
    told = ", ".join(f"{count} sums with {kept_name(task, budget)}" for budget, count in held.items())
    finding = f"After {late} of {task.length} digits the targets hold {told}."
    return Shown(figure, shares[["budget", "step", "sum", "share"]], finding)


def formats(task: MNNS, profile: str) -> list[str]:
    """One line per method: tokens that it reads and writes for the task's first input, and those it is scored on."""
    tokens, told = task.tokens, []
    for method in METHODS:
        run = spec(method, profile, task=task)
        shown = run.supervision
        prompt = [tokens[i] for i in task.prompt(shown.arrow, shown.pauses)[0].tolist()]
        outputs = ["S?"] * run.outputs + ["<EOS>"] * shown.eos
        told.append(f"{method}: `{' '.join(prompt)}` then `{' '.join(outputs)}`, loss on the {shown.loss_on}")
    return told
