"""Thought rules: how a step's logits become the mixture weights that are fed next.

`Base` is the paper's deterministic continuous token (section 2), here with the temperature and the
threshold of its ablations; `Discrete` is the one-hot token of ordinary chain of thought. A rule is
frozen data, so that a run spec can hold it, and a function of logits and of a source of uniform
draws, so that what it samples depends on keys alone. The density of a sampled thought comes with
it, for policy gradients.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.errors import SpecError

Logits = Float[Tensor, "run batch vocab"]
Draws = Callable[[int], Float[Tensor, "run batch draw"]]


@dataclass(frozen=True)
class Thought:
    """Mixture weights of one step and, if sampled, the log-density they were drawn with."""

    weights: Float[Tensor, "run batch vocab"]
    log_density: Float[Tensor, "run batch"] | None = None


@dataclass(frozen=True)
class Base:
    """Softmax of logits / temperature; entries below threshold dropped and the rest renormalised.

    The largest entry always stays. temperature > 0, 0 <= threshold < 1.
    """

    temperature: float = 1.0
    threshold: float = 0.0

    def __post_init__(self):
        if not self.temperature > 0:
            raise SpecError(f"temperature={self.temperature}: a base thought needs one above 0.")
        if not 0 <= self.threshold < 1:
            raise SpecError(f"threshold={self.threshold}: choose 0 <= threshold < 1.")

    def __call__(self, logits: Logits, draws: Draws) -> Thought:
        weights = (logits / self.temperature).softmax(-1)
        if self.threshold:
            floor = weights.amax(-1, keepdim=True).clamp(max=self.threshold)
            weights = weights * (weights >= floor)
            weights = weights / weights.sum(-1, keepdim=True)
        return Thought(weights)


@dataclass(frozen=True)
class Discrete:
    """One token: sampled from softmax(logits / temperature), or the arg max at temperature 0."""

    temperature: float = 0.0

    def __post_init__(self):
        if self.temperature < 0:
            raise SpecError(f"temperature={self.temperature}: must not be negative.")

    def __call__(self, logits: Logits, draws: Draws) -> Thought:
        if self.temperature == 0:
            return Thought(one_hot(logits.argmax(-1), logits))
        log_weights = (logits / self.temperature).log_softmax(-1)
        token = inverse_cdf(log_weights.exp(), draws(1))[..., 0]
        return Thought(one_hot(token, logits), log_weights.gather(-1, token[..., None])[..., 0])


Rule = Base | Discrete


def one_hot(token: Int[Tensor, "run batch"], logits: Logits) -> Float[Tensor, "run batch vocab"]:
    """One-hot weights in the dtype of `logits`."""
    return torch.zeros_like(logits).scatter(-1, token[..., None], 1.0)


def inverse_cdf(
    weights: Float[Tensor, "run batch vocab"], uniforms: Float[Tensor, "run batch draw"]
) -> Int[Tensor, "run batch draw"]:
    """Tokens whose cumulated weight first exceeds each uniform draw."""
    cumulated = weights.cumsum(-1)
    return torch.searchsorted(cumulated, uniforms * cumulated[..., -1:], right=True).clamp(max=weights.shape[-1] - 1)
