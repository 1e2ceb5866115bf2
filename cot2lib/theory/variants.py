"""Two relatives of the paper's construction (`cot2lib.theory.construction`), neither of them in the paper.

`TaggedMNNS` asks whether the trigonometric construction is a CoT2 model. It is one only with a vocabulary that the
paper does not state. A CoT2 token is a mixture z = E^T alpha of vocabulary embeddings, and alpha comes from a softmax.
With one pair (cos ws, sin ws) per sum, the mixture of all signed sums is (prod_j cos(w d_j), 0), which does not hold
the sums. So a vocabulary entry must name the slot as well: 2^n slots times 2 S + 1 sums. The uniform
alpha over the slots in use then gives exactly the paper's factor 2^-t. The softmax of c E z must produce this alpha,
and two demands on c meet:
1. It must name the sum of each slot and drown the slots that are not in use. That bounds c from below.
2. It compares the slots in use with each other. A slot that is too long by a relative e gains c 2^-t e in its logit.
   So rounding errors grow from pass to pass. That bounds c from above.
The two bounds meet as n grows, in single precision first.

`CosineMNNS` is smaller: one embedding per |sum|, of dimension S + 1 instead of 2^(n+1) + n + 2. Sum s has the
embedding e_s = (cos(2 pi f s / (2 S + 1)))_{f = 0..S}. Start from z_0 = e_0 = 1 and multiply elementwise,
z_t = z_{t-1} * e_{d_t}. Then exactly

    z_t = E^T alpha*_t,

the full-budget hindsight target alpha*_t mixed into one token. The reason is that the mean of cos(w s) over all signs
of the digits is the product of the cos(w d_j). The signs s and -s share an embedding, so the vocabulary may be signed
or not. Each step is linear in z. The inverse cosine transform gives the share of each |sum|; a threshold on the shares
gives the answer.
"""

import math
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from cot2lib.theory.construction import Digits, Token, Tokens, TrigMNNS, checked_digits


class TaggedMNNS(TrigMNNS):
    """`TrigMNNS` whose thoughts go through a vocabulary of (slot, sum) pairs: z = E^T softmax(c E z).

    `head` is the constant c of the vocabulary's softmax; the answer's token, which one slot holds, is read as before.
    """

    def __init__(self, head: float, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self.head = head

    def forward(self, tokens: Tokens) -> Token:
        out = super().forward(tokens)
        if tokens.shape[1] < self.length + 1 + self.passes:
            content = out[:, : self.layout.content]
            out = torch.cat([self._through_vocabulary(content), out[:, self.layout.content :]], dim=1)
        return out

    def _through_vocabulary(self, content: Float[Tensor, "input content"]) -> Float[Tensor, "input content"]:
        """E^T softmax(c E content); the vocabulary is block-diagonal in the slots."""
        slots = content.unflatten(1, (-1, 2))  # (input, slot, 2)
        logits = self.head * slots @ self.embedding.T  # (input, slot, sum)
        weights = logits.flatten(1).softmax(-1).view_as(logits)
        return (weights @ self.embedding).flatten(1)


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
