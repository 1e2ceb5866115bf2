"""Supervised training by the fused CPU engine (`cot2lib.fast`).

All parameters of a run lie in one flat array, all its moments in two more. The stack's parameters and the optimiser's
state are views of them, so checkpoints and evaluation by other rules stay the torch trainer's. A run may change
engines at any checkpoint. Data order, dropout and learning rates are the torch trainer's own.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.kit import random
from cot2lib.model import GPT2Stack
from cot2lib.thoughts import Base, Discrete, Rule
from cot2lib.training import evaluation
from cot2lib.training.data import Names, StackData
from cot2lib.training.settings import Run
from cot2lib.training.supervised import SupervisedTrainer
from cot2lib.training.trainer import Progress, StackTrainer, Tensors
from cot2lib.training.visits import shown_outputs

Sparse = tuple[np.ndarray, np.ndarray, np.ndarray]  # starts, tokens and weights, as of `cot2lib.fast.forward.Data`

AT_ONCE = 32  # inputs that are decoded side by side
PIECES = 8  # of a segment, between which runs take turns


def sparse(outputs: Float[Tensor, "place vocab"]) -> Sparse:
    """Entries of distributions without their zeros: where each one's begin and the last one's end, tokens, weights."""
    place, token = outputs.nonzero().unbind(1)
    starts = torch.cat([place.new_zeros(1), torch.bincount(place, minlength=len(outputs)).cumsum(0)])
    return starts.numpy(), token.numpy(), outputs[place, token].numpy()


def picked(data: Any, places: Int[Tensor, " place"]) -> Sparse:
    """The same of some places of the engine's data."""
    starts = torch.from_numpy(data.starts)
    counts = starts[places + 1] - starts[places]
    ends = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    entries = (starts[places] - ends[:-1]).repeat_interleave(counts) + torch.arange(int(ends[-1]))
    return ends.numpy(), data.tokens[entries], data.weights[entries]


