"""The four blocks of the paper's MNNS transformer, as fixed weights.

The source is the appendix "Construction for Minimum Non-Negative Sum (MNNS) Task". A token is a row vector. It holds
a pair (cos ws, sin ws) for each partial sum s, and behind the pairs a one-hot position p_1..p_{n+2}.

    `NextToken`     attention                       Prop. RotationSingleAttn
    `Router`        expert weights                  Prop. moe-onehot
    `partial_sums`  gated expert of one digit       Prop. partial-sum-experts
    `ReadOff`       last expert, which answers      Prop. read-off-expert

Differences from the paper:
1. The gated experts leave out the rows of W_1 and W_2 that are zero.
2. W_cos and W_sin are slices, not matrices.
3. Additions that the formulas need beyond the printed text are options: an expert may hide the position block, the
   read-off may have a threshold and a gain, and a layout may have two more coordinates for a residual stream.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

Tokens = Float[Tensor, "input token width"]
Token = Float[Tensor, "input width"]


@dataclass(frozen=True)
class Layout:
    """Which coordinates of a token hold what.

    Attributes:
        length: number of digits n.
        residual: whether two more coordinates, behind the positions, receive the attended digit.
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

    W is c R on the position block and zero elsewhere. W_v is the identity. In a residual layout W_v instead moves the
    digit's pair to its own two coordinates.
    """

    score: Float[Tensor, "width width"]
    value: Float[Tensor, "width width"]

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
        """Attention weights Softmax(z^T W Z^T) of one query per input."""
        scores = tokens @ (query @ self.score)[..., None]  # (input, token, 1)
        return scores[..., 0].softmax(-1)

    def forward(self, query: Token, tokens: Tokens) -> Token:
        mean = self.weights(query, tokens)[:, None] @ tokens  # (input, 1, width)
        return mean[:, 0] @ self.value


class Router(nn.Module):
    """Expert weights Softmax(c W z), where each row of W is one position.

    Row j is p_j. In a residual layout it is p_{j-1}, because the stream still carries the query's position.
    """

    score: Float[Tensor, "expert width"]

    def __init__(self, layout: Layout, experts: int, sharpness: float | int, dtype: torch.dtype):
        super().__init__()
        score = torch.zeros(experts, layout.width, dtype=dtype)
        for expert in range(experts):
            score[expert, layout.position(expert if layout.residual else expert + 1)] = sharpness
        self.register_buffer("score", score)

    def forward(self, token: Token) -> Float[Tensor, "input expert"]:
        """Weights of the experts for each token; they sum to one."""
        return (token @ self.score.T).softmax(-1)


class Gated(nn.Module):
    """The bilinear layer W_3 (W_1 z_prev * W_2 z_curr) of every partial-sum expert."""

    w1: Float[Tensor, "hidden width"]
    w2: Float[Tensor, "hidden width"]
    w3: Float[Tensor, "width hidden"]

    def __init__(
        self, w1: Float[Tensor, "hidden width"], w2: Float[Tensor, "hidden width"], w3: Float[Tensor, "width hidden"]
    ):
        super().__init__()
        for name, matrix in (("w1", w1), ("w2", w2), ("w3", w3)):
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
    return Gated(w1, w2, scale * w3)


def stream_update(layout: Layout, dtype: torch.dtype) -> Gated:
    """The stream update that a residual block adds to its expert's output: minus the stream, plus the next position.

    Both terms are linear in the stream. They become gated by a factor 1, which is the sum of the one-hot positions.
    """
    w1 = -torch.eye(layout.width, dtype=dtype)
    w1[layout.positions, layout.positions] += layout.rotation(dtype).T
    w2 = torch.zeros_like(w1)
    w2[:, layout.positions] = 1.0
    return Gated(w1, w2, torch.eye(layout.width, dtype=dtype))


class ReadOff(nn.Module):
    """The last expert: it writes the pair of the smallest non-negative sum of z_prev to coordinates 1 and 2.

    `read` names the filter of the cosines:
        "sigmoid"   cos * sigma(c sin), as printed.
        "biased"    cos * sigma(c (sin + b)). The threshold b is sin(w/2), half a step, in the scale of the pairs.
        "mirrored"  no filter. The largest cos is that of the smallest |s|; the sine then gets the right sign.

    Args:
        omega: the frequency w.
        scale: the length of the pairs that arrive.
        gain: z_prev is multiplied by it first.
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
        """The answer's pair, zeros behind it. `current` is not used; the other experts take it."""
        cosine, sine = self._every_other(previous, 0), self._every_other(previous, 1)
        passed = torch.sigmoid(self.gate * (sine + self.threshold))
        if self.read == "mirrored":
            sine = sine * (2 * passed - 1)
        else:
            cosine = cosine * passed
        weights = (self.choice * cosine).softmax(-1)
        out = torch.zeros_like(previous)
        out[:, 0], out[:, 1] = (weights * cosine).sum(-1), (weights * sine).sum(-1)
        return out

    def _every_other(self, token: Token, first: int) -> Token:
        """W_cos z (first = 0) or W_sin z (first = 1): every other content coordinate, then zeros."""
        out = torch.zeros_like(token)
        out[:, : self.layout.content // 2] = self.gain * token[:, first : self.layout.content : 2]
        return out


class Fused(nn.Module):
    """The last partial-sum expert and the read-off as one expert."""

    def __init__(self, sums: Gated, read: ReadOff):
        super().__init__()
        self.sums, self.read = sums, read

    def forward(self, previous: Token, current: Token) -> Token:
        """The answer's pair from the sums before the last digit, and that digit."""
        return self.read(self.sums(previous, current))
