"""Figures and tables of the chapter `capacity`: what the packing bound says of d, and what runs need."""

import math
from collections.abc import Sequence

import pandas as pd

from cot2lib.study import look, printed, show
from cot2lib.study.capacity.measure import BOUNDS, FIXED, FORMULA, fixed, least, one_hot_margin
from cot2lib.study.frame import at
from cot2lib.study.look import Shown
from cot2lib.study.sweeps import D_MODELS
from cot2lib.tasks import MNNS
from cot2lib.theory import packing

ASIDE = {"authors' recipe": -0.6, "quick recipe": 0.6}  # of their d, so that none hides another


def bounds(vocab: int, share: float) -> Shown:
    """Least d by B: the three bounds at a share of the largest margin, and the paper's formula at a fixed one."""
    budgets = [*range(1, vocab // 2 + 1)]
    left, right = f"{share:g} of the largest margin", f"margin {FIXED:g}"
    both = pd.concat([least(vocab, budgets, share).assign(margin=left), fixed(vocab, budgets).assign(margin=right)])
    last = at(both, margin=right, bound=FORMULA)["budget"].max()
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
        margins = {f"$\\delta = {FIXED:g}$": FIXED, f"${share:g}\\,\\delta_{{\\max}}$": share * largest}
        asked = {f"d at {name}": _least(vocab, budget, margin) for name, margin in margins.items()}
        rows.append({"B": budget} | sides | asked)
    return pd.DataFrame(rows)


def _least(vocab: int, budget: int, margin: float) -> str:
    """The three bounds of one margin, paper / volume / centred."""
    found = [dimension(vocab, budget, margin) for dimension in BOUNDS.values()]
    return " / ".join(f"{d:.1f}" for d in found) if math.isfinite(found[0]) else "no such margin"


def margins_by_dimension(task: MNNS, rows: pd.DataFrame, finding: str = "") -> Shown:
    """Margins by d, a panel per budget; dots are draws or seeds, lines means, the level line one-hot states."""
    labels, facets = ("dimension d", "margin"), {"col_wrap": 2, "sharey": False, "height": 2.4, "aspect": 1.6}
    shown = look.lines(rows, "d", "margin", "embeddings", labels, "budget", finding, {"trained": 0.0}, **facets)
    for axis, budget in zip(shown.figure.axes, sorted(rows["budget"].unique())):
        axis.axhline(one_hot_margin(task, budget), color="black", linewidth=1.0, linestyle=":")
        axis.set(ylim=(0, None), xticks=sorted(rows["d"].unique()))
    return shown


def head(rows: pd.DataFrame, finding: str = "") -> Shown:
    """Mean KL of the head by d, a line per budget."""
    labels = "dimension d of the head", "mean KL to the targets (nat)"
    shown = look.lines(rows, "d", "KL", "budget", labels, finding=finding)
    shown.figure.axes[0].set(yscale="log", xticks=rows["d"].unique())
    return shown


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


def largest_budget(rows: pd.DataFrame) -> pd.DataFrame:
    """Ends of the largest budget's seeds (%), by recipe and d."""
    largest = show.groups(at(rows, budget=rows["budget"].max()), ["recipe", "d_model", "budget"])
    return largest["last"].agg(["mean", "size", "min", "max"]).reset_index()
