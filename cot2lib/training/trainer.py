"""The training loop that every kind of run shares: R runs of one shape, one AdamW over stacked parameters.

A kind of training (`cot2lib.training.supervised`, `cot2lib.training.grpo`) says what a batch's objective is and how
runs are evaluated; steps, learning rates, dropout, logs, CUDA graphs and checkpoints are here. Training counts steps:
each run walks its own endless shuffled stream of its training inputs in full batches. All
randomness is keyed (`cot2lib.kit.random`), so a run can be stopped, resumed and stacked with others without
changing.
"""

import math
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Generic, TypeVar

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from cot2lib.kit import random
from cot2lib.kit.frozen import outsiders
from cot2lib.kit.random import Site
from cot2lib.model import Dropout, GPT2Stack
from cot2lib.specs import Recipe, Run, trained_once
from cot2lib.thoughts import Rule
from cot2lib.training import evaluation
from cot2lib.training.data import Names, StackData

Tensors = dict[str, Shaped[Tensor, "..."]]
T = TypeVar("T")

SEGMENT = 250  # most steps between two looks at the clock
FIRST_LOSSES = 20
WARM_UP = 3  # eager calls before a CUDA graph is captured


def learning_rates(recipe: Recipe, start: int, steps: int) -> Float[Tensor, " step"]:
    """Multiplier of the peak learning rate at steps start..start+steps."""
    cycle = torch.arange(start, start + steps) * recipe.cycles // recipe.steps
    first, beyond = (-(-(cycle + ahead) * recipe.steps // recipe.cycles) for ahead in (0, 1))
    step = (torch.arange(start, start + steps) - first).double()
    rate = ((step + 1) / (recipe.warmup + 1)).clamp(max=1.0)
    if recipe.schedule == "cosine":
        progress = ((step - recipe.warmup) / (beyond - first - recipe.warmup)).clamp(min=0.0)
        rate = rate * (1 + torch.cos(math.pi * progress)) / 2
    return rate.float()


@dataclass
class Progress:
    """The products of training so far, saved in checkpoints and in finished stacks."""

    step: int = 0  # steps taken
    first_losses: list[list[float]] = field(default_factory=list)  # of the first 20 steps, (training, step)
    curves: list[dict] = field(default_factory=list)  # of each evaluation its step, and lists of all runs
    seconds: float = 0.0  # spent training and evaluating
    loss_sum: list[float] = field(default_factory=list)  # since the last evaluation
    loss_steps: int = 0


class GraphedCallable(Generic[T]):
    """A function without arguments, as a GPU repeats it: eager in its first calls, then captured once as a CUDA graph,
    and replayed as one launch.

    It reads and writes tensors that stay where they are, and never waits for the GPU. A replay overwrites the result
    of the one before.
    """

    def __init__(self, work: Callable[[], T]):
        self.work, self.calls = work, 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.result: T

    def __call__(self) -> T:
        if self.calls < WARM_UP:
            self.calls += 1
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                result = self.work()
            torch.cuda.current_stream().wait_stream(side)
            return result
        if self.graph is None:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.result = self.work()
            self.graph = graph
        self.graph.replay()
        return self.result


class Engine:
    """How a trainer takes steps and decodes: by torch here, by compiled code in `cot2lib.training.fused`.

    On CUDA what is done again and again is captured once in a phase, after a few eager calls, and replayed.
    """

    name = "torch"  # as in records

    def __init__(self, trainer: "StackTrainer"):
        self.trainer: StackTrainer = weakref.proxy(trainer)  # not to keep it, and a GPU's memory with it
        self.repeated: dict[Hashable, GraphedCallable] = {}  # in this phase

    @property
    def threads(self) -> int:
        return torch.get_num_threads()

    def take_steps(self, steps: int) -> None:
        """Take the steps whose order and rates the trainer has set."""
        take = self.repeat("step", self.trainer.take_step)
        for place in range(steps):
            self.trainer.prepare(place)
            take()

    def decoded(self, steps: Sequence[Rule]) -> dict[str, list]:
        """The held-out inputs decoded by the rules of their steps, see `cot2lib.training.evaluation.evaluate`."""
        trainer = self.trainer
        work = partial(evaluation.measured, trainer.stack, trainer.data, trainer.seeds, steps)
        looked_at = any(map(outsiders, steps))  # by `check_thoughts`, on the CPU, so that it cannot be captured
        return evaluation.summary(trainer.data, *(work if looked_at else self.repeat(tuple(steps), work))())

    def repeat(self, name: Hashable, work: Callable[[], T]) -> Callable[[], T]:
        """Work that is done again and again in a phase, under its name; captured on CUDA."""
        if self.trainer.device.type != "cuda":
            return work
        return self.repeated.setdefault(name, GraphedCallable(work))


class StackTrainer(ABC):
    """Trains runs of one shape together; the stack has the models as training starts, one of each training."""

    group = 1  # branches of each input of a batch
    looks_first = False  # whether runs are evaluated before their first step

    def __init__(self, specs: Sequence[Run], stack: GPT2Stack, data: StackData):
        self.asked, self.specs = list(specs), trained_once(specs)  # all runs, and one of each training
        trainings = [spec.training for spec in self.specs]
        self.model_of = [trainings.index(spec.training) for spec in self.asked]
        self.spec, self.recipe = specs[0], specs[0].recipe
        self.stack, self.data, self.device = stack, data, stack.device
        self.phase = self.phase_at(0)  # of the step to come
        self.progress = Progress(loss_sum=[0.0] * len(self.specs))
        self.engine = Engine(self)
        self._allocate()

    def _allocate(self) -> None:
        """Tensors a step reads and writes, so that it can be captured once and replayed."""
        runs, device = len(self.specs), self.device
        self.order = torch.zeros(runs, SEGMENT, self.recipe.batch, dtype=torch.int64, device=device)
        self.rates = torch.ones(SEGMENT, device=device)
        self.losses = torch.zeros(runs, SEGMENT, device=device)
        self.position = torch.zeros(1, dtype=torch.int64, device=device)
        self.step = torch.zeros((), dtype=torch.int64, device=device)
        self.seeds = torch.tensor([spec.seed for spec in self.specs], device=device)
        self.name_keys = random.run_keys(self.seeds, Site.NAMES)
        self.dropout_keys = random.run_keys(self.seeds, Site.DROPOUT)
        length = self.data.prompts.shape[1] + self.group * (self.data.steps - 1)
        self.counter = self.stack.dropout_counter(self.recipe.batch, length)
        self.gradients = [torch.zeros_like(parameter) for parameter in self.trained()]
        for parameter, gradient in zip(self.trained(), self.gradients):
            parameter.grad = gradient
        peaks = [spec.recipe.lr for spec in self.specs]
        edges = [0, *(run for run in range(1, runs) if peaks[run] != peaks[run - 1]), runs]
        self.blocks = [slice(first, last) for first, last in pairwise(edges)]  # neighbours with one learning rate
        self.moments = [  # AdamW's state, of every block and, in it, of every parameter that is trained
            {"step": torch.zeros((), device=device)}
            | {name: torch.zeros_like(parameter.detach()[block]) for name in ("exp_avg", "exp_avg_sq")}
            for block in self.blocks
            for parameter in self.trained()
        ]

    # The way of a training

    def train(self, after_segment: Callable[[int], None] = lambda steps: None) -> Progress:
        """Train to the end, evaluating as the recipe says; `after_segment(steps)` is called between segments."""
        if self.looks_first and not self.progress.curves:
            self._record()
        while self.progress.step < self.recipe.steps:
            began = time.monotonic()
            ahead = self.ahead()
            self.advance(ahead)
            if self.progress.step % self.recipe.evaluate_every == 0 or self.progress.step == self.recipe.steps:
                self._record()
            self.progress.seconds += time.monotonic() - began
            after_segment(ahead)
        return self.progress

    def _record(self) -> None:
        progress = self.progress
        mean = [total / progress.loss_steps if progress.loss_steps else math.nan for total in progress.loss_sum]
        loss = [mean[model] for model in self.model_of]
        progress.curves.append({"step": progress.step, "loss": loss, **self.evaluate()})
        progress.loss_sum, progress.loss_steps = [0.0] * len(self.specs), 0

    def ahead(self) -> int:
        """Steps until the next evaluation, the end or a change of phase, at most SEGMENT."""
        step, every = self.progress.step, self.recipe.evaluate_every
        most = min(SEGMENT, every - step % every, self.recipe.steps - step)
        return next((k for k in range(1, most) if self.phase_at(step + k) != self.phase_at(step)), most)

    def advance(self, steps: int) -> None:
        """Take `steps` steps, as many as `ahead` or fewer, and log their losses."""
        progress, start = self.progress, self.progress.step
        if (phase := self.phase_at(start)) != self.phase:
            self.phase, self.engine.repeated = phase, {}
        self.order[:, :steps] = self.data.order([s.seed for s in self.specs], start, steps, self.recipe.batch)
        self.rates[:steps] = learning_rates(self.recipe, start, steps)
        self.position.zero_()
        self.step.fill_(start)
        self.engine.take_steps(steps)
        taken = self.losses[:, :steps].cpu()
        if start < FIRST_LOSSES:
            earlier = progress.first_losses or [[] for _ in self.specs]
            progress.first_losses = [a + b for a, b in zip(earlier, taken[:, : FIRST_LOSSES - start].tolist())]
        progress.loss_sum = [a + b for a, b in zip(progress.loss_sum, taken.double().sum(1).tolist())]
        progress.loss_steps += steps
        progress.step += steps

    # What a kind of training says

    @abstractmethod
    def update(self, index: Int[Tensor, "run batch"]) -> Float[Tensor, " run"]:
        """Train on a batch of input rows by calls of `descend`; what is logged as each run's loss."""

    @abstractmethod
    def evaluate(self) -> dict[str, list]:
        """Measurements on the held-out inputs, `correct_a` and `correct_b` among them: lists of all runs asked for."""

    def phase_at(self, step: int) -> tuple:
        """What changes the work of a step; equal where nothing does."""
        return ()

    def prepare(self, place: int) -> None:  # noqa: B027 - most kinds of training have nothing to prepare
        """Whatever a step of the segment needs and a captured step cannot make."""

    # A step by torch

    def take_step(self) -> None:
        """One optimiser step of every run; touches nothing but tensors allocated before."""
        loss = self.update(self.order.index_select(1, self.position)[:, 0])
        self.losses.index_copy_(1, self.position, loss.detach()[:, None])
        self.position += 1
        self.step += 1

    def descend(self, objective: Float[Tensor, " run"]) -> None:
        """One AdamW step of every run down its objective."""
        torch._foreach_zero_(self.gradients)
        objective.sum().backward()
        rate = self.rates.index_select(0, self.position)[0]
        for group, block in zip(self.optimizer.param_groups, self.blocks):
            group["lr"].copy_(rate * self.peak(block))
        self.optimizer.step()

    @cached_property
    def optimizer(self) -> torch.optim.AdamW:
        """Fused AdamW; not made where torch takes no step, for torch loads its compiler with it."""
        groups: list[dict[str, Any]] = []
        for block in self.blocks:
            views = [parameter.detach()[block] for parameter in self.trained()]
            for view, gradient in zip(views, self.gradients):
                view.grad = gradient[block]
            groups.append({"params": views, "lr": torch.tensor(self.peak(block), device=self.device)})
        options: dict[str, Any] = dict(betas=(0.9, self.recipe.beta2), weight_decay=self.recipe.weight_decay)
        optimizer = torch.optim.AdamW(groups, **options, fused=True, capturable=self.device.type == "cuda")
        optimizer.state.update(zip((view for group in groups for view in group["params"]), self.moments))
        return optimizer

    def peak(self, block: slice) -> float:
        return self.specs[block.start].recipe.lr

    def trained(self) -> list[torch.nn.Parameter]:
        return [parameter for parameter in self.stack.parameters() if parameter.requires_grad]

    def dropout(self) -> Dropout | None:
        if not self.recipe.dropout:
            return None
        return Dropout(random.fold(self.dropout_keys, self.step), self.counter, self.recipe.dropout)

    def names(self, index: Int[Tensor, "run batch"]) -> Names | None:
        if not self.data.renames:
            return None
        return self.data.names(random.fold(self.name_keys, self.step), index.shape[1])

    # Checkpoints

    def optimizer_tensors(self) -> Tensors:
        """AdamW's state, by place of the parameter block and name."""
        return {f"{place}.{name}": value for place, state in enumerate(self.moments) for name, value in state.items()}

    def restore(self, weights: Tensors, optimizer: Tensors, progress: Progress) -> None:
        """Go on from a checkpoint: what the three were when it was taken."""
        own = self.optimizer_tensors()
        shapes = lambda state: {name: value.shape for name, value in state.items()}
        if shapes(own) != shapes(optimizer):
            raise ValueError("another optimiser's state")
        self.stack.load_state_dict(weights)
        for name, value in own.items():
            value.copy_(optimizer[name])
        self.progress = progress
