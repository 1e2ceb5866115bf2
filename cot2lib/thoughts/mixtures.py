"""Deterministic mixtures of the vocabulary: the base thought of CoT2, one token whatever the state, interventions."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch

from cot2lib.errors import SpecError
from cot2lib.kit.frozen import Frozen, Natural, Positive, Share
from cot2lib.thoughts.rule import Logits, Rule, State, Thought


@dataclass(frozen=True)
class Base(Rule):
    """The paper's continuous token (section 2): softmax of logits / temperature.

    Entries below the threshold are dropped and the rest renormalised (a later ablation); with `top` only so many of
    the largest stay. The largest always stays.
    """

    temperature: Positive = 1.0
    threshold: Share = 0.0
    top: Natural = 0

    def __call__(self, state: State) -> Thought:
        weights = (state.logits / self.temperature).softmax(-1)
        full = weights
        if self.threshold:
            floor = weights.amax(-1, keepdim=True).clamp(max=self.threshold)
            weights = weights * (weights >= floor)
        if self.top:
            largest = weights.topk(min(self.top, weights.shape[-1]))
            weights = torch.zeros_like(weights).scatter(-1, largest.indices, largest.values)
        return Thought(weights if weights is full else weights / weights.sum(-1, keepdim=True))


@dataclass(frozen=True)
class Always(Rule):
    """The same token at every step, say the arrow: a model that was fed nothing to read thinks so."""

    token: Natural

    def __call__(self, state: State) -> Thought:
        weights = torch.zeros_like(state.logits)
        if self.token >= weights.shape[-1]:
            raise SpecError(f"token={self.token}: the vocabulary has {weights.shape[-1]} tokens.")
        weights[..., self.token] = 1.0
        return Thought(weights)


@dataclass(frozen=True)
class Edit(Frozen, ABC):
    """A change of mixture weights: frozen data that a reader subclasses.

    It may look at the state of the step, say at `state.step` and, through a task that is a field of it, at the inputs
    `state.rows`; `cot2lib.supervision` says which states matter.
    """

    @abstractmethod
    def __call__(self, weights: Logits, state: State) -> Logits:
        """The mixture weights that are fed in place of those given, (run, batch, vocab)."""


@dataclass(frozen=True)
class Edited(Rule):
    """A rule whose mixtures are edited. It draws no action, so policy gradients do not train it."""

    rule: Rule
    edit: Edit

    def __call__(self, state: State) -> Thought:
        thought = self.rule(state)
        if thought.latent is not None:
            raise SpecError(f"{self.rule.label} feeds no mixture, so that nothing can be edited.")
        return Thought(self.edit(thought.weights, state))
