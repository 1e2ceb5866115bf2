"""GRPO's objective on rollouts of thoughts, one value per run (paper, section 5).

Every step of a rollout holds draws: K tokens of a thought, one answer token, one point of a simplex.
From their log-densities under the current, the old and the reference policy come the policy ratio, the
clipped surrogate and Schulman's estimate of the KL divergence.

The likelihood ratio of a thought of K independent tokens is the product over its draws. The paper
takes the geometric mean instead, the product to the power 1/K, whose expectation under the old policy is
below one and whose gradient weights thoughts 1/K against the answer; both are here, and a third form that
clips every draw on its own. The authors' code divides the logits by K as well (`MTS(k, temperature=k)`),
leaves dropout on in the current policy alone, so that ratios differ from one at equal weights, and keeps
no gradient of the answer step's KL.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from cot2lib.errors import SpecError

RATIOS = ("geometric", "product", "per-draw")
LEAST_SPREAD = 1e-12  # of a group's rewards, as in the authors' code: without spread no advantage

Draws = Float[Tensor, "run batch step draw"]
Steps = Float[Tensor, "run batch step"]


def advantages(rewards: Float[Tensor, "run prompt sample"], scaled: bool = True) -> Float[Tensor, "run prompt sample"]:
    """Rewards minus the mean of their group, over its standard deviation if `scaled` (Dr.GRPO leaves that out)."""
    centred = rewards - rewards.mean(-1, keepdim=True)
    return centred / rewards.std(-1, correction=0, keepdim=True).clamp(min=LEAST_SPREAD) if scaled else centred


def log_ratio(new: Draws, old: Draws, ratio: str) -> Steps:
    """Logarithm of a step's policy ratio from the log-densities of its draws.

    Args:
        new, old: log-densities under two policies.
        ratio: "product", the likelihood ratio, or "geometric", its 1/K-th power (eq. multi-token-normalization).

    Raises:
        SpecError: for another ratio.
    """
    if ratio not in RATIOS[:2]:
        raise SpecError(f"ratio={ratio!r}: a step has one for {' or '.join(RATIOS[:2])}.")
    change = new - old
    return change.mean(-1) if ratio == "geometric" else change.sum(-1)


def surrogate(
    new: Draws, old: Draws, advantage: Float[Tensor, "run batch"], ratio: str = "geometric", clip: float = 0.1
) -> Steps:
    """Clipped surrogate min(r A, clip(r, 1-eps, 1+eps) A) of every step; "per-draw" sums it over a step's draws.

    `new` carries the gradient. `clip` is eps. Raises SpecError for an unknown ratio.
    """
    gain = advantage[..., None]
    if ratio == "per-draw":
        return _clipped((new - old).exp(), gain[..., None], clip).sum(-1)
    return _clipped(log_ratio(new, old, ratio).exp(), gain, clip)


def _clipped(ratio: Tensor, gain: Tensor, clip: float) -> Tensor:
    return torch.minimum(ratio * gain, ratio.clamp(1 - clip, 1 + clip) * gain)


def kl_estimate(new: Draws, reference: Draws, ratio: str = "product") -> Steps:
    """Schulman's estimate exp(u) - u - 1 of KL(new || reference), u the log-ratio of reference to new.

    Unbiased for draws of the new policy if `ratio` is the product; with the geometric mean it estimates neither that
    divergence nor its K-th part.
    """
    gap = log_ratio(reference, new, "geometric" if ratio == "geometric" else "product")
    return torch.expm1(gap) - gap
