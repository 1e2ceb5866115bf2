"""Chapter `capacity`: how many states fit into a thought.

How far apart the targets of thoughts can be held in d numbers, what a softmax head needs to show them, and what the
packing bound says of d beside what runs need.
"""

import math
from collections.abc import Sequence
from functools import cache
from itertools import product

import pandas as pd
import torch

from cot2lib.errors import RecordError, SpecError
from cot2lib.runs import load_stack
from cot2lib.specs import RunSpec
from cot2lib.study import look, printed, show
from cot2lib.study.frame import at
from cot2lib.study.look import Shown
from cot2lib.study.sweeps import BUDGETS, D_MODELS, of_budget
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import MNNS
from cot2lib.theory import margins, packing

FIXED = 0.1  # the margin at which the paper's formula is read, as in its "fixed constant"
FORMULA, IMPOSSIBLE = "the paper's formula", "no such margin exists"
BOUNDS = dict(zip((FORMULA, "exact volumes", "volumes around the mean"), packing.DIMENSIONS.values()))
ASIDE = {"authors' recipe": -0.6, "quick recipe": 0.6}  # of their d, so that none hides another


def checked(vocab: int, budgets: Sequence, share: float, *dimensions: Sequence) -> None:
    """Raise SpecError for parameters of the bounds, or lists of dimensions, that mean nothing."""
    for asked in (budgets, *dimensions):
        if not asked or not all(isinstance(value, int) and value >= 1 for value in asked):
            raise SpecError(f"{asked}: budgets and dimensions are lists of whole numbers from 1 on.")
    if vocab <= max(BUDGETS):
        raise SpecError(f"live_vocab={vocab}: the sweep's budgets go to {max(BUDGETS)}; choose more states.")
    for budget in budgets:
        packing.largest_margin(vocab, budget)
    if not 0 < share <= 1:
        raise SpecError(f"live_share={share}: a share of the largest margin is above 0 and at most 1.")


# The bound


def least(vocab: int, budgets: Sequence[int], share: float) -> pd.DataFrame:
    """The least d of each bound by budget, at a share of the largest margin."""
    grid = pd.DataFrame(product(BOUNDS, budgets), columns=["bound", "budget"])
    d = [BOUNDS[name](vocab, b, share * packing.largest_margin(vocab, b)) for name, b in grid.itertuples(index=False)]
    return grid.assign(d=d)


