"""Thought rules: frozen data that turns the state of a step into what is fed next.

`Rule` is the base of all rules, `Sampled` of rules that draw and know the log-density of what they drew. A
rule of your own is a frozen dataclass that subclasses one of them, in a module or in a notebook::

    @dataclass(frozen=True)
    class Sharpened(Rule):
        power: float = 2.0

        def __call__(self, state: State) -> Thought:
            return Thought((self.power * state.logits).softmax(-1))

A rule acts in training where its thoughts are fed: by GRPO if it samples (`Base` also, under `GRPOSpec.mask`), and in
supervised training under feeding="self" or "stages" if it does not. Under teacher forcing, the default, targets are
fed, and the rule acts at evaluation alone.

A rule must not keep or draw anything of its own: what it samples is a function of `State.draws`, so that a run does
not depend on what it was stacked with.
"""

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit.frozen import Count, Frozen, Natural, NonNegative, Positive, Share
from cot2lib.kit.random import normals

Logits = Float[Tensor, "run batch vocab"]
Weights = Float[Tensor, "*lead vocab"]
Mix = Callable[[Weights], Float[Tensor, "*lead d"]]
Tokens = Int[Tensor, "*lead draw"]
LogDensity = Float[Tensor, "*lead draw"]


@dataclass(frozen=True)
class State:
    """The state that a rule sees.

    Attributes:
        logits: scores of this step.
        hidden: the hidden state, after the final layer norm, that the logits were read from.
        draws: gives uniform draws in (0, 1) for a count, (run, batch, count).
        peek: gives the hidden state at the next position if zeros were fed there.
        mix: gives the continuous token E^T w of mixture weights w.
        step: which output is made, counted from 0; None where inputs differ in it.
        rows: which of the task's inputs these are; None in training.
    """

    logits: Logits
    hidden: Float[Tensor, "run batch d"]
    draws: Callable[[int], Float[Tensor, "run batch draw"]]
    peek: Callable[[], Float[Tensor, "run batch d"]]
    mix: Callable[[Logits], Float[Tensor, "run batch d"]]
    step: int | None = None
    rows: Int[Tensor, "#run batch"] | None = None


@dataclass(frozen=True)
class Thought:
    """The next input: mixture weights of the vocabulary, or a latent vector in their place.

    Attributes:
        weights: mixture weights; the model's own distribution in a latent thought.
        action: draws of known log-density, tokens or floats; else None.
        latent: the vector that is fed in place of E^T weights, or None.
    """

    weights: Float[Tensor, "run batch vocab"]
    action: Int[Tensor, "run batch draw"] | Float[Tensor, "run batch entry"] | None = None
    latent: Float[Tensor, "run batch d"] | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Rule(Frozen, ABC):
    """A thought rule. Raises SpecError for a field of the wrong type."""

    @abstractmethod
    def __call__(self, state: State) -> Thought:
        """The thought that is fed after a step."""

    @property
    def samples(self) -> bool:
        """Whether the rule has an action with a log-density, which policy gradients need."""
        return False

    def columns(self) -> dict[str, object]:
        """The rule's fields as columns of tables; a name that a run has too gets the prefix `rule_`."""
        return {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self)}


@dataclass(frozen=True)
class Sampled(Rule):
    """A thought rule that draws. Its `Thought` has an action, whose log-density the rule knows under any policy."""

    @property
    def samples(self) -> bool:
        return True

    def parameters(self, logits: Weights, mix: Mix) -> Float[Tensor, "*lead parameter"]:
        """Parameters of the density under a policy, by default the logits."""
        return logits

    @abstractmethod
    def log_densities(
        self, parameters: Float[Tensor, "*lead parameter"], action: Tokens | Float[Tensor, "*lead entry"]
    ) -> LogDensity:
        """Log-density of each draw of an action under the policy of these parameters."""


# Mixtures of the vocabulary


@dataclass(frozen=True)
class Base(Rule):
    """The paper's continuous token (section 2), the softmax of logits / temperature.

    Entries below the threshold are dropped and the rest renormalised (paper, section 3); `top` keeps that many of the
    largest, 0 all. The largest entry always stays.
    """

    temperature: Positive = 1.0
    threshold: Share = 0.0
    top: Natural = 0

    def __call__(self, state: State) -> Thought:
        weights = (state.logits / self.temperature).softmax(-1)
        full = weights
        if self.threshold:
            floor = weights.amax(-1, keepdim=True).clamp(max=self.threshold)
            weights = weights * (weights >= floor)
        if self.top:
            largest = weights.topk(min(self.top, weights.shape[-1]))
            weights = torch.zeros_like(weights).scatter(-1, largest.indices, largest.values)
        return Thought(weights if weights is full else weights / weights.sum(-1, keepdim=True))


