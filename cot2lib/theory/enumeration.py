"""The exact distribution of q_m, by listing every count vector.

This is the second way to the numbers of `cot2lib.theory.estimators` (Section 4.2), in rational arithmetic and without
any assumption about covariances.
"""

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise
from math import factorial, prod

from jaxtyping import Float
from torch import Tensor

from cot2lib.errors import SpecError

LARGEST_DENOMINATOR = 10**6
MOST_PRODUCTS = 10**7  # of a step's count vectors with its transitions; seconds if fractions are short, else minutes

Fractions = tuple[Fraction, ...]
Counts = tuple[int, ...]
CountDistribution = dict[Counts, Fraction]


def count_distributions(
    start: Float[Tensor, " v"], transitions: list[Float[Tensor, "v v"]], k: int, sampler: str = "multinomial"
) -> Iterator[CountDistribution]:
    """The exact distribution of the counts K q_t, one for every step t; SpecError if it is too long to list."""
    draw = {"multinomial": _multinomial, "systematic": _systematic}[sampler]
    current = draw(rational(start), k)
    yield current
    for moves in transitions:
        if len(current) * moves.numel() > MOST_PRODUCTS:
            raise SpecError(f"{len(current)} count vectors are too many to go on listing; give fewer steps or tokens.")
        rows = [rational(row) for row in moves]
        following: CountDistribution = defaultdict(Fraction)
        for counts, chance in current.items():
            mixed = tuple(sum((n * p for n, p in zip(counts, column)), Fraction(0)) / k for column in zip(*rows))
            for reached, share in draw(mixed, k).items():
                following[reached] += chance * share
        current = dict(following)
        yield current


def rational(probabilities: Float[Tensor, " v"]) -> Fractions:
    """Probabilities as fractions that sum to exactly one, short ones where such round to them."""
    given = [Fraction(p) for p in probabilities.tolist()]
    short = tuple(p.limit_denominator(LARGEST_DENOMINATOR) for p in given)
    return short if sum(short) == 1 else tuple(p / sum(given) for p in given)


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
