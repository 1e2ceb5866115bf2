"""Figures of the chapter `tasks`: trajectories, budgets and exact targets of MNNS."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import torch
from jaxtyping import Int
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.specs.profiles import METHODS, spec
from cot2lib.study.figures.style import COLOURS, panels
from cot2lib.supervision import TIES, check_budget, forward_counts, hindsight_targets, share_of_group
from cot2lib.tasks import MNNS

LONGEST = 12  # digits of which all 2^m trajectories are drawn


@dataclass(frozen=True)
class GivenInput(MNNS):
    """MNNS whose one input is `given`, so that no other has to be listed."""

    given: tuple[int, ...] = ()

    def __post_init__(self):
        """Nothing: `one_input` checks the task it is made from."""

    @cached_property
    def digits(self) -> Int[Tensor, "input length"]:
        return torch.tensor([self.given])


def one_input(digits: Sequence[int]) -> MNNS:
    """A task of `digits`' range and length with this input alone.

    Raises:
        SpecError: for no digits, negative ones, or more than can be drawn.
    """
    if not 1 <= len(digits) <= LONGEST:
        raise SpecError(f"digits={list(digits)}: choose 1 to {LONGEST} digits, or the tree cannot be drawn.")
    task = MNNS(min(digits), max(digits), len(digits), inputs=1)
    return GivenInput(task.low, task.high, task.length, inputs=1, given=tuple(digits))


def kept_trajectories(task: MNNS, budget: int, ties: str) -> np.ndarray:
    """The trajectories of the one input of `task` that a budget keeps, as (kept, step + 1) partial sums from 0.

    Under `shared` all those tied at the cut are kept, each with less than its full weight.

    Raises:
        SpecError: for a budget or tie rule that the task does not have.
    """
    check_budget(task, budget, ties)
    sums = task.signed_sums()[0]
    sums = sums.flip(0) if ties == "plus-first" else sums
    score = sums[:, -1].abs()
    order = (2 * score + (sums[:, -1] < 0)).argsort(stable=True)
    count = int((score <= score[order[budget - 1]]).sum()) if ties == "shared" else budget
    kept = sums[order[:count]]
    return torch.cat([torch.zeros(len(kept), 1, dtype=sums.dtype), kept], dim=1).numpy()


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
        (budget, dict(color=COLOURS["CoT2"], linewidth=1.8, zorder=2)),
    ):
        axis.add_collection(LineCollection(_branches(kept_trajectories(task, kept, ties)), **style))
    targets = hindsight_targets(task, budget, ties)[0]
    axis.scatter([0], [0], s=30, color="black", zorder=3)
    for step, distribution in enumerate(targets.numpy(), start=1):
        tokens = distribution.nonzero()[0]
        share = distribution[tokens]
        colour = COLOURS["discrete CoT"] if step == task.length else COLOURS["CoT2"]
        axis.scatter(
            np.full(len(tokens), step), tokens - task.state_id(0), s=260 * share, color=colour, edgecolors="white",
            zorder=4,
        )  # fmt: skip
    axis.set_xticks(range(task.length + 1), ["start", *(f"±{d}" for d in task.digits[0].tolist())])
    axis.set(xlabel=f"budget B = {budget}", xlim=(-0.2, task.length + 0.25))
    axis.autoscale_view(scalex=False)


def _branches(paths: np.ndarray) -> np.ndarray:
    """Every branch of a tree of paths once, as (branch, end, step and sum)."""
    steps = [np.unique(paths[:, step : step + 2], axis=0) for step in range(paths.shape[1] - 1)]
    at = lambda step, sums: np.stack([np.broadcast_to([step, step + 1], sums.shape), sums], axis=-1)
    return np.concatenate([at(step, sums) for step, sums in enumerate(steps)])


def target_heatmap(task: MNNS, row: int, budgets: Sequence[int | None]) -> Figure:
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
        axis.text(0.04, 0.95, _budget_label(budget), transform=axis.transAxes, color="white", va="top")
    axes[0, 0].set_ylabel("partial sum")
    figure.colorbar(image, ax=axes[0, -1], label="square root of the share")
    return figure


def _budget_label(budget: int | None) -> str:
    return "all trajectories" if budget is None else f"B = {budget:,}".replace(",", "\u2009")


def answers(task: MNNS) -> Figure:
    """How often each sum is the answer."""
    shares = answer_shares(task)
    figure, axes = panels(1, 1, width=5.2, height=2.6)
    axis = axes[0, 0]
    axis.bar(shares["answer"], shares["inputs (%)"], color=COLOURS["CoT2"])
    axis.set(xlabel="answer", ylabel="share of inputs (%)", xticks=shares["answer"])
    return figure


def tie_effects(task: MNNS, budgets: Sequence[int]) -> pd.DataFrame:
    """Per budget: share of inputs (%) whose cut falls inside a group of equally good trajectories, and whose targets
    differ between the tie rules."""
    rows = []
    for budget in budgets:
        targets = {ties: hindsight_targets(task, budget, ties) for ties in TIES}
        differ = lambda a, b, targets=targets: float(100 * _differ(targets[a], targets[b]).double().mean())
        rows.append(
            {
                "B": budget,
                "cut inside a tie (%)": float(100 * cuts_a_tie(task, budget).double().mean()),
                "minus-first vs plus-first (%)": differ("minus-first", "plus-first"),
                "minus-first vs shared (%)": differ("minus-first", "shared"),
            }
        )
    return pd.DataFrame(rows)


def cuts_a_tie(task: MNNS, budget: int) -> torch.Tensor:
    """Inputs of which the budget keeps some but not all trajectories with one score."""
    graph = [task.children(step) for step in range(task.steps)]
    finals = forward_counts(graph, task.states, task.start)[-1]
    shares = share_of_group(finals, task.score, budget)
    return ((shares > 0) & (shares < 1) & (finals > 0)).any(1)


def _differ(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return ((a - b).abs() > 1e-9).flatten(1).any(1)


def target_entropies(task: MNNS, budgets: Sequence[int]) -> pd.DataFrame:
    """Mean entropy (nat) over all inputs of the exact targets of each step, per budget, beside t ln 2."""
    thoughts = range(1, task.steps)
    naive = {"targets": "t ln 2"} | {f"t = {t}": t * np.log(2) for t in thoughts}
    rows = [naive]
    for budget in budgets:
        entropy = torch.special.entr(hindsight_targets(task, budget)).sum(-1).mean(0)
        rows.append({"targets": f"B = {budget}"} | {f"t = {t}": float(entropy[t - 1]) for t in thoughts})
    return pd.DataFrame(rows)


def baselines(task: MNNS) -> pd.DataFrame:
    """Accuracy (%) of the best guesses that look at nothing, and at the parity of the digits' sum alone."""
    parity = task.digits.sum(1) % 2
    rules = {"always the commonest answer": torch.zeros_like(parity), "commonest answer of the sum's parity": parity}
    rows = []
    for name, group in rules.items():
        right = sum(int(torch.bincount(task.answers[group == g]).max()) for g in group.unique())
        rows.append({"rule": name, "all inputs (%)": 100 * right / len(parity)})
    return pd.DataFrame(rows)


