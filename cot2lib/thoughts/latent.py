"""Thoughts that are vectors and no mixture of embeddings: COCONUT's hidden states, and noise on an embedding."""

import math
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from cot2lib.kit.frozen import Positive
from cot2lib.kit.random import normals
from cot2lib.thoughts.rule import Mix, Rule, Sampled, State, Thought, Weights


@dataclass(frozen=True)
class Hidden(Rule):
    """COCONUT: the last hidden state of the preceding position is fed as it is.

    COCONUT's text leaves the position open; the preceding one is our reading.
    """

    def __call__(self, state: State) -> Thought:
        return Thought(state.logits.softmax(-1), latent=state.hidden)


@dataclass(frozen=True)
class ZeroSlot(Rule):
    """The authors' COCONUT baseline: the last hidden state of the slot itself, computed with zeros fed to it."""

    def __call__(self, state: State) -> Thought:
        return Thought(state.logits.softmax(-1), latent=state.peek())


@dataclass(frozen=True)
class Gaussian(Sampled):
    """The base thought's embedding E^T alpha_t with normal noise of deviation sigma on each coordinate.

    Later papers take a third of the embeddings' root mean square; sigma is in their units. The action is the vector
    that is fed, one draw. Its density is normal around the embedding of a policy's base thought, so it depends on the
    embedding table too.
    """

    sigma: Positive

    def __call__(self, state: State) -> Thought:
        weights = state.logits.softmax(-1)
        mean = state.mix(weights)  # (run, batch, d)
        width = mean.shape[-1]
        noise = normals(state.draws(width + width % 2))[..., :width]
        point = mean + self.sigma * noise
        return Thought(weights, point, latent=point)

    def parameters(self, logits: Weights, mix: Mix) -> Float[Tensor, "*lead d"]:
        return mix(logits.softmax(-1))

    def log_densities(
        self, parameters: Float[Tensor, "*lead d"], action: Float[Tensor, "*lead d"]
    ) -> Float[Tensor, "*lead draw"]:
        """Log-density of the vector around a base thought's embedding, one draw."""
        squares = ((action - parameters) / self.sigma).square().sum(-1, keepdim=True)
        return -squares / 2 - parameters.shape[-1] * math.log(self.sigma * math.sqrt(2 * math.pi))
