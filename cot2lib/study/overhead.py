"""The cost of a continuous token beside a discrete one (paper, remark on the scalability of base CoT2 decoding).

A discrete step looks one row of the embedding table up; a continuous one multiplies the whole table,
z_t = E^T alpha_t. `Step` counts the products of one step. The paper's first half is
exact: 2vd flop, as many as the output projection needs. That the rest of the model dominates them depends on the
shape: the product is v/(12Ld + 2NL) of what L layers need per token at context N. Where alpha has only a few non-zero
entries, B kept states or K sampled tokens, the product is a sum of that many rows and v drops out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

CONTEXT = 64  # positions that a step looks at, unless more is said
PARTS = ("blocks", "projection", "mixture")  # of a step


@dataclass(frozen=True)
class Step:
    """One decoding step of a GPT-2 at batch 1, whose MLP is four times as wide as the model; counts are of products.

    Attributes:
        name: how tables call the model.
        vocab_size, d_model, layers: its shape.
        context: positions that its attention looks at, its own included.
    """

    name: str
    vocab_size: int
    d_model: int
    layers: int
    context: int = CONTEXT

    @property
    def projection(self) -> int:
        """Flop of the logits W h."""
        return 2 * self.vocab_size * self.d_model

    @property
    def mixture(self) -> int:
        """Flop of E^T alpha."""
        return 2 * self.d_model * self.vocab_size

    @property
    def blocks(self) -> int:
        """Flop of the transformer blocks: 12 d^2 weights a layer, and queries and values against the context."""
        return self.layers * (24 * self.d_model**2 + 4 * self.context * self.d_model)

    @property
    def discrete(self) -> int:
        """Flop of a step that feeds a token: blocks and projection."""
        return self.blocks + self.projection


MODELS = (
    Step("MNNS, 2 layers", 89, 32, 2, 9),
    Step("GPT-2 small", 50_257, 768, 12, 1024),
    Step("GPT-2 medium", 50_257, 1024, 24, 1024),
    Step("GPT-2 large", 50_257, 1280, 36, 1024),
    Step("GPT-2 XL", 50_257, 1600, 48, 1024),
)
SMALL = (
    Step("2 layers, d = 32, v = 150,000", 150_000, 32, 2),
    Step("12 layers, d = 768, v = 150,000", 150_000, 768, 12),
)


def counted() -> pd.DataFrame:
    """Flop of a step by part (millions), and what the mixture adds to the blocks and to a discrete step (%)."""
    steps = MODELS + SMALL
    parts = {f"{part} (Mflop)": [getattr(step, part) / 1e6 for step in steps] for part in PARTS}
    added = {
        "mixture over blocks (%)": [100 * step.mixture / step.blocks for step in steps],
        "mixture over discrete step (%)": [100 * step.mixture / step.discrete for step in steps],
    }
    return pd.DataFrame({"model": [step.name for step in steps]} | parts | added)


def equals_projection(steps: Sequence[Step] = MODELS + SMALL) -> bool:
    """Whether the mixture needs exactly the projection's flop: the paper's first half."""
    return all(step.mixture == step.projection for step in steps)


def is_dominated(steps: Sequence[Step] = MODELS) -> bool:
    """Whether the blocks need more than the mixture: the paper's second half, true of GPT-2's shapes, not of all."""
    return all(step.mixture < step.blocks for step in steps)
