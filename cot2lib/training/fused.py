"""Supervised training by the fused CPU engine (`cot2lib.fast`), fed by the teacher or with own thoughts."""

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from cot2lib import fast
from cot2lib.kit import random
from cot2lib.thoughts import Base, Hidden, Rule, ZeroSlot
from cot2lib.training.data import Names, shown_outputs
from cot2lib.training.flat import PIECES, FlatTrainer, Order, Sparse, sparse
from cot2lib.training.supervised import SupervisedTrainer

KINDS = (Base, Hidden, ZeroSlot)  # of thoughts that are fed, as the engine numbers them


def picked(data: Any, places: Int[Tensor, " place"]) -> Sparse:
    """The same of some places of the engine's data."""
    starts = torch.from_numpy(data.starts)
    counts = starts[places + 1] - starts[places]
    ends = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    entries = (starts[places] - ends[:-1]).repeat_interleave(counts) + torch.arange(int(ends[-1]))
    return ends.numpy(), data.tokens[entries], data.weights[entries]


class FusedTrainer(FlatTrainer, SupervisedTrainer):
    """Trains supervised runs of one shape, each alone; arguments as `FlatTrainer`."""

    @cached_property
    def _shape(self) -> fast.Shape:
        outputs, prompt = self.data.outputs.shape[2], self.data.prompts.shape[1]
        positions = prompt + outputs - 1
        scored = positions if self.spec.supervision.loss_on == "sequence" else outputs
        return self._sized(positions, scored, own=self._own)

    @cached_property
    def _fed(self):
        """The same with what is fed in place of the targets; the same object where that is no other thing."""
        if self.data.fed is None:
            return self._data
        starts, tokens, weights = sparse(self.data.fed.flatten(0, 2))
        return self._data._replace(starts=starts, tokens=tokens, weights=weights)

    def _taught(self, run: int, first: int, order: Order) -> tuple[Any, Any, Order]:
        """Data of visits that is scored, data that is fed (one object where both are the same), and their order."""
        shown, names, places = self._visited(run, first, order)
        rows, steps = order.flatten(), torch.arange(first, first + len(order)).repeat_interleave(order.shape[1])
        if self.drawn_anew:
            drawn = shown_outputs(self.specs[run], rows, self.data.train[run], steps)
            scored = sparse(drawn[0].flatten(0, 1))
            fed = scored if drawn[1] is drawn[0] else sparse(drawn[1].flatten(0, 1))
        else:
            first_of = (int(self.data.variant[run]) * len(self.data.prompts) + rows) * self._data.steps  # (visit,)
            outputs = (first_of[:, None] + torch.arange(self._data.steps)).flatten()
            scored = picked(self._data, outputs)
            fed = scored if self._fed is self._data else picked(self._fed, outputs)
        made = [
            shown._replace(starts=starts, tokens=self._renamed(starts, tokens, names), weights=weights)
            for starts, tokens, weights in ([scored] if fed is scored else [scored, fed])
        ]
        return made[0], made[-1], places

    def _renamed(self, starts: np.ndarray, tokens: np.ndarray, names: Names | None) -> np.ndarray:
        """Tokens of visits' entries under the names of each visit."""
        if names is None:
            return tokens
        counts = torch.from_numpy(np.diff(starts))
        visit = torch.arange(len(counts)).repeat_interleave(counts) // self._data.steps
        return names.flatten(0, 1)[visit, torch.from_numpy(tokens)].numpy()

    @property
    def _own(self) -> int:
        return 0 if self.spec.supervision.feeding == "teacher" else self.spec.outputs - 1

    def _parts(self, own: int) -> Int[np.ndarray, "pass 6"]:
        """Passes of a step with so many own thoughts, as of `cot2lib.fast.Thoughts`."""
        shape, tokens = self._shape, self.data.prompts.shape[1]
        slots = own and isinstance(self.spec.thought, ZeroSlot)
        edges = [0, *range(tokens, tokens + own), shape.positions]  # where passes begin, and the end
        rows, lane = [], 0
        for number, (low, high) in enumerate(pairwise(edges)):
            scored = shape.scored if not own else 1 if number < own else high - low
            here = [(low, low + 1, 1, True)] if slots and number else []
            for begin, end, count, slot in [*here, (low, high, scored, False)]:
                first, lane = lane, lane + sum(self.stack.dropout_lanes(shape.batch, end - begin, count, begin))
                lane += -lane % random.LANES
                rows.append((begin, end, count, first, lane, slot))
        return np.array(rows, np.int64)

    @cached_property
    def _lanes(self) -> int:
        return max(int(self._parts(own)[-1, 4]) for own in range(self._own + 1))

    def take_steps(self, steps: int) -> None:
        pieces, flat, (own, end) = min(PIECES, steps), self.flat.numpy(), self.phase  # no piece is empty
        kind = KINDS.index(type(self.spec.thought)) if own else 0
        skipped = own * (self.spec.supervision.feeding == "stages")
        thoughts = fast.Thoughts(self._parts(own), own, kind, skipped)

        def task(run: int, piece: int, works: tuple) -> None:
            part = slice(piece * steps // pieces, (piece + 1) * steps // pieces)
            order, losses = self.order[run, part], self.losses[run, part].numpy()
            noise, first = self._noise(run, self.recipe.dropout), self.progress.step + part.start
            data, fed, variant = self._data, self._fed, int(self.data.variant[run])
            if self.data.renames or self.drawn_anew:
                (data, fed, order), variant = self._taught(run, first, order), 0
            scored = data._replace(outputs=np.minimum(data.outputs, end))
            data, fed = scored, scored if fed is data else fed
            rest = thoughts, self._optimiser(run, part), noise, first, losses, works[0]
            fast.call("train", flat[run], self._shape, data, fed, order.numpy(), variant, *rest)

        self._each(task, pieces)
        self.updates += steps

    def evaluate_by(self, rule: Rule) -> dict[str, list]:
        staged = self.spec.supervision.feeding == "stages"
        return SupervisedTrainer.evaluate_by(self, rule) if staged else super().evaluate_by(rule)
