"""The objective of supervised training (paper, section 3): CSFT, discrete CoT, no-CoT, COCONUT's curriculum."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from cot2lib.tasks import MNNS, Task
from cot2lib.thoughts import Base, Rule, ZeroSlot
from cot2lib.training.settings import Load, Model, Recipe, Run, Supervision
from cot2lib.training.supervised import SupervisedTrainer


@dataclass(frozen=True)
class RunSpec(Run):
    """One supervised training run.

    Attributes:
        task, model, supervision, recipe: see their classes.
        thought: how the run thinks when it is evaluated; in training too, where it is fed its own thoughts.
        seed: split, initialisation, data order and dropout, all together, as in the authors' code.
        split: the seed of the split where it is not that of the rest.
    """

    telling = (
        "task", "method", "rule", "budget", "tokens", "fed", "d_model", "layers", "heads", "embedding", "embedding_sd",
        "seed", "split", "batch", "lr", "steps", "schedule", "dropout", "curriculum", "beta2", "targets",
    )  # fmt: skip

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
        """The method's name in the paper; what the paper does not name is told apart after a comma."""
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
        """The run, under teacher forcing with the base rule, as another acts at evaluation alone."""
        return replace(self, thought=Base()) if self.supervision.feeding == "teacher" else self

    def columns(self) -> dict[str, object]:
        recipe: dict[str, object] = {"schedule": self.recipe.schedule, "dropout": self.recipe.dropout}
        recipe |= {"curriculum": self.supervision.curriculum, "beta2": self.recipe.beta2}
        return super().columns() | recipe | {"embedding_sd": self.model.embedding_sd}

    def shape(self) -> "RunSpec":
        """Seed, split, learning rate, budget and tie rule may differ within a stack."""
        supervision = replace(self.supervision, budget=None, ties="minus-first")
        return replace(self, seed=0, split=None, recipe=replace(self.recipe, lr=1.0), supervision=supervision)

    def trainer(self, specs: Sequence[Run], load: Load, device: torch.device) -> SupervisedTrainer:
        return SupervisedTrainer(specs, device)
