"""Decoding of every run's held-out inputs, for learning curves of any kind of training.

The paper samples the answer token; the authors' code takes the arg max, and so do the rules given here by
every kind of run.
"""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib import decode
from cot2lib.decode import Rollout
from cot2lib.kit import random
from cot2lib.kit.frozen import outsiders
from cot2lib.kit.random import Site
from cot2lib.model import GPT2Stack
from cot2lib.testing import check_thoughts
from cot2lib.thoughts import Rule
from cot2lib.training.data import StackData

TOKENS_AT_ONCE = 2**20  # of all runs, that a GPU decodes at a time

Seeds = Sequence[int] | Int[Tensor, " run"]
Right = Bool[Tensor, "run input"]
Entropies = Float[Tensor, "run step"]


def parts_at_once(stack: GPT2Stack, positions: int) -> int:
    """How many chunks of `PROMPTS_AT_ONCE` prompts are decoded together: one on a CPU, whose cache it fills."""
    if stack.device.type == "cpu":
        return 1
    return max(1, TOKENS_AT_ONCE // (stack.runs * positions * decode.PROMPTS_AT_ONCE))


def rollouts(
    stack: GPT2Stack, data: StackData, seeds: Seeds, steps: Sequence[Rule]
) -> Iterator[tuple[Int[Tensor, "run batch"], Bool[Tensor, "run batch"], Rollout]]:
    """Decode every run's held-out inputs in chunks: their rows, which of them are not padding, and the rollout.

    Draws do not depend on how many chunks are decoded together. For callers that turn gradients off: a generator
    cannot do it for them.
    """
    keys = random.run_keys(seeds, Site.DECODE, device=stack.device)
    together = parts_at_once(stack, data.prompts.shape[1] + len(steps) - 1)
    size = together * decode.PROMPTS_AT_ONCE
    parts = [part.split(size, dim=1) for part in (data.held_out.index, data.held_out.real)]
    for place, (index, real) in enumerate(zip(*parts)):
        chunks = range(place * together, place * together + -(-index.shape[1] // decode.PROMPTS_AT_ONCE))
        keyed = torch.stack([random.fold(keys, chunk) for chunk in chunks], 1)  # (run, chunk)
        padding, last = data.padding_of(index), data.last_of(index)
        rollout = decode.decode(
            stack, data.prompts[index], steps, keyed, padding, last=last, rows=index, sees=data.sees
        )
        for rule in filter(outsiders, set(steps[:-1])):
            check_thoughts(rule, rollout.weights, rollout.latents)
        yield index, real, rollout


def evaluate(stack: GPT2Stack, data: StackData, seeds: Seeds, steps: Sequence[Rule]) -> dict[str, list]:
    """Self-fed decoding of every run's held-out inputs by the rules of its steps.

    Returns per-run lists: `correct_a`, `correct_b`, right answers in the two halves of the validation
    classes, and `entropy_t`, mean entropy in nats of the step-t distribution.
    """
    return summary(data, *measured(stack, data, seeds, steps))


@torch.no_grad()
def measured(stack: GPT2Stack, data: StackData, seeds: Seeds, steps: Sequence[Rule]) -> tuple[Right, Entropies]:
    """Which answers are right, padding included, and the mean entropies, as tensors of the device."""
    right, entropies, existing = [], [], []
    for index, real, rollout in rollouts(stack, data, seeds, steps):
        right.append(data.right(rollout.answers, index))
        entropies.append(torch.special.entr(rollout.logits.softmax(-1)).sum(-1))
        there = real[..., None]  # up to the answer, and not of padding
        if rollout.last is not None:
            there = there & (torch.arange(len(steps), device=real.device) <= rollout.last[..., None])
        existing.append(there)
    entropy, there = torch.cat(entropies, 1), torch.cat(existing, 1)
    return torch.cat(right, 1), (entropy * there).sum(1) / there.sum(1)


def summary(data: StackData, right: Right, entropies: Entropies) -> dict[str, list]:
    """The lists that `evaluate` returns; right answers to held-out inputs include the padding."""
    held_out = data.held_out
    right = right & held_out.real
    return {
        "correct_a": (right & ~held_out.half).sum(1).tolist(),
        "correct_b": (right & held_out.half).sum(1).tolist(),
        **{f"entropy_{t + 1}": entropies[:, t].tolist() for t in range(entropies.shape[1])},
    }


def accuracy(data: StackData, found: dict[str, list]) -> Float[Tensor, " run"]:
    """Each run's share of right answers, from what `evaluate` returns."""
    counts = torch.tensor([found["correct_a"], found["correct_b"]], dtype=torch.float64)  # (half, run)
    return counts.sum(0) / data.held_out.real.sum(1).cpu()
