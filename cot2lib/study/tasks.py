"""Chapter `tasks`: MNNS before any training, one input as a tree, and effects of budgets and ties on targets."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import torch
from jaxtyping import Int
from matplotlib.collections import LineCollection
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.specs.profiles import METHODS, spec
from cot2lib.study.look import Shown, panels
from cot2lib.study.series import BLUE, ORANGE
from cot2lib.supervision import TIES, check_budget, forward_counts, hindsight_targets, kept_fraction
from cot2lib.tasks import MNNS

LONGEST = 12  # digits of which all 2^m trajectories are drawn


@dataclass(frozen=True)
class GivenInput(MNNS):
    """MNNS whose one input is `given`, so that no other has to be listed."""

    given: tuple[int, ...] = ()

    def __post_init__(self):
        """Nothing: `one_input` checks the task that it is made from."""

    @cached_property
    def digits(self) -> Int[Tensor, "input length"]:
        return torch.tensor([self.given])


def one_input(digits: Sequence[int]) -> MNNS:
    """A task of `digits`' range and length with this input alone; SpecError if it cannot be drawn."""
    if not 1 <= len(digits) <= LONGEST:
        raise SpecError(f"digits={list(digits)}: choose 1 to {LONGEST} digits, or the tree cannot be drawn.")
    task = MNNS(min(digits), max(digits), len(digits), inputs=1)
    return GivenInput(task.low, task.high, task.length, inputs=1, given=tuple(digits))


def kept_trajectories(task: MNNS, budget: int, ties: str) -> np.ndarray:
    """The trajectories of the one input of `task` that a budget keeps, as (kept, step + 1) partial sums from 0.

    Under `shared` all those tied at the cut are kept, each with less than its full weight.
    """
    check_budget(task, budget, ties)
    sums = task.signed_sums()[0]
    sums = sums.flip(0) if ties == "plus-first" else sums
    score = sums[:, -1].abs()
    order = (2 * score + (sums[:, -1] < 0)).argsort(stable=True)
    count = int((score <= score[order[budget - 1]]).sum()) if ties == "shared" else budget
    kept = sums[order[:count]]
    return torch.cat([torch.zeros(len(kept), 1, dtype=sums.dtype), kept], dim=1).numpy()


def tie_effects(task: MNNS, budgets: Sequence[int]) -> pd.DataFrame:
    """Shares of inputs (%), by budget, whose cut falls inside a group of equally good trajectories, and whose targets
    differ between the tie rules."""
    graph = [task.children(step) for step in range(task.steps)]
    finals = forward_counts(graph, task.states, task.start)[-1]  # (input, state): trajectories that end there
    percent = lambda inputs: float(100 * inputs.double().mean())
    differ = lambda one, other: ((one - other).abs() > 1e-9).flatten(1).any(1)
    rows = []
    for budget in budgets:
        shares = kept_fraction(finals, task.score, budget)
        inside = ((shares > 0) & (shares < 1) & (finals > 0)).any(1)
        minus, plus, shared = (hindsight_targets(task, budget, ties) for ties in TIES)
        rows.append([budget, *map(percent, (inside, differ(minus, plus), differ(minus, shared)))])
    heads = ["cut inside a tie (%)", "minus-first vs plus-first (%)", "minus-first vs shared (%)"]
    return pd.DataFrame(rows, columns=["B", *heads])


def trajectories(digits: Sequence[int], budgets: Sequence[int], ties: str = "minus-first") -> Shown:
    """All signed sums of an input as a tree, one panel per budget.

    Lines: kept trajectories blue, the others grey. Discs: targets alpha*_t, area proportional to the share; the last
    step's target is the answer alone. Raises SpecError for digits, budgets or ties that cannot be drawn.
    """
    task, shares = one_input(digits), []
    figure, axes = panels(1, len(budgets), width=2.9 * len(budgets), height=3.1, sharey=True)
    for axis, budget in zip(axes[0], budgets):
        for kept, colour, width in ((task.trajectories, "#cccccc", 1.2), (budget, BLUE, 1.8)):
            paths = kept_trajectories(task, kept, ties)
            steps = [np.unique(paths[:, step : step + 2], axis=0) for step in range(task.length)]  # each branch once
            lines = [((step, low), (step + 1, high)) for step, ends in enumerate(steps) for low, high in ends]
            axis.add_collection(LineCollection(lines, color=colour, linewidth=width, zorder=1 + (colour == BLUE)))
        targets = hindsight_targets(task, budget, ties)[0]
        at, tokens = targets.nonzero().T
        part = pd.DataFrame({"step": at + 1, "sum": tokens - task.state_id(0), "share": targets[at, tokens]})
        shares.append(part.assign(budget=budget))
        colours = np.where(part["step"] == task.length, ORANGE, BLUE)
        axis.scatter([0], [0], s=30, color="black", zorder=3)
        axis.scatter(part["step"], part["sum"], s=260 * part["share"], c=colours, edgecolors="white", zorder=4)
        axis.set_xticks(range(task.length + 1), ["start", *(f"±{d}" for d in digits)])
        axis.set(xlim=(-0.2, task.length + 0.25), xlabel=f"budget B = {budget}")
        axis.autoscale_view(scalex=False)
    axes[0, 0].set_ylabel("partial sum")
    answer = int(task.answers[0])
    right = int((task.signed_sums()[0, :, -1] == answer).sum())
    finding = f"{right} of {task.trajectories} trajectories {'ends' if right == 1 else 'end'} in the answer {answer}."
    return Shown(figure, pd.concat(shares)[["budget", "step", "sum", "share"]], finding)


def formats(task: MNNS, profile: str) -> list[str]:
    """One line per method: tokens that it reads and writes for the task's first input, and those it is scored on."""
    tokens, lines = task.tokens, []
    for method in METHODS:
        run = spec(method, profile, task=task)
        shown = run.supervision
        prompt = " ".join(tokens[i] for i in task.prompt(shown.arrow, shown.pauses)[0].tolist())
        outputs = " ".join(["S?"] * run.outputs + ["<EOS>"] * shown.eos)
        staged = "outputs that its curriculum has not yet turned into thoughts"
        scored = staged if shown.feeding == "stages" else shown.loss_on
        lines.append(f"{method} reads `{prompt}` and writes `{outputs}`; the loss covers the {scored}.")
    return lines
