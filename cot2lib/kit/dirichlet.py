"""Dirichlet draws and densities in logarithms (Section 5.2). No concentration above 1e-30 is too small for them.

A point of the simplex is a vector of gamma variates over its sum. Each variate takes a fixed number of uniform draws,
so no loop waits for an acceptance. Marsaglia and Tsang (2000) propose variates and accept or refuse them; here one
uniform draw picks the first accepted one of `PROPOSALS`. Below shape 1 their method needs the identity
G(a) = G(a + 1) U^(1/a). At a = 1e-3 most such variates are below every float32, but their logarithms are not.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from cot2lib.kit.random import normals

PROPOSALS = 4  # of one variate; even, because Box-Muller makes normals in pairs
UNIFORMS = PROPOSALS + 2  # uniform draws that a variate takes
LEAST = 1e-30  # smaller concentrations count as this

Point = Float[Tensor, "*lead category"]


def log_point(concentration: Point, uniforms: Float[Tensor, "*lead category draw"]) -> Point:
    """Logarithms of a Dirichlet point's coordinates, from `UNIFORMS` uniform draws for each.

    A coordinate whose concentration is zero gets -inf.
    """
    gammas = log_gammas(concentration.clamp(min=LEAST), uniforms)
    return gammas.masked_fill(concentration == 0, -torch.inf).log_softmax(-1)


def log_density(concentration: Point, log_point: Point) -> Float[Tensor, "*lead"]:
    """Log-density of a Dirichlet point with respect to Lebesgue measure on its log-ratios log(x_i / x_n).

    Any coordinate may be the n-th. Coordinates at -inf are not part of the point.

    Difference from the paper: its density is on the simplex. That one is larger by the factor 1 / (x_1 ... x_n), which
    does not depend on the concentrations. So policy ratios are the same.
    """
    there = log_point.isfinite()
    a = concentration.clamp(min=LEAST)
    terms = a.log() - (a + 1).lgamma() + a * log_point.masked_fill(~there, 0.0)  # log a - lgamma(a + 1) = -lgamma(a)
    return (a * there).sum(-1).lgamma() + (terms * there).sum(-1)


def variance(alpha: Point, gamma: float) -> Point:
    """Variance of each coordinate of a point of mean alpha and concentrations gamma alpha."""
    return alpha * (1 - alpha) / (gamma + 1)


def mean_entropy(alpha: Point, gamma: float) -> Float[Tensor, "*lead"]:
    """Mean entropy (nat) of such a point: psi(gamma + 1) - sum_i alpha_i psi(gamma alpha_i + 1)."""
    whole = torch.digamma(torch.as_tensor(gamma + 1.0, dtype=alpha.dtype))
    return whole - (alpha * torch.digamma(gamma * alpha + 1)).sum(-1)


def log_gammas(shape: Float[Tensor, "*lead"], uniforms: Float[Tensor, "*lead draw"]) -> Float[Tensor, "*lead"]:
    """Logarithms of gamma variates of scale 1, from `UNIFORMS` draws in (0, 1) for each.

    If every proposal is refused, the last one is taken. That has a probability below 1e-5 at any shape.
    """
    boosted = shape[..., None] + 1  # (*lead, 1); the identity above brings it back
    proposed = normals(uniforms[..., :PROPOSALS])  # (*lead, proposal)
    # Given the proposals, acceptances are independent. So the first accepted one is a single categorical draw.
    refused = (1 - acceptance(boosted, proposed)).cumprod(-1)
    first = (uniforms[..., PROPOSALS, None] < refused).sum(-1, keepdim=True).clamp(max=PROPOSALS - 1)
    accepted = _log_proposal(boosted, proposed.gather(-1, first))[..., 0]
    return accepted + uniforms[..., PROPOSALS + 1].log() / shape


def acceptance(shape: Float[Tensor, "*#lead"], normals: Float[Tensor, "*#lead"]) -> Float[Tensor, "*#lead"]:
    """Probability that Marsaglia and Tsang's method accepts what a normal draw proposes. Needs a shape >= 1."""
    d = shape - 1 / 3
    log_ratio = _log_proposal(shape, normals) - d.log()
    return (normals.square() / 2 + d * (1 - log_ratio.exp() + log_ratio)).exp().clamp(max=1.0)


def _log_proposal(shape: Float[Tensor, "*#lead"], normals: Float[Tensor, "*#lead"]) -> Float[Tensor, "*#lead"]:
    """log d (1 + z / sqrt(9 d))^3 with d = shape - 1/3.

    Where the cube is negative the value is so small that the proposal is refused.
    """
    d = shape - 1 / 3
    return d.log() + 3 * (1 + normals / (9 * d).sqrt()).clamp(min=LEAST).log()
