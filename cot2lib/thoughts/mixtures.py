"""Deterministic mixtures of the vocabulary: the base thought of CoT2."""

from dataclasses import dataclass

from cot2lib.errors import SpecError
from cot2lib.thoughts.rule import Rule, State, Thought


@dataclass(frozen=True)
class Base(Rule):
    """The paper's continuous token (section 2): softmax of logits / temperature.

    Entries below the threshold are dropped and the rest renormalised (a later ablation). The largest entry
    always stays. temperature > 0, 0 <= threshold < 1.
    """

    temperature: float = 1.0
    threshold: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        if not self.temperature > 0:
            raise SpecError(f"temperature={self.temperature}: a base thought needs one above 0.")
        if not 0 <= self.threshold < 1:
            raise SpecError(f"threshold={self.threshold}: choose 0 <= threshold < 1.")

    def __call__(self, state: State) -> Thought:
        weights = (state.logits / self.temperature).softmax(-1)
        if self.threshold:
            floor = weights.amax(-1, keepdim=True).clamp(max=self.threshold)
            weights = weights * (weights >= floor)
            weights = weights / weights.sum(-1, keepdim=True)
        return Thought(weights)
