"""Policy gradients by the fused CPU engine (`cot2lib.fast`), for thoughts of K tokens and Dirichlet points."""

from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from cot2lib import fast
from cot2lib.losses import RATIOS
from cot2lib.thoughts import MTS, Dirichlet, Discrete, Rule
from cot2lib.training.flat import PIECES, FlatTrainer, Order
from cot2lib.training.grpo import GRPOTrainer


def is_sampled(thought: Rule) -> bool:
    one = type(thought) is Discrete and thought.samples and thought.top_k is None
    return one or type(thought) in (MTS, Dirichlet)


class FusedGRPOTrainer(FlatTrainer, GRPOTrainer):
    """Trains policy-gradient runs of one shape, each alone; arguments as `FlatTrainer`."""

    @cached_property
    def _shape(self) -> fast.Shape:
        tokens, thoughts = self.data.prompts.shape[1], self.group * (self.spec.outputs - 1)
        return self._sized(tokens + thoughts, 1 + thoughts, shared=tokens, branches=self.group, own=thoughts)

    @cached_property
    def _lanes(self) -> int:
        shape = self._shape
        return sum(self.stack.dropout_lanes(shape.batch, shape.positions, shape.scored)) if self.recipe.dropout else 0

    @cached_property
    def _right(self) -> Bool[Tensor, "input token"]:
        inputs, vocab = len(self.data.prompts), self._shape.vocab
        rows = torch.arange(inputs)[None].expand(vocab, -1)
        answers = torch.arange(vocab)[:, None].expand(-1, inputs)
        return self.data.right(answers, rows).T.contiguous()

    def _policy(self) -> fast.Policy:
        thought, vocab = self.thought, self._shape.vocab
        if isinstance(thought, Dirichlet):
            most = min(thought.most or vocab, vocab)
            return fast.Policy(1, 1, most, 1.0, float(thought.gamma), float(thought.floor), thought.masked)
        assert isinstance(thought, MTS | Discrete)
        k = thought.k if isinstance(thought, MTS) else 1
        return fast.Policy(0, k, k, float(thought.temperature), 0.0, 0.0, False)

    def _traces(self, policy: fast.Policy) -> fast.Traces:
        thoughts, rollouts = self.spec.outputs - 1, self.group * self.recipe.batch
        return fast.Traces(
            np.zeros((thoughts, rollouts, policy.most), np.int64),
            np.zeros((thoughts, rollouts), np.int64),
            np.zeros((thoughts, rollouts, policy.most + 1)),
            np.zeros(rollouts, np.int64),
            *(np.zeros((thoughts + 1, rollouts, policy.draws)) for _ in range(3)),
        )

    @cached_property
    def _start(self) -> np.ndarray:
        parts = [] if self.reference is None else [value.detach().flatten(1) for value in self.reference.parameters()]
        return torch.cat(parts, 1).numpy() if parts else self.flat.numpy()

    def _judged(
        self, run: int, first: int, order: Order
    ) -> tuple[Any, Bool[Tensor, "visit token"], Int[Tensor, " visit"], Order]:
        """Data of visits, the answers that are rewarded, the step of each answer, and the order of the visits."""
        shown, names, places = self._visited(run, first, order)
        assert names is not None
        rows = order.flatten()
        right = torch.zeros(len(rows), self._shape.vocab, dtype=torch.bool)
        right.scatter_(1, names.flatten(0, 1), self._right[rows])
        return shown, right, self._last[rows], places

    def take_steps(self, steps: int) -> None:
        spec, pieces, policy = self.spec, min(PIECES, steps), self._policy()  # no piece is empty
        terms = fast.Terms(RATIOS.index(spec.ratio), float(spec.clip), float(spec.kl), spec.scaled, spec.updates)
        flat, clipped, keys = self.flat.numpy(), self.clip_fraction.numpy(), self.keys.numpy().view(np.uint64)

        def task(run: int, piece: int, works: tuple) -> None:
            part = slice(piece * steps // pieces, (piece + 1) * steps // pieces)
            order, first = self.order[run, part], self.progress.step + part.start
            shown = self._data, self._right, self._last, order
            data, *asked = self._judged(run, first, order) if self.data.renames else shown
            given = *(tensor.numpy() for tensor in asked), policy, terms, self._start[run], keys[run]
            how = self._optimiser(run, part), self._noise(run, self.recipe.dropout), first
            out = self.losses[run, part].numpy(), clipped[run : run + 1], self._traces(policy), works[0]
            fast.call("grpo", flat[run], self._shape, data, *given, *how, *out)
            if piece + 1 == pieces:
                for gradient, made in zip(self.gradients, self._views(torch.from_numpy(works[0].gradient)[None])):
                    gradient[run] = made[0]

        self._each(task, pieces)
        self.updates += steps * spec.updates
