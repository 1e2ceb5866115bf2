"""Base of the trainers by the fused CPU engine: flat arrays of weights and moments, threads, and decoding.

All parameters of a run lie in one flat array, all its moments in two more. The stack's parameters and the optimiser's
state are views of them, so checkpoints and evaluation by other rules stay the torch trainer's. A run may change
engines at any checkpoint. Data order, draws and learning rates are the torch trainer's own.
"""

from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from itertools import pairwise, product
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib import fast
from cot2lib.kit import random
from cot2lib.locality import Mask
from cot2lib.thoughts import Base, Discrete, Rule
from cot2lib.training import evaluation
from cot2lib.training.data import Names
from cot2lib.training.trainer import Progress, StackTrainer, Tensors

Sparse = tuple[np.ndarray, np.ndarray, np.ndarray]  # starts, tokens and weights, as of `cot2lib.fast.Data`
Order = Int[Tensor, "step batch"]  # inputs that steps visit
Task = Callable[[int, int, tuple], None]  # does a piece of a run's work in a thread's arrays

AT_ONCE = 32  # inputs that are decoded side by side
PIECES = 8  # of a segment, between which runs take turns
DECODED = (Base(), Discrete())  # rules that the engine decodes by


def sparse(outputs: Float[Tensor, "place vocab"]) -> Sparse:
    """Entries of distributions without their zeros: where each one's begin and the last one's end, tokens, weights."""
    place, token = outputs.nonzero().unbind(1)
    starts = torch.cat([place.new_zeros(1), torch.bincount(place, minlength=len(outputs)).cumsum(0)])
    return starts.numpy(), token.numpy(), outputs[place, token].numpy()


def additive(sees: Mask | None) -> np.ndarray:
    """A mask as the engine reads it: 0 where a query may look, rows padded to whole vectors; empty for none."""
    if sees is None:
        return np.zeros((0, 0), np.float32)
    seen = torch.nn.functional.pad(sees, (0, -len(sees) % fast.PADDED))
    return torch.where(seen, 0.0, fast.HIDDEN).numpy()


