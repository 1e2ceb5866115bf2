"""Spread and shape of points drawn from a Dirichlet distribution on the simplex.

The distribution has the mean alpha and the concentrations gamma alpha, as in Section 5.2 of the paper.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from cot2lib.kit import random
from cot2lib.theory.verdict import Verdict

GAMMAS = (0.5, 1.0, 3.0, 10.0, 20.0, 40.0, 200.0)
MEANS = 64  # random alphas on which the claim is checked
TOKENS = 12
LOGIT_SCALE = 3.0


def variance(alpha: Float[Tensor, "*lead token"], gamma: float) -> Float[Tensor, "*lead token"]:
    """Variance of each weight: alpha_i (1 - alpha_i) / (gamma + 1)."""
    return alpha * (1 - alpha) / (gamma + 1)


def entropy(alpha: Float[Tensor, "*lead token"], gamma: float) -> Float[Tensor, "*lead"]:
    """Mean entropy (nat) of a point: psi(gamma + 1) - sum_i alpha_i psi(gamma alpha_i + 1)."""
    whole = torch.digamma(torch.as_tensor(gamma + 1.0, dtype=alpha.dtype))
    return whole - (alpha * torch.digamma(gamma * alpha + 1)).sum(-1)


def gamma_direction() -> Verdict:
    """The paper's claim about gamma: a larger gamma gives more uniform points, and explores more.

    Single points do get more uniform, though never more so than alpha. But the spread among points shrinks.
    """
    alpha = (LOGIT_SCALE * random.normal(random.run_keys(range(MEANS)), TOKENS)).softmax(-1)
    shapes = torch.stack([entropy(alpha, gamma) for gamma in GAMMAS])  # (gamma, mean)
    spreads = torch.stack([variance(alpha, gamma).sum(-1) for gamma in GAMMAS])  # (gamma, mean)
    more_uniform = bool((shapes.diff(dim=0) > 0).all() and (shapes < torch.special.entr(alpha).sum(-1)).all())
    explores_more = bool((spreads.diff(dim=0) > 0).all())
    return Verdict(
        more_uniform and explores_more, more_uniform, "single samples are meant; among samples spread falls"
    )
