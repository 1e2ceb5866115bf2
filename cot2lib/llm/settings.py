"""Trainings of language models by reward, and what they start from, as frozen data with an id."""

from dataclasses import dataclass
from typing import Annotated

from cot2lib.errors import SpecError
from cot2lib.kit.frozen import Bound, Count, Frozen, Natural
from cot2lib.llm.policy import PolicyRecipe

SMALL, SMOLLM2 = "small", "smollm2"  # models that are neither a name on the hub nor a folder
STORIES, GSM8K = "stories", "gsm8k"  # problems that are not a folder


@dataclass(frozen=True)
class WarmStart(Frozen):
    """Stories of one sum up to `sums`, and the supervised training of a small model on them."""

    sums: Count = 4  # most of a story; each number of them is as frequent
    brief: Annotated[float, Bound("at least", 0), Bound("at most", 1)] = 1 / 3  # share that a chain does not write out
    problems: Count = 8000  # stories to learn from, and policy gradients to ask
    steps: Count = 4000
    batch: Count = 32
    lr: float = 3e-3
    width: Count = 64  # of the model
    layers: Count = 6
    seed: int = 42  # of stories, weights and batches


@dataclass(frozen=True)
class LanguageRun(Frozen):
    """One policy-gradient training."""

    recipe: PolicyRecipe
    start: WarmStart = WarmStart()  # stories, and the small model that learnt from them
    model: str = SMALL  # or "smollm2", a name on the hub, a folder
    data: str = STORIES  # or "gsm8k" (downloaded), a folder with GSM8K's files
    layers: Natural = 0  # last ones that are trained, without the embeddings; 0 trains every weight
    shots: Natural = 0  # solved stories shown to a pretrained model before each problem, as earlier turns of the chat
    held_out: Count = 500  # problems that it is evaluated on, none of which it is trained on
    evaluations: Count = 4  # how often, evenly, besides the one before training
    seed: int = 42  # of the order of problems and of all draws

    def __post_init__(self):
        super().__post_init__()
        if self.model == SMALL and (self.data != STORIES or self.shots):
            given = f"data={self.data!r}, shots={self.shots}"
            raise SpecError(f"{given}: the small model knows the words of stories alone, and no chat.")

    @property
    def method(self) -> str:
        if not self.recipe.thoughts:
            return "discrete CoT"
        return self.recipe.thought.label if self.recipe.thought else f"MTS, K = {self.recipe.k}"

    @property
    def label(self) -> str:
        return f"{self.model}, {self.longest} tokens, {self.method}, seed {self.seed}"

    def columns(self) -> dict[str, object]:
        recipe = self.recipe
        asked = {"model": self.model, "data": self.data, "sums": self.start.sums, "method": self.method}
        sizes = {"longest": self.longest, "continuous": recipe.thoughts, "k": recipe.k}
        return asked | sizes | {"lr": recipe.lr, "enter": recipe.enter, "seed": self.seed}

    @property
    def longest(self) -> int:
        """Most tokens of a response, continuous ones among them."""
        return self.recipe.thoughts + self.recipe.limit
