"""The one autoregressive loop: a stack thinks m - 1 steps by a thought rule and answers with a token.

Base CoT2 feeds z_t = E^T alpha_t (paper, section 2); any rule of `cot2lib.thoughts` takes its place. The paper samples
the answer token. The authors' code takes the arg max, which is the default here. The prompt is encoded once; later
positions and all samples of a prompt reuse its keys and values. Inputs may differ in their number of steps: each
answers at its own last step, and what it would feed later is of no consequence. Training on a model's own thoughts
walks the same steps (`think`); policy gradients replay a finished rollout in one forward (`replay`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.locality import Mask
from cot2lib.model import Branches, Cache, Dropout, GPT2Stack
from cot2lib.thoughts import Discrete, Rule, State, Thought
from cot2lib.thoughts.rules import Logits

PROMPTS_AT_ONCE = 128  # a chunk that stays in cache
ANSWER = Discrete(1.0)  # the sampled answer of a policy's traces

Draws = Callable[[int], Float[Tensor, "run batch draw"]]
Noise = Callable[[int, int], Float[Tensor, "run batch draw"]]
Last = Int[Tensor, "run batch"] | None  # step of each rollout's answer, None for the last one of all


@dataclass(frozen=True)
class Rollout:
    """Thoughts and answers of a stack.

    Attributes:
        logits: scores of every step before the rule was applied.
        weights: mixture weights of every step, one-hot on the answer at each input's last step.
        answers: answer tokens.
        actions: the action of each step's rule, None where it has none.
        latents: what each step fed where it is no mixture of embeddings, else None.
        last: step of each rollout's answer, counted from 0; None if it is the last one for all.
    """

    logits: Float[Tensor, "run batch step vocab"]
    weights: Float[Tensor, "run batch step vocab"]
    answers: Int[Tensor, "run batch"]
    actions: list[Int[Tensor, "run batch _"] | Float[Tensor, "run batch _"] | None]
    latents: list[Float[Tensor, "run batch d"] | None]
    last: Last = None

    def thoughts(self, stack: GPT2Stack) -> Float[Tensor, "run batch thought d"]:
        """Vectors fed before the answer; mixtures use the embedding table of `stack`."""
        if all(latent is None for latent in self.latents):
            return stack.mix(self.weights[:, :, :-1])
        steps = zip(self.latents[:-1], self.weights[:, :, :-1].unbind(2))
        fed = [stack.mix(weights[:, :, None])[:, :, 0] if latent is None else latent for latent, weights in steps]
        return torch.stack(fed, 2)

    @property
    def there(self) -> Bool[Tensor, "run batch step"] | None:
        """Which steps a rollout has, with its answer in the last place; None if all have all steps."""
        if self.last is None:
            return None
        steps = torch.arange(self.logits.shape[2], device=self.last.device)
        return (steps < self.last[..., None]) | (steps == len(steps) - 1)


def rules(thought: Rule, steps: int, answer: Rule = Discrete()) -> list[Rule]:
    """One rule per output: `thought` for the steps before the last, `answer` for that one."""
    return [*[thought] * (steps - 1), answer]


def at_last(x: Float[Tensor, "run batch step entry"], last: Last) -> Float[Tensor, "run batch 1 entry"]:
    if last is None:
        return x[:, :, -1:]
    return x.gather(2, last[..., None, None].expand(-1, -1, 1, x.shape[-1]))


def keyed_noise(keys: Int[Tensor, "run ..."], batch: int, samples: int = 1) -> Noise:
    """Uniform draws for (step, count) by keys of the runs, or of their chunks of `PROMPTS_AT_ONCE` prompts."""
    size = batch if keys.ndim == 1 else PROMPTS_AT_ONCE * samples

    def noise(step: int, count: int) -> Float[Tensor, "run batch draw"]:
        draws = random.uniform(random.fold(keys.flatten(), step), size * count)  # (run x chunk, size x count)
        return draws.view(len(keys), -1, count)[:, :batch]

    return noise


def think(
    stack: GPT2Stack,
    rule: Rule,
    hidden: Float[Tensor, "run prompt branch d"],
    draws: Draws,
    step: int | None = None,
    rows: Int[Tensor, "#run batch"] | None = None,
    **options,
) -> tuple[Float[Tensor, "run batch vocab"], Thought, Float[Tensor, "run prompt branch d"]]:
    """One step from the last hidden state of every branch: its logits, the thought, and the embedding to feed next.

    The batch of a thought has the branches of each prompt side by side; `step` and `rows` are as in `State`,
    `options` as in `GPT2Stack.hidden`, with a cache.
    """

    def peek() -> Float[Tensor, "run batch d"]:
        there = options | {"cache": options["cache"].copy()}
        return stack.hidden(torch.zeros_like(hidden), **there).flatten(1, 2)

    scores, mix = stack.logits(hidden).flatten(1, 2), mix_of(stack)
    thought = rule(State(scores, hidden.flatten(1, 2), draws, peek, mix, step, rows))
    fed = mix(thought.weights) if thought.latent is None else thought.latent  # (run, batch, d)
    return scores, thought, fed.view(hidden.shape)


def mix_of(stack: GPT2Stack) -> Callable[[Logits], Float[Tensor, "run batch d"]]:
    """`GPT2Stack.mix` of one step's weights."""
    return lambda weights: stack.mix(weights[:, None])[:, 0]


