"""Points of the simplex drawn from a Dirichlet law with mean alpha and scale gamma: their spread and their shape."""

import torch
from jaxtyping import Float
from torch import Tensor

from cot2lib.kit import random
from cot2lib.theory.verdict import Verdict

GAMMAS = (0.5, 1.0, 3.0, 10.0, 20.0, 40.0, 200.0)
MEANS = 64  # random ones that the claim is checked on
TOKENS = 12
SHARPNESS = 3.0


def variance(alpha: Float[Tensor, "*lead token"], gamma: float) -> Float[Tensor, "*lead token"]:
    """Variance of each weight, alpha_i (1 - alpha_i) / (gamma + 1)."""
    return alpha * (1 - alpha) / (gamma + 1)


def entropy(alpha: Float[Tensor, "*lead token"], gamma: float) -> Float[Tensor, "*lead"]:
    """Mean entropy (nat) of one point: psi(gamma + 1) - sum_i alpha_i psi(gamma alpha_i + 1)."""
    whole = torch.digamma(torch.as_tensor(gamma + 1.0, dtype=alpha.dtype))
    return whole - (alpha * torch.digamma(gamma * alpha + 1)).sum(-1)


def gamma_direction() -> Verdict:
    """A larger gamma: more uniform points one by one, never more so than alpha, and less spread among them."""
    alpha = (SHARPNESS * random.normal(random.run_keys(range(MEANS)), TOKENS)).softmax(-1)
    shapes = torch.stack([entropy(alpha, gamma) for gamma in GAMMAS])
    spreads = torch.stack([variance(alpha, gamma).sum(-1) for gamma in GAMMAS])
    more_uniform = bool((shapes.diff(dim=0) > 0).all() and (shapes < torch.special.entr(alpha).sum(-1)).all())
    explores_more = bool((spreads.diff(dim=0) > 0).all())
    return Verdict(
        more_uniform and explores_more, more_uniform, "single samples are meant; among samples spread falls"
    )
