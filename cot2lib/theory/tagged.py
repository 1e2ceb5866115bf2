"""Is the trigonometric construction a CoT2 model? Only with a vocabulary that it does not state.

A CoT2 token is a mixture z = E^T alpha of vocabulary embeddings with alpha from a softmax. With one pair (cos ws,
sin ws) per sum, the mixture of all signed sums is (prod_j cos(w d_j), 0), which is far from holding them. So a
vocabulary entry must say the slot as well: 2^n slots times 2 S + 1 sums. Then the uniform alpha over the slots in
use gives exactly the 2^-t of the paper's halving. But the softmax of c E z that must produce it has to
drown the slots that are not in use, which bounds c from below, and it compares the others with each other: a slot
that is too long by a relative e gains c 2^-t e in its logit, so that rounding errors grow from pass to pass, which
bounds c from above. The bounds meet as n grows, in single precision first.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.theory.construction import TrigMNNS


def collapsed(digits: Int[Tensor, "input length"], omega: float) -> Float[Tensor, "input pair"]:
    """The mean over all signs of the pair (cos ws, sin ws) of the final sum s: (prod_j cos(w d_j), 0)."""
    product = (omega * digits.double()).cos().prod(1)
    return torch.stack([product, torch.zeros_like(product)], dim=1)


class TaggedMNNS(TrigMNNS):
    """`TrigMNNS` whose thoughts go through a vocabulary of (slot, sum) pairs: z = E^T softmax(c E z).

    Args: as for `TrigMNNS`, after
        head: c of the vocabulary's softmax.

    The answer's token, which one slot holds, is read as before.
    """

    def __init__(self, head: float | int, *args, **options):
        super().__init__(*args, **options)
        if not head > 0:
            raise SpecError(f"head={head}: a sharpness must be above 0.")
        self.head = head

    @property
    def vocab_size(self) -> int:
        """Entries of the tagged vocabulary."""
        return self.layout.content // 2 * len(self.embedding)

    def forward(self, tokens: Float[Tensor, "input token width"]) -> Float[Tensor, "input width"]:
        out = super().forward(tokens)
        if tokens.shape[1] < self.length + 1 + self.passes:
            content = out[:, : self.layout.content]
            out = torch.cat([self._mixed(content), out[:, self.layout.content :]], dim=1)
        return out

    def _mixed(self, content: Float[Tensor, "input content"]) -> Float[Tensor, "input content"]:
        """E^T softmax(c E content), the vocabulary being block-diagonal in the slots."""
        slots = content.unflatten(1, (-1, 2))
        logits = self.head * slots @ self.embedding.T
        weights = logits.flatten(1).softmax(-1).view_as(logits)
        return (weights @ self.embedding).flatten(1)
