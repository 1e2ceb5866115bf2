"""MNNS before any training: one input as a tree, answers and splits of all, effects of budgets and ties on targets."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.study import targets
from cot2lib.supervision import TIES, check_budget, forward_counts, hindsight_targets, share_of_group
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


def target_shares(task: MNNS, budgets: Sequence[int], ties: str) -> pd.DataFrame:
    """The first input's targets: the share of each sum that has one, by budget and step.

    Raises:
        SpecError: without budgets, or for budgets or tie rules that the task does not have.
    """
    if not budgets:
        raise SpecError("budgets=[]: give at least one budget to draw.")
    parts = []
    for budget in budgets:
        wanted = hindsight_targets(task, budget, ties, slice(0, 1))[0]
        steps, tokens = wanted.nonzero().T
        held = {"step": steps + 1, "sum": tokens - task.state_id(0), "share": wanted[steps, tokens]}
        parts.append(pd.DataFrame(held).assign(budget=budget))
    return pd.concat(parts, ignore_index=True)


def kept_name(task: MNNS, budget: int) -> str:
    """A budget in words; large numbers have thin spaces."""
    return "all trajectories" if budget == task.trajectories else f"B = {budget:,}".replace(",", "\u2009")


def splits(task: MNNS, seeds: Sequence[int]) -> pd.DataFrame:
    """Training and validation inputs of each seed's split; raises SpecError without seeds."""
    if not seeds:
        raise SpecError("seeds=[]: give at least one seed whose split to count.")
    training = [int(task.split(seed).sum()) for seed in seeds]
    return pd.DataFrame({"seed": seeds, "training": training, "validation": [task.size - each for each in training]})


def answer_shares(task: MNNS) -> pd.DataFrame:
    """Share of inputs (%) by answer."""
    counts = torch.bincount(task.answers)
    return pd.DataFrame({"answer": range(len(counts)), "inputs (%)": (100.0 * counts / counts.sum()).tolist()})


def tie_effects(task: MNNS, budgets: Sequence[int]) -> pd.DataFrame:
    """Shares of inputs (%), by budget, whose cut falls inside a group of equally good trajectories, and whose targets
    differ between the tie rules."""
    percent = lambda inputs: float(100 * inputs.double().mean())
    rows = []
    for budget in budgets:
        minus, plus, shared = (hindsight_targets(task, budget, ties) for ties in TIES)
        found = (cuts_a_tie(task, budget), _differ(minus, plus), _differ(minus, shared))
        rows.append([budget, *map(percent, found)])
    heads = ["cut inside a tie (%)", "minus-first vs plus-first (%)", "minus-first vs shared (%)"]
    return pd.DataFrame(rows, columns=["B", *heads])


def cuts_a_tie(task: MNNS, budget: int) -> Bool[Tensor, " input"]:
    """Inputs of which the budget keeps some but not all trajectories with one score."""
    graph = [task.children(step) for step in range(task.steps)]
    finals = forward_counts(graph, task.states, task.start)[-1]
    shares = share_of_group(finals, task.score, budget)
    return ((shares > 0) & (shares < 1) & (finals > 0)).any(1)


def _differ(a: Float[Tensor, "input step vocab"], b: Float[Tensor, "input step vocab"]) -> Bool[Tensor, " input"]:
    return ((a - b).abs() > 1e-9).flatten(1).any(1)


def entropies_by_budget(task: MNNS, budgets: Sequence[int]) -> pd.DataFrame:
    """Mean entropy (nat) over all inputs of the exact targets of each step, by budget, beside t ln 2."""
    thoughts = range(1, task.steps)
    rows = [{"targets": "t ln 2"} | {f"t = {t}": t * np.log(2) for t in thoughts}]
    for budget in budgets:
        entropy = targets.input_entropies(task, budget).mean(0)
        rows.append({"targets": f"B = {budget}"} | {f"t = {t}": float(entropy[t - 1]) for t in thoughts})
    return pd.DataFrame(rows)
