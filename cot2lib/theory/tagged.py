"""Is the trigonometric construction (Section 4.1, Prop. construction) a CoT2 model?

Only with a vocabulary that the paper does not state. A CoT2 token is a mixture z = E^T alpha of vocabulary embeddings,
and alpha comes from a softmax. With one pair (cos ws, sin ws) per sum, the mixture of all signed sums is
(prod_j cos(w d_j), 0), which does not hold the sums. So a vocabulary entry must name the slot as well:
2^n slots times 2 S + 1 sums. The uniform alpha over the slots in use then gives exactly the paper's factor 2^-t.

The softmax of c E z must produce this alpha, and two demands on c meet:
1. It must drown the slots that are not in use. That bounds c from below.
2. It compares the slots in use with each other. A slot that is too long by a relative e gains c 2^-t e in its logit.
   So rounding errors grow from pass to pass. That bounds c from above.
The two bounds meet as n grows, in single precision first.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.theory.construction import TrigMNNS


class TaggedMNNS(TrigMNNS):
    """`TrigMNNS` whose thoughts go through a vocabulary of (slot, sum) pairs: z = E^T softmax(c E z).

    The answer's token, which one slot holds, is read as before.

    Args:
        head: the constant c of the vocabulary's softmax, above 0.
        args, options: as for `TrigMNNS`.
    """

    def __init__(self, head: float | int, *args: Any, **options: Any):
        super().__init__(*args, **options)
        if not head > 0:
            raise SpecError(f"head={head}: a sharpness must be above 0.")
        self.head = head

    @property
    def vocab_size(self) -> int:
        """Number of entries of the tagged vocabulary: 2^n slots times 2 S + 1 sums."""
        return self.layout.content // 2 * len(self.embedding)

    def forward(self, tokens: Float[Tensor, "input token width"]) -> Float[Tensor, "input width"]:
        """The next token as of `TrigMNNS`; unless it is the answer, its pairs pass the vocabulary's softmax."""
        out = super().forward(tokens)
        if tokens.shape[1] < self.length + 1 + self.passes:
            content = out[:, : self.layout.content]
            out = torch.cat([self._through_vocabulary(content), out[:, self.layout.content :]], dim=1)
        return out

    def _through_vocabulary(self, content: Float[Tensor, "input content"]) -> Float[Tensor, "input content"]:
        """E^T softmax(c E content). The vocabulary is block-diagonal in the slots."""
        slots = content.unflatten(1, (-1, 2))  # (input, slot, 2)
        logits = self.head * slots @ self.embedding.T  # (input, slot, sum)
        weights = logits.flatten(1).softmax(-1).view_as(logits)
        return (weights @ self.embedding).flatten(1)
