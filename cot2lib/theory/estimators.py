"""What the mean of K sampled tokens estimates, and how well (paper, section 4.2, prop. sample-complexity).

A CoT2-MTS trace draws K tokens at each of m steps from one shared law, p_1 = alpha_1, q_t = mean of K tokens from
p_t, p_{t+1} = q_t M_t; its estimate of alpha_m is q_m. K independent discrete traces of the same chain have
covariance Sigma(alpha_m) / K, Sigma(a) = diag(a) - a a^T.

The paper bounds the ratio of the two mean squared errors by 2 - 1/K for every m. Its proof takes the K laws that
tokens come from as independent, which they are at the first two steps alone. Exactly,

    C_{t+1} = Sigma(alpha_{t+1}) / K + (1 - 1/K) M_t^T C_t M_t,     ratio = sum_s (1 - 1/K)^(m-s) D_s / D_m,

with D_s the squared error of the final token that the state of step s explains. The ratio lies between 1 and
K (1 - (1 - 1/K)^m), and 2 - 1/K bounds it for m <= 2 or if D_s shrinks fast enough towards early steps
(`contraction`). Both forms are computed here; the tests hold them against exact enumeration
(`cot2lib.theory.enumeration`). A Dirichlet thought of concentration gamma has the moments of K = gamma + 1 tokens.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit.fields import whole
from cot2lib.theory.enumeration import systematic_error

SAMPLERS = ("multinomial", "systematic")
SUMS_TO_ONE = 1e-6  # what single precision keeps
CERTAIN = 1e-12  # a variance that is rounding

Array = Tensor | np.ndarray
Law = Float[Tensor, "*input v"]
Moves = list[Float[Tensor, "*input v v"]]
Explained = Float[Tensor, "*input step"]


class ReadOuts(NamedTuple):
    """Mean squared error of one trace's estimate of alpha_m, by what is read at the last step.

    Attributes:
        tokens: the mean of K tokens drawn there (the estimator of the paper's proof).
        token: one token drawn there (the paper's section 2 and its algorithm); K has no effect.
        law: the distribution itself, nothing drawn.
    """

    tokens: Float[Tensor, "*input"]
    token: Float[Tensor, "*input"]
    law: Float[Tensor, "*input"]


def mse_ratio(
    start: Float[Array, " v"], transitions: list[Float[Array, "_ _"]], k: int, sampler: str = "multinomial"
) -> float:
    """Exact E||q_m - alpha_m||^2 of one trace of K tokens over that of the mean of K discrete traces.

    Args:
        start: law of the first token.
        transitions: one row-stochastic (v, v) matrix per further step, so that m = len(transitions) + 1.
        k: tokens K per step.
        sampler: how the K tokens are drawn: "multinomial" (MTS, independent draws) or "systematic"
            (`cot2lib.thoughts.rules.Systematic`), whose value comes from listing every reachable count vector.

    Raises:
        SpecError: for a k that is no whole number of at least 1, an unknown sampler, rows that are no distributions,
            matrices of another size, a chain whose final token is certain (both errors are 0), or one with too many
            count vectors to list.
    """
    chain = _checked(start, transitions, k)
    if sampler not in SAMPLERS:
        raise SpecError(f"sampler={sampler!r}: exact values exist for {' and '.join(SAMPLERS)}; simulate others.")
    parts = explained(*chain)
    if parts[-1] <= CERTAIN:
        raise SpecError("the chain ends in one certain token, so that both errors are 0 and have no ratio.")
    if sampler == "systematic":
        return systematic_error(*chain, k) * k / float(parts[-1])
    return float(ratio(parts, k))


def marginals(start: Law, transitions: Moves) -> list[Law]:
    """alpha_1..alpha_m, what base CoT2 computes and every unbiased sampler has as its mean (prop. consistency)."""
    laws = [start]
    for moves in transitions:
        laws.append((laws[-1][..., None, :] @ moves)[..., 0, :])
    return laws


def covariance(start: Law, transitions: Moves, k: int) -> Float[Tensor, "*input v v"]:
    """C_m, the covariance of q_m over traces of K tokens, by the recursion."""
    laws = marginals(start, transitions)
    spread = sigma(start) / k
    for law, moves in zip(laws[1:], transitions):
        spread = sigma(law) / k + (1 - 1 / k) * moves.mT @ spread @ moves
    return spread


def sigma(law: Law) -> Float[Tensor, "*input v v"]:
    """Covariance of one token's one-hot vector."""
    return law.diag_embed() - law[..., :, None] * law[..., None, :]


def explained(start: Law, transitions: Moves) -> Explained:
    """D_1..D_m: how much of the final token's variance 1 - ||alpha_m||^2 the state of each step explains.

    D_s = E||e_j M_s ... M_{m-1}||^2 - ||alpha_m||^2 over j from alpha_s. Never falls with s.
    """
    laws = marginals(start, transitions)
    onward = torch.eye(start.shape[-1], dtype=start.dtype)
    collisions = [laws[-1].sum(-1)]
    for law, moves in zip(laws[-2::-1], transitions[::-1]):
        onward = moves @ onward
        collisions.append((law * onward.square().sum(-1)).sum(-1))
    return torch.stack(collisions[::-1], -1) - laws[-1].square().sum(-1)[..., None]


def mnns_explained(digits: Int[Tensor, "input step"]) -> Float[Tensor, "input step"]:
    """`explained` of the chain of MNNS partial sums, from collision probabilities of signed sums alone.

    The chain forgets where it stands but for a shift: D_s = coll(d_{s+1}..d_m) - coll(d_1..d_m), with coll the
    probability that two independent random signed sums agree.
    """
    inputs, steps = digits.shape
    reach = int(digits.sum(1).max())
    sums = torch.arange(2 * reach + 1)
    law = torch.zeros(inputs, len(sums), dtype=torch.float64)
    law[:, reach] = 1.0
    collisions = [torch.ones(inputs, dtype=torch.float64)]
    for step in range(steps - 1, -1, -1):
        shift = digits[:, step, None]
        lower, upper = (sums - shift).clamp(min=0), (sums + shift).clamp(max=2 * reach)
        law = (law.gather(1, lower) + law.gather(1, upper)) / 2
        collisions.append(law.square().sum(1))
    return torch.stack(collisions[-2::-1], 1) - collisions[-1][:, None]


def ratio(parts: Explained, k: int) -> Float[Tensor, "*input"]:
    """The ratio of mean squared errors from D_1..D_m."""
    return _weighted(parts, k) / parts[..., -1]


def read_outs(parts: Explained, k: int) -> ReadOuts:
    """Mean squared errors of one trace's three estimates of alpha_m, from D_1..D_m."""
    return ReadOuts(_weighted(parts, k) / k, parts[..., -1], _weighted(parts[..., :-1], k) / k)


def independent_error(parts: Explained, k: int) -> Float[Tensor, "*input"]:
    """Mean squared error of the mean of K independent discrete traces."""
    return parts[..., -1] / k


def effective_tokens(parts: Explained, k: int) -> Float[Tensor, "*input"]:
    """How many independent discrete traces one trace of K tokens is worth."""
    return k / ratio(parts, k)


def _weighted(parts: Explained, k: int) -> Float[Tensor, "*input"]:
    ages = torch.arange(parts.shape[-1] - 1, -1, -1, dtype=parts.dtype)
    return (parts * (1 - 1 / k) ** ages).sum(-1)


# Bounds on the ratio


def printed_bound(k: int) -> float:
    """The paper's bound for every m; right for m <= 2, and for every m if `contraction` <= 1 / (2 - 1/K)."""
    return 2 - 1 / k


def tight_bound(k: int, steps: int) -> float:
    """K (1 - (1 - 1/K)^m), at most min(m, K): attained by chains whose first token decides the last."""
    return k * (1 - (1 - 1 / k) ** steps)


def contraction(parts: Explained) -> Float[Tensor, "*input"]:
    """The least lambda with D_s <= lambda D_{s+1} at every step; 0 for a single step."""
    if parts.shape[-1] == 1:
        return torch.zeros_like(parts[..., 0])
    return torch.where(parts[..., 1:] > CERTAIN, parts[..., :-1] / parts[..., 1:], 0.0).amax(-1).clamp(0.0, 1.0)


def contractive_bound(rate: float, k: int) -> float:
    """1 / (1 - lambda (1 - 1/K)): a bound on the ratio for every m."""
    return 1 / (1 - rate * (1 - 1 / k))


def printed_bound_is_assured(rate: float, k: int) -> bool:
    """Whether this contraction makes the paper's bound hold for every m: lambda <= 1 / (2 - 1/K)."""
    return rate <= 1 / printed_bound(k)


def _checked(start, transitions, k: int) -> tuple[Law, Moves]:
    """The chain in float64, if it is one."""
    if whole("k", k) < 1:
        raise SpecError(f"k={k}: a thought needs at least one token.")
    exact = lambda values: torch.as_tensor(values).double()
    chain = exact(start), [exact(moves) for moves in transitions]
    for place, rows in enumerate([chain[0][None], *chain[1]]):
        name = f"transitions[{place - 1}]" if place else "start"
        if place and rows.shape != 2 * chain[0].shape:
            raise SpecError(f"{name} is of shape {tuple(rows.shape)}; a start of {len(start)} tokens needs a square.")
        if not ((rows >= 0).all() and ((rows.sum(-1) - 1).abs() <= SUMS_TO_ONE).all()):
            raise SpecError(f"{name} is no distribution: rows need entries >= 0 that sum to 1.")
    return chain
