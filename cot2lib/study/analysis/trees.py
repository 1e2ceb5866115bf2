"""One input of MNNS as a tree of trajectories, and what tie rules and budgets do to the targets of many."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib.errors import SpecError
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


def cuts_a_tie(task: MNNS, budget: int) -> Bool[Tensor, " input"]:
    """Inputs of which the budget keeps some but not all trajectories with one score."""
    graph = [task.children(step) for step in range(task.steps)]
    finals = forward_counts(graph, task.states, task.start)[-1]
    shares = share_of_group(finals, task.score, budget)
    return ((shares > 0) & (shares < 1) & (finals > 0)).any(1)


def _differ(a: Float[Tensor, "input step vocab"], b: Float[Tensor, "input step vocab"]) -> Bool[Tensor, " input"]:
    return ((a - b).abs() > 1e-9).flatten(1).any(1)
