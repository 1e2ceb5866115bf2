"""Runs as frozen data, which says all that a trained model and its evaluation depend on, but for rounding.

`RunSpec` is the paper's supervised training (section 3): CSFT, discrete CoT, no-CoT, COCONUT's curriculum. `GRPOSpec`
is its training by policy gradients (section 5), from a supervised start. `profiles` builds both by the table of
recipes. The device and what a run was stacked with are no part of a spec: they change rounding alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from cot2lib.errors import SpecError
from cot2lib.specs.run import Load, Model, Recipe, Run, Supervision, by_shape, trained_once
from cot2lib.tasks import MNNS, Task
from cot2lib.testing import samples
from cot2lib.thoughts import MTS, Base, Rule, ZeroSlot

from cot2lib.kit.frozen import (  # isort: skip
    KINDS, NUMERICS, Count, NonNegative, Several, Share, from_data, outsiders, to_data,
)  # fmt: skip

__all__ = [
    "KINDS", "NUMERICS", "GRPOSpec", "Model", "Recipe", "Run", "RunSpec", "Supervision", "by_shape", "from_data",
    "outsiders", "to_data", "trained_once",
]  # fmt: skip


@dataclass(frozen=True)
class RunSpec(Run):
    """One supervised training run.

    Attributes:
        thought: how the run thinks when it is evaluated; in training too, where it is fed its own thoughts.
        seed: split, initialisation, data order and dropout, all together, as in the authors' code.
        split: the seed of the split where it is not that of the rest.
    """

    recipe: Recipe
    task: Task = MNNS()
    model: Model = Model()
    supervision: Supervision = Supervision()
    thought: Rule = Base()
    seed: int = 42
    split: int | None = None

    @property
    def split_seed(self) -> int:
        return self.seed if self.split is None else self.split

    @property
    def method(self) -> str:
        """The method's name in the paper; a variant that the paper does not name has a suffix after a comma."""
        if self.supervision.feeding == "stages":
            return "COCONUT, zero slot" if isinstance(self.thought, ZeroSlot) else "COCONUT"
        if self.supervision.every is None:
            return "no-CoT, pauses" if self.supervision.pauses else "no-CoT"
        if self.supervision.scoring == "set":
            return "CoT2, set likelihood"
        if self.supervision.targets is not None:
            return "CoT2, other targets"
        return "discrete CoT" if self.supervision.budget == 1 else "CoT2"

    @property
    def training(self) -> "RunSpec":
        """The run as it is trained, where the base rule replaces a rule that acts at evaluation alone."""
        return replace(self, thought=Base()) if self.supervision.feeding == "teacher" else self

    def columns(self) -> dict[str, object]:
        recipe, shown = self.recipe, self.supervision
        more = dict(schedule=recipe.schedule, dropout=recipe.dropout, curriculum=shown.curriculum, sees=shown.sees)
        return super().columns() | more | dict(beta2=recipe.beta2, embedding_sd=self.model.embedding_sd)

    def shape(self) -> "RunSpec":
        """Seed, split, learning rate, budget and tie rule may differ within a stack."""
        supervision = replace(self.supervision, budget=None, ties="minus-first")
        return replace(self, seed=0, split=None, recipe=replace(self.recipe, lr=1.0), supervision=supervision)

    def trainer(self, specs: Sequence[Run], load: Load, device: torch.device):
        from cot2lib.training.supervised import SupervisedTrainer  # which knows the runs that it trains

        return SupervisedTrainer(specs, device)


# What tables say of rules that lack a field.
NO_RULE = {"k": None, "gamma": None, "floor": None, "masked": False, "sigma": None, "temperature": 1.0}


