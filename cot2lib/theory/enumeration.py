"""The exact distribution of q_m, by listing every count vector.

This is the second way to the numbers of `cot2lib.theory.estimators` (Section 4.2), and assumes nothing about
covariances. Small chains are listed in rational arithmetic, longer ones in float64 for systematic draws alone, which
reach few count vectors.
"""

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise
from math import factorial, prod

import torch
from jaxtyping import Float
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.thoughts import systematic_counts

LARGEST_DENOMINATOR = 10**6
MOST_ENTRIES = 10**7  # of the table of count vectors that one step leads to
SHORTEST = 1e-12  # an interval of the uniform draw that is shorter comes from rounding

Fractions = tuple[Fraction, ...]
Counts = tuple[int, ...]
CountDistribution = dict[Counts, Fraction]


def count_distributions(
    start: Float[Tensor, " v"], transitions: list[Float[Tensor, "v v"]], k: int, sampler: str = "multinomial"
) -> Iterator[CountDistribution]:
    """The exact distribution of the counts K q_t, one for every step t; errors as `rational`."""
    draw = _DRAWS[sampler]
    current = draw(rational(start), k)
    yield current
    for moves in transitions:
        rows = [rational(row) for row in moves]
        following: CountDistribution = defaultdict(Fraction)
        for counts, chance in current.items():
            mixed = tuple(sum((n * p for n, p in zip(counts, column)), Fraction(0)) / k for column in zip(*rows))
            for reached, share in draw(mixed, k).items():
                following[reached] += chance * share
        current = dict(following)
        yield current


def rational(probabilities: Float[Tensor, " v"]) -> Fractions:
    """Probabilities as short fractions that sum to exactly one."""
    shares = tuple(Fraction(p).limit_denominator(LARGEST_DENOMINATOR) for p in probabilities.tolist())
    if sum(shares) != 1:
        raise SpecError("the probabilities are no short fractions that sum to 1; exact enumeration needs such.")
    return shares


def mean(counted: CountDistribution, k: int) -> Fractions:
    chances = counted.values()
    return tuple(sum((chance * n for n, chance in zip(column, chances)), Fraction(0)) / k for column in zip(*counted))


def error(counted: CountDistribution, k: int) -> Fraction:
    centre = mean(counted, k)
    distance = lambda counts: sum((Fraction(n, k) - c) ** 2 for n, c in zip(counts, centre))
    return sum((chance * distance(counts) for counts, chance in counted.items()), Fraction(0))


def both_tokens(counted: CountDistribution, token: int) -> Fraction:
    """P(i_1 = i_2 = token): the probability that two of the K draws, fixed in advance, give this token."""
    draws = sum(next(iter(counted)))
    pairs = draws * (draws - 1)
    return sum((chance * Fraction(q[token] * (q[token] - 1), pairs) for q, chance in counted.items()), Fraction(0))


def _multinomial(shares: Fractions, k: int) -> CountDistribution:
    tokens = [token for token, share in enumerate(shares) if share]
    counted = {}
    for drawn in combinations_with_replacement(tokens, k):
        counts = tuple(drawn.count(token) for token in range(len(shares)))
        ways = factorial(k) // prod(map(factorial, counts))
        counted[counts] = ways * prod((shares[t] ** counts[t] for t in tokens), start=Fraction(1))
    return counted


def _systematic(shares: Fractions, k: int) -> CountDistribution:
    """Counts of K systematic draws. They only change at the offsets at which one of the points changes its token."""
    ends = [k * sum(shares[: token + 1], Fraction(0)) for token in range(len(shares))]
    cuts = sorted({Fraction(0), Fraction(1), *(-end % 1 for end in ends)})
    counted: CountDistribution = defaultdict(Fraction)
    for low, high in pairwise(cuts):
        points = [0, *((end + (low + high) / 2).__floor__() for end in ends)]
        counted[tuple(after - before for before, after in pairwise(points))] += high - low
    return dict(counted)


_DRAWS = {"multinomial": _multinomial, "systematic": _systematic}


# Systematic draws in float64


def systematic_error(start: Float[Tensor, " v"], transitions: list[Float[Tensor, "v v"]], k: int) -> float:
    """E||q_m - alpha_m||^2 of a trace of K systematically drawn tokens.

    The last step needs no listing. A token whose expected count has the fractional part f has the variance f (1 - f).
    """
    expected, chance, centre = k * start[None], torch.ones(1, dtype=torch.float64), start  # (state, v), (state), (v)
    for moves in transitions:
        states, v = expected.shape
        if states * (v + 1) * v > MOST_ENTRIES:
            raise SpecError(
                f"{states} count vectors of {v} tokens are reachable by systematic draws, too many to go on listing; "
                "take a shorter chain or fewer tokens."
            )
        cuts = (-expected.cumsum(-1)).remainder(1.0).sort(-1).values  # (state, v): counts change at these offsets
        edges = torch.cat([torch.zeros(states, 1), cuts, torch.ones(states, 1)], -1).to(cuts)  # (state, v + 2)
        lengths, middles = edges.diff(dim=-1), (edges[:, 1:] + edges[:, :-1]) / 2  # (state, v + 1)
        real = lengths > SHORTEST
        counts = systematic_counts(expected[:, None].expand(-1, v + 1, -1)[real], middles[real])  # (interval, v)
        counts, place = torch.unique(counts, dim=0, return_inverse=True)
        shares = (chance[:, None] * lengths)[real]
        chance = torch.zeros(len(counts), dtype=torch.float64).index_add(0, place, shares)
        expected, centre = counts @ moves, centre @ moves
    fraction = expected.frac()
    within = (fraction * (1 - fraction)).sum(-1) / k**2  # (state)
    between = (expected / k - centre).square().sum(-1)  # (state)
    return float(chance @ (within + between))
