"""Thought rules: how a step's state becomes what is fed next.

`Base` is the paper's deterministic continuous token (section 2), here with the temperature and the
threshold of its ablations; `Discrete` the one-hot token of ordinary chain of thought; `MTS` the mean
of K sampled tokens (section 5.1); `Systematic`, which the paper does not have, a less noisy such mean;
`Dirichlet` a random point of the simplex around the base thought (section 5.2). Of later papers are
`Gumbel`, one relaxed token, and `Gaussian`, the base thought's vector with noise. `Hidden` is COCONUT's
thought, the last hidden state of the preceding position; `ZeroSlot` what the authors' COCONUT baseline
feeds instead, the hidden state of the slot itself, computed with zeros in it.

A rule is frozen data, so that a run spec can hold it, and a function of the step's `State`, so that
what it samples depends on keys alone. The density of a sampled thought comes with it, for policy
gradients.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit import dirichlet
from cot2lib.kit.fields import typed
from cot2lib.kit.random import normals

Logits = Float[Tensor, "run batch vocab"]
Weights = Float[Tensor, "*lead vocab"]
Tokens = Int[Tensor, "*lead token"]
Chosen = Bool[Tensor, "*lead token"]


@dataclass(frozen=True)
class State:
    """What a rule may look at.

    Attributes:
        logits: scores of this step.
        hidden: last hidden state (after the final layer norm) they were read from.
        draws: uniform draws in (0, 1), (run, batch, count) for a count.
        peek: the last hidden state at the next position if zeros were fed there.
        mix: the continuous token E^T weights of mixture weights.
    """

    logits: Logits
    hidden: Float[Tensor, "run batch d"]
    draws: Callable[[int], Float[Tensor, "run batch draw"]]
    peek: Callable[[], Float[Tensor, "run batch d"]]
    mix: Callable[[Logits], Float[Tensor, "run batch d"]]


@dataclass(frozen=True)
class Thought:
    """What is fed next: mixture weights of the vocabulary, or a latent vector where there are none.

    Attributes:
        weights: mixture weights; of a latent thought those of the model's own distribution, for the record.
        action: what was drawn, else None: its tokens, or what its rule says.
        log_density: log-density the action was drawn with, else None.
        latent: the vector that is fed in place of E^T weights, else None.
    """

    weights: Float[Tensor, "run batch vocab"]
    action: Int[Tensor, "run batch draw"] | Float[Tensor, "run batch entry"] | None = None
    log_density: Float[Tensor, "run batch"] | None = None
    latent: Float[Tensor, "run batch d"] | None = None


@dataclass(frozen=True)
class Base:
    """Softmax of logits / temperature; entries below threshold dropped and the rest renormalised.

    The largest entry always stays. temperature > 0, 0 <= threshold < 1.
    """

    temperature: float = 1.0
    threshold: float = 0.0

    def __post_init__(self):
        typed(self)
        if not self.temperature > 0:
            raise SpecError(f"temperature={self.temperature}: a base thought needs one above 0.")
        if not 0 <= self.threshold < 1:
            raise SpecError(f"threshold={self.threshold}: choose 0 <= threshold < 1.")

    def __call__(self, state: State) -> Thought:
        weights = (state.logits / self.temperature).softmax(-1)
        if self.threshold:
            floor = weights.amax(-1, keepdim=True).clamp(max=self.threshold)
            weights = weights * (weights >= floor)
            weights = weights / weights.sum(-1, keepdim=True)
        return Thought(weights)


@dataclass(frozen=True)
class Discrete:
    """One token: sampled from softmax(logits / temperature), or the arg max at temperature 0.

    With `top_k`, only the tokens whose logits are among the k largest can be sampled, as by default in
    Hugging Face's `generate` (k = 50), which the authors' Pass@k uses.
    """

    temperature: float = 0.0
    top_k: int | None = None

    def __post_init__(self):
        typed(self)
        if self.temperature < 0:
            raise SpecError(f"temperature={self.temperature}: must not be negative.")
        if self.top_k is not None and self.top_k < 1:
            raise SpecError(f"top_k={self.top_k}: must be at least 1.")

    def __call__(self, state: State) -> Thought:
        if self.temperature == 0:
            return Thought(one_hot(state.logits.argmax(-1), state.logits))
        log_weights = self._log_weights(state.logits)
        token = inverse_cdf(log_weights.exp(), state.draws(1))
        return Thought(one_hot(token[..., 0], state.logits), token, log_weights.gather(-1, token)[..., 0])

    def log_densities(
        self, logits: Float[Tensor, "*lead vocab"], action: Int[Tensor, "*lead draw"]
    ) -> Float[Tensor, "*lead draw"]:
        """Log-density of the drawn token under other logits; temperature must be above 0."""
        return self._log_weights(logits).gather(-1, action)

    def _log_weights(self, logits: Weights) -> Weights:
        return (_keep_top(logits, self.top_k) / self.temperature).log_softmax(-1)


@dataclass(frozen=True)
class MTS:
    """Multi-token sampling (paper, section 5.1): the mean of k tokens drawn with replacement.

    The log-density is that of the ordered draws; k = 1 is `Discrete(temperature)`.
    """

    k: int
    temperature: float = 1.0

    def __post_init__(self):
        typed(self)
        if self.k < 1:
            raise SpecError(f"k={self.k}: a thought needs at least one token.")
        if not self.temperature > 0:
            raise SpecError(f"temperature={self.temperature}: sampling needs one above 0.")

    def __call__(self, state: State) -> Thought:
        log_weights = self._log_weights(state.logits)
        tokens = inverse_cdf(log_weights.exp(), state.draws(self.k))
        return Thought(token_mean(tokens, log_weights), tokens, log_weights.gather(-1, tokens).sum(-1))

    def log_densities(
        self, logits: Float[Tensor, "*lead vocab"], action: Int[Tensor, "*lead draw"]
    ) -> Float[Tensor, "*lead draw"]:
        """Log-density of each drawn token under other logits."""
        return self._log_weights(logits).gather(-1, action)

    def _log_weights(self, logits: Weights) -> Weights:
        return (logits / self.temperature).log_softmax(-1)


@dataclass(frozen=True)
class Systematic:
    """The mean of k tokens drawn together by systematic resampling, from one uniform draw: not in the paper.

    Token j is taken floor(k p_j) or ceil(k p_j) times, k p_j on average, so that the mean is unbiased and each
    weight varies as little as a multiple of 1/k with that mean can. For inference only: the k tokens are dependent,
    so their probability is no product over tokens and a thought has no log-density here. Which tokens are drawn
    together depends on their order in the vocabulary; how often each is drawn does not.
    """

    k: int

    def __post_init__(self):
        typed(self)
        if self.k < 1:
            raise SpecError(f"k={self.k}: a thought needs at least one token.")

    def __call__(self, state: State) -> Thought:
        expected = self.k * state.logits.double().softmax(-1)
        counts = systematic_counts(expected, state.draws(1)[..., 0])
        return Thought((counts / self.k).to(state.logits.dtype))


@dataclass(frozen=True)
class Dirichlet:
    """A point of the simplex, Dirichlet with concentrations gamma alpha_t: its mean is alpha_t, and entry i varies by
    alpha_i (1 - alpha_i) / (gamma + 1), as with MTS(gamma + 1).

    A token of tiny concentration matters little and adds noise of order one to the policy gradient. So tokens below
    `floor`, and all but the `most` likeliest, share one entry, which also takes in the least of the others if it would
    be below `floor` itself; inside it weights follow alpha_t. Sums of a Dirichlet point's entries are Dirichlet again,
    so the mean stays alpha_t, and no concentration is below gamma floor. Under every policy a thought has the density
    of the entries that were apart when it was drawn; how the shared entry is split is no part of it and gets no
    gradient. `floor=0, most=None` is the paper's rule, on the whole vocabulary.

    `masked` is the public code's treatment: those tokens get weight zero, though the likeliest stays, and the others'
    concentrations, at least gamma floor, are scaled to add up to gamma; the mean is not alpha_t. (There it is enough
    that the current, the old or the reference policy gives a token `floor`.)

    The action is one draw: the `most` likeliest tokens, as floats; the logarithms of their weights, -inf if they are
    not apart; and that of the shared entry. gamma > 0, 0 <= floor < 1/2, most at least 1.
    """

    gamma: float
    floor: float = 1e-3
    masked: bool = False
    most: int | None = 16

    def __post_init__(self):
        typed(self)
        if not self.gamma > 0:
            raise SpecError(f"gamma={self.gamma}: a Dirichlet thought needs a concentration above 0.")
        if not 0 <= self.floor < 0.5:
            raise SpecError(f"floor={self.floor}: choose 0 <= floor < 0.5.")
        if self.masked and not self.floor:
            raise SpecError("masked=True, floor=0: the mask needs a floor above 0; without a mask 0 keeps all tokens.")
        if self.most is not None and self.most < 1:
            raise SpecError(f"most={self.most}: at least one token is kept; None sets no bound.")

    def __call__(self, state: State) -> Thought:
        alpha = state.logits.softmax(-1)
        tokens = alpha.topk(min(self.most or alpha.shape[-1], alpha.shape[-1])).indices
        apart = self._apart(alpha, tokens)
        shares = self._shares(alpha, tokens, apart)
        uniforms = state.draws(shares.shape[-1] * dirichlet.UNIFORMS).unflatten(-1, (-1, dirichlet.UNIFORMS))
        log_point = dirichlet.log_point(self.gamma * shares, uniforms)
        own, shared = log_point.exp().tensor_split([-1], dim=-1)
        inside = _without(alpha, tokens, apart) * (shared / shares[..., -1:].clamp(min=dirichlet.LEAST))
        action = torch.cat([tokens.to(log_point.dtype), log_point], -1)
        density = dirichlet.log_density(self.gamma * shares, log_point)
        return Thought(inside.scatter_add(-1, tokens, own), action, density)

    def log_densities(
        self, logits: Float[Tensor, "*lead vocab"], action: Float[Tensor, "*lead entry"]
    ) -> Float[Tensor, "*lead draw"]:
        """Log-density of the point under other logits, one draw, in the measure of `dirichlet.log_density`."""
        tokens, log_point = action.tensor_split([action.shape[-1] // 2], dim=-1)
        shares = self._shares(logits.softmax(-1), tokens.long(), log_point[..., :-1].isfinite())
        return dirichlet.log_density(self.gamma * shares, log_point)[..., None]

    def _apart(self, alpha: Weights, tokens: Tokens) -> Chosen:
        """Which of the likeliest tokens, most likely first, have entries of their own."""
        values = alpha.gather(-1, tokens)
        if self.masked:
            return (values >= self.floor) | (values == values[..., :1])
        outside = alpha.scatter(-1, tokens, 0.0).sum(-1, keepdim=True)
        beyond = torch.cat([values[..., 1:], outside], -1).flip(-1).cumsum(-1).flip(-1)
        return (values >= self.floor) & (beyond >= self.floor)

    def _shares(self, alpha: Weights, tokens: Tokens, apart: Chosen) -> Float[Tensor, "*lead entry"]:
        """Shares of the concentration: of the tokens that are apart, else 0, and of all others together."""
        own = alpha.gather(-1, tokens)
        if self.masked:
            own = own.clamp(min=self.floor) * apart
            return torch.nn.functional.pad(own / own.sum(-1, keepdim=True), (0, 1))
        return torch.cat([own * apart, _without(alpha, tokens, apart).sum(-1, keepdim=True)], -1)


@dataclass(frozen=True)
class Gumbel:
    """Softmax of (log alpha_t + standard Gumbel noise) / temperature: a relaxed draw of one token, not in the paper.

    The action is the noisy log-probabilities, one draw, and its density that of the noise they need under a policy. A
    thought forgets their common shift: integrated over it this is the thought's own, Concrete, density, whose ratio
    varies less. The mean is alpha_t only in the limit of temperature 0.
    """

    temperature: float = 1.0

    def __post_init__(self):
        typed(self)
        if not self.temperature > 0:
            raise SpecError(f"temperature={self.temperature}: a Gumbel thought needs one above 0.")

    def __call__(self, state: State) -> Thought:
        noise = -(-state.draws(state.logits.shape[-1]).log()).log()
        noisy = state.logits.log_softmax(-1) + noise
        density = self.log_densities(state.logits, noisy)[..., 0]
        return Thought((noisy / self.temperature).softmax(-1), noisy, density)

    def log_densities(
        self, logits: Float[Tensor, "*lead vocab"], action: Float[Tensor, "*lead vocab"]
    ) -> Float[Tensor, "*lead draw"]:
        """Log-density of the noise that makes the action of other logits, one draw."""
        noise = action - logits.log_softmax(-1)
        return -(noise + (-noise).exp()).sum(-1, keepdim=True)


@dataclass(frozen=True)
class Gaussian:
    """The base thought with independent normal noise of deviation sigma on each coordinate of its embedding E^T
    alpha_t: of later papers, which take a third of the embeddings' root mean square; sigma is in their units.

    The action is the vector that is fed, one draw. Its density is normal around the embedding of a policy's base
    thought, which depends on the embedding table too.
    """

    sigma: float

    def __post_init__(self):
        typed(self)
        if not self.sigma > 0:
            raise SpecError(f"sigma={self.sigma}: Gaussian noise needs a deviation above 0.")

    def __call__(self, state: State) -> Thought:
        weights = state.logits.softmax(-1)
        mean = state.mix(weights)
        width = mean.shape[-1]
        noise = normals(state.draws(width + width % 2))[..., :width]
        point = mean + self.sigma * noise
        return Thought(weights, point, self.log_densities(mean, point)[..., 0], latent=point)

    def log_densities(
        self, mean: Float[Tensor, "*lead d"], action: Float[Tensor, "*lead d"]
    ) -> Float[Tensor, "*lead draw"]:
        """Log-density of the vector around another base thought's embedding, one draw."""
        squares = ((action - mean) / self.sigma).square().sum(-1, keepdim=True)
        return -squares / 2 - mean.shape[-1] * math.log(self.sigma * math.sqrt(2 * math.pi))


