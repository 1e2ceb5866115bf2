"""How many superpositions fit into d dimensions.

The source is the appendix "Discussion on Budget-Embedding Dimension Tradeoff". A superposition z_S is the mean of the
unit embeddings e_i over a set S of B of the v states. The paper packs a ball of radius delta around every z_S into the
ball of radius 1 + delta. It concludes d = Omega(B ln(v/B)) for a fixed margin delta.

Differences from the paper:
1. Its inequality is right, for equal weights, at every margin that is possible. But no margin above
   sqrt(2v/(v-1))/(2B) is possible (`largest_margin`). A fixed margin therefore allows only small budgets, and the
   conclusion loses a factor ln B.
2. Two more bounds stand beside the paper's formula: the exact volumes that it is rounded from (`volume_dimension`),
   and a sharper one that packs around the mean of all superpositions (`centred_dimension`).
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

STATES = 73  # sums -36..36 of four digits 1-9
PAPER_BUDGETS = (1, 4, 8, 16)  # of the paper's experiment on d
MOST = 60  # states up to which the paper's inequalities are tried
EXCESS = np.geomspace(1e-3, 1e3, 2001)  # values of tau - 1 that the centred bound tries


def log_subsets(vocab: int, budget: int) -> float:
    """ln C(v, B), from the exact integer."""
    return math.log(math.comb(vocab, budget))


def log_subsets_below(vocab: int, budget: int) -> float:
    """B ln(v/B). It is at most ln C(v, B), because each of the B factors (v-i)/(B-i) of C(v, B) is at least v/B."""
    return budget * math.log(vocab / budget)


def largest_margin(vocab: int, budget: int) -> float:
    """delta_max = sqrt(2v/(v-1))/(2B). No embeddings in the unit ball have a larger margin for all subsets of B."""
    return math.sqrt(2 * vocab / (vocab - 1)) / (2 * budget)


def paper_dimension(vocab: int, budget: int, margin: float) -> float:
    """The paper's least d: B ln(v/B) / ln(2/delta), for delta <= 1. It is infinite above the largest margin."""
    possible = margin <= largest_margin(vocab, budget)
    return log_subsets_below(vocab, budget) / math.log(2 / margin) if possible else math.inf


def volume_dimension(vocab: int, budget: int, margin: float) -> float:
    """Least d by exact volumes: ln C(v, B) / ln((1 + delta)/delta). It is infinite above the largest margin."""
    possible = margin <= largest_margin(vocab, budget)
    return log_subsets(vocab, budget) / math.log1p(1 / margin) if possible else math.inf


def centred_dimension(vocab: int, budget: int, margin: float) -> float:
    """Least d by volumes around the mean of all superpositions. It is infinite above the largest margin.

    The mean squared distance of z_S from its mean is at most s^2 = (v-B)/(B(v-1)). By Markov's inequality all but a
    share 1/tau of the balls lie within the radius sqrt(tau) s + delta. So (1 - 1/tau) C(v, B) <=
    (1 + sqrt(tau) s / delta)^d for every tau > 1. The bound takes the best tau.
    """
    if margin > largest_margin(vocab, budget):
        return math.inf
    spread, tau = math.sqrt((vocab - budget) / (budget * (vocab - 1))), 1 + EXCESS
    counted = log_subsets(vocab, budget) + np.log1p(-1 / tau)
    return float((counted / np.log1p(np.sqrt(tau) * spread / margin)).max())


DIMENSIONS = {"paper": paper_dimension, "volume": volume_dimension, "centred": centred_dimension}


# What the ledger asks


def fixed_margin_is_possible(margin: float = 0.1, budgets: Sequence[int] = PAPER_BUDGETS) -> bool:
    """Whether the paper's premise holds: this one margin is possible at every budget."""
    return all(margin <= largest_margin(STATES, budget) for budget in budgets)


@cache
def bound_holds_at_possible_margins() -> bool:
    """Whether the paper's inequalities hold at possible margins, for all 1 <= B < v <= `MOST`.

    The inequalities are B ln(v/B) <= ln C(v, B), and that the paper's least d is never above that of exact volumes.
    The margins are the largest one, its half and its tenth.
    """
    ordered = lambda v, b, share: (
        log_subsets_below(v, b) <= log_subsets(v, b) + 1e-12
        and paper_dimension(v, b, share * largest_margin(v, b))
        <= volume_dimension(v, b, share * largest_margin(v, b)) + 1e-12
    )
    return all(ordered(v, b, share) for v in range(3, MOST + 1) for b in range(1, v) for share in (1.0, 0.5, 0.1))


def most_asked_for() -> float:
    """The largest d that the paper's formula asks for, over the budgets and all possible margins."""
    return max(paper_dimension(STATES, budget, largest_margin(STATES, budget)) for budget in PAPER_BUDGETS)


def rules_out(dimensions: Sequence[int]) -> bool:
    """Whether the paper's formula excludes one of some dimensions, at some budget and possible margin."""
    return min(dimensions) < most_asked_for()
