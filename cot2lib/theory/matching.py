"""How often a construction answers right, and how sharp it must be for that.

The answer does not depend on the order of the digits, unless c is so small that other tokens are attended to. So one
input stands for all orders of a multiset, weighted by their number. That makes exact matches over all inputs cheap
enough to ask for many values of c.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.theory.construction import VARIANTS, TrigMNNS, sufficient_sharpness

TOLERANCE = 1e-5  # of the logarithm of the smallest sharpness


def multisets(length: int) -> Int[Tensor, "input length"]:
    """Every multiset of `length` digits 1..9 once, each row sorted."""
    return torch.combinations(torch.arange(1, 10), length, with_replacement=True).reshape(-1, length)


def orders(digits: Int[Tensor, "input length"]) -> Float[Tensor, " input"]:
    """Number of distinct orders of each row of digits: n! over the factorials of the digits' multiplicities."""
    counts = torch.nn.functional.one_hot(digits).sum(1).double()  # (input, digit)
    return torch.exp(math.lgamma(digits.shape[1] + 1) - torch.lgamma(counts + 1).sum(1)).round()


def signed_sums(digits: Int[Tensor, "input length"]) -> Int[Tensor, "input sum"]:
    """All 2^n signed sums in the construction's order: for each digit first all sums with plus, then with minus."""
    sums = torch.zeros(len(digits), 1, dtype=torch.int64)
    for digit in digits.unbind(1):
        sums = torch.cat([sums + digit[:, None], sums - digit[:, None]], dim=1)  # twice as many sums
    return sums


def optima(digits: Int[Tensor, "input length"]) -> Int[Tensor, " input"]:
    """The smallest non-negative signed sum of each row. It is the smallest |sum|, because all signs can be flipped."""
    return signed_sums(digits).abs().amin(1)


def exact_match(model: TrigMNNS, digits: Int[Tensor, "input length"]) -> float:
    """Share of the inputs that `model` answers right, where each row of digits counts with all its orders."""
    weight = orders(digits)
    return float((weight * (model.solve(digits) == optima(digits))).sum() / weight.sum())


def smallest_sharpness(length: int, variant: str = "repaired") -> float:
    """The smallest c with which every input of digits 1..9 is answered right, by bisection to a relative 1e-5.

    The bisection assumes that an input which is right at some c stays right above it. So it tries only those again
    that were still wrong.
    """
    digits, bound = multisets(length), 9 * length

    def wrong(c: float, among: Int[Tensor, "input length"]) -> Int[Tensor, "wrong length"]:
        return among[TrigMNNS(length, bound, variant, c).solve(among) != optima(among)]

    high_c = 4 * sufficient_sharpness(length, bound, VARIANTS[variant])
    if len(wrong(high_c, digits)):
        raise SpecError(f"variant {variant!r} does not solve all inputs of {length} digits at any sharpness.")
    low, top = 0.0, math.log(high_c)
    while top - low > TOLERANCE:
        middle = (low + top) / 2
        failing = wrong(math.exp(middle), digits)
        low, top, digits = (middle, top, failing) if len(failing) else (low, middle, digits)
    return math.exp(top)
