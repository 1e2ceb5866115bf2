"""The paper's one-layer transformer that solves MNNS (Section 4.1, Prop. construction), as printed and repaired.

The source is the appendix "Construction for Minimum Non-Negative Sum (MNNS) Task". A token is a row vector: a pair
(cos ws, sin ws) for each partial sum s, and behind the pairs a one-hot position p_1..p_{n+2}. Four blocks of fixed
weights make the layer:

* `NextToken`: attention (Prop. RotationSingleAttn);
* `Router`: expert weights (Prop. moe-onehot);
* `partial_sums`: the gated expert of one digit (Prop. partial-sum-experts);
* `ReadOff`: the last expert, which answers (Prop. read-off-expert).

The prompt is n digits, an arrow and a dummy 0: tokens z_1..z_{n+2}. Each pass attends from the last token to the next
input token, routes to that token's expert, and appends the result. After n passes a token holds all 2^n signed sums.
After n + 1 passes the last token holds the answer.

Four things in the paper need a repair, each a switch of `Design`:

1. The printed read-off gives the sum 0 the weight sigma(0) = 1/2, not 1 (`read`).
2. Each expert halves the pairs, but the read-off is proved for pairs of length 1, not 2^-n (`rescaled`).
3. The experts let the position of the preceding token leak into their output (`masked`).
4. The experts take two arguments, which no residual stream offers (`residual`).

A fifth switch fuses the read-off into the last expert, so that n passes suffice, as the paper says (`fused`).
`VARIANTS` names the combinations.

The paper takes the constant c to infinity; here it is finite. The gated experts leave out the rows of W_1 and W_2 that
are zero, and W_cos and W_sin are slices, not matrices.
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
from cot2lib.kit.frozen import Frozen, positive

INPUTS_TOGETHER = 1024  # bounds the memory of `solve`
SAFETY = 2.0  # default sharpness over `sufficient_sharpness`
FREQUENCY = 0.99  # in units of pi / (2 S); the paper asks for less than 1

Digits = Shaped[Tensor, "..."] | np.ndarray | Sequence  # a reader's digits, which `checked_digits` checks
Tokens = Float[Tensor, "input token width"]
Token = Float[Tensor, "input width"]


@dataclass(frozen=True)
class Layout:
    """Which coordinates of a token hold what, for n = `length` digits.

    With `residual`, two more coordinates, behind the positions, receive the attended digit.
    """

    length: int
    residual: bool = False

    @property
    def content(self) -> int:
        """Number of coordinates that hold pairs: two for each of the 2^n signed sums."""
        return 2 ** (self.length + 1)

    @property
    def width(self) -> int:
        """Token dimension d = 2^(n+1) + n + 2, and two more in a residual layout."""
        return self.content + self.length + 2 + 2 * self.residual

    @property
    def positions(self) -> slice:
        return slice(self.content, self.content + self.length + 2)

    @property
    def digit(self) -> int:
        """First coordinate of the digit's pair: in the attended token, or behind the positions of the stream."""
        return self.positions.stop if self.residual else 0

    def position(self, number: int) -> int:
        """Coordinate of p_number. Numbers count from 1, modulo n + 2."""
        return self.content + (number - 1) % (self.length + 2)

    def rotation(self, dtype: torch.dtype) -> Float[Tensor, "position position"]:
        """The matrix R with R p_j = p_{j-1}. It is a cyclic permutation, of determinant -1 for even n."""
        return torch.eye(self.length + 2, dtype=dtype).roll(1, dims=1)


class NextToken(nn.Module):
    """Attention that selects the next token: a query at p_i attends to the tokens at p_{i+1}.

    W is c R on the position block. W_v is the identity, or moves the digit's pair to its own two residual coordinates.
    """

    score: Float[Tensor, "width width"]
    value: Float[Tensor, "width width"]

    def __init__(self, layout: Layout, sharpness: float, dtype: torch.dtype):
        super().__init__()
        score = torch.zeros(layout.width, layout.width, dtype=dtype)
        score[layout.positions, layout.positions] = sharpness * layout.rotation(dtype)
        value = torch.eye(layout.width, dtype=dtype)
        if layout.residual:
            value = torch.zeros_like(value)
            value[[0, 1], [layout.digit, layout.digit + 1]] = 1.0
        self.register_buffer("score", score)
        self.register_buffer("value", value)

    def weights(self, query: Token, tokens: Tokens) -> Float[Tensor, "input token"]:
        """Attention weights Softmax(z^T W Z^T) of one query per input."""
        scores = tokens @ (query @ self.score)[..., None]  # (input, token, 1)
        return scores[..., 0].softmax(-1)

    def forward(self, query: Token, tokens: Tokens) -> Token:
        mean = self.weights(query, tokens)[:, None] @ tokens  # (input, 1, width)
        return mean[:, 0] @ self.value