class FlatTrainer(StackTrainer):
    """Trains each run alone, on several threads. A trainer of torch comes after it among the bases.

    Args:
        trainer: one of that kind that has not begun, whose work it takes over.
        threads: how many runs are computed at a time.

    Attributes:
        flat, moments: weights, means and squares of all runs.
        updates: how many AdamW has made.
    """

    engine = "fused"

    def __init__(self, trainer: StackTrainer, threads: int):
        vars(self).update(vars(trainer))
        self.at_once = min(threads, self.stack.runs)
        self._group()

    @property
    @abstractmethod
    def _shape(self) -> fast.Shape:
        """Sizes of a training step."""

    def _sized(self, positions: int, scored: int, shared: int = 0, branches: int = 1, own: int = 0) -> fast.Shape:
        sizes = self.stack.shape
        return fast.Shape(
            vocab=sizes["vocab_size"],
            places=sizes["positions"],
            width=sizes["d_model"],
            layers=sizes["layers"],
            heads=sizes["heads"],
            batch=self.recipe.batch,
            positions=positions,
            scored=scored,
            shared=shared,
            branches=branches,
            own=own,
        )

    @property
    @abstractmethod
    def _lanes(self) -> int:
        """Dropout multipliers of a training step."""

    @cached_property
    def _works(self) -> list[tuple[fast.Work, fast.Work]]:
        """Work arrays of every thread: of a training step, and of decoding."""
        return [(fast.work(self._shape, self._lanes), fast.work(self._decoding, 0)) for _ in range(self.threads)]

    @property
    def threads(self) -> int:
        return self.at_once

    def _group(self) -> None:
        """The torch trainer's blocks, of parameters that are views of a flat array; so are AdamW's moments, (run,
        parameter)."""
        self.flat, *self.moments = (self._flat() for _ in range(3))
        self.updates = 0
        for parameter, view in zip(self.stack.parameters(), self._views(self.flat)):
            view.copy_(parameter.detach())
            parameter.data = view
        super()._group()

    def _flat(self) -> Float[Tensor, "run parameter"]:
        return torch.zeros(len(self.specs), sum(p[0].numel() for p in self.stack.parameters()))

    def _views(self, flat: Float[Tensor, "run parameter"]) -> list[Tensor]:
        shapes = [parameter.shape for parameter in self.stack.parameters()]
        parts = flat.split([shape[1:].numel() for shape in shapes], dim=1)
        return [part.unflatten(1, shape[1:]) for part, shape in zip(parts, shapes)]

    def optimizer_tensors(self) -> Tensors:
        """AdamW's state under torch's names: of each block its moments, which are views, and its count of updates."""
        trained = [place for place, parameter in enumerate(self.stack.parameters()) if parameter.requires_grad]
        means, squares = (self._views(moment) for moment in self.moments)
        state = {}
        for block, ((first, last), place) in enumerate(product(pairwise(self.edges), trained)):
            state[f"{block}.exp_avg"], state[f"{block}.exp_avg_sq"] = (
                means[place][first:last],
                squares[place][first:last],
            )
            state[f"{block}.step"] = torch.tensor(float(self.updates))
        return state

    def restore(self, weights: Tensors, optimizer: Tensors, progress: Progress) -> None:
        """The torch trainer's restoring; the moments move into the flat arrays."""
        own = self.optimizer_tensors()
        shapes = lambda state: {name: tensor.shape for name, tensor in state.items()}
        if shapes(own) != shapes(optimizer):
            raise ValueError("another optimiser's state")
        super().restore(weights, {}, progress)
        for name, tensor in own.items():
            tensor.copy_(optimizer[name])
        self.updates = int(optimizer["0.step"])

    @property
    def _decoding(self) -> fast.Shape:
        return self._sized(self.data.prompts.shape[1] + self.spec.outputs - 1, 1)._replace(batch=AT_ONCE)

    @cached_property
    def _counters(self) -> Int[Tensor, " draw"]:
        return random.counters(len(self._works[0][0].draws))

    def _noise(self, run: int, probability: float) -> fast.Noise:
        keys, counter = (tensor.numpy().view(np.uint64) for tensor in (self.dropout_keys, self._counters))
        return fast.Noise(keys[run], counter, round(probability * 2**16), 1 / (1 - probability))

    def _each(self, task: Task, pieces: int = 1) -> None:
        """Calls a function of a run, a piece and a thread's work arrays for the pieces of every run, in their order.

        Runs take turns, so that no thread is idle for longer than a piece where runs do not divide by threads.
        """
        ready: SimpleQueue[tuple[int, int]] = SimpleQueue()
        for run in range(len(self.specs)):
            ready.put((run, 0))

        def take_turns(arrays: tuple) -> None:
            with suppress(Empty):  # what is left is in the hands of other threads
                while True:
                    run, piece = ready.get_nowait()
                    task(run, piece, arrays)
                    if piece + 1 < pieces:
                        ready.put((run, piece + 1))

        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(take_turns, self._works))  # raises what a turn raised

    @cached_property
    def _data(self) -> fast.Data:
        data, supervision = self.data, self.spec.supervision
        starts, tokens, weights = sparse(data.outputs.flatten(0, 2))  # of (variant x input x output)
        inputs, steps = data.outputs.shape[1:3]
        whole = lambda value, other: torch.full((inputs,), other) if value is None else value
        padding = whole(data.padding, 0).numpy()
        return fast.Data(
            prompts=data.prompts.numpy(),
            padding=padding,
            shift=padding * (not self.stack.reads["padding_counts"]),
            outputs=(whole(data.last, steps - 1 - data.ending) + 1 + data.ending).numpy(),
            starts=starts,
            tokens=tokens,
            weights=weights,
            steps=steps,
            ending=data.ending,
            mean=supervision.reduction == "mean",
            sequence=supervision.loss_on == "sequence",
            mask=additive(data.sees),
        )

    def _optimiser(self, run: int, part: slice) -> fast.Optimiser:
        frozen = 0 if self.stack.transformer.wte.weight.requires_grad else self._shape.vocab * self._shape.width
        mean, square = (moment[run].numpy() for moment in self.moments)
        rates = (self.rates[part] * self.specs[run].recipe.lr).numpy()
        return fast.Optimiser(mean, square, rates, self.recipe.weight_decay, self.recipe.beta2, frozen)

    def _visited(self, run: int, first: int, order: Order) -> tuple[Any, Names | None, Order]:
        """Data of some steps' inputs as inputs of their own, under the names of their visits; names; an order."""
        rows, names = order.flatten(), None
        if self.data.renames:
            steps = torch.arange(first, first + len(order))
            names = self.data.names(random.fold(self.name_keys[run : run + 1], steps), order.shape[1])
        prompts = self.data.shown(order, names).flatten(0, 1).numpy()
        kept = {name: getattr(self._data, name)[rows] for name in ("padding", "shift", "outputs")}
        return self._data._replace(prompts=prompts, **kept), names, torch.arange(len(rows)).view_as(order)

    @cached_property
    def _last(self) -> Int[Tensor, " input"]:
        given = self.data.last
        return torch.full((len(self.data.prompts),), self.spec.outputs - 1) if given is None else given

    def evaluate_by(self, rule: Rule) -> dict[str, list]:
        """The torch trainer's evaluation, by the engine where thoughts are base ones or the likeliest tokens."""
        return self._decoded(rule) if rule in DECODED else super().evaluate_by(rule)  # type: ignore[misc]  # of a base to come

    def _decoded(self, rule: Rule) -> dict[str, list]:
        """Every run's held-out inputs by one of the rules `DECODED`, see `cot2lib.training.evaluation.evaluate`."""
        held_out, outputs = self.data.held_out, self.spec.outputs
        answers = torch.zeros_like(held_out.index)
        means = torch.zeros(len(self.specs), outputs, dtype=torch.float64)
        flat, greedy, last = self.flat.numpy(), isinstance(rule, Discrete), self._last

        def task(run: int, _: int, works: tuple) -> None:
            inputs = held_out.index[run][held_out.real[run]]  # (input,)
            ends, sums = last[inputs], np.zeros(outputs)
            given = inputs.numpy(), ends.numpy(), greedy
            fast.call("decode", flat[run], self._decoding, self._data, *given, answers[run].numpy(), sums, works[1])
            count = torch.tensor([(ends >= step).sum() for step in range(outputs)])
            means[run] = torch.from_numpy(sums) / count

        self._each(task)
        return evaluation.summary(self.data, self.data.right(answers, held_out.index), means)
