"""Figures, tables and checks of the chapter `capacity`: what the packing bound says of d, and what the runs need."""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cot2lib.errors import RecordError, SpecError
from cot2lib.runs import load_stack
from cot2lib.specs import RunSpec
from cot2lib.specs.profiles import spec
from cot2lib.study.figures.budget import budget_name, paper_accuracy
from cot2lib.study.figures.curves import unique
from cot2lib.study.figures.style import COLOURS, DASHES, MARKERS, PAPER, panels, seed_dots, series_legend
from cot2lib.study.report import recipe
from cot2lib.study.sweeps import BUDGETS, D_MODELS
from cot2lib.tasks import MNNS
from cot2lib.theory import margins, packing, softmax_head

FIXED = 0.1  # the margin at which the paper's formula is read, as in its "fixed constant"
LOOKS = {  # bound: label, colour, line style
    "paper": ("the paper's formula", "#D55E00", "--"),
    "volume": ("exact volumes", "#0072B2", "-"),
    "centred": ("volumes around the mean", "#009E73", "-."),
}
KINDS = {"random": ("#7A7A7A", "o"), "widened": ("#0072B2", "s"), "trained": ("#D55E00", "D")}


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


# The bound


def bounds(vocab: int, share: float) -> Figure:
    """Least d by B: the three bounds at a share of the largest margin, and the paper's formula at a fixed one."""
    figure, axes = panels(1, 2, width=8.4, height=3.2, sharey=True)
    budgets = np.arange(1, vocab // 2 + 1)
    for name, (label, colour, dash) in LOOKS.items():
        least = [
            packing.DIMENSIONS[name](vocab, b, share * packing.largest_margin(vocab, b)) for b in budgets.tolist()
        ]
        axes[0, 0].plot(budgets, least, color=colour, linestyle=dash, label=label)
    top = 1.45 * axes[0, 0].get_ylim()[1]  # room for the legend
    axes[0, 0].set(xlabel=f"budget B (margin {share:g} of the largest)", ylabel="least dimension d", ylim=(0, top))
    axes[0, 0].legend(loc="upper left", frameon=False)
    _fixed(axes[0, 1], vocab, budgets)
    return figure


def _fixed(axis: Axes, vocab: int, budgets: np.ndarray) -> None:
    """The paper's formula at margin `FIXED`, dotted from the budget on that cannot have it."""
    formula = [packing.log_subsets_below(vocab, b) / math.log(2 / FIXED) for b in budgets.tolist()]
    last = sum(packing.largest_margin(vocab, b) >= FIXED for b in budgets.tolist())
    axis.plot(budgets[last - 1 :], formula[last - 1 :], color="#999999", linestyle=":", label="no such margin exists")
    axis.plot(budgets[:last], formula[:last], color=LOOKS["paper"][1], marker="o", markersize=3, label="it can be had")
    axis.set(xlabel=f"budget B (margin {FIXED:g}, the paper's formula)")
    axis.legend(loc="upper left", frameon=False)


def bounds_table(vocab: int, budgets: Sequence[int], share: float) -> pd.DataFrame:
    """By budget: both sides of the counting inequality, the largest margin, and least d at two margins."""
    rows = []
    for budget in budgets:
        largest = packing.largest_margin(vocab, budget)
        entry = {
            "B": budget,
            "$\\ln \\binom{v}{B}$": packing.log_subsets(vocab, budget),
            "$B \\ln (v/B)$": packing.log_subsets_below(vocab, budget),
            "$\\delta_{\\max}$": f"{largest:.3f}",
        }
        columns = {f"$\\delta = {FIXED:g}$": FIXED, f"${share:g}\\,\\delta_{{\\max}}$": share * largest}
        rows.append(entry | {f"d at {name}": _least(vocab, budget, margin) for name, margin in columns.items()})
    return pd.DataFrame(rows)


def _least(vocab: int, budget: int, margin: float) -> str:
    """The three bounds of one margin, paper / volume / centred."""
    least = [dimension(vocab, budget, margin) for dimension in packing.DIMENSIONS.values()]
    return " / ".join(f"{d:.1f}" for d in least) if math.isfinite(least[0]) else "no such margin"


# What must be told apart


def ties_of(budget: int) -> str:
    """The tie rule that runs of a budget are trained with."""
    return spec("discrete" if budget == 1 else "cot2").supervision.ties


@cache
def targets_of(task: MNNS, budget: int, ties: str | None = None) -> margins.Points:
    """The different targets of all thoughts of all inputs, with the ties that runs are trained with, or others."""
    return margins.distinct_targets(task, budget, ties or ties_of(budget))


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


def polynomial_dimension(points: margins.Points) -> int:
    """A d that suffices for a softmax head: twice the support, counted in |sum| where all targets are symmetric."""
    middle = points.shape[1] // 2
    shown = points[:, middle:] if torch.equal(points, points.flip(1)) else points
    return 2 * int((shown > 0).sum(1).max())


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
    had are left out; `options` are those of `cot2lib.runs.run.load_stack`.
    """
    rows = []
    for specs in groups:
        try:
            first, stack = specs[0], load_stack(specs, **options)
        except RecordError:
            continue
        budget = first.supervision.budget or first.task.trajectories
        points = targets_of(first.task, budget)
        table = stack.transformer.wte.weight.detach()[:, first.task.state_ids].double()
        found = margins.margins(points, torch.nn.functional.normalize(table, dim=-1)).tolist()
        rows += [
            {"B": budget, "d": first.model.d_model, "kind": "trained", "layers": first.model.layers, "draw": s.seed,
             "margin": m} for s, m in zip(specs, found)
        ]  # fmt: skip
    return pd.DataFrame(rows)


def margins_by_dimension(task: MNNS, rows: pd.DataFrame) -> Figure:
    """Margins by d, a panel per budget; dots are draws or seeds, lines means, the level line one-hot states."""
    budgets = unique(rows["B"])
    figure, axes = panels(-(-len(budgets) // 2), min(2, len(budgets)), height=2.5)
    for axis in axes.flat[len(budgets) :]:
        axis.remove()
    for axis, budget in zip(axes.flat, budgets):
        axis.axhline(one_hot_margin(task, budget), color="black", linewidth=1.0, linestyle=":")
        for kind, (colour, marker) in KINDS.items():
            part = rows[(rows["B"] == budget) & (rows["kind"] == kind)]
            axis.scatter(part["d"], part["margin"], s=16, color=colour, marker=marker, alpha=0.5, linewidths=0)
            if kind != "trained":
                mean = part.groupby("d")["margin"].mean()
                axis.plot(mean.index, mean, color=colour, marker=marker, markersize=4, linewidth=1.5)
        axis.set(xlabel=f"dimension d (B = {budget})", ylim=(0, None), xticks=unique(rows["d"].sort_values()))
    for row in axes:
        row[0].set_ylabel("margin")
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="" if kind == "trained" else "-", label=kind)
        for kind, (colour, marker) in KINDS.items()
    ]
    handles.append(Line2D([], [], color="black", linewidth=1.0, linestyle=":", label="one dimension per state"))
    figure.legend(handles=handles, loc="outside upper center", ncols=4, frameon=False)
    return figure


def margins_table(task: MNNS, rows: pd.DataFrame) -> pd.DataFrame:
    """Mean margins by kind, budget and d, beside the largest any embeddings of all B-subsets could have."""
    table = []
    for (budget, d), cell in rows.groupby(["B", "d"]):
        means = cell.groupby("kind")["margin"].mean()
        table.append(
            {"B": budget, "d": d, **{kind: means.get(kind) for kind in KINDS}, "one-hot": one_hot_margin(task, budget),
             "$\\delta_{\\max}$, all subsets": packing.largest_margin(task.states, budget)}
        )  # fmt: skip
    return pd.DataFrame(table)


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


def head(rows: pd.DataFrame) -> Figure:
    """Mean KL of the head by d, a line per budget."""
    figure, axes = panels(1, 1, width=6.0, height=3.2)
    axis = axes[0, 0]
    for budget, part in rows.groupby("B"):
        name = budget_name(budget)
        look = dict(color=COLOURS[name], marker=MARKERS[name], linestyle=DASHES[name]) if name in COLOURS else {}
        axis.plot(part["d"], part["KL"], label=name, markersize=5, **look)
    axis.set_yscale("log")
    axis.set(xlabel="dimension d of the head", ylabel="mean KL to the targets (nat)", xticks=unique(rows["d"]))
    axis.legend(loc="upper right", frameon=False)
    return figure


def whole_tree_divergence(task: MNNS) -> float:
    """Largest KL (nat) of the full budget's thought targets from polynomials of degree eight in the squared sum."""
    points = targets_of(task, task.trajectories)
    sums = torch.arange(-task.bound, task.bound + 1, dtype=torch.float64)
    return float(softmax_head.divergence(points, softmax_head.polynomial_logits(sums**2, points)).max())


# Beside the runs


def cliff(rows: pd.DataFrame, vocab: int, share: float) -> Figure:
    """Accuracy of the budget sweep by d, a column per profile, above where the bounds of each budget lie."""
    profiles, names = unique(rows["profile"]), [budget_name(b) for b in sorted(unique(rows["budget"]))]
    figure, axes = panels(2, len(profiles), width=8.4, height=2.5, sharex=True, sharey="row", height_ratios=[2.2, 1])
    for column, profile in enumerate(profiles):
        for place, name in enumerate(names):
            budget = int(name.removeprefix("B = "))
            part = rows[(rows["profile"] == profile) & (rows["budget"] == budget)]
            _accuracies(axes[0, column], part, name, 0.9 * (place - (len(names) - 1) / 2))
            _marks(axes[1, column], vocab, budget, share, name)
        axes[0, column].set(ylim=(40, 102))
        axes[1, column].set(xlabel=f"dimension d ({recipe(profile)})", xlim=(0, 35), xticks=[0, 8, *D_MODELS])
        axes[1, column].set(ylim=(len(LOOKS) - 0.5, -0.5))
    axes[1, 0].set_yticks(range(len(LOOKS)), [label for label, _, _ in LOOKS.values()])
    axes[0, 0].set_ylabel("validation accuracy (%)")
    series_legend(figure, names)
    return figure


def _accuracies(axis: Axes, part: pd.DataFrame, name: str, shift: float) -> None:
    for d in D_MODELS:
        shares = part.loc[part["d_model"] == d, "last"]
        if len(shares):
            seed_dots(axis, d + shift, 100 * shares, name, spread=0.25)
        if (stated := paper_accuracy(name, d)) is not None:
            axis.scatter([d + shift], [stated], s=110, **PAPER)


def _marks(axis: Axes, vocab: int, budget: int, share: float, name: str) -> None:
    margin = share * packing.largest_margin(vocab, budget)
    least = [dimension(vocab, budget, margin) for dimension in packing.DIMENSIONS.values()]
    axis.scatter(least, range(len(least)), s=36, color=COLOURS[name], marker=MARKERS[name])


def cliff_table(rows: pd.DataFrame, vocab: int, share: float) -> pd.DataFrame:
    """By budget: what the bounds ask for, and mean accuracies (%) by profile and d."""
    table = []
    for budget in sorted(unique(rows["budget"])):
        margin = share * packing.largest_margin(vocab, budget)
        entry = {"B": budget, "d asked for": _least(vocab, budget, margin)}
        for (profile, d), cell in rows[rows["budget"] == budget].groupby(["profile", "d_model"], sort=False):
            entry[f"{recipe(profile)}, d = {d}"] = f"{100 * cell['last'].mean():.1f}"
        table.append(entry)
    found = pd.DataFrame(table)
    return found[[*found.columns[:2], *sorted(found.columns[2:])]]


def cliff_findings(rows: pd.DataFrame, vocab: int, share: float) -> list[str]:
    """What the paper's formula asks for at most; then, per profile and d, how the largest budget's seeds fare."""
    budgets = sorted(unique(rows["budget"]))
    most = max(packing.paper_dimension(vocab, b, share * packing.largest_margin(vocab, b)) for b in budgets)
    told = [f"The paper's formula asks for at most d = {most:.1f}; the smallest d tried is {min(D_MODELS)}."]
    for (profile, d), cell in rows[rows["budget"] == budgets[-1]].groupby(["profile", "d_model"], sort=False):
        seeds = 100 * cell["last"]
        told.append(
            f"**{recipe(profile)}, d = {d}, B = {budgets[-1]}**: {seeds.mean():.1f} % in the mean of {len(seeds)} "
            f"seeds, from {seeds.min():.1f} to {seeds.max():.1f} %."
        )
    return told


# Checks


def checks(rows: pd.DataFrame, found: pd.DataFrame, heads: pd.DataFrame, task: MNNS) -> dict[str, bool]:
    """The chapter's claims: what is proved, counted anew, and what was measured at the defaults."""
    counts = {b: len(targets_of(task, b)) for b in (4, 8, 16)}
    widened = found[found["kind"] == "widened"].set_index(["B", "d"])["margin"]
    kl = heads.set_index(["B", "d"])["KL"]
    best = rows.loc[(rows["profile"] == "quick") & (rows["budget"] == 16) & (rows["d_model"] == 16), "last"].max()
    claims = {
        "a fixed margin of a tenth cannot be had by every budget": not packing.fixed_margin_is_possible(FIXED),
        "at possible margins the paper's bound holds": packing.bound_holds_at_possible_margins(),
        "the paper's formula asks for less than half of the smallest d tried": 2 * packing.most_asked_for()
        < min(D_MODELS),
        "all trajectories have fewer different targets than 4 or 8": counts[16] < min(counts[4], counts[8]),
        "eight dimensions show every target of the full budget, by construction": whole_tree_divergence(task) < 1e-9,
        "at d = 16 some seed of B = 16 is right on nine of ten inputs (quick)": bool(best > 0.9),
    }
    if (16, 8) in widened:
        claims["in eight dimensions the full budget's targets can be as far apart as with one per state"] = bool(
            widened[16, 8] > one_hot_margin(task, 16)
        )
    if {(16, 6), (16, 8)} <= set(kl.index):
        claims["a fitted head finds it: from d = 6 to 8 the KL falls tenfold"] = bool(kl[16, 8] < kl[16, 6] / 10)
    return claims
