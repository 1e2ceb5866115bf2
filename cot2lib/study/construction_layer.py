"""Whether each proposition behind the paper's construction is true of the part that it is about.

Differences from the paper (appendix "Construction for MNNS Task"), which change no verdict:
1. Prop. RotationSingleAttn calls R a rotation. R is a permutation of determinant (-1)^(n+1), so it is none for even n.
2. Prop. partial-sum-experts speaks of the "first 2^j coordinate-pairs". They are 2^j coordinates, as its formal part
   says.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.theory.construction import (  # isort: skip
    FREQUENCY, VARIANTS, Layout, NextToken, ReadOff, Router, TrigMNNS, multisets, optima, partial_sums, signed_sums,
    sufficient_sharpness,
)  # fmt: skip

SATURATED = 1e9  # a sharpness that makes its place exact
TOLERANCE = 1e-5  # of the logarithm of the smallest sharpness


def smallest_sharpness(length: int, variant: str) -> float:
    """The smallest c with which every input of digits 1..9 is answered right, by bisection to a relative 1e-5.

    The bisection assumes that an input which is right at some c stays right above it. So it tries only those again
    that were still wrong.
    """
    digits, bound = multisets(length), 9 * length
    low, top = 0.0, math.log(4 * sufficient_sharpness(length, bound, VARIANTS[variant]))
    while top - low > TOLERANCE:
        middle = (low + top) / 2
        failing = digits[TrigMNNS(length, bound, variant, math.exp(middle)).solve(digits) != optima(digits)]
        low, top, digits = (middle, top, failing) if len(failing) else (low, middle, digits)
    return math.exp(top)


def attention_mass(length: int, sharpness: float, step: int, outputs: int | None = None) -> float:
    """Attention weight of the right input token at pass `step`. The passes select z_1, z_2, ..., z_{n+2}, z_1, ...

    `outputs` written tokens are visible. None shows step - 1, as a causal mask does.
    """
    layout = Layout(length)
    written = step - 1 if outputs is None else outputs
    numbers = [*range(1, length + 3), *range(1, written + 1)]
    tokens = torch.zeros(1, len(numbers), layout.width, dtype=torch.float64)
    tokens[0, range(len(numbers)), [layout.position(number) for number in numbers]] = 1.0
    query = torch.zeros(1, layout.width, dtype=torch.float64)
    query[0, layout.position(step - 1)] = 1.0
    weights = NextToken(layout, sharpness, torch.float64).weights(query, tokens)
    return float(weights[0, (step - 1) % (length + 2)])


def routing(length: int, sharpness: float) -> Float[Tensor, "token expert"]:
    """Weights of the n + 1 experts for each of the tokens z_1..z_{n+2}, at length n."""
    layout = Layout(length)
    tokens = torch.zeros(length + 2, layout.width, dtype=torch.float64)
    tokens[:, layout.positions] = torch.eye(length + 2, dtype=torch.float64)
    return Router(layout, length + 1, sharpness, torch.float64)(tokens)


def encoded(sums: Int[Tensor, "input sum"], width: int, omega: float) -> Float[Tensor, "input width"]:
    """A token with the pairs (cos ws, sin ws) of some sums in its first coordinates, and zeros behind them."""
    angles = omega * sums.double()
    out = torch.zeros(len(sums), width, dtype=torch.float64)
    out[:, : 2 * sums.shape[1]] = torch.stack([angles.cos(), angles.sin()], dim=-1).flatten(1)  # (input, 2 sum)
    return out


def partial_sum_error(digits: Int[Tensor, "input length"]) -> float:
    """Largest error of any coordinate that a partial-sum expert writes, when it is given exact partial sums."""
    length, largest = digits.shape[1], 0.0
    layout, omega = Layout(length), FREQUENCY * torch.pi / (2 * int(digits.sum(1).max()))
    for step in range(1, length + 1):
        expert = partial_sums(layout, step, 1.0, False, torch.float64)
        before = encoded(signed_sums(digits[:, : step - 1]), layout.width, omega)
        current = encoded(digits[:, step - 1 : step], layout.width, omega)
        wanted = encoded(signed_sums(digits[:, :step]), layout.width, omega)
        largest = max(largest, float((expert(before, current) - wanted).abs().max()))
    return largest


def read_off(
    sums: Int[Tensor, "input sum"], bound: int, read: str = "sigmoid", sharpness: float = SATURATED
) -> Int[Tensor, " input"]:
    """The answer of the last expert to 2^n sums in -S..S, S = `bound`, whose pairs have length 1."""
    layout, omega = Layout(sums.shape[1].bit_length() - 1), FREQUENCY * torch.pi / (2 * bound)
    expert = ReadOff(layout, read, omega, 1.0, 1.0, sharpness)
    every = torch.arange(-bound, bound + 1)
    answers = encoded(every[:, None], 2, omega)
    written = expert(encoded(sums, layout.width, omega))[:, :2]  # (input, 2)
    return every[(written @ answers.T).argmax(-1)]


def sum_sets() -> Int[Tensor, "input sum"]:
    """Every four sums in -5..5 of which one at least is not negative."""
    sums = torch.cartesian_prod(*[torch.arange(-5, 6)] * 4)
    return sums[(sums >= 0).any(1)]


def smallest_non_negative(sums: Int[Tensor, "input sum"]) -> Int[Tensor, " input"]:
    """The smallest sum >= 0 of each row. Each row must hold one."""
    return sums.masked_fill(sums < 0, int(sums.max()) + 1).amin(1)
