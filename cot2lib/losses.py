"""Losses, one value per run: cross-entropies of supervised training, the surrogate of policy gradients.

CSFT (paper, eq. cont-obj) is the cross-entropy between the soft target and the model's next-token
distribution, summed over the m output steps. With one-hot targets it is SFT (eq. discrete-obj).
The paper allows cross-entropy or KL; they differ by a constant. The authors' CSFT code takes the
KL. Their discrete baseline averages over every position of the sequence, prompt digits and EOS
included; `sequence_nll` reproduces that.

GRPO (paper, section 5): every step of a rollout holds draws. These are the K tokens of a thought, one
answer token, or one point of a simplex. Their log-densities under the current (new), the old and the
reference policy give the policy ratio, the clipped surrogate and Schulman's estimate of the KL divergence.

The likelihood ratio of a thought of K independent tokens is the product over its draws. The paper takes the geometric
mean instead, the product to the power 1/K. Its expectation under the old policy is at most one, and its gradient gives
each token of a thought 1/K of the answer's weight. Both are here, and a third form that clips every draw on its own.
Where the authors' code differs: by default it divides the logits by K (`MTS(k, temperature=k)`) and takes the product,
it leaves dropout on in the current policy alone, so that ratios differ from one at equal weights, and it keeps no
gradient of the KL (the last term is added under `no_grad`, which detaches the sum).
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib.errors import SpecError

Nll = Float[Tensor, "run batch position"]
RATIOS = ("geometric", "product", "per-draw")
LEAST_SPREAD = 1e-12  # of a group's rewards, as in the authors' code: without spread no advantage

Draws = Float[Tensor, "run batch step draw"]
Steps = Float[Tensor, "run batch step"]
Clipped = Float[Tensor, "run batch step _"]  # one ratio of each step, or one of each draw


def soft_nll(logits: Float[Tensor, "run batch step vocab"], targets: Float[Tensor, "run batch step vocab"]) -> Nll:
    """Cross-entropy -sum_i alpha*_i log alpha_i of each step, in nats."""
    return -(targets * logits.log_softmax(-1)).sum(-1)


def set_nll(logits: Float[Tensor, "run batch step vocab"], targets: Float[Tensor, "run batch step vocab"]) -> Nll:
    """-log of the probability that a step's token is any of those with a share in the target, in nats.

    Zero where a target has no share at all, as at a step that an input does not have.
    """
    shares = targets > 0
    others = ~shares & shares.any(-1, keepdim=True)
    return -logits.log_softmax(-1).masked_fill(others, -torch.inf).logsumexp(-1)


def reduce(
    nll: Nll, reduction: str, scored: Bool[Tensor, "run batch position"] | None = None
) -> Float[Tensor, " run"]:
    """The "sum" or "mean" of each input's scored positions (None: all), then the mean over the batch."""
    if scored is None:
        return (nll.sum(-1) if reduction == "sum" else nll.mean(-1)).mean(-1)
    total = (nll * scored).sum(-1)  # (run, batch)
    return (total if reduction == "sum" else total / scored.sum(-1)).mean(-1)


def sequence_nll(
    logits: Float[Tensor, "run batch position vocab"],
    prompts: Int[Tensor, "run batch token"],
    outputs: Float[Tensor, "run batch step vocab"],
) -> Nll:
    """Cross-entropy of every position after the first: the prompt's tokens, then the output steps."""
    steps = outputs.shape[2]
    prompt = -logits[:, :, :-steps].log_softmax(-1).gather(-1, prompts[:, :, 1:, None])[..., 0]
    return torch.cat([prompt, soft_nll(logits[:, :, -steps:], outputs)], dim=2)


# Policy gradients


def mean_of_steps(value: Float[Tensor, "*lead step"], there: Bool[Tensor, "*lead step"]) -> Float[Tensor, "*lead"]:
    """The mean over the steps that are there, at least one of each rollout."""
    return value.where(there, 0.0).sum(-1) / there.sum(-1)


def advantages(rewards: Float[Tensor, "run prompt sample"], scaled: bool = True) -> Float[Tensor, "run prompt sample"]:
    """Rewards minus the mean of their group, over its standard deviation if `scaled` (Dr.GRPO leaves that out)."""
    centred = rewards - rewards.mean(-1, keepdim=True)
    return centred / rewards.std(-1, correction=0, keepdim=True).clamp(min=LEAST_SPREAD) if scaled else centred


def log_ratios(new: Draws, old: Draws, ratio: str) -> Clipped:
    """Logarithms of policy ratios, from the log-densities of the draws of steps under two policies.

    A step has one ratio, under "product" the likelihood ratio, under "geometric" its 1/K-th power (eq.
    multi-token-normalization). Under "per-draw" each draw has one.
    """
    if ratio not in RATIOS:
        raise SpecError(f"ratio={ratio!r}: choose one of {', '.join(RATIOS)}.")
    change = new - old
    if ratio == "per-draw":
        return change
    return change.mean(-1, keepdim=True) if ratio == "geometric" else change.sum(-1, keepdim=True)


def surrogate(
    new: Draws, old: Draws, advantages: Float[Tensor, "run batch"], ratio: str = "geometric", clip: float = 0.1
) -> Steps:
    """Clipped surrogate min(r A, clip(r, 1-eps, 1+eps) A) of every step; "per-draw" sums it over a step's draws.

    `new` carries the gradient. `clip` is eps.
    """
    ratios = log_ratios(new, old, ratio).exp()  # (run, batch, step, draw)
    gain = advantages[..., None, None]  # (run, batch, 1, 1)
    clipped = ratios.clamp(1 - clip, 1 + clip)
    return torch.minimum(ratios * gain, clipped * gain).sum(-1)


def outside_clip(log_ratios: Clipped, clip: float) -> Bool[Tensor, "run batch step _"]:
    return torch.expm1(log_ratios).abs() > clip


def kl_estimate(new: Draws, reference: Draws, ratio: str = "product") -> Steps:
    """Schulman's estimate exp(u) - u - 1 of KL(new || reference), u the log-ratio of reference to new.

    Unbiased for draws of the new policy if `ratio` is the product; with the geometric mean it estimates neither that
    divergence nor its K-th part.
    """
    gap = log_ratios(reference, new, "geometric" if ratio == "geometric" else "product")[..., 0]
    return torch.expm1(gap) - gap
