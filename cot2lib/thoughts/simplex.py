"""Thoughts that are random points of the simplex: Dirichlet (paper, section 5.2) and relaxed tokens."""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib.kit import dirichlet
from cot2lib.kit.frozen import Bound, Count, Positive
from cot2lib.thoughts.rules import LogDensity, Sampled, State, Thought, Weights

Tokens = Int[Tensor, "*lead token"]
Apart = Bool[Tensor, "*lead token"]


@dataclass(frozen=True)
class Dirichlet(Sampled):
    """A point of the simplex, Dirichlet with concentrations gamma alpha_t (paper, section 5.2).

    Its mean is alpha_t. Entry i varies by alpha_i (1 - alpha_i) / (gamma + 1), as with MTS(gamma + 1).

    A token of tiny concentration matters little and adds noise of order one to the policy gradient. So tokens below
    `floor`, and all but the `most` likeliest, share one entry, which also takes in the least of the others if it would
    be below `floor` itself. Weights inside it follow alpha_t. Sums of a Dirichlet point's entries are Dirichlet again,
    so the mean stays alpha_t and no concentration is below gamma floor. A thought has, under every policy, the density
    of the entries that were apart when it was drawn; the split of the shared entry is not part of it and gets no
    gradient. `floor=0, most=None` is the paper's rule, on the whole vocabulary.

    `masked` is the treatment of the authors' code: those tokens get weight zero, though the likeliest stays. The
    concentrations of the others, at least gamma floor, are scaled to add up to gamma, and the mean is not alpha_t.
    (There a token stays if the current, the old or the reference policy gives it at least `floor`.)

    The action is one draw: the `most` likeliest tokens, as floats; the logarithms of their weights, -inf if they are
    not apart; and the logarithm of the shared entry.
    """

    gamma: Positive
    floor: Annotated[float, Bound("at least", 0), Bound("below", 0.5)] = 1e-3
    masked: bool = False
    most: Count | None = 16

    def __call__(self, state: State) -> Thought:
        alpha = state.logits.softmax(-1)  # (run, batch, vocab)
        vocab = alpha.shape[-1]
        tokens = alpha.topk(min(self.most or vocab, vocab)).indices  # (run, batch, token)
        apart = self._apart(alpha, tokens)
        shares = self._shares(alpha, tokens, apart)  # (run, batch, token + 1)
        uniforms = state.draws(shares.shape[-1] * dirichlet.UNIFORMS).unflatten(-1, (-1, dirichlet.UNIFORMS))
        log_point = dirichlet.log_point(self.gamma * shares, uniforms)  # (run, batch, token + 1)
        own, shared = log_point.exp().tensor_split([-1], dim=-1)
        inside = _without(alpha, tokens, apart) * (shared / shares[..., -1:].clamp(min=dirichlet.LEAST))
        action = torch.cat([tokens.to(log_point.dtype), log_point], -1)
        return Thought(inside.scatter_add(-1, tokens, own), action)

    def log_densities(self, parameters: Weights, action: Float[Tensor, "*lead entry"]) -> LogDensity:
        """Log-density of the point under other logits, one draw, in the measure of `dirichlet.log_density`."""
        tokens, log_point = action.tensor_split([action.shape[-1] // 2], dim=-1)
        shares = self._shares(parameters.softmax(-1), tokens.long(), log_point[..., :-1].isfinite())
        return dirichlet.log_density(self.gamma * shares, log_point)[..., None]

    def _apart(self, alpha: Weights, tokens: Tokens) -> Apart:
        """Which of the likeliest tokens, most likely first, have entries of their own."""
        values = alpha.gather(-1, tokens)
        if self.masked:
            return (values >= self.floor) | (values == values[..., :1])
        outside = alpha.scatter(-1, tokens, 0.0).sum(-1, keepdim=True)
        beyond = torch.cat([values[..., 1:], outside], -1).flip(-1).cumsum(-1).flip(-1)
        return (values >= self.floor) & (beyond >= self.floor)

    def _shares(self, alpha: Weights, tokens: Tokens, apart: Apart) -> Float[Tensor, "*lead entry"]:
        """Shares of the concentration, of each token apart (else 0) and of all others together."""
        own = alpha.gather(-1, tokens)
        if self.masked:
            own = own.clamp(min=self.floor) * apart
            return torch.nn.functional.pad(own / own.sum(-1, keepdim=True), (0, 1))
        return torch.cat([own * apart, _without(alpha, tokens, apart).sum(-1, keepdim=True)], -1)


@dataclass(frozen=True)
class Gumbel(Sampled):
    """Softmax of (log alpha_t + standard Gumbel noise) / temperature: a relaxed draw of one token, of later papers.

    The action is the noisy log-probabilities, one draw. Its density is the density of the noise under a policy. A
    thought forgets their common shift. Integrated over the shift this is the thought's own density, Concrete, whose
    ratio varies less. The mean is alpha_t only in the limit of temperature 0.
    """

    temperature: Positive = 1.0

    def __call__(self, state: State) -> Thought:
        noise = -(-state.draws(state.logits.shape[-1]).log()).log()
        noisy = state.logits.log_softmax(-1) + noise
        return Thought((noisy / self.temperature).softmax(-1), noisy)

    def log_densities(self, parameters: Weights, action: Weights) -> LogDensity:
        """Log-density of the noise that makes the action of other logits, one draw."""
        noise = action - parameters.log_softmax(-1)
        return -(noise + (-noise).exp()).sum(-1, keepdim=True)


def _without(alpha: Weights, tokens: Tokens, apart: Apart) -> Weights:
    return alpha.scatter(-1, tokens, alpha.gather(-1, tokens) * ~apart)
