"""Supervised losses, one value per run.

CSFT (paper, eq. cont-obj) is the cross-entropy between the soft target and the model's next-token
distribution, summed over the m output steps; with one-hot targets it is SFT (eq. discrete-obj).
The paper allows cross-entropy or KL; they differ by a constant. The authors' CSFT code takes the
KL; their discrete baseline averages over every position of the sequence, prompt digits and EOS
included, which `sequence_nll` reproduces.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

Nll = Float[Tensor, "run batch position"]


def soft_nll(logits: Float[Tensor, "run batch step vocab"], targets: Float[Tensor, "run batch step vocab"]) -> Nll:
    """Cross-entropy -sum_i alpha*_i log alpha_i of each step, in nats."""
    return -(targets * logits.log_softmax(-1)).sum(-1)


def token_nll(logits: Float[Tensor, "run batch position vocab"], ids: Int[Tensor, "run batch position"]) -> Nll:
    """Cross-entropy of given tokens, in nats."""
    return -logits.log_softmax(-1).gather(-1, ids[..., None])[..., 0]


def sequence_nll(
    logits: Float[Tensor, "run batch position vocab"],
    prompts: Int[Tensor, "run batch token"],
    outputs: Float[Tensor, "run batch step vocab"],
) -> Nll:
    """Cross-entropy of every position after the first: the prompt's tokens, then the output steps."""
    steps = outputs.shape[2]
    prompt = token_nll(logits[:, :, :-steps], prompts[:, :, 1:])
    return torch.cat([prompt, soft_nll(logits[:, :, -steps:], outputs)], dim=2)
