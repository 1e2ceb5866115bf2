"""A task: inputs, the graph of states that trajectories walk, and which answers are right.

A task of your own is a frozen dataclass that subclasses `Task`. It gives the members marked *yours*; the
others have defaults. Inputs may differ in the length of their prompt and in their number of steps: what holds for
all inputs alike is a number or a tensor without the input axis, what differs has the input axis first.

| member | shape | meaning |
| --- | --- | --- |
| `name`, `size`, `vocab_size`, `eos_id` | | *yours*: how tables call it; inputs; tokens; the end token |
| `steps` | | *yours*: most output tokens m of an input: m - 1 thoughts and the answer |
| `positions` | | *yours*: longest sequence, from the first prompt token to the end token |
| `prompt(arrow, pauses)` | (input, token) | *yours*: token ids, padded on the left |
| `padding` | (input,) or None | how many tokens of each prompt are padding |
| `padding_counts` | | whether places are counted with the padding, so that prompts end at one place |
| `lengths` | (input,) or None | output tokens of each input; None where all have `steps` |
| `answer_ids` | (input,) | *yours*: vocabulary index of each answer |
| `right(answers, rows)` | (*batch,) | whether answers to the given inputs are right: reward and evaluation |
| `states`, `state_ids` | (state,) | *yours*: states of the graph; vocabulary index of each |
| `start` | one or (input,) | *yours*: the state where trajectories start |
| `children(step, rows)` | (input, state, branch) | *yours*: states that follow each; -1 for no branch |
| `trajectories` | one or (input,) | *yours*: how many trajectories an input has |
| `full_budget` | | how tables call all of them: most of an input, or infinity |
| `frontier` | | what the full budget averages: "complete" trajectories, all "walks" from the start, also those that \
end early, or the "nodes" that walks reach, each alike |
| `renamed` | (role, name) or None | tokens of names that are drawn anew at every visit, in each of their roles |
| `pairs` | | whether an id of a prompt may stand for two tokens at one position (`GPT2Stack.embed`) |
| `score` | (state,) or (input, state) | *yours*: F of a final state, to be small |
| `preference` | as `score` | final states from best to worst where scores tie; default: the score |
| `mirror` | (state,) or None | the state that a symmetry of the task puts beside each, for interventions |
| `numbers`, `kinds` | (token,) | which number of which kind a token is; for a trigonometric embedding alone |
| `classes` | (input,) | inputs of one class are never divided by a split; default: each its own |
| `reads` | (step, token) or None | which of a prompt's first tokens each step needs besides the \
thought before it; for `Supervision.sees` alone |
| `split(seed)`, `train_size` | (input,) | train mask of a seed; inputs that one pass over the training data has |
"""

import random
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit.frozen import Frozen

TRAIN_SHARE = 0.8
Frontier = Literal["walks", "nodes", "complete"]  # what the full budget may average
Rows = slice | Int[Tensor, " row"]  # which inputs
NEEDED = (
    "name", "size", "vocab_size", "eos_id", "steps", "positions", "answer_ids", "states", "state_ids", "start",
    "trajectories", "score",
)  # fmt: skip


@dataclass(frozen=True)
class Task(Frozen, ABC):
    """The base of tasks; the module's table says what each member means.

    Raises SpecError naming the members that a task lacks, or a field of another type.
    """

    if TYPE_CHECKING:  # a subclass gives the members that are needed as fields, constants or properties

        @property
        def name(self) -> str: ...
        @property
        def size(self) -> int: ...
        @property
        def vocab_size(self) -> int: ...
        @property
        def eos_id(self) -> int: ...
        @property
        def steps(self) -> int: ...
        @property
        def positions(self) -> int: ...
        @property
        def answer_ids(self) -> Int[Tensor, " input"]: ...
        @property
        def states(self) -> int: ...
        @property
        def state_ids(self) -> Int[Tensor, " state"]: ...
        @property
        def start(self) -> int | Int[Tensor, " input"]: ...
        @property
        def trajectories(self) -> int | Int[Tensor, " input"]: ...
        @property
        def score(self) -> Int[Tensor, "*input state"]: ...
        @property
        def numbers(self) -> Int[Tensor, " token"]: ...
        @property
        def kinds(self) -> Int[Tensor, " token"]: ...

    def __post_init__(self):
        super().__post_init__()
        given = {*dir(type(self)), *(entry.name for entry in fields(self))}
        if lacking := [name for name in NEEDED if name not in given]:
            name = type(self).__name__
            raise SpecError(f"task {name} lacks {', '.join(lacking)}; cot2lib.tasks.task says what each is.")

    @abstractmethod
    def prompt(self, arrow: bool = True, pauses: int = 0) -> Int[Tensor, "input token"]:
        """Token ids of every input, padded on the left; with or without the arrow, and with `pauses` further ones."""

    @abstractmethod
    def children(self, step: int, rows: Rows = slice(None)) -> Int[Tensor, "input state branch"]:
        """States that follow each state at a step, for the given inputs; -1 where there is no branch."""

    @property
    def padding(self) -> Int[Tensor, " input"] | None:
        return None

    @property
    def lengths(self) -> Int[Tensor, " input"] | None:
        return None

    @property
    def most_trajectories(self) -> int:
        """Trajectories of the input that has most."""
        there = self.trajectories
        return int(there.max()) if isinstance(there, Tensor) else there

    @property
    def full_budget(self) -> int | float:
        return self.most_trajectories

    @property
    def frontier(self) -> Frontier:
        return "complete"

    @property
    def renamed(self) -> Int[Tensor, "role name"] | None:
        return None

    @property
    def padding_counts(self) -> bool:
        return False

    @property
    def pairs(self) -> bool:
        return False

    @property
    def preference(self) -> Int[Tensor, "*input state"]:
        return self.score

    @property
    def mirror(self) -> Int[Tensor, " state"] | None:
        return None

    @property
    def reads(self) -> Bool[Tensor, "step token"] | None:
        return None

    @property
    def classes(self) -> Int[Tensor, " input"]:
        return torch.arange(self.size)

    @property
    def train_size(self) -> int:
        return int(TRAIN_SHARE * self.size)

    def split(self, seed: int) -> Bool[Tensor, " input"]:
        """Train mask: 80 % of the classes, shuffled by Python's generator as in the authors' code."""
        order = list(range(int(self.classes.max()) + 1))
        random.Random(seed).shuffle(order)
        return torch.isin(self.classes, torch.tensor(order[: int(TRAIN_SHARE * len(order))]))

    def right(self, answers: Int[Tensor, "*batch"], rows: Int[Tensor, "*batch"]) -> Bool[Tensor, "*batch"]:
        """Whether answer tokens are right for the inputs of the given rows."""
        return answers == on_device(self, "answer_ids", answers.device)[rows]


@lru_cache(maxsize=64)
def on_device(task: Task, name: str, device: torch.device) -> Shaped[Tensor, "..."]:
    """A tensor of a task, copied to a device once: no step copies again."""
    return getattr(task, name).to(device)
