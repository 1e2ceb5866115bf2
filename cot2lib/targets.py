"""Targets rules: frozen data that says what a supervised run is scored against, and what it is fed.

CSFT (paper, section 3.1) has one distribution for both: the label of a step is fed to the next one. Controls take the
two apart. A rule of your own is a frozen dataclass that subclasses `Targets`, in a module or in a notebook::

    @dataclass(frozen=True)
    class Doubted(Targets):
        doubt: float = 0.1

        def __call__(self, visits: Visits) -> Shown:
            both = hindsight_targets(visits.task, rows=visits.rows)
            return Shown(both * (1 - self.doubt), both)

It is a field of a run's supervision, `Supervision(targets=Doubted())`. A rule with one distribution for both is a
subclass of `Shares`; `Apart` joins two rules. A rule keeps and draws nothing of its own: its draws are functions of
the keys of `Visits`, so that a run does not depend on what it was stacked with, or on where it was stopped.

The rules here are controls. Each but `Frontier`, the hindsight target of the full budget, gives up something of it.
`Frontier`, `DrawnState`, `FreshPath` and `Smoothed` differ in how many states a thought names. `Rotated` and `Renamed`
keep the information and lose the order or the names; `Geometric` loses the counts. `Shuffled`, `Uniform` and `Arrow`
keep nothing of an input's frontier, `WrongStates` keeps its entropy. These four placebos follow the usual controls of
probing and of chain of thought (random labels: Hewitt and Liang 2019, arXiv:1909.03368; filler tokens: Pfau et al.
2024, arXiv:2404.15758).
"""

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.frozen import Count, Frozen
from cot2lib.supervision import drawn_paths, hindsight_targets, steps_of, with_answers
from cot2lib.tasks import Task
from cot2lib.thoughts import inverse_cdf

ROW, RUN, PART = range(3)  # keys of an input, of a run, of a part of a rule
DECAY = 0.9  # of the weights of a path, from step to step
HALVINGS = 40  # so that the share of noise is right to 1e-12

Weights = Float[Tensor, "visit step vocab"]


@dataclass(frozen=True)
class Visits:
    """Training inputs, as one run visits them.

    Attributes:
        task: the task that is learnt.
        rows: the index of each visit's input.
        train: inputs that the run trains on; a rule may look at no others.
        key: random key of the run.
        steps: training step of each visit, or None where targets are fixed.
    """

    task: Task
    rows: Int[Tensor, " visit"]
    train: Int[Tensor, " train"]
    key: Int[Tensor, " 1"]
    steps: Int[Tensor, " visit"] | None = None

    def run_key(self, place: int) -> Int[Tensor, " 1"]:
        """A key of the run and a number, the same at every visit of every input."""
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
        """The same visits with other keys for a part of a rule, so that parts draw independently."""
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
    """The base of targets rules. Raises SpecError for a field of the wrong type."""

    @abstractmethod
    def __call__(self, visits: Visits) -> Shown:
        """Labels and fed mixtures of the given visits."""

    @property
    def fresh(self) -> bool:
        """Whether the rule draws anew at every visit; by default, whether a part of it does."""
        parts = (getattr(self, entry.name) for entry in dataclasses.fields(self))
        return any(part.fresh for part in parts if isinstance(part, Targets))


@dataclass(frozen=True)
class Shares(Targets):
    """One distribution for each thought, scored and fed; at an input's last step it is the answer."""

    def __call__(self, visits: Visits) -> Shown:
        given = with_answers(visits.task, self.weights(visits), visits.rows)
        return Shown(given, given)

    @abstractmethod
    def weights(self, visits: Visits) -> Weights:
        """Distributions of the thoughts; entries from an input's last step on are of no consequence."""


@dataclass(frozen=True)
class Apart(Targets):
    """Labels of one rule and fed mixtures of another; they draw independently."""

    scored: Targets
    fed: Targets

    def __call__(self, visits: Visits) -> Shown:
        return Shown(self.scored(visits.apart(0)).scored, self.fed(visits.apart(1)).fed)


# Controls


@dataclass(frozen=True)
class Frontier(Shares):
    """The hindsight targets of the best `budget` trajectories (`hindsight_targets`)."""

    budget: int | None = None
    ties: str = "minus-first"

    def weights(self, visits: Visits) -> Weights:
        return _table(visits.task, self.budget, self.ties)[visits.rows]


@lru_cache(maxsize=2)
def _table(task: Task, budget: int | None, ties: str) -> Float[Tensor, "input step vocab"]:
    return hindsight_targets(task, budget, ties)


FRONTIER, PATH = Frontier(), Frontier(1, "plus-first")


@dataclass(frozen=True)
class DrawnState(Shares):
    """At every visit one state of the frontier for each step, drawn by its share, independently of the other steps."""

    fresh = True

    def weights(self, visits: Visits) -> Weights:
        shares = FRONTIER.weights(visits)
        chosen = inverse_cdf(shares, random.uniform(visits.visit_keys, shares.shape[1])[..., None])  # (visit, step, 1)
        return torch.zeros_like(shares).scatter_(2, chosen, 1.0)


@dataclass(frozen=True)
class FreshPath(Shares):
    """At every visit the mean of `count` trajectories, drawn uniformly from all complete ones.

    Where the full budget averages complete trajectories, the frontier is its expectation.
    """

    count: Count = 1
    fresh = True

    def weights(self, visits: Visits) -> Weights:
        task, rows = visits.task, visits.rows
        draws = random.uniform(visits.visit_keys, self.count * task.steps).view(len(rows), self.count, task.steps)
        tokens = task.state_ids[drawn_paths(task, rows, draws)].transpose(1, 2)  # (visit, step, path)
        weights = torch.zeros(len(rows), task.steps, task.vocab_size, dtype=torch.float64)
        return weights.scatter_add_(2, tokens, torch.full(tokens.shape, 1 / self.count, dtype=torch.float64))


