"""GRPO over continuous thoughts (paper, section 5 and algorithm 1), for a stack of runs at once.

A step (`GRPOTrainer.update`) rolls out G traces of every prompt of the batch and run. Thoughts come from a rule that
samples and has a density; the answer is one sampled token. A right answer is rewarded with 1, any other with 0. One
forward with gradients replays the traces, and AdamW takes a step down the clipped surrogate. Nothing runs once per
prompt or rollout, and a prompt is encoded once for its group.

How this differs from GRPO as first published:

1. An action is a thought of several draws or a point of a simplex, not one token; `cot2lib.losses` has its ratio.
2. Every step of a trace weighs alike: the mean is over steps and rollouts, as the paper has it.
3. The reward is the right answer alone; there is no format reward and no reward model.
4. beta is 0 by default, as in the paper's MNNS runs.

How it differs from the authors' code:

1. The old policy's densities come from the replay itself, so that at equal weights the ratio is exactly one. There,
   dropout is on in the current policy alone. A recipe with dropout does the same here.
2. The answer step's divergence has a gradient.
3. Runs are evaluated before the first step, and by their own sampler, by base and by discrete decoding.
4. The surrogate's value is zero by construction when every batch serves one update. So the share of failed rollouts
   is logged as the loss.

As there, thoughts are fed through the current embedding table, which takes gradients by them.
"""

from collections.abc import Sequence
from functools import cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib import losses
from cot2lib.decode import ANSWER, Rollout, at_last, decode, replay, rules
from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.model import Dropout, GPT2Stack
from cot2lib.thoughts import Base, Discrete, Rule, Sampled
from cot2lib.training.data import Names, stack_data
from cot2lib.training.evaluation import evaluate
from cot2lib.training.settings import Run
from cot2lib.training.trainer import StackTrainer, compiled

Densities = list[Float[Tensor, "run rollout _ _"]]  # of the thoughts, (step, draw), and of the answer, (1, 1)
Traces = Float[Tensor, "run rollout"]
IsThought = Bool[Tensor, "run rollout step"] | None


def densities(
    stack: GPT2Stack, thought: Sampled, logits: Float[Tensor, "run rollout step vocab"], rollout: Rollout
) -> Densities:
    """Log-density of every draw of a rollout under a stack and its logits: of its thoughts, and of its answer."""
    parameters = thought.parameters(logits[:, :, :-1], stack.mix)
    drawn = torch.stack(rollout.actions[:-1], dim=2)  # (run, rollout, step, draw)
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
    spec: Run,
    new: Densities,
    old: Densities,
    advantages: Traces,
    reference: Densities | None = None,
    is_thought: IsThought = None,
) -> Float[Tensor, " run"]:
    """What a step minimises: minus the surrogate, plus kl times the divergence, mean over steps and rollouts.

    Args:
        spec: any run of the stack.
        new, old, reference: log-densities under the current policy, which carry the gradient, under the policy that
            wrote the rollouts, and under the start.
        advantages: of every rollout.
        is_thought: which of the steps before the last are thoughts; None if all are.
    """
    parts = []
    for place in range(len(new)):
        value = losses.surrogate(new[place], old[place], advantages, spec.ratio, spec.clip)  # (run, rollout, step)
        if reference is not None:
            value = value - spec.kl * losses.kl_estimate(new[place], reference[place], spec.ratio)
        parts.append(value)
    if is_thought is None:
        return -torch.cat(parts, dim=2).mean((1, 2))
    return -losses.mean_of_steps(torch.cat(parts, dim=2), _with_answer(is_thought)).mean(1)


def _with_answer(is_thought: Bool[Tensor, "run rollout step"]) -> Bool[Tensor, "run rollout step+1"]:
    """Which steps count: the thoughts of every rollout, and its answer in the last place."""
    return torch.cat([is_thought, torch.ones_like(is_thought[:, :, :1])], dim=2)


