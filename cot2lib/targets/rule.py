"""A targets rule: frozen data that says what a supervised run is scored against, and what it is fed.

CSFT (paper, section 3.1) has one distribution for both: the label of a step is fed to the next one. Controls take the
two apart. Rules of your own are frozen dataclasses that subclass `Targets`, in a module or in a notebook:

    @dataclass(frozen=True)
    class Doubted(Targets):
        doubt: float = 0.1

        def __call__(self, visits: Visits) -> Shown:
            both = hindsight_targets(visits.task, rows=visits.rows)
            return Shown(both * (1 - self.doubt), both)

They are a field of a run's supervision, `Supervision(targets=Doubted())`. Rules that have one distribution for both
subclass `Shares` instead; `Apart` joins two of them.

A rule keeps and draws nothing of its own. Its draws are functions of the keys of `Visits` (`cot2lib.kit.random`), so
that a run does not depend on what it was stacked with, or on where it was stopped.
"""

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.frozen import Frozen
from cot2lib.supervision import with_answers
from cot2lib.tasks import Task

ROW, RUN, PART = range(3)  # the first of the path of a key: of an input, of a run, of a part of a rule

Weights = Float[Tensor, "visit step vocab"]


@dataclass(frozen=True)
class Visits:
    """Training inputs, as one run visits them.

    Attributes:
        task: the task that is learnt.
        rows: row of the task's inputs of each visit.
        train: rows that the run trains on. A rule may look at these alone.
        key: random key of the run.
        steps: training step of each visit, or None where targets are fixed.
    """

    task: Task
    rows: Int[Tensor, " visit"]
    train: Int[Tensor, " train"]
    key: Int[Tensor, " 1"]
    steps: Int[Tensor, " visit"] | None = None

    def run_key(self, place: int) -> Int[Tensor, " 1"]:
        """A key of the run and a number: the same at every visit of every input."""
        return random.fold(self.key, RUN, place)

    @property
    def row_keys(self) -> Int[Tensor, " visit"]:
        """A key of the run and the input, the same at every visit."""
        return random.fold(self.key, ROW, self.rows)

    @property
    def visit_keys(self) -> Int[Tensor, " visit"]:
        """A key of the run, the input and the training step, another one at every visit."""
        if self.steps is None:
            raise SpecError("targets that draw anew at every visit need a property `fresh` that is True.")
        return random.fold(self.row_keys, self.steps)

    def apart(self, part: int) -> "Visits":
        """The same visits with other keys, for a part of a rule: parts draw independently."""
        return replace(self, key=random.fold(self.key, PART, part))


class Shown(NamedTuple):
    """Distributions of the outputs 1..m of each visit; 0 in every entry after an input's answer.

    Attributes:
        scored: the label of each step. It adds up to 1, or to less where the step's cross-entropy weighs less.
        fed: the mixture that follows each step. It adds up to 1, or to 0 where nothing is fed.
    """

    scored: Weights
    fed: Weights


@dataclass(frozen=True)
class Targets(Frozen, ABC):
    """The base of targets rules. Fields are checked against their types; raises SpecError for another type."""

    @abstractmethod
    def __call__(self, visits: Visits) -> Shown:
        """Labels and fed mixtures of the given visits."""

    @property
    def fresh(self) -> bool:
        """Whether they are drawn anew at every visit; by default, whether those of a part are."""
        parts = (getattr(self, entry.name) for entry in dataclasses.fields(self))
        return any(part.fresh for part in parts if isinstance(part, Targets))


@dataclass(frozen=True)
class Shares(Targets):
    """One distribution for each thought, scored and fed alike; at an input's last step its answer is."""

    def __call__(self, visits: Visits) -> Shown:
        given = with_answers(visits.task, self.weights(visits), visits.rows)
        return Shown(given, given)

    @abstractmethod
    def weights(self, visits: Visits) -> Weights:
        """Distributions of the thoughts; entries from an input's last step on are of no consequence."""


@dataclass(frozen=True)
class Apart(Targets):
    """Labels of one rule, and another's mixtures fed.

    Attributes:
        scored, fed: the rules. They draw independently.
    """

    scored: Targets
    fed: Targets

    def __call__(self, visits: Visits) -> Shown:
        return Shown(self.scored(visits.apart(0)).scored, self.fed(visits.apart(1)).fed)
