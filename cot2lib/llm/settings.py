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
    """Stories of one sum up to `sums`, and the supervised training of a small model on them.

    Attributes:
        sums: most sums of a story; each number of them is as frequent.
        brief: share of sums of which a chain writes the result alone.
        problems: stories to learn from, and policy gradients to ask.
        steps, batch, lr: of the training.
        width, layers: of the model.
        seed: of stories, weights and batches.
    """

    sums: Count = 4
    brief: Annotated[float, Bound("at least", 0), Bound("at most", 1)] = 1 / 3
    problems: Count = 8000
    steps: Count = 4000
    batch: Count = 32
    lr: float = 3e-3
    width: Count = 64
    layers: Count = 6
    seed: int = 42


@dataclass(frozen=True)
class LanguageRun(Frozen):
    """One policy-gradient training.

    Attributes:
        recipe: how.
        start: stories, and the small model that learnt from them.
        model: "small", "smollm2", or a name on the hub or a folder.
        data: "stories", "gsm8k" (downloaded), or a folder with GSM8K's files.
        layers: last layers that are trained, without the embeddings; 0 trains every weight.
        shots: solved stories that a pretrained model is shown before each problem, as earlier turns of the chat.
        held_out: problems that it is evaluated on, none of which it is trained on.
        evaluations: how often, evenly, besides the one before training.
        seed: of the order of problems and of all draws.
    """

    recipe: PolicyRecipe
    start: WarmStart = WarmStart()
    model: str = SMALL
    data: str = STORIES
    layers: Natural = 0
    shots: Natural = 0
    held_out: Count = 500
    evaluations: Count = 4
    seed: int = 42

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
        sizes = {
            "longest": self.longest,
            "continuous": recipe.thoughts,
            "k": recipe.k,
            "lr": recipe.lr,
            "enter": recipe.enter,
        }
        where = {"model": self.model, "data": self.data, "sums": self.start.sums}
        return {**where, "method": self.method, **sizes, "steps": recipe.steps, "seed": self.seed}

    @property
    def longest(self) -> int:
        """Most tokens of a response, continuous ones among them."""
        return self.recipe.thoughts + self.recipe.limit
