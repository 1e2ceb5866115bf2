"""Chapter `capacity`: what the packing bound says of d beside what runs need, and how far apart targets are."""

import math
from collections.abc import Sequence
from functools import cache
from itertools import product

import pandas as pd
import torch

from cot2lib.errors import RecordError, SpecError
from cot2lib.runs import load_stack
from cot2lib.specs import RunSpec
from cot2lib.study import look, printed
from cot2lib.study.frame import at
from cot2lib.study.look import Shown
from cot2lib.study.sweeps import BUDGETS, D_MODELS, of_budget
from cot2lib.tasks import MNNS
from cot2lib.theory import margins

BOUNDS = {
    "the paper's formula": margins.paper_dimension,
    "exact volumes": margins.volume_dimension,
    "volumes around the mean": margins.centred_dimension,
}
ASIDE = {"authors' recipe": -0.6, "quick recipe": 0.6}  # of their d, so that none hides another


def checked(vocab: int, budgets: Sequence[int], share: float, dimensions: Sequence[int]) -> None:
    """Raise SpecError for parameters of the bounds, or dimensions, that mean nothing."""
    if any(d < 1 for d in dimensions):
        raise SpecError(f"live_dimensions={list(dimensions)}: dimensions are whole numbers from 1 on.")
    if vocab <= max(BUDGETS):
        raise SpecError(f"live_vocab={vocab}: the sweep's budgets go to {max(BUDGETS)}; choose more states.")
    if wrong := [budget for budget in budgets if not 0 < budget < vocab]:
        raise SpecError(
            f"budget={wrong[0]}: {vocab} states have several subsets of 1 to {vocab - 1}; choose among these."
        )
    if not 0 < share <= 1:
        raise SpecError(f"live_share={share}: a share of the largest margin is above 0 and at most 1.")


def least(vocab: int, budgets: Sequence[int], share: float) -> pd.DataFrame:
    """The least d of each bound by budget, at a share of the largest margin."""
    grid = pd.DataFrame(product(BOUNDS, budgets), columns=["bound", "budget"])
    d = [BOUNDS[name](vocab, b, share * margins.largest_margin(vocab, b)) for name, b in grid.itertuples(index=False)]
    return grid.assign(d=d)


def cliff(rows: pd.DataFrame, asked: pd.DataFrame, finding: str = "") -> Shown:
    """Accuracy of the budget sweep by d, a panel per budget; grey: from the least to the largest of the bounds."""
    placed = rows.assign(place=rows["d_model"] + rows["recipe"].map(ASIDE).astype(float))
    placed = placed[["recipe", "budget", "d_model", "place", "seed", "last"]]
    labels, facets = ("dimension d", "validation accuracy (%)"), {"height": 2.9, "aspect": 0.66}
    shown = look.lines(placed, "place", "last", "recipe", labels, "budget", finding, limits=(0.0, 100.0), **facets)
    for axis, budget in zip(shown.figure.axes, sorted(rows["budget"].unique())):
        needed = at(asked, budget=budget)["d"]
        axis.axvspan(needed.min(), needed.max(), color="#d0d0d0", zorder=0)
        said = pd.Series({d: printed.stated(f"budget-b{budget}-d{d}") for d in D_MODELS}, dtype=float)
        axis.scatter(said.index, said, s=130, **look.PAPER)
        axis.set(xlim=(0, max(D_MODELS) + 3), xticks=[0, *D_MODELS], ylim=(40, 102))
    return shown


@cache
def targets_of(task: MNNS, budget: int, ties: str | None = None) -> margins.Points:
    """The different targets of all thoughts of all inputs, with the ties that runs are trained with, or others."""
    return margins.distinct_targets(task, budget, ties or of_budget(budget).supervision.ties)


def targets_table(task: MNNS, budgets: Sequence[int]) -> pd.DataFrame:
    """Subsets of the bound, different targets, states superposed, and a d that suffices, by budget.

    Targets are those of all thoughts over all inputs, under either order of ties. For a softmax head twice the support
    suffices, counted in |sum| where all targets are symmetric.
    """
    rows = []
    for budget in budgets:
        other = "minus-first" if of_budget(budget).supervision.ties == "plus-first" else "plus-first"
        points, swapped = targets_of(task, budget), targets_of(task, budget, other)
        symmetric = torch.equal(points, points.flip(1))
        shown = points[:, points.shape[1] // 2 :] if symmetric else points
        rows.append(
            {
                "B": budget,
                "subsets": f"{math.comb(task.states, budget):.2g}",
                "different targets": len(points),
                "other ties: targets": len(swapped),
                "states at most": int((points > 0).sum(1).max()),
                "d that suffices": 2 * int((shown > 0).sum(1).max()),
            }
        )
    return pd.DataFrame(rows)


def margin_rows(task: MNNS, budgets: Sequence[int], dimensions: Sequence[int], draws: int, steps: int) -> pd.DataFrame:
    """Margins of the thought targets by `budget` and `d`: of some random `draws` of embeddings, and of the first of
    them widened by so many steps of gradient ascent."""
    rows = []
    for budget, d in product(budgets, dimensions):
        points, start = targets_of(task, budget), margins.random_embeddings(draws, task.states, d)
        wide = margins.margins(points, margins.spread_embeddings(points, start[0], steps))
        found = {"random": margins.margins(points, start), "widened": wide[None]}
        rows += [_margins(budget, d, name, range(len(of)), of) for name, of in found.items()]
    return pd.concat(rows, ignore_index=True)


def _margins(budget: int, d: int, embeddings: str, seeds: Sequence[int], found: margins.Embeddings) -> pd.DataFrame:
    return pd.DataFrame({"budget": budget, "d": d, "embeddings": embeddings, "seed": seeds, "margin": found.tolist()})


def one_hot_margin(task: MNNS, budget: int) -> float:
    """The margin if every state had a dimension of its own."""
    return float(margins.margins(targets_of(task, budget), torch.eye(task.states, dtype=torch.float64)))


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
        table = stack.transformer.wte.weight.detach()[:, first.task.state_ids].double()
        found = margins.margins(targets_of(first.task, budget), torch.nn.functional.normalize(table, dim=-1))
        rows.append(_margins(budget, first.model.d_model, "trained", [spec.seed for spec in specs], found))
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()


def margins_by_dimension(task: MNNS, rows: pd.DataFrame, finding: str = "") -> Shown:
    """Margins by d, a panel per budget; dots are draws or seeds, lines means, the level line one-hot states."""
    labels, facets = ("dimension d", "margin"), {"col_wrap": 2, "sharey": False, "height": 2.4, "aspect": 1.6}
    shown = look.lines(rows, "d", "margin", "embeddings", labels, "budget", finding, {"trained": 0.0}, **facets)
    for axis, budget in zip(shown.figure.axes, sorted(rows["budget"].unique())):
        axis.axhline(one_hot_margin(task, budget), color="black", linewidth=1.0, linestyle=":")
        axis.set(ylim=(0, None), xticks=sorted(rows["d"].unique()))
    return shown
