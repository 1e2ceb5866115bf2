"""The four parts of the paper's MNNS transformer (appendix on the construction), as fixed weights.

A token is a row vector: pairs (cos ws, sin ws), one per partial sum s, then a one-hot position p_1..p_{n+2}.
`NextToken` is the attention of Prop. RotationSingleAttn, `Router` that of Prop. moe-onehot, `partial_sums` the gated
expert of Prop. partial-sum-experts and `ReadOff` the last expert, of Prop. read-off-expert.

Where we differ from the paper: rows of the gated experts that are zero are left out, and W_cos, W_sin are slices. What
the paper's formulas need beyond its text is a choice of the caller: whether an expert hides the position block, the
threshold and the scale of the read-off, and a layout with two more coordinates, in which the block is a residual one.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

READS = ("sigmoid", "biased", "mirrored")

Tokens = Float[Tensor, "input token width"]
Token = Float[Tensor, "input width"]


@dataclass(frozen=True)
class Layout:
    """Which coordinates of a token hold what, for `length` digits.

    Attributes:
        length: digits n.
        residual: whether two coordinates behind the positions receive the attended digit.
    """

    length: int
    residual: bool = False

    @property
    def content(self) -> int:
        """Coordinates that hold pairs: two for each of the 2^n signed sums."""
        return 2 ** (self.length + 1)

    @property
    def width(self) -> int:
        """The token dimension d."""
        return self.content + self.length + 2 + 2 * self.residual

    @property
    def positions(self) -> slice:
        """The position block."""
        return slice(self.content, self.content + self.length + 2)

    @property
    def digit(self) -> int:
        """Where an expert finds the digit's pair: in the attended token, or in the stream behind the positions."""
        return self.positions.stop if self.residual else 0

    def position(self, number: int) -> int:
        """Coordinate of p_number, numbers taken modulo n + 2 from 1 on."""
        return self.content + (number - 1) % (self.length + 2)

    def rotation(self, dtype: torch.dtype) -> Float[Tensor, "position position"]:
        """R, with R p_j = p_{j-1}: a cyclic permutation; its determinant is -1 for even n."""
        return torch.eye(self.length + 2, dtype=dtype).roll(1, dims=1)


class NextToken(nn.Module):
    """Attention in which a query at p_i selects the tokens at p_{i+1}: W = c R on the positions, zero elsewhere."""

    def __init__(self, layout: Layout, sharpness: float | int, dtype: torch.dtype):
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
        """Attention weights of one query per input."""
        return (tokens @ (query @ self.score)[..., None])[..., 0].softmax(-1)

    def forward(self, query: Token, tokens: Tokens) -> Token:
        """The weighted mean of the tokens, through W_v."""
        return (self.weights(query, tokens)[:, None] @ tokens)[:, 0] @ self.value


class Router(nn.Module):
    """Expert weights Softmax(c W z), W one position per expert: its own, or its predecessor's in a residual stream."""

    def __init__(self, layout: Layout, experts: int, sharpness: float | int, dtype: torch.dtype):
        super().__init__()
        score = torch.zeros(experts, layout.width, dtype=dtype)
        for expert in range(experts):
            score[expert, layout.position(expert if layout.residual else expert + 1)] = sharpness
        self.register_buffer("score", score)

    def forward(self, token: Token) -> Float[Tensor, "input expert"]:
        return (token @ self.score.T).softmax(-1)


class Gated(nn.Module):
    """W_3 (W_1 z_prev * W_2 z_curr), the bilinear layer of every partial-sum expert."""

    def __init__(
        self,
        first: Float[Tensor, "hidden width"],
        second: Float[Tensor, "hidden width"],
        third: Float[Tensor, "width hidden"],
    ):
        super().__init__()
        for name, matrix in (("first", first), ("second", second), ("third", third)):
            self.register_buffer(name, matrix)

    def forward(self, previous: Token, current: Token) -> Token:
        return ((previous @ self.first.T) * (current @ self.second.T)) @ self.third.T


