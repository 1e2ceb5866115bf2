"""Policy gradients for thoughts that are not sampled: every rollout explores with a dropout mask of its own.

A mask is drawn once per rollout and multiplies the same coordinates at all of its positions, while the
rollout is written and while it is scored. Given its mask a rollout's base thoughts are a function of
the weights, so that only the answer has a density; its gradient runs through all thoughts. Not in the
paper: later work that uses it names one dropout mask per rollout, and we know no public code of it. Here the
embeddings and both residual branches are masked, attention weights are not.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.decode import ANSWER, rules
from cot2lib.kit import random
from cot2lib.model import Dropout, GPT2Stack
from cot2lib.specs import GRPOSpec
from cot2lib.training.grpo import GRPOTrainer


class SequenceMasks(Dropout):
    """Dropout multipliers that every sequence of a batch keeps at all positions, the same in every pass.

    Args:
        keys: one per run.
        batch, d_model: sequences, and coordinates of each.
        probability: of a zero.
    """

    def __init__(self, keys: Int[Tensor, " run"], batch: int, d_model: int, probability: float):
        super().__init__(keys, random.counters(-(-batch * d_model // random.LANES), keys.device), probability)
        self.shape = (batch, 1, d_model)

    def scales(self, lanes: Sequence[int]) -> list[Float[Tensor, "run lane"] | None]:
        """Multipliers of `GPT2Stack.dropout_lanes`; none for attention weights."""
        return [None if site % 3 == 1 else self._site(site, count) for site, count in enumerate(lanes)]

    def _site(self, site: int, lanes: int) -> Float[Tensor, "run lane"]:
        batch, _, d_model = self.shape
        scales = random.dropout_scales(random.fold(self.keys, site), self.counter, self.probability)
        scales = scales[:, : batch * d_model].unflatten(1, self.shape)
        return scales.expand(-1, -1, lanes // (batch * d_model), -1).flatten(1)


class MaskedTrainer(GRPOTrainer):
    """Trains runs whose rollouts have masks; arguments and errors as `GRPOTrainer`."""

    def update(self, index: Int[Tensor, "run batch"]) -> Float[Tensor, " run"]:
        """Think and answer under masks, reward, and descend `updates` times; returns the share of failed rollouts."""
        wide = lambda x: None if x is None else x.repeat_interleave(self.group, 1)
        prompts, padding = wide(self.data.prompts[index]), wide(self.data.padding_of(index))
        masks = SequenceMasks(
            random.fold(self.dropout_keys, self.step), prompts.shape[1], self.stack.shape["d_model"], self.spec.mask
        )
        steps, keys = rules(self.thought, self.spec.outputs, ANSWER), random.fold(self.keys, self.step)
        written = lambda: self.decode(self.stack, prompts, steps, keys, padding, dropout=masks)
        rollout = written()
        rewards, gain = self.reward(index, rollout.answers)
        answers, old = rollout.answers[:, :, None, None], None
        for update in range(self.spec.updates):
            logits = (written() if update else rollout).logits[:, :, -1:]
            new = ANSWER.log_densities(logits, answers)
            old = new.detach() if old is None else old
            self.descend(self.objective([new], [old], gain, None))
        return 1 - rewards.mean(1)


def policy_trainer(
    specs: Sequence[GRPOSpec], start: GPT2Stack, device: torch.device, compile: bool = False
) -> GRPOTrainer:
    """The trainer of policy gradients from given models; errors as `GRPOTrainer`."""
    return (MaskedTrainer if specs[0].mask else GRPOTrainer)(specs, start, device, compile)
