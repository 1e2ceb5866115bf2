"""GRPO over continuous thoughts (paper, section 5 and algorithm 1), for a stack of runs at once.

A step (`GRPOTrainer.update`) rolls out G traces of every prompt of the batch and run. Thoughts come from a rule that
samples and has a density; the answer is one sampled token. A right answer is rewarded with 1, any other with 0. One
forward with gradients replays the traces, and AdamW takes a step down the clipped surrogate. Nothing runs once per
prompt or rollout.

How this differs from GRPO as first published:

1. An action is a thought of several draws or a point of a simplex, not one token; `cot2lib.losses` has its ratio.
2. Every step of a trace weighs alike: the mean is over steps and rollouts, as the paper has it.
3. The reward is the right answer alone.
4. beta is 0 by default, as in most of the paper's runs.

How it differs from the authors' code:

1. Without dropout the old policy's densities come from the replay itself, so that at equal weights the ratio is
   exactly one. There, dropout is always on, in the current policy alone; here it is so in a recipe with dropout.
2. The divergence has a gradient.
3. Runs are evaluated before the first step, and by their own sampler, by base and by discrete decoding.
4. The surrogate's value is zero by construction when every batch serves one update without dropout. So the share of
   failed rollouts is logged as the loss.

As in the authors' code, thoughts are fed through the current embedding table, which so gets gradients.

`MaskedTrainer` explores with thoughts that are not sampled: a dropout mask is drawn once per rollout and multiplies
the same coordinates at all of its positions, while the rollout is written and while it is scored. Given its mask, the
base thoughts of a rollout are a function of the weights. So only the answer has a density, and its gradient runs
through all thoughts. The paper does not have this. Later work that uses it names one dropout mask per rollout. Here
the embeddings and both residual branches are masked, attention weights are not.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib import losses
from cot2lib.decode import ANSWER, Rollout, at_last, decode, replay, rules
from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.model import Dropout, GPT2Stack
from cot2lib.specs import GRPOSpec
from cot2lib.thoughts import Base, Discrete, Rule, Sampled
from cot2lib.training.data import Names, stack_data
from cot2lib.training.trainer import StackTrainer

Densities = list[Float[Tensor, "run rollout _ _"]]  # of the thoughts, (step, draw), and of the answer, (1, 1)
Traces = Float[Tensor, "run rollout"]
There = Bool[Tensor, "run rollout step"] | None


def densities(
    stack: GPT2Stack, thought: Sampled, logits: Float[Tensor, "run rollout step vocab"], rollout: Rollout
) -> Densities:
    """Log-density of every draw of a rollout under a stack and its logits: of its thoughts, and of its answer."""
    parameters = thought.parameters(logits[:, :, :-1], stack.mix)
    actions = [action for action in rollout.actions[:-1] if action is not None]
    drawn = torch.stack(actions, dim=2)  # (run, rollout, step, draw)
    answers = rollout.answers[..., None, None]  # (run, rollout, 1, 1)
    return [thought.log_densities(parameters, drawn), ANSWER.log_densities(at_last(logits, rollout.last), answers)]


def replayed(
    stack: GPT2Stack,
    thought: Sampled,
    prompts: Int[Tensor, "run prompt token"],
    padding: Int[Tensor, "run prompt"] | None,
    rollout: Rollout,
    dropout: Dropout | None = None,
) -> Densities:
    """`densities` of a rollout's draws under a stack, in one forward."""
    logits = replay(stack, prompts, rollout.thoughts(stack), padding, dropout)
    return densities(stack, thought, logits, rollout)


def objective(
    new: Densities,
    old: Densities,
    advantages: Traces,
    ratio: str = "geometric",
    clip: float = 0.1,
    kl: float = 0.0,
    reference: Densities | None = None,
    there: There = None,
    together: int = 1,
) -> Float[Tensor, " run"]:
    """The value to minimise: minus the surrogate, plus kl times the divergence, mean over steps and rollouts.

    Args:
        new, old, reference: log-densities under the current policy, which carry the gradient, under the policy that
            wrote the rollouts, and under the start.
        advantages: of every rollout.
        ratio, clip: as in `losses.surrogate`.
        kl: weight of the divergence from the reference.
        there: which steps a rollout has; None if all have all.
        together: neighbouring rollouts whose steps weigh alike, whatever the length of each.
    """
    parts = []
    for place in range(len(new)):
        value = losses.surrogate(new[place], old[place], advantages, ratio, clip)  # (run, rollout, step)
        if reference is not None:
            value = value - kl * losses.kl_estimate(new[place], reference[place], ratio)
        parts.append(value)
    values = torch.cat(parts, dim=2)
    if there is None:
        return -values.mean((1, 2))
    joined = [x.unflatten(1, (-1, together)).flatten(2) for x in (values, there)]  # (run, rollouts together, step)
    return -losses.mean_of_steps(*joined).mean(1)


