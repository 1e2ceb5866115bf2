"""The exact policy gradient of small tasks with one thought, to hold policy ratios and sampled gradients against.

With two digits a trace is one thought of K tokens and an answer, so that all of them can be listed: the
expected reward J, its gradient, and the expected gradient of every surrogate are sums over all thoughts and
answers. Draws of a thought are exchangeable, so each multiset of tokens is listed once and counted as often as
it can be ordered.

The paper has no such check. Its geometric mean weights the thought's part of the gradient 1/K against
the answer's. What reaches the embedding table through the fed thought belongs to the answer's part, as in
`cot2lib.decode.replay`.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib import losses
from cot2lib.decode import ANSWER, decode, replay, rules
from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.model import GPT2Stack
from cot2lib.tasks import MNNS
from cot2lib.thoughts import MTS, Sampled, token_mean

MOST_THOUGHTS = 400_000  # listed for all prompts together
BRANCHES = 64  # thoughts that share one copy of their prompt

Gradients = Float[Tensor, "run parameter"]


@dataclass(frozen=True)
class Law:
    """Every thought of every prompt under a stack, and the answers that follow it."""

    log_thought: Float[Tensor, "run prompt thought draw"]  # log-density of each draw of each thought
    log_answer: Float[Tensor, "run prompt thought vocab"]  # of every answer after each thought
    orders: Float[Tensor, " thought"]  # in how many a thought's tokens can be drawn
    answers: Int[Tensor, " prompt"]  # the right ones

    @property
    def chance(self) -> Float[Tensor, "run prompt thought"]:
        """Probability of each thought, its tokens in any order."""
        return self.orders * self.log_thought.sum(-1).exp()

    @property
    def right(self) -> Float[Tensor, "run prompt thought"]:
        """Probability of the right answer after each thought."""
        place = self.answers[None, :, None, None].expand(*self.log_answer.shape[:3], 1)
        return self.log_answer.gather(-1, place)[..., 0].exp()

    @property
    def success(self) -> Float[Tensor, "run prompt"]:
        """Probability of the right answer to each prompt; its mean over prompts is the expected reward J."""
        return (self.chance * self.right).sum(-1)


@lru_cache(maxsize=8)
def multisets(vocab: int, k: int) -> tuple[Int[Tensor, "thought draw"], Float[Tensor, " thought"]]:
    """All multisets of k tokens, sorted, and in how many orders each can be drawn."""
    tokens = torch.tensor(list(itertools.combinations_with_replacement(range(vocab), k)))
    seen = (tokens[:, :, None] == tokens[:, None, :]).tril().sum(-1)  # 1, 2, ... along equal tokens
    return tokens, math.factorial(k) / seen.double().prod(-1)


def law(stack: GPT2Stack, task: MNNS, thought: MTS) -> Law:
    """List all thoughts and answers of all prompts, in the stack's precision and with gradients.

    Raises SpecError if a trace has more than one thought, or there are too many to list.
    """
    if task.steps != 2:
        raise SpecError(f"{task.name} has {task.steps - 1} thoughts a trace; all can be listed for two digits alone.")
    count, prompts = math.comb(task.vocab_size + thought.k - 1, thought.k), task.size
    if count * prompts > MOST_THOUGHTS:
        raise SpecError(f"k={thought.k}: {count} thoughts of {prompts} prompts each are too many to list; lower k.")
    tokens, orders = multisets(task.vocab_size, thought.k)
    weights = token_mean(tokens, stack.transformer.wte.weight.new_zeros(count, task.vocab_size))
    thoughts = stack.mix(weights.expand(stack.runs, 1, -1, -1))[:, 0]  # (run, thought, d)
    copies = -(-count // BRANCHES)  # of a prompt: branches see each other in one product, though they do not look
    padded = torch.cat([thoughts, thoughts[:, :1].expand(-1, copies * BRANCHES - count, -1)], 1)
    fed = padded[:, None, :, None].expand(-1, prompts, -1, -1, -1).flatten(1, 2)
    logits = replay(stack, task.prompt()[None].repeat_interleave(copies, 1), fed)
    logits = logits.unflatten(1, (prompts, -1))[:, :, :count]  # (run, prompt, thought, step, vocab)
    drawn = tokens[:, None].expand(stack.runs, prompts, count, 1, -1)
    log_thought = thought.log_densities(logits[:, :, :, :1], drawn)[:, :, :, 0]
    return Law(log_thought, logits[:, :, :, 1].log_softmax(-1), orders.to(weights.dtype), task.answer_ids)


def parts(found: Law) -> tuple[Float[Tensor, "run prompt"], Float[Tensor, "run prompt"]]:
    """Two values whose gradients add up to that of each prompt's success: by the thought's draws, by the answer's."""
    return (found.chance * found.right.detach()).sum(-1), (found.chance.detach() * found.right).sum(-1)


def gradient(value: Float[Tensor, " run"], stack: GPT2Stack) -> Gradients:
    """Gradient of every run's value by all of its parameters; the graph stays for another."""
    found = torch.autograd.grad(value.sum(), list(stack.parameters()), retain_graph=True)
    return torch.cat([part.flatten(1) for part in found], dim=1)


def sampled_gradients(
    stack: GPT2Stack,
    task: MNNS,
    thought: MTS,
    ratios: Sequence[str],
    group: int,
    lanes: int,
    seed: int,
) -> dict[str, Float[Tensor, "step lane parameter"]]:
    """Independent gradients of GRPO at equal weights, each from one batch of all prompts, for thought and answer.

    Lanes are copies of one model with keys of their own; every ratio has the same traces. Advantages are not divided
    by the standard deviation of their group, which would weight prompts.
    """
    copies = stack.select([0] * lanes).to(stack.transformer.wte.weight.dtype)
    prompts, steps = task.prompt()[None], rules(thought, task.steps, ANSWER)
    with torch.no_grad():
        rollout = decode(copies, prompts, steps, random.run_keys(range(lanes), Site.ROLLOUT, seed), samples=group)
    rewards = (rollout.answers == task.answer_ids.repeat_interleave(group)).to(rollout.weights.dtype)
    gain = losses.advantages(rewards.unflatten(1, (-1, group)), scaled=False).flatten(1)
    logits = replay(copies, prompts, rollout.thoughts(copies))
    drawn = zip(cast("list[Sampled]", steps), cast("list[Tensor]", rollout.actions))
    new = [rule.log_densities(logits[:, :, [place]], action[:, :, None]) for place, (rule, action) in enumerate(drawn)]
    value = lambda x, ratio: losses.surrogate(x, x.detach(), gain, ratio).sum(2).mean(1)
    return {ratio: torch.stack([gradient(value(x, ratio), copies) for x in new]) for ratio in ratios}


def inner(a: Float[Tensor, "lane parameter"], b: Float[Tensor, "lane parameter"]) -> Float[Tensor, ""]:
    """Unbiased estimate of the inner product of two expected gradients, from lanes that share their noise."""
    lanes = len(a)
    return (a.sum(0) @ b.sum(0) - (a * b).sum()) / (lanes * (lanes - 1))
