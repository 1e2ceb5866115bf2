"""How often a construction answers right, and how sharp it must be for that.

The answer does not depend on the order of the digits. So one input stands for all orders of a multiset, weighted by
their number. That makes exact matches over all inputs cheap enough to ask for many values of c.
"""

import math
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit.machine import check_room
from cot2lib.theory.construction import FREQUENCY, Design, Sharpness, TrigMNNS, design_of, sufficient_sharpness

SATURATED = 1e9  # a sharpness that makes its place exact
TOLERANCE = 1e-5  # of the logarithm of the smallest sharpness


def multisets(length: int, low: int = 1, high: int = 9) -> Int[Tensor, "input length"]:
    """Every multiset of `length` digits low..high once, each row sorted; SpecError if they take too much memory."""
    check_room(f"multisets of {length} digits", (high - low + 1) ** length, "take fewer digits")
    return torch.combinations(torch.arange(low, high + 1), length, with_replacement=True).reshape(-1, length)


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


def smallest_sharpness(
    length: int,
    variant: str | Design = "repaired",
    high: int = 9,
    place: str | None = None,
    frequency: float | int = FREQUENCY,
    dtype: torch.dtype = torch.float64,
) -> float:
    """The smallest c with which every input of digits 1..high is answered right, by bisection to a relative 1e-5.

    The bisection assumes that an input which is right at some c stays right above it. So it tries only those again
    that were still wrong.

    Args:
        length, variant, frequency, dtype: as for `TrigMNNS`.
        high: the largest digit.
        place: the one field of `Sharpness` that varies while the others are saturated. None varies all four together.

    Raises:
        SpecError: if four times the sufficient c is not enough, so that no c is.
    """
    digits, bound = multisets(length, 1, high), length * high

    def wrong(c: float, among: Int[Tensor, "input length"]) -> Int[Tensor, "wrong length"]:
        """Those inputs that are answered wrong at this c."""
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
