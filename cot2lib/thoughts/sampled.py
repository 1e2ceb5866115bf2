"""Thoughts of sampled tokens: one (discrete chain of thought), or the mean of K (MTS; paper, section 5.1)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.kit.frozen import Count, NonNegative, Positive
from cot2lib.thoughts.rule import Logits, Rule, Sampled, State, Thought, Weights


@dataclass(frozen=True)
class Discrete(Sampled):
    """One token: sampled from softmax(logits / temperature), or the arg max at temperature 0.

    With `top_k`, only the tokens whose logits are among the k largest can be sampled. Hugging Face's
    `generate` does so by default (k = 50), and the authors' Pass@k uses it.
    """

    temperature: NonNegative = 0.0
    top_k: Count | None = None

    def __call__(self, state: State) -> Thought:
        if not self.samples:
            return Thought(one_hot(state.logits.argmax(-1), state.logits))
        token = inverse_cdf(self._log_weights(state.logits).exp(), state.draws(1))
        return Thought(one_hot(token[..., 0], state.logits), token)

    @property
    def samples(self) -> bool:
        return self.temperature > 0

    def columns(self) -> dict[str, object]:
        return {"k": 1} | super().columns()

    def log_densities(
        self, parameters: Float[Tensor, "*lead vocab"], action: Int[Tensor, "*lead draw"]
    ) -> Float[Tensor, "*lead draw"]:
        return self._log_weights(parameters).gather(-1, action)

    def _log_weights(self, logits: Weights) -> Weights:
        return (_keep_top(logits, self.top_k) / self.temperature).log_softmax(-1)


@dataclass(frozen=True)
class MTS(Sampled):
    """Multi-token sampling (paper, section 5.1): the mean of k tokens drawn with replacement.

    The log-density is that of the ordered draws. k = 1 is `Discrete(temperature)`.
    """

    k: Count
    temperature: Positive = 1.0

    def __call__(self, state: State) -> Thought:
        log_weights = self._log_weights(state.logits)
        tokens = inverse_cdf(log_weights.exp(), state.draws(self.k))
        return Thought(token_mean(tokens, log_weights), tokens)

    def log_densities(
        self, parameters: Float[Tensor, "*lead vocab"], action: Int[Tensor, "*lead draw"]
    ) -> Float[Tensor, "*lead draw"]:
        return self._log_weights(parameters).gather(-1, action)

    def _log_weights(self, logits: Weights) -> Weights:
        return (logits / self.temperature).log_softmax(-1)


@dataclass(frozen=True)
class Systematic(Rule):
    """The mean of k tokens drawn together by systematic resampling, from one uniform draw. The paper does not have it.

    Token j is taken floor(k p_j) or ceil(k p_j) times, k p_j on average. So the mean is unbiased, and each weight
    varies as little as a multiple of 1/k with that mean can. The k tokens are dependent, so their probability is no
    product over tokens. A thought has no log-density here, and the rule serves inference only. Which tokens are drawn
    together depends on their order in the vocabulary; how often each is drawn does not.
    """

    k: Count

    def __call__(self, state: State) -> Thought:
        expected = self.k * state.logits.double().softmax(-1)
        counts = systematic_counts(expected, state.draws(1)[..., 0])
        return Thought((counts / self.k).to(state.logits.dtype))


def one_hot(token: Int[Tensor, "run batch"], logits: Logits) -> Float[Tensor, "run batch vocab"]:
    """One-hot weights in the dtype of `logits`."""
    return torch.zeros_like(logits).scatter(-1, token[..., None], 1.0)


def inverse_cdf(
    weights: Float[Tensor, "*batch vocab"], uniforms: Float[Tensor, "*batch draw"]
) -> Int[Tensor, "*batch draw"]:
    """Tokens whose cumulated weight first exceeds each uniform draw."""
    cumulated = weights.cumsum(-1)
    return torch.searchsorted(cumulated, uniforms * cumulated[..., -1:], right=True).clamp(max=weights.shape[-1] - 1)


def token_mean(
    tokens: Int[Tensor, "*batch draw"], like: Float[Tensor, "*batch vocab"]
) -> Float[Tensor, "*batch vocab"]:
    """Mixture weights of the mean of some tokens, in the shape and dtype of `like`."""
    share = torch.full_like(tokens, 1 / tokens.shape[-1], dtype=like.dtype)
    return torch.zeros_like(like).scatter_add(-1, tokens, share)


def systematic_counts(
    expected: Float[Tensor, "*batch vocab"], offset: Float[Tensor, "*batch"]
) -> Float[Tensor, "*batch vocab"]:
    """Whole counts within one of `expected`, with its (whole) sum, and equal to it on average over a uniform offset.

    The k points offset, offset + 1, ... are dropped on the cumulated expectation. A token's count is how many fall on
    its stretch.
    """
    cumulated = expected.double().cumsum(-1)
    cumulated[..., -1] = cumulated[..., -1].round()  # rounding must not lose a token
    points = (cumulated + offset.double()[..., None]).floor()
    return points.diff(dim=-1, prepend=torch.zeros_like(points[..., :1]))


def _keep_top(logits: Float[Tensor, "*lead vocab"], k: int | None) -> Float[Tensor, "*lead vocab"]:
    if k is None or k >= logits.shape[-1]:
        return logits
    least = logits.topk(k, dim=-1).values[..., -1:]
    return logits.masked_fill(logits < least, -torch.inf)
