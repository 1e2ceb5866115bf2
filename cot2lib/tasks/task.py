# mypy: disable-error-code="empty-body"
"""A task: inputs, the graph of states that trajectories walk, and which answers are right.

A task of your own is a frozen dataclass that subclasses `Task`. It gives the members marked `needed`, as fields,
constants or properties; the others have defaults. Inputs may differ in the length of their prompt and in their number
of steps: a member that is the same for all inputs is a number or a tensor without the input axis; one that differs has
the input axis first.
"""

import random
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit.frozen import Frozen

TRAIN_SHARE = 0.8
Averaged = Literal["walks", "nodes", "complete"]  # what the full budget averages
Rows = slice | Int[Tensor, " row"]  # which inputs

if TYPE_CHECKING:
    from builtins import property as needed
else:

    class needed(property):
        """A member that a subclass gives. Dataclasses see no value, so that a field of its name has no default."""

        __isabstractmethod__ = True  # a class that declares one cannot be made

        def __get__(self, task, kind=None):
            if task is not None and (name := self.fget.__name__) in vars(task):
                return vars(task)[name]
            raise AttributeError(f"{kind.__name__} lacks {self.fget.__name__}.")

        def __set__(self, task, value):
            vars(task)[self.fget.__name__] = value


@dataclass(frozen=True)
class Task(Frozen, ABC):
    """The base of tasks. Raises SpecError naming the members that a task lacks, or a field of the wrong type."""

    def __post_init__(self):
        super().__post_init__()
        members = [name for name, member in vars(Task).items() if isinstance(member, needed)]
        if lacking := [name for name in members if not hasattr(type(self), name) and name not in vars(self)]:
            raise SpecError(f"task {type(self).__name__} lacks {', '.join(lacking)}; cot2lib.Task says what each is.")

    # Inputs

    @needed
    def name(self) -> str:
        """Name in tables."""

    @needed
    def size(self) -> int:
        """Number of inputs."""

    @needed
    def vocab_size(self) -> int:
        """Number of tokens."""

    @needed
    def eos_id(self) -> int:
        """Vocabulary index of the end token."""

    @needed
    def steps(self) -> int:
        """Largest number m of output tokens of an input, m - 1 thoughts and the answer."""

    @needed
    def positions(self) -> int:
        """Positions of the longest sequence, prompt and end token included."""

    @abstractmethod
    def prompt(self, arrow: bool = True, pauses: int = 0) -> Int[Tensor, "input token"]:
        """Token ids of every input, padded on the left; with or without the arrow, with `pauses` further arrows."""

    @property
    def padding(self) -> Int[Tensor, " input"] | None:
        """Number of tokens of each prompt that are padding; None where no prompt has any."""
        return None

    @property
    def padding_counts(self) -> bool:
        """Whether positions count the padding, so that all prompts end at one position."""
        return False

    @property
    def pairs(self) -> bool:
        """Whether an id of a prompt may stand for two tokens at one position (`GPT2Stack.embed`)."""
        return False

    @property
    def lengths(self) -> Int[Tensor, " input"] | None:
        """Output tokens of each input; None where all have `steps`."""
        return None

    @property
    def renamed(self) -> Int[Tensor, "role name"] | None:
        """Tokens of the names drawn anew at every visit, by role; None where names stay."""
        return None

    @property
    def numbers(self) -> Int[Tensor, " token"] | None:
        """The number that each token stands for, for a trigonometric embedding; None where tokens are no numbers."""
        return None

    @property
    def kinds(self) -> Int[Tensor, " token"]:
        """The kind of each token, say digit or sum, counted from 0; a trigonometric embedding tells kinds apart."""
        return torch.zeros(self.vocab_size, dtype=torch.int64)

    # Answers

    @needed
    def answer_ids(self) -> Int[Tensor, " input"]:
        """Vocabulary index of each answer."""

    def right(self, answers: Int[Tensor, "*batch"], rows: Int[Tensor, "*batch"]) -> Bool[Tensor, "*batch"]:
        """Whether answer tokens are right for the inputs `rows`; reward and evaluation use it."""
        return answers == on_device(self, "answer_ids", answers.device)[rows]

    # The graph

    @needed
    def states(self) -> int:
        """Number of states of the graph."""

    @needed
    def state_ids(self) -> Int[Tensor, " state"]:
        """Vocabulary index of each state."""

    @needed
    def start(self) -> int | Int[Tensor, " input"]:
        """The state where trajectories start, one for all inputs or one for each."""

    @abstractmethod
    def children(self, step: int, rows: Rows = slice(None)) -> Int[Tensor, "input state branch"]:
        """States that follow each state at `step`, counted from 0, for given inputs; -1 for no branch."""

    @needed
    def trajectories(self) -> int | Int[Tensor, " input"]:
        """Number of trajectories, one for all inputs or one for each."""

    @property
    def most_trajectories(self) -> int:
        """Number of trajectories of the input that has most."""
        there = self.trajectories
        return int(there.max()) if isinstance(there, Tensor) else there

    @property
    def full_budget(self) -> int | float:
        """The full budget as tables show it, the most trajectories of an input or infinity."""
        return self.most_trajectories

    @property
    def frontier(self) -> Averaged:
        """What the full budget averages.

        It is "complete" trajectories, all "walks" from the start, also those that end early, or uniformly the
        "nodes" that walks reach.
        """
        return "complete"

    @needed
    def score(self) -> Int[Tensor, "*input state"]:
        """The score F of each final state, the lower the better; one table for all inputs or one for each."""

    @property
    def preference(self) -> Int[Tensor, "*input state"]:
        """The score with ties between final states broken, the lower the better."""
        return self.score

    @property
    def mirror(self) -> Int[Tensor, " state"] | None:
        """The state that a symmetry of the task pairs with each, for interventions."""
        return None

    @property
    def reads(self) -> Bool[Tensor, "step token"] | None:
        """Which of a prompt's first tokens each step needs besides the thought before it, for `Supervision.sees`."""
        return None

    # Training

    @property
    def classes(self) -> Int[Tensor, " input"]:
        """Class of each input; a split never divides one."""
        return torch.arange(self.size)

    @property
    def train_size(self) -> int:
        """Number of inputs in one pass over the training data."""
        return int(TRAIN_SHARE * self.size)

    def split(self, seed: int) -> Bool[Tensor, " input"]:
        """Train mask: 80 % of the classes, shuffled by Python's generator as in the authors' code."""
        order = list(range(int(self.classes.max()) + 1))
        random.Random(seed).shuffle(order)
        return torch.isin(self.classes, torch.tensor(order[: int(TRAIN_SHARE * len(order))]))


@lru_cache(maxsize=64)
def on_device(task: Task, name: str, device: torch.device) -> Shaped[Tensor, "..."]:
    """A tensor of a task, copied to a device once: no step copies again."""
    return getattr(task, name).to(device)