def partial_sums(layout: Layout, step: int, scale: float, masked: bool, dtype: torch.dtype) -> Gated:
    """Expert of step j: pairs of s_k + d_j in the first 2^j coordinates, of s_k - d_j in the next, times `scale`.

    Unless `masked`, the first term z_curr,1 z_prev of the paper's sum runs over all coordinates, so that the positions
    of z_prev leak into the output.
    """
    size, width = 2**step, layout.width
    same = torch.eye(size, dtype=dtype)
    turn = torch.block_diag(*[torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=dtype)] * (size // 2))
    rest = 0 if masked else width - size
    first = torch.zeros(4 * size + rest, width, dtype=dtype)
    first[: 4 * size, :size] = torch.cat([same, turn, same, -turn])
    first[4 * size :, width - rest :] = torch.eye(rest, dtype=dtype)
    second = torch.zeros_like(first)
    cosine, sine = layout.digit, layout.digit + 1
    for block, coordinate in enumerate((cosine, sine, cosine, sine)):
        second[block * size : (block + 1) * size, coordinate] = 1.0
    second[4 * size :, cosine] = 1.0
    third = torch.zeros(width, 4 * size + rest, dtype=dtype)
    third[: 2 * size, : 4 * size] = torch.block_diag(*[torch.cat([same, same], dim=1)] * 2)
    third[width - rest :, 4 * size :] = torch.eye(rest, dtype=dtype)
    return Gated(first, second, scale * third)


def replacement(layout: Layout, dtype: torch.dtype) -> Gated:
    """What every expert of a residual block adds to its output: minus the stream, and the next position.

    Both are linear in the stream; the factor 1 that makes them gated is the sum of the one-hot positions.
    """
    first = -torch.eye(layout.width, dtype=dtype)
    first[layout.positions, layout.positions] += layout.rotation(dtype).T
    second = torch.zeros_like(first)
    second[:, layout.positions] = 1.0
    return Gated(first, second, torch.eye(layout.width, dtype=dtype))


class ReadOff(nn.Module):
    """The last expert: the pair of the smallest non-negative sum among the pairs of z_prev, in coordinates 1 and 2.

    `read` says how: "sigmoid" scores cos by sigma(c sin), as printed; "biased" by sigma(c (sin + b)) with b half a
    step of sin below zero; "mirrored" takes the largest cos, hence the smallest |s|, and turns its sine to the right
    sign.

    Args:
        scale: factor that the pairs carry, which b shares.
        gain: factor that z_prev is multiplied by first.
        gate, choice: the constant c of the sigmoid and of the softmax.
    """

    def __init__(
        self,
        layout: Layout,
        read: str,
        omega: float,
        scale: float,
        gain: float,
        gate: float | int,
        choice: float | int,
    ):
        super().__init__()
        self.layout, self.read, self.gain = layout, read, gain
        self.threshold = scale * gain * math.sin(omega / 2) if read == "biased" else 0.0
        self.gate, self.choice = gate, choice

    def forward(self, previous: Token, current: Token | None = None) -> Token:
        cosine, sine = self._picked(previous, 0), self._picked(previous, 1)
        passed = torch.sigmoid(self.gate * (sine + self.threshold))
        if self.read == "mirrored":
            sine = sine * (2 * passed - 1)
        else:
            cosine = cosine * passed
        weights = (self.choice * cosine).softmax(-1)
        out = torch.zeros_like(previous)
        out[:, 0], out[:, 1] = (weights * cosine).sum(-1), (weights * sine).sum(-1)
        return out

    def _picked(self, token: Token, first: int) -> Token:
        """Every other coordinate of the content, and zeros up to the full width: W_cos z or W_sin z."""
        out = torch.zeros_like(token)
        out[:, : self.layout.content // 2] = self.gain * token[:, first : self.layout.content : 2]
        return out


class Fused(nn.Module):
    """The last partial sums and the read-off as one expert."""

    def __init__(self, sums: Gated, read: ReadOff):
        super().__init__()
        self.sums, self.read = sums, read

    def forward(self, previous: Token, current: Token) -> Token:
        return self.read(self.sums(previous, current))
