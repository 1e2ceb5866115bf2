"""A relative of the paper's construction (`cot2lib.theory.construction`) that is not in the paper.

A CoT2 token is a mixture z = E^T alpha of vocabulary embeddings. With one pair (cos ws, sin ws) per sum, the mixture
of all signed sums is (prod_j cos(w d_j), 0), which does not hold the sums.

`CosineMNNS` has one embedding per |sum|, of dimension S + 1 instead of 2^(n+1) + n + 2. Sum s has the
embedding e_s = (cos(2 pi f s / (2 S + 1)))_{f = 0..S}. Start from z_0 = e_0 = 1 and multiply elementwise,
z_t = z_{t-1} * e_{d_t}. Then exactly

    z_t = E^T alpha*_t,

the full-budget hindsight target alpha*_t mixed into one token. The reason is that the mean of cos(w s) over all signs
of the digits is the product of the cos(w d_j). The signs s and -s share an embedding, so the vocabulary may be signed
or not. Each step is linear in z. The inverse cosine transform gives the share of each |sum|; a threshold on the shares
gives the answer.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from cot2lib.theory.construction import Digits, checked_digits


class CosineMNNS(nn.Module):
    """The cosine construction for `length` digits whose sum is at most `max_sum`. Nothing is trained.

    Each |sum| 0..S, S = `max_sum`, has an embedding of dimension S + 1.
    """

    embedding: Float[Tensor, "sum frequency"]
    inverse: Float[Tensor, "frequency sum"]

    def __init__(self, length: int, max_sum: int, dtype: torch.dtype = torch.float64):
        super().__init__()
        self.length, self.max_sum = length, max_sum
        number = torch.arange(max_sum + 1)
        turns = number[:, None] * number % (2 * max_sum + 1)  # reduced exactly, before any rounding
        table = (turns.double() * (2 * math.pi / (2 * max_sum + 1))).cos()  # (sum, frequency)
        both = torch.full((max_sum + 1,), 2.0, dtype=torch.float64)
        both[0] = 1.0  # f and -f count together, s and -s too; 0 counts once
        self.register_buffer("embedding", table.to(dtype))
        self.register_buffer("inverse", (both[:, None] * table * both / (2 * max_sum + 1)).to(dtype))

    @torch.no_grad()
    def states(self, digits: Digits) -> Float[Tensor, "input step width"]:
        """The tokens z_1..z_n of rows of digits (input, length)."""
        return self.embedding[checked_digits(digits, self.length, self.max_sum)].cumprod(1)

    @torch.no_grad()
    def shares(self, states: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch sum"]:
        """Share of each |sum| 0..S among the signed sums that a state holds, by the inverse cosine transform."""
        return states @ self.inverse

    @torch.no_grad()
    def solve(self, digits: Digits) -> Int[Tensor, " input"]:
        """The answer to each row of digits: the smallest |sum| whose share is above 2^-n.

        A sum and its negative come together, so a share is either 0 or at least 2 / 2^n. The threshold is half of
        that.
        """
        held = self.shares(self.states(digits)[:, -1]) > 2.0**-self.length  # (input, sum)
        return held.to(torch.int8).argmax(-1)