class GRPOTrainer(StackTrainer):
    """Trains policy-gradient runs of one shape together.

    Args:
        specs: runs whose `shape()` agree (`cot2lib.specs.GRPOSpec`).
        start: their starts' trained models, in order.
        device: where to train.
        compile: compile rollout and replay (worth it above some minutes of CPU work).

    Raises:
        SpecError: if the starts are of another shape or number.
    """

    looks_first = True

    def __init__(
        self,
        specs: Sequence[Run],
        start: GPT2Stack,
        device: torch.device | str = "cpu",
        compile: bool = False,
    ):
        check_start(specs, start)
        self.group = specs[0].group
        stack = start.select(range(start.runs)).to(device)
        super().__init__(specs, stack, stack_data([spec.asked for spec in specs], device))
        self.reference = start.select(range(start.runs)).to(device).requires_grad_(False) if self.spec.kl else None
        self.keys = random.run_keys([spec.seed for spec in specs], Site.ROLLOUT, device=device)
        self.clip_fraction = torch.zeros(len(specs), device=device)
        self.compiled = compile
        self.decode, self.replayed = compiled(decode, replayed) if compile else (decode, replayed)

    @property
    def thought(self) -> Rule:
        """How thoughts are sampled at the step to come."""
        return self.spec.thought_at(self.progress.step)

    def phase_at(self, step: int) -> tuple:
        """Tokens of a thought, if they change."""
        return (self.spec.thought_at(step).k,) if self.spec.first_k else ()

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
        dropout = self.dropout()
        for _ in range(self.spec.updates):
            new = self.replayed(self.stack, *given, dropout)
            old = [part.detach() for part in new] if old is None else old
            self.log_clipping(new, old, rollout.is_thought)
            self.descend(self.objective(new, old, advantages, reference, rollout.is_thought))
        return 1 - rewards.mean(1)

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
        reference: Densities | None,
        is_thought: IsThought = None,
    ) -> Float[Tensor, " run"]:
        """What one of a batch's updates minimises, per run."""
        return objective(self.spec, new, old, advantages, reference, is_thought)

    @torch.no_grad()
    def log_clipping(self, new: Densities, old: Densities, is_thought: IsThought = None) -> None:
        """Note the share of this update's policy ratios that are outside the clip range."""
        log_ratios = [losses.log_ratios(*pair, self.spec.ratio) for pair in zip(new, old)]
        outside = [losses.outside_clip(part, self.spec.clip) for part in log_ratios]
        outside = torch.cat([part.float().mean(-1) for part in outside], dim=2)  # (run, rollout, step)
        there = torch.ones_like(outside, dtype=torch.bool) if is_thought is None else _with_answer(is_thought)
        self.clip_fraction.copy_(losses.mean_of_steps(outside, there).mean(1))

    def evaluate(self) -> dict[str, list]:
        """The held-out inputs by the run's own sampler, and right answers by base and discrete decoding.

        `gradient_norm` and `clip_fraction` are those of the last update.
        """
        seeds = [spec.seed for spec in self.specs]
        by = cache(lambda rule: evaluate(self.stack, self.data, seeds, rules(rule, self.spec.outputs)))
        others = {"base": by(Base()), "discrete": by(Discrete())}
        halves = {f"{name}_{half}": found[f"correct_{half}"] for name, found in others.items() for half in "ab"}
        norm = sum(gradient.flatten(1).square().sum(1) for gradient in self.gradients).sqrt()
        last = {"gradient_norm": norm.tolist(), "clip_fraction": self.clip_fraction.tolist()}
        return {**by(self.spec.thought), **halves, **last}


def check_start(specs: Sequence[Run], start: GPT2Stack) -> None:
    """Raise SpecError if the start is not one model for each run, of its shape, vocabulary and positions."""
    if start.runs != len(specs):
        raise SpecError(f"{start.runs} starting models for {len(specs)} runs; give one each.")
    task, model = specs[0].task, specs[0].model
    wanted = dict(vocab_size=task.vocab_size, positions=task.positions, d_model=model.d_model)
    wanted |= dict(layers=model.layers, heads=model.heads)
    if start.shape != wanted:
        raise SpecError(f"the starting models have {start.shape}, the runs need {wanted}; start from their own task.")