def splits(task: MNNS, seeds: Sequence[int]) -> pd.DataFrame:
    """Training and validation inputs of each seed's split; raises SpecError without seeds."""
    if not seeds:
        raise SpecError("seeds=[]: give at least one seed whose split to count.")
    masks = {seed: task.split(seed) for seed in seeds}
    return pd.DataFrame(
        [{"seed": seed, "training": int(m.sum()), "validation": int((~m).sum())} for seed, m in masks.items()]
    )


def answer_shares(task: MNNS) -> pd.DataFrame:
    """Share of inputs (%) by answer."""
    counts = torch.bincount(task.answers)
    return pd.DataFrame({"answer": range(len(counts)), "inputs (%)": (100.0 * counts / counts.sum()).tolist()})


def target_widths(task: MNNS, row: int, budgets: Sequence[int | None], steps: Sequence[int]) -> pd.DataFrame:
    """States with a share, and entropy (nat), of one input's targets at some steps, per budget."""
    rows = []
    for budget in budgets:
        targets = hindsight_targets(task, budget, "shared", slice(row, row + 1))[0]
        entropy = torch.special.entr(targets).sum(-1)
        shown = {f"t = {t}": f"{int((targets[t - 1] > 0).sum())} ({entropy[t - 1]:.2f})" for t in steps}
        rows.append({"kept": _budget_label(budget), **shown})
    return pd.DataFrame(rows)


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