@dataclass(frozen=True)
class Discrete(Sampled):
    """One token: sampled from softmax(logits / temperature), or the arg max at temperature 0.

    With `top_k`, only tokens whose logits are among the k largest can be sampled, as in Hugging Face's `generate`
    (default k = 50), which the authors' Pass@k uses.
    """

    temperature: NonNegative = 0.0
    top_k: Count | None = None

    def __call__(self, state: State) -> Thought:
        if self.samples:
            token = inverse_cdf(self._log_weights(state.logits).exp(), state.draws(1))
            return Thought(token_mean(token, state.logits), token)
        return Thought(token_mean(state.logits.argmax(-1, keepdim=True), state.logits))

    @property
    def samples(self) -> bool:
        return self.temperature > 0

    def log_densities(self, parameters: Weights, action: Tokens) -> LogDensity:
        return self._log_weights(parameters).gather(-1, action)

    def _log_weights(self, logits: Weights) -> Weights:
        if self.top_k is not None and self.top_k < logits.shape[-1]:
            least = logits.topk(self.top_k, dim=-1).values[..., -1:]
            logits = logits.masked_fill(logits < least, -torch.inf)
        return (logits / self.temperature).log_softmax(-1)


@dataclass(frozen=True)
class MTS(Sampled):
    """Multi-token sampling (paper, section 5.1): the mean of k tokens drawn with replacement.

    The log-density is of the ordered draws. k = 1 is `Discrete(temperature)`.
    """

    k: Count
    temperature: Positive = 1.0

    def __call__(self, state: State) -> Thought:
        log_weights = (state.logits / self.temperature).log_softmax(-1)
        tokens = inverse_cdf(log_weights.exp(), state.draws(self.k))
        return Thought(token_mean(tokens, log_weights), tokens)

    def log_densities(self, parameters: Weights, action: Tokens) -> LogDensity:
        return (parameters / self.temperature).log_softmax(-1).gather(-1, action)


@dataclass(frozen=True)
class Systematic(Rule):
    """The mean of k tokens drawn together by systematic resampling, from one uniform draw. The paper does not have it.

    Token j is taken floor(k p_j) or ceil(k p_j) times, k p_j on average, so the mean is unbiased and each weight has
    the least variance of multiples of 1/k. The k tokens are dependent, and a thought has no log-density here; the rule
    serves inference only. Which tokens are drawn together depends on their order in the vocabulary.
    """

    k: Count

    def __call__(self, state: State) -> Thought:
        expected = self.k * state.logits.double().softmax(-1)
        counts = systematic_counts(expected, state.draws(1)[..., 0])
        return Thought((counts / self.k).to(state.logits.dtype))


# Vectors that are no mixtures of embeddings


@dataclass(frozen=True)
class Hidden(Rule):
    """COCONUT: the last hidden state of the preceding position is fed (the paper does not say of which position)."""

    def __call__(self, state: State) -> Thought:
        return Thought(state.logits.softmax(-1), latent=state.hidden)


@dataclass(frozen=True)
class ZeroSlot(Rule):
    """The authors' COCONUT baseline: the last hidden state of the slot itself, computed with zeros fed to it."""

    def __call__(self, state: State) -> Thought:
        return Thought(state.logits.softmax(-1), latent=state.peek())


@dataclass(frozen=True)
class Gaussian(Sampled):
    """The base thought's embedding E^T alpha_t with normal noise of standard deviation sigma on each coordinate.

    Later papers set sigma to a third of the embeddings' root mean square. The action is the vector that is fed,
    one draw. Its density is normal around the embedding of a policy's base thought, so it depends on the embedding
    table too.
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

    def log_densities(self, parameters: Float[Tensor, "*lead d"], action: Float[Tensor, "*lead d"]) -> LogDensity:
        squares = ((action - parameters) / self.sigma).square().sum(-1, keepdim=True)
        return -squares / 2 - parameters.shape[-1] * math.log(self.sigma * math.sqrt(2 * math.pi))


# Controls


@dataclass(frozen=True)
class Always(Rule):
    """The same token at every step, such as the arrow, for a model that was fed nothing to read."""

    token: Natural

    def __call__(self, state: State) -> Thought:
        if self.token >= state.logits.shape[-1]:
            raise SpecError(f"token={self.token}: the vocabulary has {state.logits.shape[-1]} tokens.")
        return Thought(token_mean(torch.full_like(state.logits[..., :1], self.token, dtype=torch.int64), state.logits))


# Draws of tokens


def inverse_cdf(weights: Weights, uniforms: Float[Tensor, "*lead draw"]) -> Tokens:
    """Tokens whose cumulated weight first exceeds each uniform draw."""
    cumulated = weights.cumsum(-1)
    return torch.searchsorted(cumulated, uniforms * cumulated[..., -1:], right=True).clamp(max=weights.shape[-1] - 1)


def token_mean(tokens: Tokens, like: Weights) -> Weights:
    """Mixture weights of the mean of some tokens, in the shape and dtype of `like`."""
    share = torch.full_like(tokens, 1 / tokens.shape[-1], dtype=like.dtype)
    return torch.zeros_like(like).scatter_add(-1, tokens, share)


def systematic_counts(expected: Weights, offset: Float[Tensor, "*lead"]) -> Weights:
    """Whole counts within one of `expected`, with its (whole) sum, and equal to it on average over a uniform offset.

    A token's count is how many of the points offset, offset + 1, ... fall on its stretch of the cumulated expectation.
    """
    cumulated = expected.double().cumsum(-1)
    cumulated[..., -1] = cumulated[..., -1].round()  # rounding must not lose a token
    points = (cumulated + offset.double()[..., None]).floor()
    return points.diff(dim=-1, prepend=torch.zeros_like(points[..., :1]))
