"""The cost of a continuous token beside a discrete one (paper, remark on the scalability of base CoT2 decoding).

A discrete step looks one row of the embedding table up; a continuous one multiplies the whole table,
z_t = E^T alpha_t: 2vd flop, as many as the output projection needs. That the rest of the model dominates them depends
on the shape: the product is v/(12Ld + 2NL) of what L layers need per token at context N.
"""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd


class Step(NamedTuple):
    """A decoding step of a GPT-2 at batch 1, whose MLP is four times as wide as the model; `context` positions are
    looked at, its own included."""

    name: str
    vocab_size: int
    d_model: int
    layers: int
    context: int = 64

    @property
    def mixture(self) -> int:
        """Flop of E^T alpha, and of the logits W h."""
        return 2 * self.vocab_size * self.d_model

    @property
    def blocks(self) -> int:
        """Flop of the transformer blocks: 12 d^2 weights a layer, and queries and values against the context."""
        return self.layers * (24 * self.d_model**2 + 4 * self.context * self.d_model)


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
    rows = [
        {
            "model": step.name,
            "blocks (Mflop)": step.blocks / 1e6,
            "projection (Mflop)": step.mixture / 1e6,
            "mixture (Mflop)": step.mixture / 1e6,
            "mixture over blocks (%)": 100 * step.mixture / step.blocks,
            "mixture over discrete step (%)": 100 * step.mixture / (step.blocks + step.mixture),
        }
        for step in MODELS + SMALL
    ]
    return pd.DataFrame(rows)


def is_dominated(steps: Sequence[Step] = MODELS) -> bool:
    """Whether the blocks need more than the mixture: true of GPT-2's shapes, not of all."""
    return all(step.mixture < step.blocks for step in steps)
