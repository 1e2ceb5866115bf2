"""The parts of a training run: its model, supervision and recipe; and the questions that each run answers (`Run`).

An objective is a frozen dataclass that subclasses `Run` and answers three questions: which columns identify it in a
table (`columns`), which other runs it can be stacked with (`shape`), and which trainer trains it (`trainer`).
`cot2lib.specs` has the two of the paper.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch

from cot2lib.errors import SpecError
from cot2lib.kit.frozen import Count, Frozen, Natural, NonNegative, Positive, Share, is_outside
from cot2lib.locality import Sees
from cot2lib.model import GPT2Stack
from cot2lib.model.stack import GPT2_SD
from cot2lib.model.trigonometric import check_width
from cot2lib.supervision import TIES, Ties
from cot2lib.targets import Targets
from cot2lib.tasks import Task
from cot2lib.testing import check_sizes
from cot2lib.thoughts import Rule

Schedule = Literal["constant", "cosine"]
Embedding = Literal["learned", "cosine", "cosine, frozen"]
FIRST_ALONE = 2 / 7  # of the steps, under the curriculum "first"
Load = Callable[[Sequence["Run"]], GPT2Stack]


@dataclass(frozen=True)
class Model(Frozen):
    """A GPT-2 model: its shape and where its token embeddings start.

    Attributes:
        embedding: "learned": drawn at random and trained; "cosine": the table of `cot2lib.model.trigonometric` for
            the task's numbers, trained further; "cosine, frozen": the same, never changed.
        embedding_sd: standard deviation of drawn token embeddings; GPT-2's is .02.
    """

    d_model: Count = 32
    layers: Count = 2
    heads: Count = 2
    embedding: Embedding = "learned"
    embedding_sd: Positive = GPT2_SD

    def __post_init__(self):
        super().__post_init__()
        if self.d_model % self.heads:
            raise SpecError(f"heads={self.heads} does not divide d_model={self.d_model}; choose a divisor.")
        if self.embedding != "learned":
            check_width(self.d_model)


@dataclass(frozen=True)
class Supervision(Frozen):
    """The inputs and targets of a supervised run.

    Attributes:
        budget: B trajectories averaged into the targets; None for all, 1 for discrete CoT.
        ties: which of equally good trajectories B keeps (see `cot2lib.supervision`).
        every: which output tokens exist: the answer and every `every`-th before it; None for the
            answer alone (no-CoT).
        arrow: whether the prompt ends in the arrow token.
        eos: whether an end token follows the answer and is trained on.
        loss_on: "outputs", or "sequence" for every position after the first.
        reduction: "sum" or "mean" over the positions scored.
        scoring: "shares", the cross-entropy with each target; or "set", -log of the probability of any of the tokens
            that have a share.
        pauses: further arrows after the prompt's own, which the model may use to compute (pause tokens).
        feeding: whose thoughts are fed in training. "teacher": the targets; "self": the model's own by the
            run's rule, gradients flowing through them; "stages": COCONUT's left-to-right curriculum of m
            stages of equal length, in which one thought more is the model's own each time and only the
            outputs after those are scored.
        switch: under "self", the step before which the teacher is followed.
        curriculum: which of the outputs are scored when. "none": all, always; "first": in the first two
            sevenths of the steps the first alone; "growing": in m stages of equal length one more each time.
        sees: what the query of a step may attend to, in training and after: "all" before it; or, by masks
            (`cot2lib.locality`), the thought before it and its own part of the prompt, "local", or "strict" where the
            prompt's tokens do not attend to each other either.
        targets: what is scored and what is fed where that is not CSFT's (`cot2lib.targets`); a rule names its own
            budget.
    """

    budget: Count | None = None
    ties: Ties = "minus-first"
    every: Count | None = 1
    arrow: bool = True
    eos: bool = False
    loss_on: Literal["outputs", "sequence"] = "outputs"
    reduction: Literal["sum", "mean"] = "sum"
    pauses: Natural = 0
    feeding: Literal["teacher", "self", "stages"] = "teacher"
    switch: Natural = 0
    curriculum: Literal["none", "first", "growing"] = "none"
    targets: Targets | None = None
    scoring: Literal["shares", "set"] = "shares"
    sees: Sees = "all"

    def __post_init__(self):
        super().__post_init__()
        if self.scoring == "set" and (self.loss_on == "sequence" or self.budget == 1 or self.targets is not None):
            raise SpecError("scoring='set' is CoT2's: it needs loss_on='outputs', a budget above 1 and no targets.")
        if self.feeding != "teacher" and self.loss_on == "sequence":
            raise SpecError(f"loss_on='sequence' needs feeding='teacher', not {self.feeding!r}.")
        if self.pauses and not self.arrow:
            raise SpecError(f"pauses={self.pauses}: pause tokens are further arrows, so arrow must be True.")
        if self.sees != "all" and (self.every != 1 or self.pauses or not self.arrow):
            raise SpecError(f"sees={self.sees!r} masks each step of a chain; it needs every=1, pauses=0, arrow=True.")
        if self.switch and self.feeding != "self":
            raise SpecError(f"switch={self.switch}: only feeding='self' can follow the teacher first.")
        if self.curriculum != "none" and (self.loss_on, self.feeding) != ("outputs", "teacher"):
            raise SpecError(f"curriculum={self.curriculum!r} needs loss_on='outputs' and feeding='teacher'.")
        if self.targets is not None and (self.budget, self.ties) != (None, TIES[0]):
            raise SpecError(f"budget={self.budget}, ties={self.ties!r}: targets name their own, as Frontier does.")
        if self.targets is not None and (self.every is None or self.feeding != "teacher"):
            raise SpecError("targets are for thoughts that a teacher feeds: choose feeding='teacher' and every >= 1.")

    def output_steps(self, steps: int) -> list[int]:
        """Indices, counted from 0, of the output tokens that exist among `steps`."""
        return [steps - 1] if self.every is None else list(range(steps - 1, -1, -self.every))[::-1]

    def own_thoughts(self, outputs: int, step: int, steps: int) -> int:
        """How many leading thoughts, of `outputs` - 1, the model makes itself at training step `step` of `steps`."""
        if self.feeding == "self":
            return outputs - 1 if step >= self.switch else 0
        return outputs * step // steps if self.feeding == "stages" else 0

    def scored(self, outputs: int, step: int, steps: int) -> int:
        """How many leading outputs, of `outputs`, are scored at training step `step` of `steps`."""
        if self.curriculum == "first":
            return 1 if step < FIRST_ALONE * steps else outputs
        return outputs * step // steps + 1 if self.curriculum == "growing" else outputs


@dataclass(frozen=True)
class Recipe(Frozen):
    """How the weights are optimised with AdamW (beta_1 = .9, eps 1e-8).

    Attributes:
        steps: optimiser steps.
        batch: examples per step, from the run's endless shuffled stream.
        lr: (peak) learning rate.
        evaluate_every: steps between evaluations on the held-out inputs; one follows the last step too.
        schedule: "constant", or "cosine" to zero at the last step.
        warmup: steps of linear rise to lr.
        weight_decay: decoupled, on all parameters.
        dropout: probability, on embeddings, attention weights and both residual branches.
        cycles: equal parts of the training, in each of which warm-up and schedule run anew.
        beta2: AdamW's, how slowly it forgets the size of gradients.
    """

    steps: Count
    batch: Count
    lr: NonNegative
    evaluate_every: Count
    schedule: Schedule = "constant"
    warmup: Natural = 0
    weight_decay: NonNegative = 0.0
    dropout: Share = 0.0
    cycles: Count = 1
    beta2: Share = 0.999

    def __post_init__(self):
        super().__post_init__()
        if self.cycles > self.steps:
            raise SpecError(f"cycles={self.cycles} of {self.steps} steps: choose at most one for each step.")
        if self.schedule == "cosine" and self.warmup >= self.steps // self.cycles:
            length = self.steps // self.cycles
            fewer = f"needs fewer, say warmup={length // 10}"
            raise SpecError(f"warmup={self.warmup}: a cosine schedule of {length} steps {fewer}.")


@dataclass(frozen=True)
class Run(Frozen, ABC):
    """The base of objectives: one training run, as frozen data.

    A subclass has the fields or properties `recipe`, `task`, `model`, `supervision`, `thought` and `seed`.
    """

    if TYPE_CHECKING:

        @property
        def recipe(self) -> Recipe: ...
        @property
        def task(self) -> Task: ...
        @property
        def model(self) -> Model: ...
        @property
        def supervision(self) -> Supervision: ...
        @property
        def thought(self) -> Rule: ...
        @property
        def seed(self) -> int: ...

    def __post_init__(self):
        super().__post_init__()
        if is_outside(type(self.task)):
            check_sizes(self.task)

    @property
    @abstractmethod
    def method(self) -> str:
        """The method's name, as tables show it."""

    @abstractmethod
    def shape(self) -> "Run":
        """The run with everything reset that may differ between runs of one stack."""

    @abstractmethod
    def trainer(self, specs: Sequence["Run"], load: Load, device: torch.device):
        """The `cot2lib.training.trainer.StackTrainer` of runs of this shape, this one first.

        `load` gives the trained models of other runs that these start from.
        """

    @property
    def training(self) -> "Run":
        """The run without what acts at evaluation alone. Runs that agree in it are trained once."""
        return self

    @property
    def split_seed(self) -> int:
        """The seed that divides the task's inputs into those for training and those held out."""
        return self.seed

    @property
    def outputs(self) -> int:
        """Number of output tokens, the answer included, of the longest input."""
        return len(self.supervision.output_steps(self.task.steps))

    @property
    def fed(self) -> str:
        """Whose thoughts are fed in training, "teacher", "self", "teacher, then self" or "stages"."""
        return "teacher, then self" if self.supervision.switch else self.supervision.feeding

    def columns(self) -> dict[str, object]:
        """Columns that tell runs apart in a table; `budget` is a number for all trajectories too."""
        return {
            "task": self.task.name,
            "method": self.method,
            "rule": self.thought.label,
            "targets": "" if self.supervision.targets is None else self.supervision.targets.label,
            "budget": self.supervision.budget or self.task.full_budget,
            "tokens": self.outputs,
            "fed": self.fed,
            "d_model": self.model.d_model,
            "layers": self.model.layers,
            "heads": self.model.heads,
            "embedding": self.model.embedding,
            "seed": self.seed,
            "split": self.split_seed,
            "batch": self.recipe.batch,
            "lr": self.recipe.lr,
            "steps": self.recipe.steps,
        }


def trained_once(specs: Sequence[Run]) -> list[Run]:
    """The first run of every training, in the order they come."""
    first: dict[Run, Run] = {}
    for spec in specs:
        first.setdefault(spec.training, spec)
    return list(first.values())


def by_shape(specs: Sequence[Run]) -> list[list[Run]]:
    """Distinct runs in groups that can be stacked, in the order they come."""
    shapes: dict[Run, list[Run]] = {}
    for spec in dict.fromkeys(specs):
        shapes.setdefault(spec.shape(), []).append(spec)
    return list(shapes.values())
