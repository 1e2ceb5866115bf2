"""Decoding of every run's held-out inputs, for learning curves of any kind of training.

The paper samples the answer token; the authors' code takes the arg max, and so do the rules given here by
every kind of run.
"""

from collections.abc import Sequence

import torch

from cot2lib import decode, random
from cot2lib.data import StackData
from cot2lib.model import GPT2Stack
from cot2lib.random import Site
from cot2lib.thoughts import Rule


@torch.no_grad()
def evaluate(stack: GPT2Stack, data: StackData, seeds: Sequence[int], steps: Sequence[Rule]) -> dict[str, list]:
    """Self-fed decoding of every run's held-out inputs by the rules of its steps.

    Returns per-run lists: `correct_a`, `correct_b`, right answers in the two halves of the validation
    classes, and `entropy_t`, mean entropy in nats of the step-t distribution.
    """
    held_out = data.held_out
    keys = random.run_keys(seeds, Site.DECODE, device=stack.device)
    right, entropies = [], []
    for chunk, index in enumerate(held_out.index.split(decode.PROMPTS_AT_ONCE, dim=1)):
        padding = data.padding_of(index)
        rollout = decode.decode(stack, data.prompts[index], steps, random.fold(keys, chunk), padding)
        right.append(rollout.answers == data.answers[index])
        entropies.append(torch.special.entr(rollout.logits.softmax(-1)).sum(-1))
    right = torch.cat(right, 1) & held_out.real
    entropy = (torch.cat(entropies, 1) * held_out.real[..., None]).sum(1) / held_out.real.sum(1, keepdim=True)
    return {
        "correct_a": (right & ~held_out.half).sum(1).tolist(),
        "correct_b": (right & held_out.half).sum(1).tolist(),
        **{f"entropy_{t + 1}": entropy[:, t].tolist() for t in range(len(steps))},
    }