class GRPOTrainer(StackTrainer):
    """Train policy-gradient runs of one shape together, from their starts' trained models, in order."""

    looks_first = True
    spec: GRPOSpec
    decode: Callable
    replayed: Callable

    def __init__(self, specs: Sequence[GRPOSpec], start: GPT2Stack, device: torch.device | str = "cpu"):
        check_start(specs, start)
        self.group = specs[0].group
        stack = start.select(range(start.runs)).to(device)
        super().__init__(specs, stack, stack_data([spec.asked for spec in specs], device))
        self.reference = start.select(range(start.runs)).to(device).requires_grad_(False) if self.spec.kl else None
        self.keys = random.run_keys([spec.seed for spec in specs], Site.ROLLOUT, device=device)
        self.clip_fraction = torch.zeros(len(specs), device=device)
        self.decode, self.replayed = decode, replayed

    @property
    def thought(self) -> Rule:
        return self.phase[0]

    def phase_at(self, step: int) -> tuple:
        return (self.spec.thought_at(step),)

    def update(self, index: Int[Tensor, "run batch"]) -> Float[Tensor, " run"]:
        """Roll out, reward, and descend `updates` times; returns the share of rollouts that failed."""
        names = self.names(index)
        with torch.no_grad():
            rollout = self.roll_out(index, names)
        rewards, advantages = self.reward(index, rollout.answers, names)
        given = (self.thought, self.data.shown(index, names), self.data.padding_of(index), rollout)
        reference = old = None
        with torch.no_grad():
            if self.reference is not None:
                reference = self.replayed(self.reference, *given)
            if self.recipe.dropout:  # it is on in the current policy alone, so the old one needs a forward of its own
                old = self.replayed(self.stack, *given)
        replay = partial(self.replayed, self.stack, *given, self.dropout())
        self.improve(replay, old, advantages=advantages, reference=reference, there=rollout.there)
        return 1 - rewards.mean(1)

    def improve(self, replay: Callable[[], Densities], old: Densities | None, **terms) -> None:
        """Descend `updates` times on rollouts that are written and rewarded.

        `replay` gives the log-densities of what they drew under the current policy, with gradients; `old` are those
        under the policy that wrote them, None for those of the first replay, so that at equal weights every ratio
        is exactly one. The other terms are of `objective`.
        """
        for _ in range(self.spec.updates):
            new = replay()
            old = [part.detach() for part in new] if old is None else old
            self.descend(self.objective(new, old, **terms))

    def roll_out(self, index: Int[Tensor, "run batch"], names: Names | None = None) -> Rollout:
        """`group` traces of every prompt, side by side."""
        steps, keys = rules(self.thought, self.spec.outputs, ANSWER), random.fold(self.keys, self.step)
        padding, last = self.data.padding_of(index), self.data.last_of(index)
        prompts = self.data.shown(index, names)
        return self.decode(self.stack, prompts, steps, keys, padding, self.group, last=last)

    def reward(
        self, index: Int[Tensor, "run batch"], answers: Int[Tensor, "run rollout"], names: Names | None = None
    ) -> tuple[Traces, Traces]:
        """Rewards and advantages of all traces of a batch, each prompt's side by side, from their answers."""
        each = lambda rows: rows.repeat_interleave(self.group, 1)
        rewards = self.data.right(answers, each(index), None if names is None else each(names)).float()
        groups = rewards.unflatten(1, (-1, self.group))  # (run, prompt, sample)
        return rewards, losses.advantages(groups, self.spec.scaled).flatten(1)

    def objective(
        self,
        new: Densities,
        old: Densities,
        advantages: Traces,
        reference: Densities | None = None,
        there: There = None,
    ) -> Float[Tensor, " run"]:
        """The value that one of a batch's updates minimises, per run; the share of clipped ratios is noted."""
        self.log_clipping(new, old, there)
        spec = self.spec
        return objective(new, old, advantages, spec.ratio, spec.clip, spec.kl, reference, there)

    @torch.no_grad()
    def log_clipping(self, new: Densities, old: Densities, there: There = None) -> None:
        log_ratios = [losses.log_ratios(*pair, self.spec.ratio) for pair in zip(new, old)]
        clipped = [losses.outside_clip(part, self.spec.clip) for part in log_ratios]
        outside = torch.cat([part.float().mean(-1) for part in clipped], dim=2)  # (run, rollout, step)
        there = torch.ones_like(outside, dtype=torch.bool) if there is None else there
        self.clip_fraction.copy_(losses.mean_of_steps(outside, there).mean(1))

    def evaluate(self) -> dict[str, list]:
        """Evaluate the held-out inputs by the run's own sampler; count right answers by base and discrete decoding.

        `gradient_norm` and `clip_fraction` are those of the last update.
        """
        by = cache(lambda rule: self.engine.decoded(rules(rule, self.spec.outputs)))
        others = {"base": by(Base()), "discrete": by(Discrete())}
        halves = {f"{name}_{half}": found[f"correct_{half}"] for name, found in others.items() for half in "ab"}
        norm = sum((gradient.flatten(1).square().sum(1) for gradient in self.gradients), torch.zeros(())).sqrt()
        last = {"gradient_norm": norm.tolist(), "clip_fraction": self.clip_fraction.tolist()}
        return {**by(self.spec.thought), **halves, **last}


