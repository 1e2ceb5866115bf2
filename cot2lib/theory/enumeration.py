"""The law of q_m by listing every count vector: the second way to the numbers of `cot2lib.theory.estimators`.

A trace of K tokens on v is a chain of count vectors; nothing is assumed about covariances here. In rational
arithmetic for small chains and independent or systematic draws, in float64 for longer ones with systematic draws,
of which few count vectors are reachable.
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
SHORTEST = 1e-12  # stretch of the uniform draw that is no rounding

Rational = tuple[Fraction, ...]
Counts = tuple[int, ...]
Law = dict[Counts, Fraction]


def count_laws(start: Tensor, transitions: list[Tensor], k: int, sampler: str = "multinomial") -> Iterator[Law]:
    """The exact law of the counts K q_t at every step.

    Raises:
        SpecError: if a probability is no short fraction, or for another sampler than multinomial and systematic.
    """
    if sampler not in _DRAWS:
        raise SpecError(f"sampler={sampler!r}: listed are {' and '.join(_DRAWS)}.")
    draw = _DRAWS[sampler]
    law = draw(rational(start), k)
    yield law
    for moves in transitions:
        rows = [rational(row) for row in moves]
        onward: Law = defaultdict(Fraction)
        for counts, chance in law.items():
            mixed = tuple(sum((n * p for n, p in zip(counts, column)), Fraction(0)) / k for column in zip(*rows))
            for reached, share in draw(mixed, k).items():
                onward[reached] += chance * share
        law = dict(onward)
        yield law


def rational(law: Float[Tensor, " v"]) -> Rational:
    """Probabilities as short fractions that sum to exactly one."""
    shares = tuple(Fraction(p).limit_denominator(LARGEST_DENOMINATOR) for p in law.tolist())
    if sum(shares) != 1:
        raise SpecError("a law is no list of short fractions; exact enumeration needs one.")
    return shares


def mean(law: Law, k: int) -> Rational:
    """E q."""
    return tuple(sum((chance * n for n, chance in zip(column, law.values())), Fraction(0)) / k for column in zip(*law))


def error(law: Law, k: int) -> Fraction:
    """E||q - E q||^2."""
    centre = mean(law, k)
    return sum(
        (chance * sum((Fraction(n, k) - c) ** 2 for n, c in zip(q, centre)) for q, chance in law.items()), Fraction(0)
    )


def both_tokens(law: Law, token: int) -> Fraction:
    """P(i_1 = i_2 = token): that two of the K slots, named in advance, hold it."""
    slots = sum(next(iter(law)))
    pairs = slots * (slots - 1)
    return sum((chance * Fraction(q[token] * (q[token] - 1), pairs) for q, chance in law.items()), Fraction(0))


def _independent(shares: Rational, k: int) -> Law:
    """K independent draws: multinomial."""
    tokens = [token for token, share in enumerate(shares) if share]
    law = {}
    for drawn in combinations_with_replacement(tokens, k):
        counts = tuple(drawn.count(token) for token in range(len(shares)))
        ways = factorial(k) // prod(map(factorial, counts))
        law[counts] = ways * prod((shares[t] ** counts[t] for t in tokens), start=Fraction(1))
    return law


def _systematic(shares: Rational, k: int) -> Law:
    """Systematic draws: the counts are constant between the offsets at which a point changes its token."""
    ends = [k * sum(shares[: token + 1], Fraction(0)) for token in range(len(shares))]
    cuts = sorted({Fraction(0), Fraction(1), *(-end % 1 for end in ends)})
    law: Law = defaultdict(Fraction)
    for low, high in pairwise(cuts):
        points = [0, *((end + (low + high) / 2).__floor__() for end in ends)]
        law[tuple(after - before for before, after in pairwise(points))] += high - low
    return dict(law)


_DRAWS = {"multinomial": _independent, "systematic": _systematic}


# Systematic draws in float64


def systematic_error(start: Float[Tensor, " v"], transitions: list[Float[Tensor, "v v"]], k: int) -> float:
    """E||q_m - alpha_m||^2 of a trace of K systematically drawn tokens.

    The last step needs no listing: a token expected e times varies by f (1 - f), f the fraction of e.

    Raises:
        SpecError: if too many count vectors are reachable.
    """
    expected, chance, centre = k * start[None], torch.ones(1, dtype=torch.float64), start
    for moves in transitions:
        counts, chance = _reached(expected, chance)
        expected, centre = counts @ moves, centre @ moves
    fraction = expected.frac()
    within = (fraction * (1 - fraction)).sum(-1) / k**2
    between = (expected / k - centre).square().sum(-1)
    return float(chance @ (within + between))


def _reached(
    expected: Float[Tensor, "state v"], chance: Float[Tensor, " state"]
) -> tuple[Float[Tensor, "reached v"], Float[Tensor, " reached"]]:
    """Every count vector drawn from some expected counts, with its probability."""
    states, v = expected.shape
    if states * (v + 1) * v > MOST_ENTRIES:
        raise SpecError(
            f"{states} count vectors of {v} tokens are reachable by systematic draws, too many to go on listing; "
            "take a shorter chain or fewer tokens, or simulate (cot2lib.theory.simulation)."
        )
    cuts = (-expected.cumsum(-1)).remainder(1.0).sort(-1).values
    edges = torch.cat([torch.zeros(states, 1), cuts, torch.ones(states, 1)], -1).to(cuts)
    lengths, middles = edges.diff(dim=-1), (edges[:, 1:] + edges[:, :-1]) / 2
    real = lengths > SHORTEST
    counts = systematic_counts(expected[:, None].expand(-1, v + 1, -1)[real], middles[real])
    reached, place = torch.unique(counts, dim=0, return_inverse=True)
    shares = (chance[:, None] * lengths)[real]
    return reached, torch.zeros(len(reached), dtype=torch.float64).index_add(0, place, shares)
