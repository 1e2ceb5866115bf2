"""Monte Carlo traces of a chain (Section 4.2): MTS, systematic and Dirichlet thoughts, and K discrete traces.

`simulate` draws many traces at once, in chunks that stay in the processor's cache. Nothing is shared with the exact
forms (`cot2lib.theory.estimators`), so the two test each other.
"""

from collections.abc import Callable
from functools import reduce
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.supervision import forward_counts
from cot2lib.tasks import MNNS
from cot2lib.thoughts import inverse_cdf, systematic_counts, token_mean

TRACES_TOGETHER = 1024  # few enough to stay in cache

Distributions = Float[Tensor, "*trace v"]
Start = Float[Tensor, " v"]
Transitions = list[Float[Tensor, "v v"]]
Key = Int[Tensor, " one"]


class Simulated(NamedTuple):
    """The squared distance ||q_m - alpha_m||^2 of each simulated trace, and the mean of q_m over them."""

    errors: Float[Tensor, " trace"]
    mean: Float[Tensor, " v"]

    @property
    def mse(self) -> float:
        return float(self.errors.mean())

    @property
    def standard_error(self) -> float:
        return float(self.errors.std() / len(self.errors) ** 0.5)


def simulate(
    start: Start, transitions: Transitions, k: int, traces: int, sampler: str = "multinomial", seed: int = 0
) -> Simulated:
    """Simulated traces of a chain.

    Thoughts of K tokens are drawn by "multinomial" (MTS), "systematic" or "dirichlet"; the latter have the matching
    concentration gamma = K - 1. With "discrete" a trace is the mean of K independent discrete traces.
    """
    centre = reduce(torch.matmul, transitions, start)
    errors, total = [], torch.zeros_like(centre)  # total: (v)
    for chunk, first in enumerate(range(0, traces, TRACES_TOGETHER)):
        key = random.run_keys([seed], Site.CHAIN, chunk)
        drawn = _last_tokens(start, transitions, k, min(TRACES_TOGETHER, traces - first), sampler, key)
        errors.append((drawn - centre).square().sum(-1))
        total += drawn.sum(0)
    return Simulated(torch.cat(errors), total / traces)


def _last_tokens(
    start: Start, transitions: Transitions, k: int, traces: int, sampler: str, key: Key
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
    """The rule `MTS`."""
    uniforms = random.uniform(key, alphas[..., 0].numel() * k).view(*alphas.shape[:-1], k)
    return token_mean(inverse_cdf(alphas, uniforms.to(alphas.dtype)), alphas)


def systematic(alphas: Distributions, k: int, key: Key) -> Distributions:
    """The rule `Systematic`."""
    offsets = random.uniform(key, alphas[..., 0].numel()).view(alphas.shape[:-1])
    return systematic_counts(k * alphas, offsets) / k


def dirichlet(alphas: Distributions, k: int, key: Key) -> Distributions:
    """The rule `Dirichlet` of concentration gamma = k - 1. Tokens of weight zero stay at zero."""
    generator = np.random.default_rng(int(key[0] & (2**63 - 1)))
    gammas = torch.from_numpy(generator.standard_gamma((k - 1) * alphas.numpy()))
    return gammas / gammas.sum(-1, keepdim=True)


DRAWS: dict[str, Callable[[Distributions, int, Key], Distributions]] = {
    "multinomial": independent,
    "systematic": systematic,
    "dirichlet": dirichlet,
}


def answer_mass(task: MNNS) -> Float[Tensor, " input"]:
    """alpha_m(answer): the share of all trajectories that end in the answer."""
    return _marginals(task)[-1].gather(1, (task.answers + task.start)[:, None])[:, 0]


def _marginals(task: MNNS) -> list[Float[Tensor, "input state"]]:
    """Share of all trajectories in each sum: before the first step, then after every step."""
    graph = [task.children(step) for step in range(task.length)]
    return [counts / counts.sum(1, keepdim=True) for counts in forward_counts(graph, task.states, task.start)]
