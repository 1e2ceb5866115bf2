"""The paper's one-layer transformer that solves MNNS (Section 4.1, Prop. construction), as printed and repaired.

The prompt is n digits, an arrow and a dummy 0: tokens z_1..z_{n+2}. Each pass attends from the last token to the next
input token, routes to that token's expert, and appends the result. After n passes a token holds all 2^n signed sums.
After n + 1 passes the last token holds the answer.

Four things in the paper need a repair, and `Design` has a switch for each:
1. The printed read-off gives the sum 0 the weight sigma(0) = 1/2, not 1 (`read`).
2. Each expert halves the pairs, but the read-off is proved for pairs of length 1, not 2^-n (`rescaled`, `halved`).
3. The experts let the position of the preceding token leak into their output (`masked`).
4. The experts take two arguments, which no residual stream offers (`residual`).
A fifth switch fuses the read-off into the last expert, so that n passes suffice, as the paper says (`fused`).
`VARIANTS` names the combinations.

The paper takes the constant c to infinity. Here c is finite, and the same in all four places unless told otherwise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from cot2lib.errors import SpecError
from cot2lib.kit.frozen import Frozen, Positive
from cot2lib.theory.blocks import Fused, Layout, NextToken, ReadOff, Router, partial_sums, stream_update

INPUTS_TOGETHER = 1024  # bounds the memory of `solve`
SAFETY = 2.0  # default sharpness over `sufficient_sharpness`
FREQUENCY = 0.99  # in units of pi / (2 S); the paper asks for less than 1

Digits = Shaped[Tensor, "..."] | np.ndarray | Sequence  # a reader's digits, which `checked_digits` checks


@dataclass(frozen=True)
class Design(Frozen):
    """Which construction is built. The defaults are the paper's text.

    Attributes:
        read: how the read-off finds the smallest non-negative sum: "sigmoid", "biased" or "mirrored" (`ReadOff`).
        rescaled: whether the read-off first undoes the halving.
        masked: whether the experts hide the position block of the preceding token.
        halved: whether each expert divides its output by two.
        fused: whether the expert of the last digit also reads off the answer. Then n passes suffice.
        residual: whether the layer is a residual block on one stream. Its experts always hide the positions.
    """

    read: Literal["sigmoid", "biased", "mirrored"] = "sigmoid"
    rescaled: bool = False
    masked: bool = False
    halved: bool = True
    fused: bool = False
    residual: bool = False


VARIANTS = {
    "as-written": Design(),
    "biased": Design("biased"),
    "mirrored": Design("mirrored"),
    "repaired": Design("biased", rescaled=True, masked=True),
    "fused": Design("biased", rescaled=True, masked=True, fused=True),
    "residual": Design("biased", rescaled=True, masked=True, residual=True),
}


@dataclass(frozen=True)
class Sharpness(Frozen):
    """The constant c in each of the four places where the paper takes it to infinity. Each must be above 0."""

    attention: Positive
    router: Positive
    sigmoid: Positive
    softmax: Positive

    @classmethod
    def same(cls, c: float | int) -> "Sharpness":
        return cls(c, c, c, c)


class TrigMNNS(nn.Module):
    """The construction for `length` digits whose sum is at most `max_sum`. Nothing is trained.

    Args:
        length: number of digits n.
        max_sum: the bound S. Sums -S..S have an embedding (cos ws, sin ws).
        variant: a name in `VARIANTS`, or a `Design`.
        sharpness: the constant c, or one for each place. None stands for twice `sufficient_sharpness`.
        frequency: w in units of pi / (2 S). The paper keeps it below 1.
        dtype: float64 or float32.

    Raises SpecError for an unknown variant or dtype, or a number that is too small.
    """

    embedding: Float[Tensor, "sum pair"]

    def __init__(
        self,
        length: int,
        max_sum: int,
        variant: str | Design = "as-written",
        sharpness: float | int | Sharpness | None = None,
        frequency: float | int = FREQUENCY,
        dtype: torch.dtype = torch.float64,
    ):
        super().__init__()
        check_sizes(length, max_sum, dtype)
        if isinstance(variant, str) and variant not in VARIANTS:
            raise SpecError(f"variant={variant!r}: choose one of {', '.join(VARIANTS)}.")
        self.design = VARIANTS[variant] if isinstance(variant, str) else variant
        if not frequency > 0:
            raise SpecError(f"frequency={frequency}: choose one above 0; below 1 is the paper's condition.")
        self.length, self.max_sum, self.omega = length, max_sum, frequency * math.pi / (2 * max_sum)
        self.layout = Layout(length, self.design.residual)
        c = sufficient_sharpness(length, max_sum, self.design, frequency) * SAFETY if sharpness is None else sharpness
        self.sharpness = c if isinstance(c, Sharpness) else Sharpness.same(c)
        self.attention = NextToken(self.layout, self.sharpness.attention, dtype)
        self.router = Router(self.layout, self.passes, self.sharpness.router, dtype)
        self.experts = nn.ModuleList(self._experts(dtype))
        self.stream_update = stream_update(self.layout, dtype) if self.design.residual else None
        angles = self.omega * torch.arange(-max_sum, max_sum + 1, dtype=torch.float64)
        self.register_buffer("embedding", torch.stack([angles.cos(), angles.sin()], dim=1).to(dtype))

    def _experts(self, dtype: torch.dtype) -> list[nn.Module]:
        design, step_scale = self.design, 0.5 if self.design.halved else 1.0
        scale = step_scale**self.length
        gain = 1 / scale if design.rescaled else 1.0
        gate, choice = self.sharpness.sigmoid, self.sharpness.softmax
        read = ReadOff(self.layout, design.read, self.omega, scale, gain, gate, choice)
        masked = design.masked or design.residual
        sums = [partial_sums(self.layout, j, step_scale, masked, dtype) for j in range(1, self.length + 1)]
        return [*sums[:-1], Fused(sums[-1], read)] if design.fused else [*sums, read]

    @property
    def passes(self) -> int:
        """Number of tokens written: n + 1, or n if fused. The last one is the answer."""
        return self.length + (not self.design.fused)

    @torch.no_grad()
    def solve(self, digits: Digits) -> Int[Tensor, " input"]:
        """The answer to each row of digits (input, length): the sum whose embedding is nearest to the last token.

        Raises SpecError for digits that are not whole numbers >= 0, of another length, or that sum to more than S.
        """
        chunks = checked_digits(digits, self.length, self.max_sum).split(INPUTS_TOGETHER)
        scores = torch.cat([self.states(chunk)[:, -1, :2] @ self.embedding.T for chunk in chunks])  # (input, sum)
        return scores.argmax(-1) - self.max_sum

    @torch.no_grad()
    def states(self, digits: Digits) -> Float[Tensor, "input pass width"]:
        """All tokens written for rows of digits (input, length), in order."""
        prompt = self.prompt(checked_digits(digits, self.length, self.max_sum))
        tokens = nn.functional.pad(prompt, (0, 0, 0, self.passes))  # (input, n + 2 + passes, width)
        for place in range(self.length + 2, tokens.shape[1]):
            tokens[:, place] = self(tokens[:, :place])
        return tokens[:, self.length + 2 :]

    def prompt(self, digits: Int[Tensor, "input length"]) -> Float[Tensor, "input token width"]:
        """The n digits, the arrow (without content) and the dummy 0, each with its position."""
        tokens = self.embedding.new_zeros(len(digits), self.length + 2, self.layout.width)
        tokens[:, : self.length, :2] = self.embedding[digits + self.max_sum]
        tokens[:, -1, :2] = self.embedding[self.max_sum]
        tokens[..., self.layout.positions] = torch.eye(self.length + 2, dtype=tokens.dtype)
        return tokens

    def forward(self, tokens: Float[Tensor, "input token width"]) -> Float[Tensor, "input width"]:
        """The next token: attention from the last token, then the experts.

        Without a residual stream the outputs are given the positions p_1, p_2, ... in order, as in the paper.
        """
        query = tokens[:, -1]
        attended = self.attention(query, tokens)
        if self.stream_update is not None:
            stream = query + attended
            return stream + self._mixture(stream, stream) + self.stream_update(stream, stream)
        out = self._mixture(query, attended)
        out[:, self.layout.position(tokens.shape[1] - self.length - 1)] += 1.0
        return out

    def _mixture(
        self, previous: Float[Tensor, "input width"], current: Float[Tensor, "input width"]
    ) -> Float[Tensor, "input width"]:
        """The weighted sum of the experts. An expert whose weight underflows to 0 for all inputs is skipped."""
        out = torch.zeros_like(previous)
        for weight, expert in zip(self.router(current).unbind(-1), self.experts):
            if weight.any():
                out += weight[:, None] * expert(previous, current)
        return out


def sufficient_sharpness(length: int, max_sum: int, design: Design, frequency: float | int = FREQUENCY) -> float:
    """A constant c that is large enough: ln(2 d / w) / gap.

    At this c rounding removes the weight of everything but the right sum. The gap is the smallest difference of two
    scores. It is that between two sums next to zero, which lie two apart, or that between the sum S and the zeros that
    pad the read-off. Pairs of length 2^-n make it 2^-n times smaller.
    """
    omega = frequency * math.pi / (2 * max_sum)
    gap = 2 * math.sin(omega) ** 2
    if frequency < 1:
        gap = min(gap, math.cos(omega * max_sum))
    if design.halved and not design.rescaled:
        gap *= 2.0**-length
    return math.log(2 * Layout(length, design.residual).width / omega) / gap


def check_sizes(length: int, max_sum: int, dtype: torch.dtype) -> None:
    """Raise SpecError if no construction has these sizes or this dtype."""
    if length < 1:
        raise SpecError(f"length={length}: need at least one digit.")
    if max_sum < 1:
        raise SpecError(f"max_sum={max_sum}: need at least 1, and as much as the digits can sum to.")
    if dtype not in (torch.float64, torch.float32):
        raise SpecError(f"dtype={dtype}: choose torch.float64 or torch.float32.")


def checked_digits(digits: Digits, length: int, max_sum: int) -> Int[Tensor, "input length"]:
    """Rows of digits (input, length) as a tensor."""
    rows = torch.as_tensor(digits)
    if rows.is_floating_point() or rows.is_complex() or rows.dtype == torch.bool:
        raise SpecError(f"digits of dtype {rows.dtype}: give whole numbers.")
    if rows.ndim != 2 or rows.shape[1] != length or not len(rows):
        raise SpecError(f"digits of shape {tuple(rows.shape)}: give at least one row of {length}.")
    if (rows < 0).any():
        raise SpecError(f"digit {int(rows.min())}: digits must be at least 0.")
    if (largest := int(rows.sum(1).max())) > max_sum:
        raise SpecError(f"max_sum={max_sum}: some digits sum to {largest}; build it with at least that.")
    return rows.long()