@dataclass(frozen=True)
class Hidden:
    """COCONUT: the last hidden state of the preceding position is fed as it is."""

    def __call__(self, state: State) -> Thought:
        return Thought(state.logits.softmax(-1), latent=state.hidden)


@dataclass(frozen=True)
class ZeroSlot:
    """The authors' COCONUT baseline: the last hidden state of the slot itself, computed with zeros fed to it."""

    def __call__(self, state: State) -> Thought:
        return Thought(state.logits.softmax(-1), latent=state.peek())


Rule = Base | Discrete | MTS | Systematic | Dirichlet | Gumbel | Gaussian | Hidden | ZeroSlot


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


def _without(alpha: Weights, tokens: Tokens, chosen: Chosen) -> Weights:
    """Weights with those of the chosen ones among `tokens` at zero."""
    return alpha.scatter(-1, tokens, alpha.gather(-1, tokens) * ~chosen)


def systematic_counts(
    expected: Float[Tensor, "*batch vocab"], offset: Float[Tensor, "*batch"]
) -> Float[Tensor, "*batch vocab"]:
    """Whole counts within one of `expected`, and with its (whole) sum: `expected` on average over a uniform offset.

    The k points offset, offset + 1, ... are dropped on the cumulated expectation; a token's count is how many fall on
    its stretch.
    """
    cumulated = expected.double().cumsum(-1)
    cumulated[..., -1] = cumulated[..., -1].round()  # rounding must not lose a token
    points = (cumulated + offset.double()[..., None]).floor()
    return points.diff(dim=-1, prepend=torch.zeros_like(points[..., :1]))


def _keep_top(logits: Float[Tensor, "*lead vocab"], k: int | None) -> Float[Tensor, "*lead vocab"]:
    """Logits with all but the k largest at minus infinity."""
    if k is None or k >= logits.shape[-1]:
        return logits
    least = logits.topk(k, dim=-1).values[..., -1:]
    return logits.masked_fill(logits < least, -torch.inf)
