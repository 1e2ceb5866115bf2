"""How many superpositions fit into d dimensions (paper, appendix on the budget-dimension tradeoff).

The paper packs a ball of radius delta around every superposition z_S = mean of e_i over S of B unit
embeddings, S any B of v states, into the ball of radius 1 + delta, and concludes d = Omega(B ln(v/B))
for a fixed margin delta. The inequality is right, for equal weights, at every margin that can be had;
but none above sqrt(2v/(v-1))/(2B) can (`largest_margin`), so that a fixed one rules out all but small
budgets and the conclusion loses a factor ln B. Beside the paper's formula stand the volume bound it is
rounded from and a sharper one, which packs around the mean of all superpositions.
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from cot2lib.errors import SpecError

STATES = 73  # sums -36..36 of four digits 1-9
BUDGETS = (1, 4, 8, 16)
EXCESS = np.geomspace(1e-3, 1e3, 2001)  # tau - 1 of the centred bound


def log_subsets(vocab: int, budget: int) -> float:
    """ln C(v, B), from the exact integer.

    Raises:
        SpecError: unless 1 <= B <= v.
    """
    _checked(vocab, budget)
    return math.log(math.comb(vocab, budget))


def log_subsets_below(vocab: int, budget: int) -> float:
    """B ln(v/B), which is never above ln C(v, B): each of the B factors (v-i)/(B-i) of C(v, B) is at least v/B."""
    _checked(vocab, budget)
    return budget * math.log(vocab / budget)


def largest_margin(vocab: int, budget: int) -> float:
    """delta_max = sqrt(2v/(v-1))/(2B): no embeddings in the unit ball keep all B-subsets more than twice this apart.

    Raises:
        SpecError: unless 1 <= B < v; with B = v there is one subset and nothing to tell apart.
    """
    _checked(vocab, budget)
    if budget == vocab:
        raise SpecError(f"budget={budget}: only one subset of {vocab} states has that size; choose B < v.")
    return math.sqrt(2 * vocab / (vocab - 1)) / (2 * budget)


def paper_dimension(vocab: int, budget: int, margin: float) -> float:
    """The paper's least d: B ln(v/B) / ln(2/delta), infinite above the largest margin; needs delta <= 1."""
    return _unless_too_wide(vocab, budget, margin, lambda: log_subsets_below(vocab, budget) / math.log(2 / margin))


def volume_dimension(vocab: int, budget: int, margin: float) -> float:
    """Least d by volumes, nothing rounded: ln C(v, B) / ln((1 + delta)/delta); infinite above the largest margin."""
    return _unless_too_wide(vocab, budget, margin, lambda: points_dimension(math.comb(vocab, budget), margin))


def points_dimension(points: int, margin: float) -> float:
    """Least d by volumes for any `points` vectors of the unit ball that are 2 delta apart."""
    return math.log(points) / math.log1p(1 / margin)


def centred_dimension(vocab: int, budget: int, margin: float) -> float:
    """Least d by volumes around the mean of all superpositions, the best over tau > 1; infinite as above.

    The mean squared distance of z_S from its mean is at most s^2 = (v-B)/(B(v-1)), so that all but a share 1/tau of
    the balls lie within radius sqrt(tau) s + delta: (1 - 1/tau) C(v, B) <= (1 + sqrt(tau) s / delta)^d.
    """

    def best() -> float:
        spread = math.sqrt((vocab - budget) / (budget * (vocab - 1)))
        tau = 1 + EXCESS
        counted = log_subsets(vocab, budget) + np.log1p(-1 / tau)
        return float((counted / np.log1p(np.sqrt(tau) * spread / margin)).max())

    return _unless_too_wide(vocab, budget, margin, best)


DIMENSIONS = {"paper": paper_dimension, "volume": volume_dimension, "centred": centred_dimension}


def _unless_too_wide(vocab: int, budget: int, margin: float, dimension) -> float:
    if not margin > 0:
        raise SpecError(f"margin={margin}: must be above 0.")
    return dimension() if margin <= largest_margin(vocab, budget) else math.inf


def _checked(vocab: int, budget: int) -> None:
    if not 1 <= budget <= vocab:
        raise SpecError(f"budget={budget}: a set of {vocab} states has subsets of 1..{vocab}.")


# What the ledger asks


def fixed_margin_is_possible(margin: float = 0.1, vocab: int = STATES, budgets: Sequence[int] = BUDGETS) -> bool:
    """The paper's premise: one margin that every budget can have."""
    return all(margin <= largest_margin(vocab, budget) for budget in budgets)


@cache
def bound_holds_at_possible_margins(most: int = 60) -> bool:
    """What stays true, for all 1 <= B < v <= `most` and shares of the largest margin: B ln(v/B) <= ln C(v, B), and the
    paper's least d is never above that of exact volumes."""
    ordered = lambda v, b, share: (
        log_subsets_below(v, b) <= log_subsets(v, b) + 1e-12
        and paper_dimension(v, b, share * largest_margin(v, b))
        <= volume_dimension(v, b, share * largest_margin(v, b)) + 1e-12
    )
    return all(ordered(v, b, share) for v in range(3, most + 1) for b in range(1, v) for share in (1.0, 0.5, 0.1))


def most_asked_for(vocab: int = STATES, budgets: Sequence[int] = BUDGETS) -> float:
    """The largest d that the paper's formula asks for, at any budget and any margin that can be had."""
    return max(paper_dimension(vocab, budget, largest_margin(vocab, budget)) for budget in budgets)


def rules_out(dimensions: Sequence[int] = (16, 24, 32), vocab: int = STATES, budgets: Sequence[int] = BUDGETS) -> bool:
    """Whether the paper's formula excludes one of the dimensions of its experiment, for some budget and margin."""
    return min(dimensions) < most_asked_for(vocab, budgets)
