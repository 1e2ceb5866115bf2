"""Markov chains on which the theory of Section 4.2 is tested, as exact float64 tensors.

Assumption 1 makes a model that answers a prompt a Markov chain: a start distribution alpha_1 and one transition matrix
M_t per further step, so m - 1 of them, whose rows sum to one. Base CoT2 computes its marginals. A chain may carry
leading axes for many inputs at once. A random chain is a function of its seed.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from scipy import special
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site


class Chain(NamedTuple):
    """A start distribution and the transitions after it. The functions of `theory.estimators` take it unpacked."""

    start: Float[Tensor, "*input v"]
    transitions: list[Float[Tensor, "*input v v"]]


def identity(v: int, steps: int) -> Chain:
    """The chain that starts uniform and never moves: the first token is the whole trace."""
    return lazy_walk(v, steps, 0.0)


def lazy_walk(v: int, steps: int, move: float) -> Chain:
    """The chain that starts uniform over v tokens. A step redraws the token with probability `move`, else keeps it."""
    start = torch.full((v,), 1 / v, dtype=torch.float64)
    stay = (1 - move) * torch.eye(v, dtype=torch.float64)
    return Chain(start, [stay + move * start.expand(v, v)] * (steps - 1))


def random_rows(v: int, steps: int, concentration: float = 1.0, seed: int = 0) -> Chain:
    """A chain whose start and rows are symmetric Dirichlet draws; a small concentration makes them nearly one-hot.

    The draws invert the gamma distribution function, so each takes v uniform ones.
    """
    count = 1 + (steps - 1) * v
    uniforms = random.uniform(random.run_keys([seed], Site.CHAIN), count * v).double().view(count, v)
    gammas = torch.from_numpy(special.gammaincinv(concentration, uniforms.numpy()))
    rows = gammas / gammas.sum(-1, keepdim=True)
    return Chain(rows[0], list(rows[1:].view(steps - 1, v, v)))


def mnns(digits: Int[Tensor, "*input step"], bound: int | None = None) -> Chain:
    """The chain of MNNS partial sums up to `bound`, by default the largest sum; each sign has probability 1/2.

    Its marginals are the hindsight targets with all trajectories. Token j stands for the sum j - bound. Sums that no
    trajectory reaches may lie so far out that a move would leave -bound..bound; such a move is cut to that range.
    A batch of N inputs takes N v^2 numbers per step, so give long lists in parts.
    """
    largest = int(digits.sum(-1).max())
    bound = largest if bound is None else bound
    if largest > bound:
        raise SpecError(f"bound={bound}: these digits sum to {largest}; give at least that.")
    sums = torch.arange(2 * bound + 1)
    signed = torch.tensor([-1, 1]) * digits[..., None, None]  # (*input, step, 1, 2)
    ends = (sums[:, None] + signed).clamp(0, 2 * bound)  # (*input, step, v, 2)
    moves = torch.zeros(*digits.shape, len(sums), len(sums), dtype=torch.float64)  # (*input, step, v, v)
    moves = moves.scatter_add(-1, ends, torch.full(ends.shape, 0.5, dtype=torch.float64))
    return Chain(moves[..., 0, bound, :], list(moves[..., 1:, :, :].unbind(-3)))


def example() -> Chain:
    """The chain of the worked example on dependence, whose probabilities are short fractions."""
    start, *rows = torch.tensor([[2, 5, 3], [5, 3, 2], [1, 4, 5], [0, 6, 4]], dtype=torch.float64) / 10
    return Chain(start, [torch.stack(rows)])
