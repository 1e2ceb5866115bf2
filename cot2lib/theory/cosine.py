"""A smaller construction that solves MNNS with superpositions of one embedding per |sum|. Not in the paper.

With e_s = (cos(2 pi f s / (2 S + 1)))_{f = 0..S}, z_0 = e_0 = 1 and z_t = z_{t-1} * e_{d_t} (Hadamard product),

    z_t = E^T alpha*_t exactly,

the full-budget hindsight target mixed into one token, since the mean of cos(w s) over all signs of the digits is the
product of the cos(w d_j). Signs s and -s share an embedding, so it does not matter whether the vocabulary is signed.
Each step is linear in z; the answer is read off by the inverse cosine transform, which gives the share of each |sum|,
and a threshold. The dimension is S + 1 where the paper's construction needs 2^(n+1).
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from cot2lib.theory.construction import Digits, check_sizes, checked_digits


class CosineMNNS(nn.Module):
    """The cosine construction for `length` digits whose sum is at most `max_sum`, without anything trained.

    Args:
        length: digits n.
        max_sum: S; |sums| 0..S have an embedding of dimension S + 1.
        dtype: float64 or float32.

    Raises:
        SpecError: for sizes below 1 or another dtype.
    """

    def __init__(self, length: int, max_sum: int, dtype: torch.dtype = torch.float64):
        super().__init__()
        check_sizes(length, max_sum, dtype)
        self.length, self.max_sum = length, max_sum
        number = torch.arange(max_sum + 1)
        turns = number[:, None] * number % (2 * max_sum + 1)  # reduced exactly, before any rounding
        table = (turns.double() * (2 * math.pi / (2 * max_sum + 1))).cos()
        both = torch.full((max_sum + 1,), 2.0, dtype=torch.float64)
        both[0] = 1.0  # frequencies f and -f, and sums s and -s, count together, 0 once
        self.register_buffer("embedding", table.to(dtype))
        self.register_buffer("inverse", (both[:, None] * table * both / (2 * max_sum + 1)).to(dtype))

    @torch.no_grad()
    def states(self, digits: Digits) -> Float[Tensor, "input step width"]:
        """z_1..z_n of some rows of digits (SpecError for digits that are out of range)."""
        return self.embedding[checked_digits(digits, self.length, self.max_sum)].cumprod(1)

    @torch.no_grad()
    def shares(self, states: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch sum"]:
        """Share of the signed sums at each |sum| 0..S that states hold: the inverse cosine transform."""
        return states @ self.inverse

    @torch.no_grad()
    def solve(self, digits: Digits) -> Int[Tensor, " input"]:
        """The answer to each row of digits: the smallest |sum| whose share is above half that of a single pair of
        signs.

        A sum and its negative come together, so no share is between 0 and 2 / 2^n. Raises SpecError as `states` does.
        """
        held = self.shares(self.states(digits)[:, -1]) > 2.0**-self.length
        return held.to(torch.int8).argmax(-1)
