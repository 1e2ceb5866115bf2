"""Monte Carlo traces of a chain: independent, systematic and Dirichlet thoughts, and K discrete traces.

`simulate` draws many traces at once, in chunks that stay in cache, each chunk a function of the seed and its number.
It shares its samplers with the thought rules of `cot2lib.thoughts.rules`, but not with the exact forms.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.thoughts import inverse_cdf, systematic_counts, token_mean

CHUNK = 1024  # traces drawn together, so that they stay in cache

Laws = Float[Tensor, "trace v"]
Key = Int[Tensor, " one"]


class Simulated(NamedTuple):
    """What simulated traces gave.

    Attributes:
        errors: squared distance ||q_m - alpha_m||^2 of every trace.
        mean: mean of q_m over the traces.
    """

    errors: Float[Tensor, " trace"]
    mean: Float[Tensor, " v"]

    @property
    def mse(self) -> float:
        return float(self.errors.mean())

    @property
    def standard_error(self) -> float:
        """Of `mse`."""
        return float(self.errors.std() / len(self.errors) ** 0.5)


def simulate(
    start: Float[Tensor, " v"],
    transitions: list[Float[Tensor, "v v"]],
    k: int,
    traces: int,
    sampler: str = "multinomial",
    seed: int = 0,
) -> Simulated:
    """Traces of K tokens a step, or for "discrete" means of K independent traces.

    Args:
        start, transitions: the chain (`cot2lib.theory.chains`).
        k: tokens K; a Dirichlet thought has the matching concentration gamma = K - 1.
        traces: how many.
        sampler: "multinomial", "systematic", "dirichlet" or "discrete".
        seed: of all draws.

    Raises:
        SpecError: for an unknown sampler, k < 1, or k < 2 with "dirichlet".
    """
    if sampler not in SAMPLERS:
        raise SpecError(f"sampler={sampler!r}: choose one of {', '.join(SAMPLERS)}.")
    if k < 1 or (sampler == "dirichlet" and k < 2):
        raise SpecError(f"k={k}: at least 1 is needed, and 2 for dirichlet thoughts, whose concentration is k - 1.")
    centre = start
    for moves in transitions:
        centre = centre @ moves
    errors, total = [], torch.zeros_like(centre)
    for chunk, first in enumerate(range(0, traces, CHUNK)):
        key = random.run_keys([seed], Site.CHAIN, chunk)
        drawn = _trace(start, transitions, k, min(CHUNK, traces - first), sampler, key)
        errors.append((drawn - centre).square().sum(-1))
        total += drawn.sum(0)
    return Simulated(torch.cat(errors), total / traces)


def _trace(start, transitions, k: int, traces: int, sampler: str, key: Key) -> Laws:
    """q_m of some traces."""
    if sampler == "discrete":
        single = _trace(start, transitions, 1, traces * k, "multinomial", key)
        return single.view(traces, k, -1).mean(1)
    draw = SAMPLERS[sampler]
    drawn = draw(start.expand(traces, -1), k, random.fold(key, 0))
    for step, moves in enumerate(transitions, start=1):
        drawn = draw(drawn @ moves, k, random.fold(key, step))
    return drawn


def independent(laws: Float[Tensor, "*trace v"], k: int, key: Key) -> Float[Tensor, "*trace v"]:
    """The mean of k independent tokens of each law (`MTS`)."""
    uniforms = random.uniform(key, laws[..., 0].numel() * k).view(*laws.shape[:-1], k)
    return token_mean(inverse_cdf(laws, uniforms.to(laws.dtype)), laws)


def systematic(laws: Float[Tensor, "*trace v"], k: int, key: Key) -> Float[Tensor, "*trace v"]:
    """The mean of k systematically drawn tokens of each law (`Systematic`)."""
    offsets = random.uniform(key, laws[..., 0].numel()).view(laws.shape[:-1])
    return systematic_counts(k * laws, offsets) / k


def dirichlet(laws: Laws, k: int, key: Key) -> Laws:
    """A Dirichlet thought of concentration gamma = k - 1 around each law; tokens of weight zero keep it."""
    generator = np.random.default_rng(int(key[0] & (2**63 - 1)))
    gammas = torch.from_numpy(generator.standard_gamma((k - 1) * laws.numpy()))
    return gammas / gammas.sum(-1, keepdim=True)


SAMPLERS: dict[str, Callable | None] = {
    "multinomial": independent,
    "systematic": systematic,
    "dirichlet": dirichlet,
    "discrete": None,  # drawn as multinomial traces of one token
}
