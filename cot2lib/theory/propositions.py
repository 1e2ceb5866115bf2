"""What the propositions behind the construction say, each measured on the block that it is about.

`CLAIMS` holds, for each, whether it is true as printed and as corrected. In Prop. RotationSingleAttn R is a
permutation of determinant (-1)^(n+1), hence for even n no rotation, which changes nothing. In Prop. partial-sum-
experts the "first 2^j coordinate-pairs" are 2^j coordinates, as its formal part says.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.theory.blocks import Layout, NextToken, ReadOff, Router, partial_sums
from cot2lib.theory.construction import FREQUENCY, TrigMNNS
from cot2lib.theory.matching import SATURATED, exact_match, multisets, signed_sums
from cot2lib.theory.verdict import Verdict

TINY = 1e-12
THRESHOLD = "is given a threshold below 0"
SATURATION = (1.0, 4.0, 16.0, 64.0)  # sharpness along which a softmax saturates


def attention_mass(length: int, sharpness: float | int, step: int, outputs: int | None = None) -> float:
    """Attention weight of the right input token at pass `step`: z_1, z_2, ... in turn, from z_{n+2} on.

    `outputs` tokens have been written and are visible, None for the step - 1 that a causal mask shows.
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


def routing(length: int, sharpness: float | int) -> Float[Tensor, "token expert"]:
    """Weights of the n + 1 experts for each of the tokens z_1..z_{n+2}."""
    layout = Layout(length)
    tokens = torch.zeros(length + 2, layout.width, dtype=torch.float64)
    tokens[:, layout.positions] = torch.eye(length + 2, dtype=torch.float64)
    return Router(layout, length + 1, sharpness, torch.float64)(tokens)


def encoded(sums: Int[Tensor, "input sum"], width: int, omega: float) -> Float[Tensor, "input width"]:
    """Pairs (cos ws, sin ws) of each sum in the first coordinates of a token, zeros after them."""
    angles = omega * sums.double()
    out = torch.zeros(len(sums), width, dtype=torch.float64)
    out[:, : 2 * sums.shape[1]] = torch.stack([angles.cos(), angles.sin()], dim=-1).flatten(1)
    return out


def partial_sum_error(digits: Int[Tensor, "input length"]) -> float:
    """Largest error of any coordinate any expert writes, for exact partial sums of the digits before its own."""
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
    sums: Int[Tensor, "input sum"], bound: int, read: str = "sigmoid", sharpness: float | int = SATURATED
) -> Int[Tensor, " input"]:
    """What the last expert makes of 2^n sums in -S..S, S = `bound`, whose pairs have length 1: the nearest sum."""
    layout, omega = Layout(sums.shape[1].bit_length() - 1), FREQUENCY * torch.pi / (2 * bound)
    expert = ReadOff(layout, read, omega, 1.0, 1.0, sharpness, sharpness)
    every = torch.arange(-bound, bound + 1)
    answers = encoded(every[:, None], 2, omega)
    return every[(expert(encoded(sums, layout.width, omega))[:, :2] @ answers.T).argmax(-1)]


def sum_sets(bound: int = 5, count: int = 4) -> Int[Tensor, "input sum"]:
    """Every `count`-tuple of sums in -S..S that holds a non-negative one."""
    sums = torch.cartesian_prod(*[torch.arange(-bound, bound + 1)] * count)
    return sums[(sums >= 0).any(1)]


def smallest_non_negative(sums: Int[Tensor, "input sum"]) -> Int[Tensor, " input"]:
    """The smallest sum >= 0 of each row."""
    return sums.masked_fill(sums < 0, int(sums.max()) + 1).amin(1)


def _selects() -> bool:
    """Each of n + 2 tokens attends to the next one alone as c grows."""
    masses = [[attention_mass(n, c, step, 0) for c in SATURATION] for n in (2, 3, 4, 5) for step in range(1, n + 3)]
    return all(mass == sorted(mass) and mass[-1] > 1 - TINY for mass in masses)


def _selects_while_writing() -> bool:
    """Behind a causal mask also with outputs present, through pass n + 2 and no further; without one never."""
    last = SATURATION[-1]
    right = [attention_mass(n, last, step) > 1 - TINY for n in (2, 3, 4, 5) for step in range(1, n + 3)]
    split = [attention_mass(n, last, n + 3) for n in (2, 3, 4, 5)]
    split += [attention_mass(4, last, step, 6) for step in range(1, 7)]
    return all(right) and all(abs(mass - 0.5) < TINY for mass in split)


def _routes() -> bool:
    """z_i is given to expert i alone as c grows."""
    masses = torch.stack([routing(4, c).diagonal() for c in SATURATION])
    return bool((masses.diff(dim=0) >= 0).all() and (masses[-1] > 1 - TINY).all())


def _sums() -> bool:
    return partial_sum_error(multisets(4)) < TINY


def _reads(read: str) -> bool:
    sums = sum_sets()
    return bool((read_off(sums, 5, read) == smallest_non_negative(sums)).all())


def _solves(variant: str) -> bool:
    return exact_match(TrigMNNS(4, 36, variant), multisets(4)) == 1.0


CLAIMS: dict[str, Callable[[], Verdict]] = {
    "construction": lambda: Verdict(
        _solves("as-written"), _solves("repaired"), "its printed read-off is given a threshold below 0"
    ),
    "attention-selects": lambda: Verdict(_selects(), _selects_while_writing()),
    "moe-routes": lambda: Verdict(_routes()),
    "partial-sums": lambda: Verdict(_sums()),
    "read-off": lambda: Verdict(_reads("sigmoid"), _reads("biased"), f"its gate {THRESHOLD}"),
}
