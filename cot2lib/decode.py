"""The one autoregressive loop: a stack thinks m-1 steps by a thought rule and answers with a token.

Base CoT2 feeds z_t = E^T alpha_t (paper, section 2); any rule of `cot2lib.thoughts` takes its
place. The paper samples the answer token; the authors' code takes the arg max, which is the default
here. The prompt is encoded once, later positions reuse its keys and values.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib import random
from cot2lib.errors import SpecError
from cot2lib.model import Cache, GPT2Stack
from cot2lib.thoughts import Discrete, Rule

Noise = Callable[[int, int], Float[Tensor, "run batch draw"]]


@dataclass(frozen=True)
class Rollout:
    """What a stack thought and answered.

    Attributes:
        logits: scores of every step before the rule was applied, (run, batch, step, vocab).
        weights: mixture weights of every step, the last one-hot on the answer, same shape.
        answers: answer tokens, (run, batch).
        log_density: of each sampled step, (run, batch, step); 0 where a step is deterministic.
    """

    logits: Float[Tensor, "run batch step vocab"]
    weights: Float[Tensor, "run batch step vocab"]
    answers: Int[Tensor, "run batch"]
    log_density: Float[Tensor, "run batch step"]


def keyed_noise(keys: Int[Tensor, " run"], batch: int) -> Noise:
    """Uniform draws for (step, count), a function of the runs' keys alone."""

    def noise(step: int, count: int) -> Float[Tensor, "run batch draw"]:
        return random.uniform(random.fold(keys, step), batch * count).view(len(keys), batch, count)

    return noise


def decode(
    stack: GPT2Stack,
    prompts: Int[Tensor, "#run batch token"],
    steps: int,
    thought: Rule,
    answer: Rule = Discrete(),
    keys: Int[Tensor, " run"] | None = None,
    padding: Int[Tensor, "#run batch"] | None = None,
) -> Rollout:
    """Roll out `steps` outputs for every prompt of every run.

    Args:
        stack: the models.
        prompts: token ids, one set for all runs (first axis 1) or one per run.
        steps: output tokens m; the last is the answer.
        thought, answer: rules for the steps before and at m.
        keys: random keys of the runs (`cot2lib.random.run_keys`), needed only by rules that sample.
        padding: how many tokens on the left of each prompt are padding.

    Raises:
        SpecError: if a rule samples and `keys` is missing.
    """
    noise = _no_noise if keys is None else keyed_noise(keys, prompts.shape[1])
    cache, logits, thoughts = Cache(), [], []
    inputs = stack.embed(prompts)
    for step in range(steps):
        scores = stack(inputs, outputs=1, padding=padding, cache=cache)[:, :, 0]
        rule = answer if step == steps - 1 else thought
        made = rule(scores, lambda count, step=step: noise(step, count))
        logits.append(scores)
        thoughts.append(made)
        inputs = stack.mix(made.weights[:, :, None])
    silent = torch.zeros(logits[0].shape[:2], device=stack.device)
    return Rollout(
        logits=torch.stack(logits, 2),
        weights=torch.stack([made.weights for made in thoughts], 2),
        answers=thoughts[-1].weights.argmax(-1),
        log_density=torch.stack([silent if made.log_density is None else made.log_density for made in thoughts], 2),
    )


def _no_noise(step: int, count: int) -> Tensor:
    raise SpecError("this rule samples: pass keys=random.run_keys(seeds, Site.DECODE).")