class FusedTrainer(SupervisedTrainer):
    """Trains supervised runs of one shape, each alone, on several threads.

    Args:
        specs: the runs that are asked for.
        stack, data: as of `StackTrainer`.
        threads: how many runs are computed at a time.
    """

    engine = "fused"

    def __init__(self, specs: Sequence[Run], stack: GPT2Stack, data: StackData, threads: int = 1):
        self.at_once = min(threads, stack.runs)
        StackTrainer.__init__(self, specs, stack, data)

    @property
    def threads(self) -> int:
        return self.at_once

    def _optimizer(self) -> torch.optim.AdamW:
        """The torch trainer's, of parameters and with moments that are views of flat arrays, (run, parameter)."""
        self.flat, *self.moments = (self._flat() for _ in range(3))
        for parameter, view in zip(self.stack.parameters(), self._views(self.flat)):
            view.copy_(parameter.detach())
            parameter.data = view
        optimizer = super()._optimizer()
        for block, moments in self._blocks(optimizer):
            optimizer.state[block].update(moments, step=torch.tensor(0.0))
        return optimizer

    def _flat(self) -> Float[Tensor, "run parameter"]:
        return torch.zeros(len(self.specs), sum(p[0].numel() for p in self.stack.parameters()))

    def _views(self, flat: Float[Tensor, "run parameter"]) -> list[Tensor]:
        """A flat array by parameters, in the stack's order."""
        shapes = [parameter.shape for parameter in self.stack.parameters()]
        parts = flat.split([shape[1:].numel() for shape in shapes], dim=1)
        return [part.unflatten(1, shape[1:]) for part, shape in zip(parts, shapes)]

    def _blocks(self, optimizer: torch.optim.AdamW) -> Iterator[tuple[Tensor, Tensors]]:
        """Every block of parameters that is trained, and where its moments lie."""
        trained = [place for place, parameter in enumerate(self.stack.parameters()) if parameter.requires_grad]
        views, first = [self._views(moment) for moment in self.moments], 0
        for group in optimizer.param_groups:
            last = first + len(group["params"][0])
            for block, place in zip(group["params"], trained):
                mean, square = (view[place][first:last] for view in views)
                yield block, {"exp_avg": mean, "exp_avg_sq": square}
            first = last

    def restore(self, weights: Tensors, optimizer: Tensors, progress: Progress) -> None:
        """The torch trainer's restoring; the moments move into the flat arrays."""
        self.optimizer.state.clear()
        super().restore(weights, optimizer, progress)
        for block, moments in self._blocks(self.optimizer):
            state = self.optimizer.state[block]
            for name in moments.keys() & state.keys():
                state[name] = moments[name].copy_(state[name])

    @cached_property
    def _shape(self):
        """Sizes of a training step."""
        from cot2lib.fast.forward import Shape

        outputs, prompt = self.data.outputs.shape[2], self.data.prompts.shape[1]
        positions, sizes = prompt + outputs - 1, self.stack.shape
        return Shape(
            vocab=sizes["vocab_size"],
            places=sizes["positions"],
            width=sizes["d_model"],
            layers=sizes["layers"],
            heads=sizes["heads"],
            batch=self.recipe.batch,
            positions=positions,
            scored=positions if self.spec.supervision.loss_on == "sequence" else outputs,
        )

    @cached_property
    def _data(self):
        """Inputs and targets, the latter without their zeros."""
        from cot2lib.fast.forward import Data

        data, supervision = self.data, self.spec.supervision
        starts, tokens, weights = sparse(data.outputs.flatten(0, 2))  # of (variant x input x output)
        inputs, steps = data.outputs.shape[1:3]
        whole = lambda value, other: torch.full((inputs,), other) if value is None else value
        padding = whole(data.padding, 0).numpy()
        return Data(
            prompts=data.prompts.numpy(),
            padding=padding,
            shift=padding * (not self.stack.reads["padding_counts"]),
            outputs=(whole(data.last, steps - 1 - data.ending) + 1 + data.ending).numpy(),
            starts=starts,
            tokens=tokens,
            weights=weights,
            steps=steps,
            mean=supervision.reduction == "mean",
            sequence=supervision.loss_on == "sequence",
        )

    @cached_property
    def _fed(self):
        """The same with what is fed in place of the targets; the same object where that is no other thing."""
        if self.data.fed is None:
            return self._data
        starts, tokens, weights = sparse(self.data.fed.flatten(0, 2))
        return self._data._replace(starts=starts, tokens=tokens, weights=weights)

    def _visited(self, run: int, first: int, order: Int[Tensor, "step batch"]):
        """Some steps' inputs and targets as inputs of their own, under the names of their visits or drawn at them.

        Args:
            run: which run.
            first: number of the first of the steps.
            order: rows of the task's inputs.

        Returns:
            what is scored, what is fed (one object where they are the same), and the order of the new inputs.
        """
        rows, steps, names = order.flatten(), torch.arange(first, first + len(order)), None
        if self.data.renames:
            names = self.data.names(random.fold(self.name_keys[run : run + 1], steps), order.shape[1])
        visits = steps.repeat_interleave(order.shape[1])
        scored, fed = self._drawn_at(run, rows, visits) if self.drawn_anew else self._looked_up(run, rows)
        prompts = self.data.shown(order, names).flatten(0, 1).numpy()
        kept = {name: getattr(self._data, name)[rows] for name in ("padding", "shift", "outputs")}
        made = [
            self._data._replace(
                prompts=prompts, **kept, starts=starts, tokens=self._renamed(starts, tokens, names), weights=weights
            )
            for starts, tokens, weights in ([scored] if fed is scored else [scored, fed])
        ]
        return made[0], made[-1], torch.arange(len(rows)).view_as(order)

    def _drawn_at(self, run: int, rows: Int[Tensor, " visit"], steps: Int[Tensor, " visit"]) -> tuple[Sparse, Sparse]:
        """Sparse labels and fed mixtures of visits, where they are drawn anew."""
        scored, fed = shown_outputs(self.specs[run], rows, self.data.train[run], steps)
        entries = sparse(scored.flatten(0, 1))
        return entries, entries if fed is scored else sparse(fed.flatten(0, 1))

    def _looked_up(self, run: int, rows: Int[Tensor, " visit"]) -> tuple[Sparse, Sparse]:
        """The same, where they are fixed."""
        variant, inputs, steps = int(self.data.variant[run]), len(self.data.prompts), self._data.steps
        places = ((variant * inputs + rows)[:, None] * steps + torch.arange(steps)).flatten()  # (visit x output,)
        scored = picked(self._data, places)
        return scored, scored if self._fed is self._data else picked(self._fed, places)

    def _renamed(self, starts: np.ndarray, tokens: np.ndarray, names: Names | None) -> np.ndarray:
        """Tokens of visits' entries under the names of each visit."""
        if names is None:
            return tokens
        counts = torch.from_numpy(np.diff(starts))
        visit = torch.arange(len(counts)).repeat_interleave(counts) // self._data.steps
        return names.flatten(0, 1)[visit, torch.from_numpy(tokens)].numpy()

    @cached_property
    def _works(self) -> list:
        """Work arrays of every thread: of a training step, and of decoding."""
        from cot2lib.fast.forward import work

        shape = self._shape
        lanes = sum(self.stack.dropout_lanes(shape.batch, shape.positions, shape.scored))
        return [(work(shape, lanes), work(self._decoding, 0)) for _ in range(self.threads)]

    @property
    def _decoding(self):
        """Sizes of decoding."""
        return self._shape._replace(batch=AT_ONCE, scored=1)

    def _noise(self, run: int, probability: float):
        """Dropout of a run."""
        from cot2lib.fast.forward import Noise

        keys, counter = (tensor.numpy().view(np.uint64) for tensor in (self.dropout_keys, self.counter))
        return Noise(keys[run], counter, np.int32(round(probability * 2**16)), np.float32(1 / (1 - probability)))

    def _each(self, work: Callable[[int, int, tuple], None], pieces: int = 1) -> None:
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
                    work(run, piece, arrays)
                    if piece + 1 < pieces:
                        ready.put((run, piece + 1))

        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(take_turns, self._works))  # raises what a turn raised

    def take_steps(self, steps: int) -> None:
        """All runs, one segment each."""
        from cot2lib.fast.step import Optimiser, train, train_apart

        pieces = min(PIECES, steps)  # none of them empty
        frozen = 0 if self.stack.transformer.wte.weight.requires_grad else self._shape.vocab * self._shape.width
        flat, (mean, square) = self.flat.numpy(), (moment.numpy() for moment in self.moments)

        def task(run: int, piece: int, works: tuple) -> None:
            part = slice(piece * steps // pieces, (piece + 1) * steps // pieces)
            rates = (self.rates[part] * self.specs[run].recipe.lr).numpy()
            optimiser = Optimiser(mean[run], square[run], rates, self.recipe.weight_decay, self.recipe.beta2, frozen)
            order, losses = self.order[run, part], self.losses[run, part].numpy()
            noise, first = self._noise(run, self.recipe.dropout), self.progress.step + part.start
            data, fed, variant = self._data, self._fed, int(self.data.variant[run])
            if self.data.renames or self.drawn_anew:
                (data, fed, order), variant = self._visited(run, first, order), 0
            alike, data = fed is data, data._replace(outputs=np.minimum(data.outputs, self.phase[1]))
            rest = order.numpy(), variant, optimiser, noise, first, losses, works[0]
            if alike:
                train(flat[run], self._shape, data, *rest)
            else:
                train_apart(flat[run], self._shape, data, fed, *rest)

        self._each(task, pieces)
        for group in self.optimizer.param_groups:
            for block in group["params"]:
                self.optimizer.state[block]["step"] += steps

    def evaluate_by(self, rule: Rule) -> dict[str, list]:
        """The torch trainer's evaluation, by the engine where thoughts are base ones or the likeliest tokens."""
        if rule not in (Base(), Discrete()):
            return super().evaluate_by(rule)
        from cot2lib.fast.forward import decode

        held_out, outputs = self.data.held_out, self.spec.outputs
        answers = torch.zeros_like(held_out.index)
        means = torch.zeros(len(self.specs), outputs, dtype=torch.float64)
        flat, greedy = self.flat.numpy(), isinstance(rule, Discrete)
        last = torch.full((len(self.data.prompts),), outputs - 1) if self.data.last is None else self.data.last

        def task(run: int, _: int, works: tuple) -> None:
            inputs = held_out.index[run][held_out.real[run]]  # (input,)
            ends, sums = last[inputs], np.zeros(outputs)
            given = inputs.numpy(), ends.numpy(), greedy, self._noise(run, 0.0)
            decode(flat[run], self._decoding, self._data, *given, answers[run].numpy(), sums, works[1])
            count = torch.tensor([(ends >= step).sum() for step in range(outputs)])
            means[run] = torch.from_numpy(sums) / count

        self._each(task)
        return evaluation.summary(self.data, self.data.right(answers, held_out.index), means)