def decode(
    stack: GPT2Stack,
    prompts: Int[Tensor, "#run prompt token"],
    steps: Sequence[Rule],
    keys: Int[Tensor, "run ..."] | None = None,
    padding: Int[Tensor, "#run prompt"] | None = None,
    samples: int = 1,
    dropout: Dropout | None = None,
    last: Int[Tensor, "run prompt"] | None = None,
    rows: Int[Tensor, "#run prompt"] | None = None,
    sees: Mask | None = None,
) -> Rollout:
    """Roll out one output per rule for every prompt of every run.

    Args:
        prompts: token ids, one set for all runs (first axis 1) or one per run.
        steps: the rule of each output token (see `rules`); the last one makes the answer.
        keys: random keys of the runs (`cot2lib.kit.random.run_keys`), or of their chunks of `PROMPTS_AT_ONCE` prompts;
            only rules that draw need them.
        padding: number of tokens on the left of each prompt that are padding.
        samples: rollouts per prompt, next to each other on the batch axis, prompt 0's first.
        last: step of each prompt's answer, counted from 0; None if it is the last one.
        rows: which of the task's inputs each prompt is, for rules that read it.
        sees: which positions each may attend to, see `GPT2Stack.hidden`.
    """
    if prompts.ndim != 3 or len(prompts) not in (1, stack.runs):
        sets = f"one set for all runs or one for each of {stack.runs}, say prompts[None]"
        raise SpecError(f"prompts of shape {tuple(prompts.shape)}: give (run, prompt, token), {sets}.")
    noise = _no_noise if keys is None else keyed_noise(keys, prompts.shape[1] * samples, samples)
    ends = None if last is None else last.repeat_interleave(samples, 1)  # (run, batch)
    inputs = None if rows is None else rows.repeat_interleave(samples, 1)  # (run, batch)
    layout = Branches(prompts.shape[2], samples)
    options: dict[str, Any] = dict(padding=padding, cache=Cache(), branches=layout, dropout=dropout, sees=sees)
    encoded = stack.hidden(stack.embed(prompts), outputs=1, **options)  # (run, prompt, 1, d)
    hidden, logits, thoughts, read = encoded.expand(-1, -1, samples, -1), [], [], []  # (run, prompt, branch, d)
    for step, rule in enumerate(steps):
        draws = lambda count, step=step: noise(step, count)
        scores, thought, fed = think(stack, rule, hidden, draws, step, inputs, **options)
        logits.append(scores)
        thoughts.append(thought)
        read.append(hidden.flatten(1, 2))
        if step < len(steps) - 1:
            hidden = stack.hidden(fed, **options)
    answer = thoughts[-1]
    weights = torch.stack([thought.weights for thought in thoughts], 2)  # (run, batch, step, vocab)
    if ends is not None:  # each answers from its own last state, by the last step's noise, which no thought uses
        scores, state = (at_last(torch.stack(parts, 2), ends)[:, :, 0] for parts in (logits, read))
        answer = steps[-1](State(scores, state, partial(noise, step), _unseen, mix_of(stack), rows=inputs))
        place = ends[..., None, None].expand(-1, -1, 1, weights.shape[-1])  # (run, batch, 1, vocab)
        weights = weights.scatter(2, place, answer.weights[:, :, None])
    actions, latents = ([getattr(thought, name) for thought in thoughts] for name in ("action", "latent"))
    return Rollout(torch.stack(logits, 2), weights, answer.weights.argmax(-1), actions, latents, ends)


def replay(
    stack: GPT2Stack,
    prompts: Int[Tensor, "#run prompt token"],
    thoughts: Float[Tensor, "run rollout thought d"],
    padding: Int[Tensor, "#run prompt"] | None = None,
    dropout: Dropout | None = None,
    sees: Mask | None = None,
) -> Float[Tensor, "run rollout step vocab"]:
    """Logits of every step of finished rollouts, in one forward that carries gradients.

    Prompts are encoded once. `thoughts` are the vectors that were fed (`Rollout.thoughts`), each prompt's rollouts
    next to each other, prompt 0's first. `padding`, `dropout` and `sees` are as in `GPT2Stack.hidden`.
    """
    layout = Branches(prompts.shape[2], thoughts.shape[1] // prompts.shape[1])
    fed = thoughts.unflatten(1, (-1, layout.count))  # (run, prompt, branch, thought, d)
    fed = fed.transpose(2, 3).flatten(2, 3)  # (run, prompt, thought x branch, d)
    inputs = torch.cat([stack.embed(prompts), fed], dim=2)
    logits = stack(inputs, outputs=1 + fed.shape[2], padding=padding, dropout=dropout, branches=layout, sees=sees)
    first = logits[:, :, None, :1].expand(-1, -1, layout.count, -1, -1)  # (run, prompt, branch, 1, vocab)
    rest = logits[:, :, 1:].unflatten(2, (-1, layout.count)).transpose(2, 3)  # (run, prompt, branch, thought, vocab)
    return torch.cat([first, rest], dim=3).flatten(1, 2)


def _no_noise(step: int, count: int) -> NoReturn:
    raise SpecError("this rule samples: pass keys=random.run_keys(seeds, Site.DECODE).")


def _unseen() -> NoReturn:
    raise SpecError("an answer rule cannot peek where inputs differ in their number of steps; read `hidden`.")
