"""Interventions: a rule's mixture, changed before it is fed."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from cot2lib.errors import SpecError
from cot2lib.kit.fields import typed
from cot2lib.thoughts.rule import Logits, Rule, State, Thought


@dataclass(frozen=True)
class Edit(ABC):
    """A change of mixture weights: frozen data that a reader subclasses.

    It may look at the state of the step, say at `state.step` and, through a task that is a field of it, at the inputs
    `state.rows`; `cot2lib.oracles` says which states matter.
    """

    def __post_init__(self):
        typed(self)

    @abstractmethod
    def __call__(self, weights: Logits, state: State) -> Logits:
        """The mixture weights that are fed in place of those given, (run, batch, vocab)."""


@dataclass(frozen=True)
class Edited(Rule):
    """A rule whose mixtures are edited. It draws no action, so policy gradients do not train it.

    Raises SpecError if the rule feeds a vector that is no mixture.
    """

    rule: Rule
    edit: Edit

    def __call__(self, state: State) -> Thought:
        thought = self.rule(state)
        if thought.latent is not None:
            raise SpecError(f"{self.rule.label} feeds no mixture, so that nothing can be edited.")
        return Thought(self.edit(thought.weights, state))
