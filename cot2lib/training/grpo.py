"""GRPO over continuous thoughts (paper, section 5 and algorithm 1), for a stack of runs at once.

A step rolls out G traces of every prompt of the batch and run, thoughts by a rule that samples and has
a density, the answer one sampled token; rewards 1 for a right answer, else 0; replays the traces in
one forward with gradients; and takes an AdamW step down the clipped surrogate. Nothing runs once per
prompt or rollout, and a prompt is encoded once for its group.

Where it differs from the authors' code: the old policy's densities come from the replay itself, so that
with the first update the ratio is exactly one (there, dropout is on in the current policy alone; a recipe
with dropout does the same here); the answer step's divergence has a gradient; runs are evaluated before
the first step, by their own sampler, by base and by discrete decoding. As there, thoughts are fed through
the current embedding table, which takes gradients by them. The surrogate's value is zero by construction
when every batch serves one update; so the share of failed rollouts is logged as the loss.
"""

from collections.abc import Sequence
from functools import cache

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from cot2lib import losses
from cot2lib.decode import ANSWER, Rollout, decode, replay, rules
from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.model import Dropout, GPT2Stack
from cot2lib.specs import GRPOSpec
from cot2lib.thoughts import MTS, Base, Discrete, Gaussian, Rule
from cot2lib.training.data import stack_data
from cot2lib.training.evaluation import evaluate
from cot2lib.training.trainer import StackTrainer, compiled

Densities = list[Float[Tensor, "run rollout _ _"]]  # of the thoughts, (step, draw), and of the answer, (1, 1)
Traces = Shaped[Tensor, "run rollout"]


def densities(
    stack: GPT2Stack, thought: Rule, logits: Float[Tensor, "run rollout step vocab"], actions: Sequence[Tensor]
) -> Densities:
    """Log-density of every draw of a rollout under a stack and its logits: of its thoughts, and of its answer."""
    known = logits[:, :, :-1]
    if isinstance(thought, Gaussian):
        known = stack.mix(known.softmax(-1))
    thoughts = thought.log_densities(known, torch.stack(list(actions[:-1]), dim=2))
    return [thoughts, ANSWER.log_densities(logits[:, :, -1:], actions[-1][:, :, None])]


def replayed(
    stack: GPT2Stack,
    thought: Rule,
    prompts: Int[Tensor, "run prompt token"],
    padding: Int[Tensor, "run prompt"] | None,
    rollout: Rollout,
    dropout: Dropout | None = None,
) -> Densities:
    """`densities` of a rollout's draws under a stack, in one forward."""
    logits = replay(stack, prompts, rollout.thoughts(stack), padding, dropout)
    return densities(stack, thought, logits, rollout.actions)


def objective(
    spec: GRPOSpec,
    new: Densities,
    old: Densities,
    advantage: Float[Tensor, "run rollout"],
    reference: Densities | None = None,
) -> Float[Tensor, " run"]:
    """What a step minimises: minus the surrogate, plus kl times the divergence, mean over steps and rollouts."""
    parts = []
    for place, (mine, before) in enumerate(zip(new, old)):
        value = losses.surrogate(mine, before, advantage, spec.ratio, spec.clip)
        if reference is not None:
            value = value - spec.kl * losses.kl_estimate(mine, reference[place], spec.ratio)
        parts.append(value)
    return -torch.cat(parts, dim=2).mean((1, 2))


class GRPOTrainer(StackTrainer):
    """Trains policy-gradient runs of one shape together.

    Args:
        specs: runs whose `shape_of` agree.
        start: their starts' trained models, in order.
        device: where to train.
        compile: compile rollout and replay (worth it above some minutes of CPU work).

    Raises:
        SpecError: if the starts are of another shape or number.
    """

    looks_first = True

    def __init__(
        self,
        specs: Sequence[GRPOSpec],
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
        self.decode, self.replayed = compiled(decode, replayed) if compile else (decode, replayed)

    @property
    def thought(self) -> Rule:
        """How thoughts are sampled at the step to come."""
        rule = self.spec.thought
        return MTS(self.phase_at(self.progress.step), rule.temperature) if self.spec.first_k else rule

    def phase_at(self, step: int) -> int:
        """Tokens of a thought, if they change."""
        return self.spec.k_at(min(step, self.recipe.steps - 1)) if self.spec.first_k else 0

    def update(self, index: Int[Tensor, "run batch"]) -> Float[Tensor, " run"]:
        """Roll out, reward, and descend `updates` times; returns the share of rollouts that failed."""
        prompts, padding, group = self.data.prompts[index], self.data.padding_of(index), self.group
        with torch.no_grad():
            keys = random.fold(self.keys, self.step)
            steps = rules(self.thought, self.spec.outputs, ANSWER)
            rollout = self.decode(self.stack, prompts, steps, keys, padding, group)
        rewards, gain = self.reward(index, rollout.answers)
        given = (self.thought, prompts, padding, rollout)
        reference = old = None
        with torch.no_grad():
            if self.reference is not None:
                reference = self.replayed(self.reference, *given)
            if self.recipe.dropout:
                old = self.replayed(self.stack, *given)
        dropout = self.dropout()
        for _ in range(self.spec.updates):
            new = self.replayed(self.stack, *given, dropout)
            old = [part.detach() for part in new] if old is None else old
            self.descend(self.objective(new, old, gain, reference))
        return 1 - rewards.mean(1)

    def reward(self, index: Int[Tensor, "run batch"], answers: Traces) -> tuple[Traces, Traces]:
        """Rewards and advantages of all traces of a batch, each prompt's side by side, from their answers."""
        rewards = (answers == self.data.answers[index].repeat_interleave(self.group, 1)).float()
        return rewards, losses.advantages(rewards.unflatten(1, (-1, self.group)), self.spec.scaled).flatten(1)

    def objective(self, new: Densities, old: Densities, gain: Tensor, reference: Densities | None) -> Tensor:
        """What one of a batch's updates minimises, per run; gain holds the advantages."""
        return objective(self.spec, new, old, gain, reference)

    def evaluate(self) -> dict[str, list]:
        """The held-out inputs by the run's own sampler, and right answers by base and discrete decoding.

        `gradient_norm` is that of the last update.
        """
        seeds = [spec.seed for spec in self.specs]
        by = cache(lambda rule: evaluate(self.stack, self.data, seeds, rules(rule, self.spec.outputs)))
        others = {"base": by(Base()), "discrete": by(Discrete())}
        halves = {f"{name}_{half}": found[f"correct_{half}"] for name, found in others.items() for half in "ab"}
        norm = sum(gradient.flatten(1).square().sum(1) for gradient in self.gradients).sqrt()
        return {**by(self.spec.thought), **halves, "gradient_norm": norm.tolist()}


def check_start(specs: Sequence[GRPOSpec], start: GPT2Stack) -> None:
    """Raise SpecError if the start is not one model for each run, of its shape, vocabulary and positions."""
    if start.runs != len(specs):
        raise SpecError(f"{start.runs} starting models for {len(specs)} runs; give one each.")
    task, model = specs[0].task, specs[0].model
    wanted = dict(vocab_size=task.vocab_size, positions=task.positions, d_model=model.d_model)
    wanted |= dict(layers=model.layers, heads=model.heads)
    if start.shape != wanted:
        raise SpecError(f"the starting models have {start.shape}, the runs need {wanted}; start from their own task.")
