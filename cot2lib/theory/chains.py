"""Markov chains that the theory of section 4 is tested on, as exact float64 tensors.

Under Assumption 1 a model that answers a prompt is a chain: a start law alpha_1 and one transition matrix per
further step, rows summing to one; base CoT2 computes its marginals. A chain of m steps has m - 1 transitions. Chains
may carry leading axes for many inputs at once. Random ones are a function of their seed (`cot2lib.kit.random`).
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from scipy import special
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site

EXAMPLE = (  # three tokens, two steps: in tenths, so that every probability is a short fraction
    (2, 5, 3),
    ((5, 3, 2), (1, 4, 5), (0, 6, 4)),
)


class Chain(NamedTuple):
    """A start law and the transitions after it; unpack it into the functions of `cot2lib.theory.estimators`."""

    start: Float[Tensor, "*input v"]
    transitions: list[Float[Tensor, "*input v v"]]

    @property
    def steps(self) -> int:
        """Steps m at which tokens are drawn."""
        return len(self.transitions) + 1


def identity(v: int, steps: int) -> Chain:
    """Uniform over v tokens and never moving: every token is its trace."""
    return lazy_walk(v, steps, 0.0)


def lazy_walk(v: int, steps: int, move: float) -> Chain:
    """Uniform over v tokens; a step draws the token anew with probability `move` and else stays."""
    _checked(v, steps)
    if not 0 <= move <= 1:
        raise SpecError(f"move={move}: a probability lies in 0..1.")
    start = torch.full((v,), 1 / v, dtype=torch.float64)
    stay = (1 - move) * torch.eye(v, dtype=torch.float64)
    return Chain(start, [stay + move * start.expand(v, v)] * (steps - 1))


def rank_one(v: int, steps: int, seed: int = 0) -> Chain:
    """Every step forgets the token before it: the rows of a transition agree."""
    laws = _dirichlet(v, steps, 1.0, seed)
    return Chain(laws[0], [law.expand(v, v) for law in laws[1:]])


def random_rows(v: int, steps: int, concentration: float = 1.0, seed: int = 0) -> Chain:
    """Start law and all rows from a symmetric Dirichlet law; a small `concentration` makes rows nearly one-hot."""
    _checked(v, steps)
    laws = _dirichlet(v, 1 + (steps - 1) * v, concentration, seed)
    return Chain(laws[0], list(laws[1:].view(steps - 1, v, v)))


def mnns(digits: Int[Tensor, "*input step"], bound: int | None = None) -> Chain:
    """Partial sums of MNNS, each sign with probability 1/2: the chain of hindsight supervision with all trajectories.

    Token j is the sum j - bound; moves that would leave -bound..bound (from sums no trajectory holds) stay inside.

    Args:
        digits: one input or many; a batch of N takes N v^2 numbers per step, so give long lists in parts.
        bound: S, by default the largest sum of digits.

    Raises:
        SpecError: if a sum of digits exceeds the bound.
    """
    largest = int(digits.sum(-1).max())
    bound = largest if bound is None else bound
    if largest > bound:
        raise SpecError(f"bound={bound}: these digits sum to {largest}; give at least that.")
    sums = torch.arange(2 * bound + 1)
    ends = (sums[:, None] + torch.tensor([-1, 1]) * digits[..., None, None]).clamp(
        0, 2 * bound
    )  # (*input, step, v, 2)
    moves = torch.zeros(*digits.shape, len(sums), len(sums), dtype=torch.float64)
    moves = moves.scatter_add(-1, ends, torch.full(ends.shape, 0.5, dtype=torch.float64))
    return Chain(moves[..., 0, bound, :], list(moves[..., 1:, :, :].unbind(-3)))


def example() -> Chain:
    """The chain of the worked example on dependence: three tokens, two steps."""
    start, rows = (torch.tensor(part, dtype=torch.float64) / 10 for part in EXAMPLE)
    return Chain(start, [rows])


def _dirichlet(v: int, laws: int, concentration: float, seed: int) -> Float[Tensor, "law v"]:
    """Symmetric Dirichlet laws, by inverting the gamma distribution function."""
    _checked(v, laws)
    if not concentration > 0:
        raise SpecError(f"concentration={concentration}: must be above 0.")
    uniforms = random.uniform(random.run_keys([seed], Site.CHAIN), laws * v).double().view(laws, v)
    gammas = torch.from_numpy(special.gammaincinv(concentration, uniforms.numpy()))
    return gammas / gammas.sum(-1, keepdim=True)


def _checked(v: int, steps: int) -> None:
    if v < 1 or steps < 1:
        raise SpecError(f"v={v}, steps={steps}: a chain needs at least one token and one step.")
