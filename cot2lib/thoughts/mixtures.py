"""Deterministic mixtures of the vocabulary: the base thought of CoT2, and one token whatever the state."""

from dataclasses import dataclass

import torch

from cot2lib.errors import SpecError
from cot2lib.kit.fields import above_zero, at_least
from cot2lib.thoughts.rule import Rule, State, Thought


@dataclass(frozen=True)
class Base(Rule):
    """The paper's continuous token (section 2): softmax of logits / temperature.

    Entries below the threshold are dropped and the rest renormalised (a later ablation); with `top` only so many of
    the largest stay. The largest always stays. temperature > 0, 0 <= threshold < 1.
    """

    temperature: float = 1.0
    threshold: float = 0.0
    top: int = 0

    def __post_init__(self):
        super().__post_init__()
        above_zero(temperature=self.temperature)
        at_least(0, top=self.top)
        if not 0 <= self.threshold < 1:
            raise SpecError(f"threshold={self.threshold}: choose 0 <= threshold < 1.")

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

    token: int

    def __post_init__(self):
        super().__post_init__()
        at_least(0, token=self.token)

    def __call__(self, state: State) -> Thought:
        weights = torch.zeros_like(state.logits)
        if self.token >= weights.shape[-1]:
            raise SpecError(f"token={self.token}: the vocabulary has {weights.shape[-1]} tokens.")
        weights[..., self.token] = 1.0
        return Thought(weights)
