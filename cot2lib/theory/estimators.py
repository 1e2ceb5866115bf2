"""The mean of K sampled tokens as an estimate, and its error (Section 4.2, Prop. sample-complexity).

A CoT2-MTS trace draws K tokens at each of m steps from one shared distribution::

    p_1 = alpha_1,    q_t = mean of K tokens drawn from p_t,    p_{t+1} = q_t M_t.

Its estimate of alpha_m is q_m. The mean of K independent discrete traces of the same chain has the covariance
Sigma(alpha_m) / K, with Sigma(a) = diag(a) - a a^T.

Difference from the paper: the paper bounds the ratio of the two mean squared errors by 2 - 1/K for every m. Its proof
takes the K token distributions as independent. They are so at the first two steps only. Exactly, with C_t the
covariance of q_t::

    C_{t+1} = Sigma(alpha_{t+1}) / K + (1 - 1/K) M_t^T C_t M_t,
    ratio   = sum_s (1 - 1/K)^(m-s) D_s / D_m

Here D_s is the part of the final token's variance that the state of step s explains. The ratio lies between 1 and
K (1 - (1 - 1/K)^m). The bound 2 - 1/K holds for m <= 2. For larger m it holds if D_s shrinks fast enough towards early
steps (`contraction`).

How many traces bring their average within epsilon of alpha_m (Prop. sample-complexity, i)? Let V be the mean squared
error of one trace, E||q_m - alpha_m||^2. The average of N traces has V / N. By Chebyshev's inequality
N = V / (eps^2 delta) suffices for probability 1 - delta. The paper's proof inserts V <= (2 - 1/K) / K. For every chain
only V <= (1 - ||alpha_m||^2) (1 - (1 - 1/K)^m) holds, which grows with m towards the error of a single token.
`failure` tests the printed N, with the exact probability of a larger error for two tokens that never change.

A Dirichlet thought of concentration gamma has the mean and the covariance of K = gamma + 1 tokens.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy
import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit.frozen import positive
from cot2lib.tasks import MNNS
from cot2lib.theory import enumeration

EXACT = ("multinomial", "systematic")  # samplers whose error is known exactly
SUMS_TO_ONE = 1e-6  # within single precision
DIAMETER = math.sqrt(2)  # largest distance of two distributions
CERTAIN = 1e-12  # a variance below this comes from rounding

Array = Tensor | np.ndarray
Distribution = Float[Tensor, "*input v"]
Transitions = list[Float[Tensor, "*input v v"]]
Explained = Float[Tensor, "*input step"]


class ReadOuts(NamedTuple):
    """Mean squared error of one trace's estimate of alpha_m, for three ways to read the last step."""

    tokens: Float[Tensor, "*input"]  # the mean of K tokens drawn there: the estimator of the paper's proof
    token: Float[Tensor, "*input"]  # one token drawn there, as in the paper's Section 2 and its algorithm
    law: Float[Tensor, "*input"]  # the distribution itself; nothing is drawn


def mse_ratio(
    start: Float[Array, " v"], transitions: list[Float[Array, "_ _"]], k: int, sampler: str = "multinomial"
) -> float:
    """Exact E||q_m - alpha_m||^2 of one trace of K tokens, over that of the mean of K discrete traces.

    `start` is the first token's distribution, `transitions` one row-stochastic (v, v) matrix per further step. The K
    tokens are independent draws (MTS), or draws of `cot2lib.thoughts.Systematic` for "systematic", whose value comes
    from listing every count vector that they reach.
    """
    chain = _checked_chain(start, transitions, k)
    if sampler not in EXACT:
        raise SpecError(f"sampler={sampler!r}: exact values exist for {' and '.join(EXACT)}; choose one.")
    terms = explained(*chain)
    if terms[-1] <= CERTAIN:
        raise SpecError("the chain ends in one certain token, so that both errors are 0 and have no ratio.")
    if sampler == "systematic":
        *_, law = enumeration.count_distributions(*chain, k, sampler)
        return float(enumeration.error(law, k)) * k / float(terms[-1])
    return float(ratio(terms, k))