class Router(nn.Module):
    """Expert weights Softmax(c W z). Row j of W is p_j, or p_{j-1} where a stream still holds the query's position."""

    score: Float[Tensor, "expert width"]

    def __init__(self, layout: Layout, experts: int, sharpness: float, dtype: torch.dtype):
        super().__init__()
        score = torch.zeros(experts, layout.width, dtype=dtype)
        for expert in range(experts):
            score[expert, layout.position(expert if layout.residual else expert + 1)] = sharpness
        self.register_buffer("score", score)

    def forward(self, token: Token) -> Float[Tensor, "input expert"]:
        return (token @ self.score.T).softmax(-1)


class Gated(nn.Module):
    """The bilinear layer W_3 (W_1 z_prev * W_2 z_curr) of every partial-sum expert."""

    w1: Float[Tensor, "hidden width"]
    w2: Float[Tensor, "hidden width"]
    w3: Float[Tensor, "width hidden"]

    def __init__(self, **matrices: Float[Tensor, "_ _"]):
        super().__init__()
        for name, matrix in matrices.items():
            self.register_buffer(name, matrix)

    def forward(self, previous: Token, current: Token) -> Token:
        return ((previous @ self.w1.T) * (current @ self.w2.T)) @ self.w3.T


def partial_sums(layout: Layout, step: int, scale: float, masked: bool, dtype: torch.dtype) -> Gated:
    """The expert of digit d_j, j = `step`: it adds the digit to all sums s_k, and subtracts it from them.

    The pairs of s_k + d_j fill the first 2^j coordinates, the pairs of s_k - d_j the next 2^j. All are multiplied by
    `scale`. The first term z_curr,1 z_prev of the paper's sum runs over all coordinates, so the position of z_prev
    leaks into the output. With `masked` the term stops at coordinate 2^j.
    """
    size, width = 2**step, layout.width
    same = torch.eye(size, dtype=dtype)
    turn = torch.block_diag(*[torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=dtype)] * (size // 2))  # W_sin^+
    rest = 0 if masked else width - size
    w1 = torch.zeros(4 * size + rest, width, dtype=dtype)
    w1[: 4 * size, :size] = torch.cat([same, turn, same, -turn])
    w1[4 * size :, width - rest :] = torch.eye(rest, dtype=dtype)
    w2 = torch.zeros_like(w1)
    cosine, sine = layout.digit, layout.digit + 1
    for block, coordinate in enumerate((cosine, sine, cosine, sine)):
        w2[block * size : (block + 1) * size, coordinate] = 1.0
    w2[4 * size :, cosine] = 1.0
    w3 = torch.zeros(width, 4 * size + rest, dtype=dtype)
    w3[: 2 * size, : 4 * size] = torch.block_diag(*[torch.cat([same, same], dim=1)] * 2)
    w3[width - rest :, 4 * size :] = torch.eye(rest, dtype=dtype)
    return Gated(w1=w1, w2=w2, w3=scale * w3)


def stream_update(layout: Layout, dtype: torch.dtype) -> Gated:
    """The part of a residual block's output that is linear: minus the stream, plus the next position.

    It becomes gated by a factor 1, which is the sum of the one-hot positions.
    """
    w1 = -torch.eye(layout.width, dtype=dtype)
    w1[layout.positions, layout.positions] += layout.rotation(dtype).T
    w2 = torch.zeros_like(w1)
    w2[:, layout.positions] = 1.0
    return Gated(w1=w1, w2=w2, w3=torch.eye(layout.width, dtype=dtype))


class ReadOff(nn.Module):
    """The last expert: it writes the pair of the smallest non-negative sum of z_prev to coordinates 1 and 2.

    `read` names the filter of the cosines:
        "sigmoid"   cos * sigma(c sin), as printed.
        "biased"    cos * sigma(c (sin + b)). The threshold b is sin(w/2), half a step, in the scale of the pairs.
        "mirrored"  no filter. The largest cos is that of the smallest |s|; the sine then gets the right sign.

    The pairs that arrive have the length `scale`; z_prev is multiplied by `gain` first.
    """

    def __init__(self, layout: Layout, read: str, omega: float, scale: float, gain: float, c: float):
        super().__init__()
        self.layout, self.read, self.gain, self.c = layout, read, gain, c
        self.threshold = scale * gain * math.sin(omega / 2) if read == "biased" else 0.0

    def forward(self, previous: Token, current: Token | None = None) -> Token:
        """The answer's pair, zeros behind it. `current` is not used; the other experts take it."""
        pairs = self.gain * previous[:, : self.layout.content].unflatten(1, (-1, 2))
        filled = lambda part: nn.functional.pad(part, (0, previous.shape[1] - part.shape[1]))
        cosine, sine = map(filled, pairs.unbind(-1))  # W_cos z and W_sin z
        passed = torch.sigmoid(self.c * (sine + self.threshold))
        if self.read == "mirrored":
            sine = sine * (2 * passed - 1)
        else:
            cosine = cosine * passed
        weights = (self.c * cosine).softmax(-1)
        out = torch.zeros_like(previous)
        out[:, 0], out[:, 1] = (weights * cosine).sum(-1), (weights * sine).sum(-1)
        return out


class Fused(nn.ModuleList):
    """The last partial-sum expert and the read-off as one expert."""

    def forward(self, previous: Token, current: Token) -> Token:
        sums, read = self
        return read(sums(previous, current))


@dataclass(frozen=True)
class Design(Frozen):
    """Which construction is built. The defaults are the paper's text."""

    read: Literal["sigmoid", "biased", "mirrored"] = "sigmoid"  # how the answer is found (`ReadOff`)
    rescaled: bool = False  # whether the read-off first undoes the halving
    masked: bool = False  # whether the experts hide the position block of the preceding token
    fused: bool = False  # whether the expert of the last digit also reads off the answer; then n passes suffice
    residual: bool = False  # whether the layer is a residual block on one stream


VARIANTS = {
    "as-written": Design(),
    "biased": Design("biased"),
    "mirrored": Design("mirrored"),
    "repaired": Design("biased", rescaled=True, masked=True),
    "fused": Design("biased", rescaled=True, masked=True, fused=True),
    "residual": Design("biased", rescaled=True, masked=True, residual=True),
}


class TrigMNNS(nn.Module):
    """The construction for n = `length` digits whose sum is at most S = `max_sum`. Nothing is trained.

    `variant` is a name in `VARIANTS`, or a `Design`. `sharpness` is the constant c, by default twice
    `sufficient_sharpness`. Sums -S..S have an embedding (cos ws, sin ws), w = .99 pi / (2 S).
    """

    embedding: Float[Tensor, "sum pair"]

    def __init__(
        self,
        length: int,
        max_sum: int,
        variant: str | Design = "as-written",
        sharpness: float | None = None,
        dtype: torch.dtype = torch.float64,
    ):
        super().__init__()
        positive(length=length, max_sum=max_sum)
        if isinstance(variant, str) and variant not in VARIANTS:
            raise SpecError(f"variant={variant!r}: choose one of {', '.join(VARIANTS)}.")
        self.design = VARIANTS[variant] if isinstance(variant, str) else variant
        self.length, self.max_sum, self.omega = length, max_sum, FREQUENCY * math.pi / (2 * max_sum)
        self.layout = Layout(length, self.design.residual)
        sufficient = sufficient_sharpness(length, max_sum, self.design)
        self.sharpness = SAFETY * sufficient if sharpness is None else sharpness
        if not self.sharpness > 0:
            raise SpecError(f"sharpness={sharpness}: must be above 0.")
        self.attention = NextToken(self.layout, self.sharpness, dtype)
        self.router = Router(self.layout, self.passes, self.sharpness, dtype)
        scale = 0.5**length
        gain = 1 / scale if self.design.rescaled else 1.0
        read = ReadOff(self.layout, self.design.read, self.omega, scale, gain, self.sharpness)
        *sums, last = [partial_sums(self.layout, j, 0.5, self.design.masked, dtype) for j in range(1, length + 1)]
        self.experts = nn.ModuleList([*sums, Fused([last, read])] if self.design.fused else [*sums, last, read])
        self.stream_update = stream_update(self.layout, dtype) if self.design.residual else None
        angles = self.omega * torch.arange(-max_sum, max_sum + 1, dtype=torch.float64)
        self.register_buffer("embedding", torch.stack([angles.cos(), angles.sin()], dim=1).to(dtype))

    @property
    def passes(self) -> int:
        """Number of tokens written, n + 1, or n if fused; the last one is the answer."""
        return self.length + (not self.design.fused)

    @torch.no_grad()
    def solve(self, digits: Digits) -> Int[Tensor, " input"]:
        """The answer to each row of digits (input, length): the sum whose embedding is nearest to the last token."""
        chunks = checked_digits(digits, self.length, self.max_sum).split(INPUTS_TOGETHER)
        scores = torch.cat([self.states(chunk)[:, -1, :2] @ self.embedding.T for chunk in chunks])  # (input, sum)
        return scores.argmax(-1) - self.max_sum

    @torch.no_grad()
    def states(self, digits: Digits) -> Float[Tensor, "input pass width"]:
        """All tokens written, in order."""
        prompt = self.prompt(checked_digits(digits, self.length, self.max_sum))
        tokens = nn.functional.pad(prompt, (0, 0, 0, self.passes))  # (input, n + 2 + passes, width)
        for place in range(self.length + 2, tokens.shape[1]):
            tokens[:, place] = self(tokens[:, :place])
        return tokens[:, self.length + 2 :]

    def prompt(self, digits: Int[Tensor, "input length"]) -> Tokens:
        """The n digits, the arrow (without content) and the dummy 0, each with its position."""
        tokens = self.embedding.new_zeros(len(digits), self.length + 2, self.layout.width)
        tokens[:, : self.length, :2] = self.embedding[digits + self.max_sum]
        tokens[:, -1, :2] = self.embedding[self.max_sum]
        tokens[..., self.layout.positions] = torch.eye(self.length + 2, dtype=tokens.dtype)
        return tokens

    def forward(self, tokens: Tokens) -> Token:
        """The next token: attention, then the experts; it gets the next position by hand, or in a residual stream."""
        query = tokens[:, -1]
        attended = self.attention(query, tokens)
        if self.stream_update is not None:
            stream = query + attended
            return stream + self._mixture(stream, stream) + self.stream_update(stream, stream)
        out = self._mixture(query, attended)
        out[:, self.layout.position(tokens.shape[1] - self.length - 1)] += 1.0
        return out

    def _mixture(self, previous: Token, current: Token) -> Token:
        """The weighted sum of the experts. An expert whose weight underflows to 0 for all inputs is skipped."""
        out = torch.zeros_like(previous)
        for weight, expert in zip(self.router(current).unbind(-1), self.experts):
            if weight.any():
                out += weight[:, None] * expert(previous, current)
        return out


def sufficient_sharpness(length: int, max_sum: int, design: Design) -> float:
    """A constant c at which rounding removes the weight of everything but the right sum: ln(2 d / w) / gap.

    The gap is the smallest difference of two scores: between two sums next to zero, which lie two apart, or between
    the sum S and the zeros that pad the read-off. Pairs of length 2^-n make it 2^-n times smaller.
    """
    omega = FREQUENCY * math.pi / (2 * max_sum)
    gap = min(2 * math.sin(omega) ** 2, math.cos(omega * max_sum))
    if not design.rescaled:
        gap *= 2.0**-length
    return math.log(2 * Layout(length, design.residual).width / omega) / gap


def checked_digits(digits: Digits, length: int, max_sum: int) -> Int[Tensor, "input length"]:
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


# Inputs and their optima; answers do not depend on the order of the digits, so one row stands for all of its orders


def multisets(length: int) -> Int[Tensor, "input length"]:
    """Every multiset of `length` digits 1..9 once, each row sorted."""
    return torch.combinations(torch.arange(1, 10), length, with_replacement=True).reshape(-1, length)


def signed_sums(digits: Int[Tensor, "input length"]) -> Int[Tensor, "input sum"]:
    """All 2^n signed sums in the construction's order: for each digit first all sums with plus, then with minus."""
    sums = torch.zeros(len(digits), 1, dtype=torch.int64)
    for digit in digits.unbind(1):
        sums = torch.cat([sums + digit[:, None], sums - digit[:, None]], dim=1)  # twice as many sums
    return sums


def optima(digits: Int[Tensor, "input length"]) -> Int[Tensor, " input"]:
    """The smallest non-negative signed sum of each row. It is the smallest |sum|, because all signs can be flipped."""
    return signed_sums(digits).abs().amin(1)
