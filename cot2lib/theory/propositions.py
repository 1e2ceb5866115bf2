"""How often a construction answers right, and whether each proposition behind it holds on the block that it is about.

The source is the appendix "Construction for Minimum Non-Negative Sum (MNNS) Task". `CLAIMS` says of each proposition
whether it is true as printed and as corrected.

The answer does not depend on the order of the digits, unless c is so small that other tokens are attended to. So one
input stands for all orders of a multiset, weighted by their number. That makes exact matches over all inputs cheap
enough to ask for many values of c.

Differences from the paper, which change no verdict:
1. Prop. RotationSingleAttn calls R a rotation. R is a permutation of determinant (-1)^(n+1), so it is none for even n.
2. Prop. partial-sum-experts speaks of the "first 2^j coordinate-pairs". They are 2^j coordinates, as its formal part
   says.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.theory.claims import Verdict

from cot2lib.theory.construction import (  # isort: skip
    FREQUENCY, VARIANTS, Layout, NextToken, ReadOff, Router, TrigMNNS, partial_sums, sufficient_sharpness,
)  # fmt: skip

TOLERANCE = 1e-5  # of the logarithm of the smallest sharpness
TINY = 1e-12
THRESHOLD = "is given a threshold between -1 and 0"
SATURATED = 1e9  # a sharpness that makes its place exact
SATURATION = (1.0, 4.0, 16.0, 64.0)  # growing sharpness, at whose end a softmax is saturated


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
    expert = ReadOff(layout, read, omega, 1.0, 1.0, sharpness, sharpness)
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


def _attention_selects() -> bool:
    """Whether each of n + 2 tokens attends only to the next one as c grows."""
    masses = [[attention_mass(n, c, step, 0) for c in SATURATION] for n in (2, 3, 4, 5) for step in range(1, n + 3)]
    return all(mass == sorted(mass) and mass[-1] > 1 - TINY for mass in masses)


def _attention_selects_while_writing() -> bool:
    """Whether attention is right while outputs are written: through pass n + 2 with a causal mask, never without."""
    last = SATURATION[-1]
    right = [attention_mass(n, last, step) > 1 - TINY for n in (2, 3, 4, 5) for step in range(1, n + 3)]
    split = [attention_mass(n, last, n + 3) for n in (2, 3, 4, 5)]
    split += [attention_mass(4, last, step, 6) for step in range(1, 7)]
    return all(right) and all(abs(mass - 0.5) < TINY for mass in split)


def _router_selects() -> bool:
    """Whether z_i goes to expert i alone as c grows."""
    masses = torch.stack([routing(4, c).diagonal() for c in SATURATION])
    return bool((masses.diff(dim=0) >= 0).all() and (masses[-1] > 1 - TINY).all())


def _read_off_is_right(read: str) -> bool:
    sums = sum_sets()
    return bool((read_off(sums, 5, read) == smallest_non_negative(sums)).all())


def _solves_all_inputs(variant: str) -> bool:
    return exact_match(TrigMNNS(4, 36, variant), multisets(4)) == 1.0


CLAIMS: dict[str, Callable[[], Verdict]] = {
    "construction": lambda: Verdict(
        _solves_all_inputs("as-written"), _solves_all_inputs("repaired"), f"its printed read-off {THRESHOLD}"
    ),
    "attention-selects": lambda: Verdict(_attention_selects(), _attention_selects_while_writing()),
    "moe-routes": lambda: Verdict(_router_selects()),
    "partial-sums": lambda: Verdict(partial_sum_error(multisets(4)) < TINY),
    "read-off": lambda: Verdict(_read_off_is_right("sigmoid"), _read_off_is_right("biased"), f"its gate {THRESHOLD}"),
}