def marginals(start: Distribution, transitions: Transitions) -> list[Distribution]:
    """alpha_1..alpha_m: what base CoT2 computes, and the mean of every unbiased sampler (consistency)."""
    alphas = [start]
    for moves in transitions:
        alphas.append((alphas[-1][..., None, :] @ moves)[..., 0, :])
    return alphas


def explained(start: Distribution, transitions: Transitions) -> Explained:
    """D_1..D_m: how much of the final token's variance 1 - ||alpha_m||^2 the state of each step explains.

    D_s = E||e_j M_s ... M_{m-1}||^2 - ||alpha_m||^2 with j drawn from alpha_s. D_s never falls with s.
    """
    alphas = marginals(start, transitions)
    product = torch.eye(start.shape[-1], dtype=start.dtype)  # M_s ... M_{m-1}: (*input, v, v)
    collisions = [alphas[-1].sum(-1)]
    for alpha, moves in zip(alphas[-2::-1], transitions[::-1]):
        product = moves @ product
        collisions.append((alpha * product.square().sum(-1)).sum(-1))  # (*input)
    return torch.stack(collisions[::-1], -1) - alphas[-1].square().sum(-1)[..., None]


def answer_mass(task: MNNS) -> Float[Tensor, " input"]:
    """alpha_m(answer) of MNNS: the share of all trajectories that end in the answer."""
    return (task.signed_sums()[:, :, -1] == task.answers[:, None]).double().mean(1)


def mnns_explained(digits: Int[Tensor, "input step"]) -> Float[Tensor, "input step"]:
    """`explained` of the chain of MNNS partial sums, from collision probabilities of signed sums alone.

    The state of step s only shifts the distribution of the final sum. So D_s = coll(d_{s+1}..d_m) - coll(d_1..d_m),
    where coll is the probability that two independent random signed sums agree.
    """
    inputs, steps = digits.shape
    reach = int(digits.sum(1).max())
    sums = torch.arange(2 * reach + 1)
    chances = torch.zeros(inputs, len(sums), dtype=torch.float64)  # of the signed sums of the digits from `step` on
    chances[:, reach] = 1.0
    collisions = [torch.ones(inputs, dtype=torch.float64)]
    for step in range(steps - 1, -1, -1):
        shift = digits[:, step, None]
        lower, upper = (sums - shift).clamp(min=0), (sums + shift).clamp(max=2 * reach)  # (input, sum)
        chances = (chances.gather(1, lower) + chances.gather(1, upper)) / 2
        collisions.append(chances.square().sum(1))
    return torch.stack(collisions[-2::-1], 1) - collisions[-1][:, None]


def ratio(terms: Explained, k: int) -> Float[Tensor, "*input"]:
    return _discounted_sum(terms, k) / terms[..., -1]


def read_outs(terms: Explained, k: int) -> ReadOuts:
    """Mean squared errors of one trace's three estimates of alpha_m, from D_1..D_m."""
    return ReadOuts(_discounted_sum(terms, k) / k, terms[..., -1], _discounted_sum(terms[..., :-1], k) / k)


def independent_error(terms: Explained, k: int) -> Float[Tensor, "*input"]:
    """Mean squared error of the mean of K independent discrete traces."""
    return terms[..., -1] / k


def _discounted_sum(terms: Explained, k: int) -> Float[Tensor, "*input"]:
    """sum_s (1 - 1/K)^(m-s) D_s."""
    ages = torch.arange(terms.shape[-1] - 1, -1, -1, dtype=terms.dtype)
    return (terms * (1 - 1 / k) ** ages).sum(-1)


# Bounds on the ratio


