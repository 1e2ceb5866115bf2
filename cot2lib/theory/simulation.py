"""Monte Carlo traces of a chain (Section 4.2): MTS, systematic and Dirichlet thoughts, and K discrete traces.

`simulate` draws many traces at once, in chunks that stay in the processor's cache. Each chunk is a function of the
seed and its number. The samplers are those of the thought rules (`cot2lib.thoughts`). Nothing is shared with the
exact forms (`cot2lib.theory.estimators`), so the two test each other.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.thoughts import inverse_cdf, systematic_counts, token_mean

TRACES_TOGETHER = 1024  # few enough to stay in cache

Distributions = Float[Tensor, "*trace v"]
Key = Int[Tensor, " one"]


class Simulated(NamedTuple):
    """Results of simulated traces.

    Attributes:
        errors: squared distance ||q_m - alpha_m||^2 of each trace.
        mean: mean of q_m over the traces.
    """

    errors: Float[Tensor, " trace"]
    mean: Float[Tensor, " v"]

    @property
    def mse(self) -> float:
        return float(self.errors.mean())

    @property
    def standard_error(self) -> float:
        return float(self.errors.std() / len(self.errors) ** 0.5)


def simulate(
    start: Float[Tensor, " v"],
    transitions: list[Float[Tensor, "v v"]],
    k: int,
    traces: int,
    sampler: str = "multinomial",
    seed: int = 0,
) -> Simulated:
    """Simulated traces of a chain.

    Thoughts of K tokens are drawn by "multinomial" (MTS), "systematic" or "dirichlet"; the latter have the matching
    concentration gamma = K - 1. With "discrete" a trace is the mean of K independent discrete traces.
    """
    centre = start
    for moves in transitions:
        centre = centre @ moves
    errors, total = [], torch.zeros_like(centre)  # total: (v)
    for chunk, first in enumerate(range(0, traces, TRACES_TOGETHER)):
        key = random.run_keys([seed], Site.CHAIN, chunk)
        drawn = _last_tokens(start, transitions, k, min(TRACES_TOGETHER, traces - first), sampler, key)
        errors.append((drawn - centre).square().sum(-1))
        total += drawn.sum(0)
    return Simulated(torch.cat(errors), total / traces)


def _last_tokens(
    start: Float[Tensor, " v"], transitions: list[Float[Tensor, "v v"]], k: int, traces: int, sampler: str, key: Key
) -> Float[Tensor, "trace v"]:
    if sampler == "discrete":
        single = _last_tokens(start, transitions, 1, traces * k, "multinomial", key)  # (trace * k, v)
        return single.view(traces, k, -1).mean(1)
    draw = DRAWS[sampler]
    drawn = draw(start.expand(traces, -1), k, random.fold(key, 0))
    for step, moves in enumerate(transitions, start=1):
        drawn = draw(drawn @ moves, k, random.fold(key, step))
    return drawn


def independent(alphas: Distributions, k: int, key: Key) -> Distributions:
    """The mean of k independent tokens of each distribution (the rule `MTS`)."""
    uniforms = random.uniform(key, alphas[..., 0].numel() * k).view(*alphas.shape[:-1], k)
    return token_mean(inverse_cdf(alphas, uniforms.to(alphas.dtype)), alphas)


def systematic(alphas: Distributions, k: int, key: Key) -> Distributions:
    """The mean of k systematically drawn tokens of each distribution (the rule `Systematic`)."""
    offsets = random.uniform(key, alphas[..., 0].numel()).view(alphas.shape[:-1])
    return systematic_counts(k * alphas, offsets) / k


def dirichlet(alphas: Distributions, k: int, key: Key) -> Distributions:
    """A Dirichlet draw of concentration gamma = k - 1 around each distribution. Tokens of weight zero stay at zero."""
    generator = np.random.default_rng(int(key[0] & (2**63 - 1)))
    gammas = torch.from_numpy(generator.standard_gamma((k - 1) * alphas.numpy()))
    return gammas / gammas.sum(-1, keepdim=True)


DRAWS: dict[str, Callable[[Distributions, int, Key], Distributions]] = {
    "multinomial": independent,
    "systematic": systematic,
    "dirichlet": dirichlet,
}