def bounds(vocab: int, share: float) -> Shown:
    """Least d by B: the three bounds at a share of the largest margin, and the paper's formula at a fixed one.

    From the last budget on that can have the fixed margin, the formula is a line of its own.
    """
    budgets = [*range(1, vocab // 2 + 1)]
    formula = [packing.log_subsets_below(vocab, b) / math.log(2 / FIXED) for b in budgets]
    fixed = pd.DataFrame({"budget": budgets, "bound": FORMULA, "d": formula})
    possible = pd.Series([packing.largest_margin(vocab, b) >= FIXED for b in budgets])
    beyond = fixed[~possible.shift(-1, fill_value=False)].assign(bound=IMPOSSIBLE)
    left, right = f"{share:g} of the largest margin", f"margin {FIXED:g}"
    formulas = pd.concat([fixed[possible], beyond]).assign(margin=right)
    both = pd.concat([least(vocab, budgets, share).assign(margin=left), formulas])
    last = fixed[possible]["budget"].max()
    said = f"Beyond B = {last} no embeddings of {vocab} states have the margin {FIXED:g}."
    labels = "budget B", "least dimension d"
    return look.lines(both, "budget", "d", "bound", labels, "margin", said)


def bounds_table(vocab: int, budgets: Sequence[int], share: float) -> pd.DataFrame:
    """Both sides of the counting inequality, the largest margin, and least d at two margins, by budget."""
    rows = []
    for budget in budgets:
        largest = packing.largest_margin(vocab, budget)
        sides = {
            "$\\ln \\binom{v}{B}$": packing.log_subsets(vocab, budget),
            "$B \\ln (v/B)$": packing.log_subsets_below(vocab, budget),
            "$\\delta_{\\max}$": f"{largest:.3f}",
        }
        two = {f"$\\delta = {FIXED:g}$": FIXED, f"${share:g}\\,\\delta_{{\\max}}$": share * largest}
        asked = {f"d at {name}": _least(vocab, budget, margin) for name, margin in two.items()}
        rows.append({"B": budget} | sides | asked)
    return pd.DataFrame(rows)


def _least(vocab: int, budget: int, margin: float) -> str:
    """The three bounds of one margin, paper / volume / centred."""
    found = [dimension(vocab, budget, margin) for dimension in BOUNDS.values()]
    return " / ".join(f"{d:.1f}" for d in found) if math.isfinite(found[0]) else "no such margin"


# Beside the runs


def cliff(rows: pd.DataFrame, asked: pd.DataFrame, finding: str = "") -> Shown:
    """Accuracy of the budget sweep by d, a panel per budget; grey: from the least to the largest of the bounds."""
    placed = rows.assign(place=rows["d_model"] + rows["recipe"].map(ASIDE).astype(float))
    placed = placed[["recipe", "budget", "d_model", "place", "seed", "last"]]
    labels, facets = ("dimension d", "validation accuracy (%)"), {"height": 2.9, "aspect": 0.66}
    shown = look.lines(placed, "place", "last", "recipe", labels, "budget", finding, limits=(0, 100), **facets)
    for axis, budget in zip(shown.figure.axes, sorted(rows["budget"].unique())):
        needed = at(asked, budget=budget)["d"]
        axis.axvspan(needed.min(), needed.max(), color="#d0d0d0", zorder=0)
        said = pd.Series({d: printed.stated(f"budget-b{budget}-d{d}") for d in D_MODELS}, dtype=float)
        axis.scatter(said.index, said, s=130, **look.PAPER)
        axis.set(xlim=(0, max(D_MODELS) + 3), xticks=[0, *D_MODELS], ylim=(40, 102))
    return shown


def cliff_table(rows: pd.DataFrame, vocab: int, share: float) -> pd.DataFrame:
    """Dimensions that the bounds ask for, and mean accuracies (%) by recipe and d, by budget."""
    means = show.groups(rows, ["budget", "recipe", "d_model"])["last"].mean().unstack([1, 2])
    means.columns = [f"{recipe}, d = {d}" for recipe, d in means.columns]
    table = show.headed(means.map("{:.1f}".format))
    asked = [_least(vocab, b, share * packing.largest_margin(vocab, b)) for b in means.index]
    table.insert(1, "d asked for", asked)
    return table


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
    """Subsets of the bound, different targets, their rank, states superposed, and a d that suffices, by budget.

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
    """Margins of the thought targets by `budget` and `d`: of random embeddings, and of the first of them widened.

    Args:
        task: whose targets.
        budgets, dimensions: of the grid.
        draws: random embeddings per cell.
        steps: of gradient ascent.
    """
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


def swap_table(states: int, dimensions: Sequence[int]) -> pd.DataFrame:
    """Least distance between sums of sets that differ by one state, and by at most two, of one random draw per d."""
    draws = [margins.random_embeddings(1, states, d)[0] for d in dimensions]
    swaps = {"1 swapped": 1, "at most 2 swapped": 2}
    found = {name: [margins.swap_distance(draw, count) for draw in draws] for name, count in swaps.items()}
    return pd.DataFrame({"d": list(dimensions)} | found)


# The softmax head


def head_rows(task: MNNS, budgets: Sequence[int], dimensions: Sequence[int], steps: int) -> pd.DataFrame:
    """Mean KL (nat) of the thought targets from the best softmax head found, by `budget` and `d`."""
    grid = pd.DataFrame(product(budgets, dimensions), columns=["budget", "d"])
    found = [margins.fitted_divergence(targets_of(task, b), d, steps=steps) for b, d in grid.to_numpy().tolist()]
    return grid.assign(KL=found)


def head(rows: pd.DataFrame, finding: str = "") -> Shown:
    """Mean KL of the head by d, a line per budget."""
    labels = "dimension d of the head", "mean KL to the targets (nat)"
    shown = look.lines(rows, "d", "KL", "budget", labels, finding=finding)
    shown.figure.axes[0].set(yscale="log", xticks=rows["d"].unique())
    return shown


def whole_tree_divergence(task: MNNS) -> float:
    """Largest KL (nat) of the full budget's thought targets from polynomials of degree eight in the squared sum."""
    points = targets_of(task, task.trajectories)
    sums = torch.arange(-task.bound, task.bound + 1, dtype=torch.float64)
    return float(margins.divergence(points, margins.polynomial_logits(sums**2, points)).max())
