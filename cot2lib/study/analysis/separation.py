"""How far apart the targets of thoughts can be held in d numbers, and what a softmax head needs to show them."""

import math
from collections.abc import Sequence
from functools import cache

import pandas as pd
import torch

from cot2lib.errors import RecordError, SpecError
from cot2lib.runs import load_stack
from cot2lib.specs import RunSpec
from cot2lib.study.sweeps import BUDGETS, of_budget
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import MNNS
from cot2lib.theory import margins, packing, softmax_head

FIXED = 0.1  # the margin at which the paper's formula is read, as in its "fixed constant"


def checked(vocab: int, budgets: Sequence, share: float, *dimensions: Sequence) -> None:
    """Raise SpecError for parameters of the bounds, or lists of dimensions or vocabularies, that mean nothing."""
    for asked in (budgets, *dimensions):
        if not asked or not all(isinstance(value, int) and value >= 1 for value in asked):
            raise SpecError(f"{asked}: budgets, dimensions and vocabularies are lists of whole numbers from 1 on.")
    if vocab <= max(BUDGETS):
        raise SpecError(f"live_vocab={vocab}: the sweep's budgets go to {max(BUDGETS)}; choose more states.")
    for budget in budgets:
        packing.largest_margin(vocab, budget)
    if not 0 < share <= 1:
        raise SpecError(f"live_share={share}: a share of the largest margin is above 0 and at most 1.")


# What must be told apart


def ties_of(budget: int) -> str:
    """The tie rule that runs of a budget are trained with."""
    return of_budget(budget).supervision.ties


@cache
def targets_of(task: MNNS, budget: int, ties: str | None = None) -> margins.Points:
    """The different targets of all thoughts of all inputs, with the ties that runs are trained with, or others."""
    return margins.distinct_targets(task, budget, ties or ties_of(budget))


def mean_states(task: MNNS, budget: int) -> float:
    """How many states a thought superposes, mean over all inputs and thoughts."""
    targets = hindsight_targets(task, budget, ties_of(budget))  # (input, step, vocab)
    return float((targets[:, :-1] > 0).sum(-1).double().mean())


def polynomial_dimension(points: margins.Points) -> int:
    """A d that suffices for a softmax head: twice the support, counted in |sum| where all targets are symmetric."""
    middle = points.shape[1] // 2
    shown = points[:, middle:] if torch.equal(points, points.flip(1)) else points
    return 2 * int((shown > 0).sum(1).max())


def targets_table(task: MNNS, budgets: Sequence[int]) -> pd.DataFrame:
    """By budget: subsets of the bound, different targets, their rank, states superposed, and a d that suffices.

    Targets are those of all thoughts over all inputs, under either order of ties.
    """
    rows = []
    for budget in budgets:
        other = {"plus-first": "minus-first", "minus-first": "plus-first"}[ties_of(budget)]
        points, swapped = targets_of(task, budget), targets_of(task, budget, other)
        rows.append(
            {
                "B": budget,
                "subsets": f"{float(math.comb(task.states, budget)):.1e}",
                "different targets": len(points),
                "affine rank": margins.affine_rank(points),
                "other ties: targets": len(swapped),
                "other ties: rank": margins.affine_rank(swapped),
                "states at most": int((points > 0).sum(1).max()),
                "d that suffices": polynomial_dimension(points),
            }
        )
    return pd.DataFrame(rows)


# Margins


def margin_rows(task: MNNS, budgets: Sequence[int], dimensions: Sequence[int], draws: int, steps: int) -> pd.DataFrame:
    """Margins of the thought targets by `B` and `d`: of random embeddings, and of the first of them widened.

    Args:
        task: whose targets.
        budgets, dimensions: of the grid.
        draws: random embeddings per cell.
        steps: of gradient ascent.
    """
    rows = []
    for budget in budgets:
        points = targets_of(task, budget)
        for d in dimensions:
            start = margins.random_embeddings(draws, task.states, d)
            found = {"random": margins.margins(points, start).tolist()}
            found["widened"] = [float(margins.margins(points, margins.spread_embeddings(points, start[0], steps)))]
            rows += [
                {"B": budget, "d": d, "kind": kind, "draw": draw, "margin": margin}
                for kind, values in found.items()
                for draw, margin in enumerate(values)
            ]
    return pd.DataFrame(rows)


def one_hot_margin(task: MNNS, budget: int) -> float:
    """The margin if every state had a dimension of its own."""
    points = targets_of(task, budget)
    return float(margins.margins(points, torch.eye(task.states, dtype=torch.float64)))


def trained_rows(groups: Sequence[Sequence[RunSpec]], **options) -> pd.DataFrame:
    """Margins of the targets that models were trained on, each group of one shape; rows as `margin_rows`.

    The embeddings of the states are scaled to unit length, so that all kinds compare. Groups whose weights cannot be
    had are left out; `options` are those of `cot2lib.runs.load_stack`.
    """
    rows = []
    for specs in groups:
        try:
            first, stack = specs[0], load_stack(specs, **options)
        except RecordError:
            continue
        budget = first.columns()["budget"]
        points = targets_of(first.task, budget)
        table = stack.transformer.wte.weight.detach()[:, first.task.state_ids].double()
        found = margins.margins(points, torch.nn.functional.normalize(table, dim=-1)).tolist()
        rows += [
            {"B": budget, "d": first.model.d_model, "kind": "trained", "layers": first.model.layers, "draw": s.seed,
             "margin": m} for s, m in zip(specs, found)
        ]  # fmt: skip
    return pd.DataFrame(rows)


def swap_table(states: int, dimensions: Sequence[int]) -> pd.DataFrame:
    """Least distance between sums of sets that differ by one state, and by at most two, of one random draw per d."""
    rows = []
    for d in dimensions:
        embeddings = margins.random_embeddings(1, states, d)[0]
        by_swaps = {f"at most {r}" if r > 1 else "1": margins.swap_distance(embeddings, r) for r in (1, 2)}
        rows.append({"d": d} | {f"{name} swapped": value for name, value in by_swaps.items()})
    return pd.DataFrame(rows)


# The softmax head


def head_rows(task: MNNS, budgets: Sequence[int], dimensions: Sequence[int], steps: int) -> pd.DataFrame:
    """Mean KL (nat) of the thought targets from the best softmax head found, by `B` and `d`."""
    rows = []
    for budget in budgets:
        points = targets_of(task, budget)
        found = {d: softmax_head.fitted_divergence(points, d, steps=steps) for d in dimensions}
        rows += [{"B": budget, "d": d, "KL": kl} for d, kl in found.items()]
    return pd.DataFrame(rows)


def whole_tree_divergence(task: MNNS) -> float:
    """Largest KL (nat) of the full budget's thought targets from polynomials of degree eight in the squared sum."""
    points = targets_of(task, task.trajectories)
    sums = torch.arange(-task.bound, task.bound + 1, dtype=torch.float64)
    return float(softmax_head.divergence(points, softmax_head.polynomial_logits(sums**2, points)).max())
