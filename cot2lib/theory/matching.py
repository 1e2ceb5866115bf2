"""How often a construction answers right, and how sharp it must be for that.

The answer does not depend on the order of the digits, so one input for each multiset, weighed by the number of its
orders, stands for all of them where an exact match is asked for many values of c.
"""

import math
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.theory.construction import FREQUENCY, Design, Sharpness, TrigMNNS, design_of, sufficient_sharpness

SATURATED = 1e9  # a sharpness at which a place that is not studied is exact
TOLERANCE = 1e-5  # of the logarithm of the smallest sharpness


def multisets(length: int, low: int = 1, high: int = 9) -> Int[Tensor, "input length"]:
    """Every multiset of digits once, sorted."""
    return torch.combinations(torch.arange(low, high + 1), length, with_replacement=True).reshape(-1, length)


def orders(digits: Int[Tensor, "input length"]) -> Float[Tensor, " input"]:
    """How many distinct orders each row of digits has: n! over the factorials of the digits' multiplicities."""
    counts = torch.nn.functional.one_hot(digits).sum(1).double()
    return torch.exp(math.lgamma(digits.shape[1] + 1) - torch.lgamma(counts + 1).sum(1)).round()


def signed_sums(digits: Int[Tensor, "input length"]) -> Int[Tensor, "input sum"]:
    """All 2^n signed sums in the construction's order: of each digit's two branches the plus comes first."""
    sums = torch.zeros(len(digits), 1, dtype=torch.int64)
    for digit in digits.unbind(1):
        sums = torch.cat([sums + digit[:, None], sums - digit[:, None]], dim=1)
    return sums


def optima(digits: Int[Tensor, "input length"]) -> Int[Tensor, " input"]:
    """The smallest non-negative signed sum of each row: the smallest |sum|, since signs can be flipped."""
    return signed_sums(digits).abs().amin(1)


def exact_match(model: TrigMNNS, digits: Int[Tensor, "input length"]) -> float:
    """Share of all orders of some rows of digits that `model` answers right."""
    weight = orders(digits)
    return float((weight * (model.solve(digits) == optima(digits))).sum() / weight.sum())


def smallest_sharpness(
    length: int,
    variant: str | Design = "repaired",
    high: int = 9,
    place: str | None = None,
    frequency: float | int = FREQUENCY,
    dtype: torch.dtype = torch.float64,
) -> float:
    """The smallest c with which every input of digits 1..high is answered right, to a relative 1e-5, by bisection.

    An input that is right at some c is taken to stay so above it; only those still wrong are tried again.

    Args:
        place: a field of `Sharpness` that alone varies, the others being saturated; None for all four together.

    Raises:
        SpecError: if four times the sufficient c is not enough, so that none is.
    """
    digits, bound = multisets(length, 1, high), length * high

    def wrong(c: float, among: Int[Tensor, "input length"]) -> Int[Tensor, "wrong length"]:
        sharpness = replace(Sharpness.same(SATURATED), **{place: c}) if place else c
        model = TrigMNNS(length, bound, variant, sharpness, frequency, dtype)
        return among[model.solve(among) != optima(among)]

    high_c = 4 * sufficient_sharpness(length, bound, design_of(variant), frequency)
    if len(wrong(high_c, digits)):
        raise SpecError(f"variant {variant!r} does not solve all inputs of {length} digits at any sharpness.")
    low, top = 0.0, math.log(high_c)
    while top - low > TOLERANCE:
        middle = (low + top) / 2
        failing = wrong(math.exp(middle), digits)
        low, top, digits = (middle, top, failing) if len(failing) else (low, middle, digits)
    return math.exp(top)