@dataclass(frozen=True)
class GRPOSpec(Run):
    """One policy-gradient run from a supervised start.

    Attributes:
        recipe: how the weights are optimised; `batch` counts prompts, `dropout` acts on the current policy alone, as
            in the authors' code.
        start: the supervised run whose weights it starts from, and whose task, model, prompt, split and seed it keeps.
        thought: how the thoughts before the answer are sampled, in training and where the run is evaluated.
        ratio: policy ratio of a thought of several draws, see `cot2lib.losses`.
        group: rollouts G of each prompt.
        clip: eps of the clipped surrogate. It clips nothing under one update without dropout, whose ratio is one.
        kl: beta, the weight of the divergence from the start.
        updates: optimiser steps mu on each batch of rollouts.
        scaled: whether advantages are divided by their group's standard deviation.
        first_k: tokens of a thought as training starts, if fewer than those of `thought`, to which they rise one by
            one in equal parts of the training (a curriculum that the paper proposes, section 5.3).
        mask: dropout probability of a mask that each rollout keeps over all of its positions
            (`cot2lib.training.grpo`); its thoughts are then the base ones.
    """

    recipe: Recipe
    start: RunSpec
    thought: Rule
    ratio: Literal["geometric", "product", "per-draw"] = "geometric"
    group: Several = 8
    clip: NonNegative = 0.1
    kl: NonNegative = 0.0
    updates: Count = 1
    scaled: bool = True
    first_k: int | None = None
    mask: Share = 0.0

    def __post_init__(self):
        super().__post_init__()
        if self.mask and (self.thought != Base() or self.recipe.dropout or self.kl):
            raise SpecError(f"mask={self.mask}: masked rollouts need thought=Base(), dropout=0 and kl=0.")
        if not self.mask and not samples(self.thought):
            raise SpecError(f"thought={self.thought}: policy gradients need a rule that samples and has a density.")
        if self.first_k is not None and not (isinstance(self.thought, MTS) and 1 <= self.first_k < self.thought.k):
            raise SpecError(f"first_k={self.first_k}: a rising K needs thought=MTS(k) and 1 <= first_k < k.")
        if self.start.outputs < 2:
            raise SpecError(f"a start by {self.start.method} has no thoughts that could be sampled; take another.")
        if self.start.supervision.sees != "all":
            raise SpecError("policy gradients have no masks on attention; take a start with sees='all'.")
        if self.start.model.embedding == "cosine, frozen":
            raise SpecError("reward trains every weight; take a start whose embedding table is not frozen.")

    @property
    def task(self) -> Task:
        return self.start.task

    @property
    def model(self) -> Model:
        return self.start.model

    @property
    def supervision(self) -> Supervision:
        """The supervision of the start, of which policy gradients keep the prompt's format."""
        return self.start.supervision

    @property
    def seed(self) -> int:
        """The seed of the start, which gives data order and rollouts, and the split where the start names no other."""
        return self.start.seed

    @property
    def split_seed(self) -> int:
        return self.start.split_seed

    @property
    def asked(self) -> RunSpec:
        """The start with the prompt and the outputs of its supervision alone; the rest is as by default."""
        shown = self.start.supervision
        kept = Supervision(every=shown.every, arrow=shown.arrow, pauses=shown.pauses)
        return replace(self.start, supervision=kept)

    def thought_at(self, step: int) -> Rule:
        """How thoughts are sampled at a step; K rises under `first_k`."""
        if self.first_k is None or not isinstance(self.thought, MTS):
            return self.thought
        k = self.first_k + (self.thought.k - self.first_k + 1) * step // self.recipe.steps
        return replace(self.thought, k=min(k, self.thought.k))

    @property
    def fed(self) -> str:
        return "self"

    @property
    def method(self) -> str:
        return f"{self.start.method} + GRPO"

    def columns(self) -> dict[str, object]:
        own = {name: getattr(self, name) for name in ("first_k", "ratio", "kl", "scaled", "updates", "mask")}
        own |= {"sampler": type(self.thought).__name__, "dropout": self.recipe.dropout, "start": self.start.id}
        run = super().columns() | own
        rule = {f"rule_{name}" if name in run else name: value for name, value in self.thought.columns().items()}
        return run | NO_RULE | rule

    def shape(self) -> "GRPOSpec":
        """Learning rate and seed may differ in a stack, and all of the start but task, model, prompt and outputs."""
        recipe = replace(self.recipe, lr=1.0)
        start = replace(self.asked, recipe=recipe, thought=Base(), seed=0, split=None)
        return replace(self, recipe=recipe, start=start)

    def trainer(self, specs: Sequence["GRPOSpec"], load: Load, device: torch.device):  # type: ignore[override]  # runs of one shape
        from cot2lib.training.grpo import GRPOTrainer, MaskedTrainer  # which know the runs that they train

        kind = MaskedTrainer if self.mask else GRPOTrainer
        return kind(specs, load([spec.start for spec in specs]), device)