@dataclass(frozen=True)
class Rotated(Shares):
    """At each thought the frontier of the next thought; at the last thought the frontier of the first."""

    def weights(self, visits: Visits) -> Weights:
        shares = FRONTIER.weights(visits)
        thoughts = (steps_of(visits.task, visits.rows) - 1).clamp(min=1)[:, None]  # (visit, 1)
        source = (torch.arange(shares.shape[1]) + 1) % thoughts  # (visit, step)
        return shares.gather(1, source[..., None].expand_as(shares))


@dataclass(frozen=True)
class Renamed(Shares):
    """The frontier's states permuted, by one permutation for each step, the same for all inputs of a run."""

    def weights(self, visits: Visits) -> Weights:
        shares, task = FRONTIER.weights(visits), visits.task
        names = torch.arange(task.vocab_size).repeat(task.steps, 1)  # (step, token)
        for step in range(task.steps):
            names[step, task.state_ids] = task.state_ids[random.permutations(visits.run_key(step), task.states)[0]]
        return torch.zeros_like(shares).scatter_(2, names.expand(len(shares), -1, -1), shares)


@dataclass(frozen=True)
class Shuffled(Shares):
    """The frontiers of another training input of the same length, the same one at all steps and visits."""

    def weights(self, visits: Visits) -> Weights:
        other = _others(visits.task, visits.train, visits.run_key(0))
        return FRONTIER.weights(replace(visits, rows=other[visits.rows]))


def _others(task: Task, train: Int[Tensor, " train"], key: Int[Tensor, " 1"]) -> Int[Tensor, " input"]:
    """For each training input the next one of its length in a shuffle; -1 for held-out inputs."""
    order = train[random.permutations(key, len(train))[0]]
    other = torch.full((task.size,), -1)
    lengths = steps_of(task, order)
    for length in lengths.unique():
        same = order[lengths == length]
        if len(same) < 2:
            raise SpecError(f"Shuffled: only one training input has {length} steps, so there is no other for it.")
        other[same] = same.roll(-1)
    return other


@dataclass(frozen=True)
class WrongStates(Shares):
    """Each frontier's shares on states that have none, drawn once for each input; the entropy stays."""

    def weights(self, visits: Visits) -> Weights:
        task, shares = visits.task, FRONTIER.weights(visits)
        right = shares[..., task.state_ids]  # (visit, step, state)
        if ((right > 0).sum(-1) > task.states // 2).any():
            raise SpecError(
                f"WrongStates: some step reaches most of the {task.states} states of {task.name}; take another task."
            )
        draws = random.uniform(visits.row_keys, task.steps * task.states).view(right.shape)
        places = draws.masked_fill(right > 0, 2.0).argsort(dim=-1, stable=True)  # wrong states first
        wrong = torch.zeros_like(right).scatter_(2, places, right.sort(-1, descending=True).values)
        return torch.zeros_like(shares).index_copy_(2, task.state_ids, wrong)


@dataclass(frozen=True)
class Uniform(Shares):
    """The uniform distribution over the task's states."""

    def weights(self, visits: Visits) -> Weights:
        task = visits.task
        flat = torch.zeros(task.vocab_size, dtype=torch.float64)
        flat[task.state_ids] = 1 / task.states
        return flat.repeat(len(visits.rows), task.steps, 1)


@dataclass(frozen=True)
class Smoothed(Shares):
    """The discrete path, mixed with all states up to the frontier's entropy, input by input and step by step."""

    def weights(self, visits: Visits) -> Weights:
        shares, flat = PATH.weights(visits), Uniform().weights(visits)
        wanted = _entropy(FRONTIER.weights(visits))  # (visit, step)
        low, high = torch.zeros_like(wanted), torch.ones_like(wanted)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            above = _entropy(torch.lerp(shares, flat, middle[..., None])) > wanted
            low, high = torch.where(above, low, middle), torch.where(above, middle, high)
        return torch.lerp(shares, flat, low[..., None])


def _entropy(weights: Weights) -> Float[Tensor, "visit step"]:
    return torch.special.entr(weights).sum(-1)


@dataclass(frozen=True)
class Geometric(Shares):
    """The frontier's states in the vocabulary's order, each with half the weight of the one before."""

    def weights(self, visits: Visits) -> Weights:
        there = FRONTIER.weights(visits) > 0
        weights = 0.5 ** (there.cumsum(-1) - 1).double() * there
        return weights / weights.sum(-1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)


@dataclass(frozen=True)
class PathAhead(Shares):
    """The rest of the discrete path at each step, from its next state to the answer; each weighs .9 of the one before.

    A variant of the target of MUX (Suleymanzade et al. 2026, arXiv:2607.18264), which, by public notes, mixes
    a span of tokens.
    """

    def weights(self, visits: Visits) -> Weights:
        ahead = with_answers(visits.task, PATH.weights(visits), visits.rows)  # (visit, step, vocab)
        for step in reversed(range(visits.task.steps - 1)):
            ahead[:, step] += DECAY * ahead[:, step + 1]
        return ahead / ahead.sum(-1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)


@dataclass(frozen=True)
class Arrow(Shares):
    """The token that ends a prompt, at every step; the model gets positions and nothing to read."""

    def weights(self, visits: Visits) -> Weights:
        task = visits.task
        arrow = task.prompt()[visits.rows, -1]  # (visit,)
        weights = torch.zeros(len(visits.rows), task.steps, task.vocab_size, dtype=torch.float64)
        return weights.scatter_(2, arrow[:, None, None].expand(-1, task.steps, 1), 1.0)