def check_start(specs: Sequence[GRPOSpec], start: GPT2Stack) -> None:
    """Raise SpecError if the start is not one model for each run, of its shape, vocabulary and positions."""
    if start.runs != len(specs):
        raise SpecError(f"{start.runs} starting models for {len(specs)} runs; give one each.")
    task, model = specs[0].task, specs[0].model
    wanted = dict(vocab_size=task.vocab_size, positions=task.positions, d_model=model.d_model)
    wanted |= dict(layers=model.layers, heads=model.heads)
    if start.shape != wanted:
        raise SpecError(f"the starting models have {start.shape}, the runs need {wanted}; start from their own task.")


# Rollouts that explore with a dropout mask of their own


class SequenceMasks(Dropout):
    """Dropout multipliers that every sequence of a batch keeps at all positions, the same in every pass.

    `batch` is the number of sequences, `d_model` that of their coordinates.
    """

    def __init__(self, keys: Int[Tensor, " run"], batch: int, d_model: int, probability: float):
        super().__init__(keys, random.counters(-(-batch * d_model // random.LANES), keys.device), probability)
        self.shape = (batch, 1, d_model)

    def scales(self, lanes: Sequence[int]) -> list[Float[Tensor, "run lane"] | None]:
        """Multipliers of `GPT2Stack.dropout_lanes`; none for attention weights."""
        made: list[Float[Tensor, "run lane"] | None] = [None] * len(lanes)
        size = self.shape[0] * self.shape[2]
        for site, count in enumerate(lanes):
            if site % 3 != 1:
                scales = random.dropout_scales(random.fold(self.keys, site), self.counter, self.probability)
                own = scales[:, :size].unflatten(1, self.shape)  # (run, batch, 1, d)
                made[site] = own.expand(-1, -1, count // size, -1).flatten(1)
        return made


class MaskedTrainer(GRPOTrainer):
    """Trains runs whose rollouts have masks; arguments and errors as `GRPOTrainer`."""

    def update(self, index: Int[Tensor, "run batch"]) -> Float[Tensor, " run"]:
        """Think and answer under masks, reward, and descend `updates` times; returns the share of failed rollouts."""
        names, rows = self.names(index), index.repeat_interleave(self.group, 1)  # (run, rollout)
        prompts = self.data.shown(index, names).repeat_interleave(self.group, 1)
        padding, last = self.data.padding_of(rows), self.data.last_of(rows)
        masks = SequenceMasks(
            random.fold(self.dropout_keys, self.step), prompts.shape[1], self.stack.shape["d_model"], self.spec.mask
        )
        steps, keys = rules(self.thought, self.spec.outputs, ANSWER), random.fold(self.keys, self.step)
        written = lambda: self.decode(self.stack, prompts, steps, keys, padding, dropout=masks, last=last)
        rollout = written()
        rewards, advantages = self.reward(index, rollout.answers, names)
        answers, first = rollout.answers[:, :, None, None], [rollout]  # (run, rollout, 1, 1)

        def replay() -> Densities:
            again = first.pop() if first else written()
            return [ANSWER.log_densities(at_last(again.logits, last), answers)]

        self.improve(replay, None, advantages=advantages)
        return 1 - rewards.mean(1)