def printed_bound(k: int) -> float:
    """The paper's bound. It holds for m <= 2, and for every m if `contraction` <= 1 / (2 - 1/K)."""
    return 2 - 1 / k


def tight_bound(k: int, steps: int) -> float:
    """K (1 - (1 - 1/K)^m) <= min(m, K). Chains whose first token decides the last one attain it."""
    return k * (1 - (1 - 1 / k) ** steps)


def contraction(terms: Explained) -> Float[Tensor, "*input"]:
    """The least lambda with D_s <= lambda D_{s+1} at every step; 0 for a single step."""
    if terms.shape[-1] == 1:
        return torch.zeros_like(terms[..., 0])
    return torch.where(terms[..., 1:] > CERTAIN, terms[..., :-1] / terms[..., 1:], 0.0).amax(-1).clamp(0.0, 1.0)


# How many traces suffice


def largest_variance(k: int, steps: int, diversity: float = 1.0) -> float:
    """The largest V of any chain of m steps with 1 - ||alpha_m||^2 = `diversity`."""
    return diversity * (1 - (1 - 1 / k) ** steps)


def printed_size(epsilon: float, delta: float, k: int) -> int:
    """The N that the paper's proof calls enough: (2 - 1/K) / (K eps^2 delta)."""
    return math.ceil(printed_bound(k) / (k * epsilon**2 * delta))


def chebyshev_size(epsilon: float, delta: float, variance: float) -> int:
    """An N that is enough for every chain with this V: V / (eps^2 delta)."""
    return math.ceil(variance / (epsilon**2 * delta))


def bernstein_size(epsilon: float, delta: float, variance: float) -> int:
    """An N that is enough and grows only with ln(1 / delta), by Bernstein's inequality (Pinelis, 1994)."""
    needed = 2 * variance / epsilon**2 + 2 * DIAMETER / (3 * epsilon)
    return math.ceil(needed * math.log(2 / delta))


def drift(k: int, steps: int) -> Float[Tensor, " count"]:
    """Distribution of the first of two equally likely tokens' count among K, if they never change (Wright-Fisher)."""
    counts = np.arange(k + 1)
    moves = scipy.stats.binom.pmf(counts, k, counts[:, None] / k)  # (count before, count)
    first = scipy.stats.binom.pmf(counts, k, 0.5)
    return torch.from_numpy(first @ np.linalg.matrix_power(moves, steps - 1))


def failure(epsilon: float, traces: int, k: int, steps: int) -> float:
    """Exact P(||average - alpha_m|| > epsilon) of N traces, for two equally likely tokens that never change.

    The characteristic function of the sum of N counts is the N-th power of that of `drift`.
    """
    chances, largest = drift(k, steps), traces * k
    sums = torch.fft.irfft(torch.fft.rfft(chances, largest + 1) ** traces, largest + 1)  # (total)
    totals = torch.arange(largest + 1, dtype=torch.float64)
    far = (2 * totals - largest).abs() > DIAMETER * epsilon * largest
    return float(sums[far].sum())


def _checked_chain(
    start: Float[Array, " v"], transitions: list[Float[Array, "_ _"]], k: int
) -> tuple[Float[Tensor, " v"], list[Float[Tensor, "v v"]]]:
    """The chain in float64."""
    positive(k=k)
    exact = lambda values: torch.as_tensor(values).double()
    chain = exact(start), [exact(moves) for moves in transitions]
    for place, rows in enumerate([chain[0][None], *chain[1]]):
        name = f"transitions[{place - 1}]" if place else "start"
        if place and rows.shape != 2 * chain[0].shape:
            raise SpecError(f"{name} is of shape {tuple(rows.shape)}; a start of {len(start)} tokens needs a square.")
        if not ((rows >= 0).all() and ((rows.sum(-1) - 1).abs() <= SUMS_TO_ONE).all()):
            raise SpecError(f"{name} is no distribution: rows need entries >= 0 that sum to 1.")
    return chain
