"""Policy gradients for thoughts that are not sampled: every rollout explores with a dropout mask of its own.

A mask is drawn once per rollout and multiplies the same coordinates at all of its positions, while the
rollout is written and while it is scored. Given its mask, the base thoughts of a rollout are a function of
the weights. So only the answer has a density, and its gradient runs through all thoughts. The paper does not have
this. Later work that uses it names one dropout mask per rollout, and we know no public code of it. Here the
embeddings and both residual branches are masked, attention weights are not.
"""

from collections.abc import Sequence
from functools import partial

from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.decode import ANSWER, at_last, rules
from cot2lib.kit import random
from cot2lib.model import Dropout
from cot2lib.training.grpo import Densities, GRPOTrainer, improve


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
        names = self.names(index)
        prompts = self.data.shown(index, names).repeat_interleave(self.group, 1)
        given = self.data.padding_of(index), self.data.last_of(index)
        padding, last = (None if x is None else x.repeat_interleave(self.group, 1) for x in given)
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

        improve(replay, partial(self.objective, advantages=advantages), self.descend, self.spec.updates)
        return 1 - rewards.mean(1)
