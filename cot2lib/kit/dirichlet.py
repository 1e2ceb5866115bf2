"""Dirichlet draws and densities in logarithms, so that no concentration above 1e-30 is too small for them.

A point of the simplex is a vector of gamma variates over its sum. The variates come from uniform draws
alone, a fixed number for each, and no loop waits for acceptance: of `ROUNDS` proposals of Marsaglia and
Tsang (2000) one uniform picks the first accepted. Below shape 1 their method needs the identity
G(a) = G(a + 1) U^(1/a); at a = 1e-3 most such variates are below every float32, their logarithms are not.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from cot2lib.kit.random import normals

ROUNDS = 4  # proposals, an even number
UNIFORMS = ROUNDS + 2  # draws that a variate takes
LEAST = 1e-30  # smaller concentrations count as this

Point = Float[Tensor, "*lead category"]


def log_point(concentration: Point, uniforms: Float[Tensor, "*lead category draw"]) -> Point:
    """Logarithms of a Dirichlet point's coordinates, from `UNIFORMS` draws for each; zero concentrations get -inf."""
    gammas = log_gammas(concentration.clamp(min=LEAST), uniforms)
    return gammas.masked_fill(concentration == 0, -torch.inf).log_softmax(-1)


def log_density(concentration: Point, log_point: Point) -> Float[Tensor, "*lead"]:
    """Log-density of a Dirichlet point with respect to Lebesgue measure on its log-ratios log(x_i / x_n).

    Any coordinate may be the n-th. The density on the simplex is smaller by the product of the coordinates, whatever
    the concentrations, so policy ratios are the same. Coordinates at -inf are not part of the point.
    """
    there = log_point.isfinite()
    a = concentration.clamp(min=LEAST)
    terms = a.log() - (a + 1).lgamma() + a * log_point.masked_fill(~there, 0.0)  # log a - lgamma(a + 1) = -lgamma(a)
    return (a * there).sum(-1).lgamma() + (terms * there).sum(-1)


def log_gammas(shape: Float[Tensor, "*lead"], uniforms: Float[Tensor, "*lead draw"]) -> Float[Tensor, "*lead"]:
    """Logarithms of gamma variates of scale 1, from `UNIFORMS` draws in (0, 1) for each.

    When every round refuses, which has a probability below 1e-5 at any shape, the last proposal is taken.
    """
    boosted = shape[..., None] + 1
    proposed = normals(uniforms[..., :ROUNDS])
    # Given their proposals rounds accept independently, so the first that does is one categorical draw.
    refused = (1 - acceptance(boosted, proposed)).cumprod(-1)
    first = (uniforms[..., ROUNDS, None] < refused).sum(-1, keepdim=True).clamp(max=ROUNDS - 1)
    accepted = _log_proposal(boosted, proposed.gather(-1, first))[..., 0]
    return accepted + uniforms[..., ROUNDS + 1].log() / shape


def acceptance(shape: Float[Tensor, "*#lead"], normals: Float[Tensor, "*#lead"]) -> Float[Tensor, "*#lead"]:
    """Probability that Marsaglia and Tsang's method, at a shape of at least 1, accepts what a normal draw proposes."""
    d = shape - 1 / 3
    log_ratio = _log_proposal(shape, normals) - d.log()
    return (normals.square() / 2 + d * (1 - log_ratio.exp() + log_ratio)).exp().clamp(max=1.0)


def _log_proposal(shape: Tensor, normals: Tensor) -> Tensor:
    """log d (1 + z / sqrt(9 d))^3 with d = shape - 1/3, so small where the cube is negative that it is refused."""
    d = shape - 1 / 3
    return d.log() + 3 * (1 + normals / (9 * d).sqrt()).clamp(min=LEAST).log()
