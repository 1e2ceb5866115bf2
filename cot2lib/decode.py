"""The one autoregressive loop: a stack thinks m-1 steps by a thought rule and answers with a token.

Base CoT2 feeds z_t = E^T alpha_t (paper, section 2); any rule of `cot2lib.thoughts.rules` takes its
place. The paper samples the answer token; the authors' code takes the arg max, which is the default
here. The prompt is encoded once, later positions reuse its keys and values, and so do all samples
drawn for one prompt. Training on a model's own thoughts walks the same steps (`think`); policy gradients
replay a finished rollout in one forward (`replay`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.model import Cache, Dropout, GPT2Stack
from cot2lib.model.branches import Tree
from cot2lib.thoughts import Discrete, Rule, State, Thought

PROMPTS_AT_ONCE = 128  # a chunk that stays in cache
ANSWER = Discrete(1.0)  # the sampled answer of a policy's traces

Noise = Callable[[int, int], Float[Tensor, "run batch draw"]]


@dataclass(frozen=True)
class Rollout:
    """What a stack thought and answered.

    Attributes:
        logits: scores of every step before the rule was applied, (run, batch, step, vocab).
        weights: mixture weights of every step, the last one-hot on the answer, same shape.
        answers: answer tokens, (run, batch).
        log_density: of each sampled step, (run, batch, step); 0 where a step is deterministic.
        actions: what each step drew, (run, batch, draw), None where it is deterministic.
        latents: what each step fed where it is no mixture of embeddings, (run, batch, d), else None.
    """

    logits: Float[Tensor, "run batch step vocab"]
    weights: Float[Tensor, "run batch step vocab"]
    answers: Int[Tensor, "run batch"]
    log_density: Float[Tensor, "run batch step"]
    actions: list[Tensor | None]
    latents: list[Tensor | None]

    def thoughts(self, stack: GPT2Stack) -> Float[Tensor, "run batch thought d"]:
        """What is fed before the answer, mixtures by a stack's embedding table."""
        if all(latent is None for latent in self.latents):
            return stack.mix(self.weights[:, :, :-1])
        steps = zip(self.latents[:-1], self.weights[:, :, :-1].unbind(2))
        fed = [stack.mix(weights[:, :, None])[:, :, 0] if latent is None else latent for latent, weights in steps]
        return torch.stack(fed, 2)


def rules(thought: Rule, steps: int, answer: Rule = Discrete()) -> list[Rule]:
    """One rule per output: `thought` for the steps before the last, `answer` for that one."""
    return [*[thought] * (steps - 1), answer]


def keyed_noise(keys: Int[Tensor, " run"], batch: int) -> Noise:
    """Uniform draws for (step, count), a function of the runs' keys alone."""

    def noise(step: int, count: int) -> Float[Tensor, "run batch draw"]:
        return random.uniform(random.fold(keys, step), batch * count).view(len(keys), batch, count)

    return noise


def think(
    stack: GPT2Stack,
    rule: Rule,
    hidden: Float[Tensor, "run prompt branch d"],
    draws: Callable[[int], Tensor],
    **options,
) -> tuple[Float[Tensor, "run batch vocab"], Thought, Float[Tensor, "run prompt branch d"]]:
    """One step from the last hidden state of every branch: its logits, the thought, and the embedding to feed next.

    The batch of a thought is prompt by prompt its branches. `options` are those of `GPT2Stack.hidden`, with a cache.
    """
    scores, states = stack.logits(hidden).flatten(1, 2), hidden.flatten(1, 2)

    def peek() -> Tensor:
        there = options | {"cache": options["cache"].copy()}
        return stack.hidden(torch.zeros_like(hidden), **there).flatten(1, 2)

    mix = lambda weights: stack.mix(weights[:, None])[:, 0]
    thought = rule(State(scores, states, draws, peek, mix))
    fed = mix(thought.weights) if thought.latent is None else thought.latent
    return scores, thought, fed.view(hidden.shape)


def decode(
    stack: GPT2Stack,
    prompts: Int[Tensor, "#run batch token"],
    steps: Sequence[Rule],
    keys: Int[Tensor, " run"] | None = None,
    padding: Int[Tensor, "#run batch"] | None = None,
    samples: int = 1,
    dropout: Dropout | None = None,
) -> Rollout:
    """Roll out one output per rule for every prompt of every run.

    Args:
        stack: the models.
        prompts: token ids, one set for all runs (first axis 1) or one per run.
        steps: the rule of each output token (see `rules`); the last one makes the answer.
        keys: random keys of the runs (`cot2lib.kit.random.run_keys`), needed only by rules that sample.
        padding: how many tokens on the left of each prompt are padding.
        samples: rollouts per prompt, side by side on the batch axis: prompt 0's first.
        dropout: multipliers for every pass.

    Raises:
        SpecError: if a rule samples and `keys` is missing.
    """
    noise = _no_noise if keys is None else keyed_noise(keys, prompts.shape[1] * samples)
    logits, thoughts = [], []
    options = dict(padding=padding, cache=Cache(), tree=Tree(prompts.shape[2], samples), dropout=dropout)
    hidden = stack.hidden(stack.embed(prompts), outputs=1, **options).expand(-1, -1, samples, -1)
    for step, rule in enumerate(steps):
        draws = lambda count, step=step: noise(step, count)
        scores, thought, inputs = think(stack, rule, hidden, draws, **options)
        logits.append(scores)
        thoughts.append(thought)
        if step < len(steps) - 1:
            hidden = stack.hidden(inputs, **options)
    silent = torch.zeros(logits[0].shape[:2], device=stack.device)
    return Rollout(
        logits=torch.stack(logits, 2),
        weights=torch.stack([thought.weights for thought in thoughts], 2),
        answers=thoughts[-1].weights.argmax(-1),
        log_density=torch.stack([silent if t.log_density is None else t.log_density for t in thoughts], 2),
        actions=[thought.action for thought in thoughts],
        latents=[thought.latent for thought in thoughts],
    )


def replay(
    stack: GPT2Stack,
    prompts: Int[Tensor, "#run batch token"],
    thoughts: Float[Tensor, "run rollout thought d"],
    padding: Int[Tensor, "#run batch"] | None = None,
    dropout: Dropout | None = None,
) -> Float[Tensor, "run rollout step vocab"]:
    """Logits of every step of finished rollouts, in one forward that carries gradients.

    Args:
        stack: the models.
        prompts: token ids, encoded once for all rollouts of a prompt.
        thoughts: what was fed, without the answer (`Rollout.thoughts`); each prompt's rollouts side by side, prompt
            0's first.
        padding, dropout: as in `GPT2Stack.hidden`.
    """
    tree = Tree(prompts.shape[2], thoughts.shape[1] // prompts.shape[1])
    fed = thoughts.unflatten(1, (-1, tree.branches)).transpose(2, 3).flatten(2, 3)
    inputs = torch.cat([stack.embed(prompts), fed], dim=2)
    logits = stack(inputs, outputs=1 + fed.shape[2], padding=padding, dropout=dropout, tree=tree)
    first, rest = logits[:, :, None, :1], logits[:, :, 1:].unflatten(2, (-1, tree.branches)).transpose(2, 3)
    return torch.cat([first.expand(-1, -1, tree.branches, -1, -1), rest], dim=3).flatten(1, 2)


def _no_noise(step: int, count: int) -> Tensor:
    raise SpecError("this rule samples: pass keys=random.run_keys(seeds, Site.DECODE).")
