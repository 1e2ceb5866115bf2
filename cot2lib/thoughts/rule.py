"""A thought rule: frozen data that turns the state of a step into what is fed next.

`Rule` is the base of deterministic rules, `Sampled` of rules that draw and know the log-density of what
they drew. A rule of your own is a frozen dataclass that subclasses one of them, in a module or in a
notebook:

    @dataclass(frozen=True)
    class Sharpened(Rule):
        power: float = 2.0

        def __call__(self, state: State) -> Thought:
            return Thought((self.power * state.logits).softmax(-1))

A rule trains where its thoughts are fed: by GRPO if it samples, and in supervised training under feeding="self" or
"stages" if it does not. Under teacher forcing, the default, targets are fed. The rule then acts where the run is
evaluated, and nowhere else.

A rule must not keep or draw anything of its own: what it samples is a function of `State.draws`, so that
a run does not depend on what it was stacked with.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.kit.frozen import Frozen

Logits = Float[Tensor, "run batch vocab"]
Weights = Float[Tensor, "*lead vocab"]
Mix = Callable[[Weights], Float[Tensor, "*lead d"]]


@dataclass(frozen=True)
class State:
    """The state that a rule may look at.

    Attributes:
        logits: scores of this step.
        hidden: last hidden state (after the final layer norm) they were read from.
        draws: uniform draws in (0, 1), (run, batch, count) for a count.
        peek: the last hidden state at the next position if zeros were fed there.
        mix: the continuous token E^T weights of mixture weights.
        step: which output is made, counted from 0; None where inputs differ in it.
        rows: which of the task's inputs these are; None where nobody says, as in training.
    """

    logits: Logits
    hidden: Float[Tensor, "run batch d"]
    draws: Callable[[int], Float[Tensor, "run batch draw"]]
    peek: Callable[[], Float[Tensor, "run batch d"]]
    mix: Callable[[Logits], Float[Tensor, "run batch d"]]
    step: int | None = None
    rows: Int[Tensor, "#run batch"] | None = None


@dataclass(frozen=True)
class Thought:
    """The next input: mixture weights of the vocabulary, or a latent vector where there are none.

    Attributes:
        weights: mixture weights. A latent thought holds the model's own distribution here, for the record.
        action: what was drawn, else None: tokens, or what the rule says.
        latent: the vector that is fed in place of E^T weights, else None; given by its name.
    """

    weights: Float[Tensor, "run batch vocab"]
    action: Int[Tensor, "run batch draw"] | Float[Tensor, "run batch entry"] | None = None
    latent: Float[Tensor, "run batch d"] | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Rule(Frozen, ABC):
    """A deterministic thought rule. Fields are checked against their types; raises SpecError for another type."""

    @abstractmethod
    def __call__(self, state: State) -> Thought:
        """The thought that is fed after a step."""

    @property
    def samples(self) -> bool:
        """Whether the rule draws, so that policy gradients can train it."""
        return False

    def columns(self) -> dict[str, object]:
        """The rule's fields as columns of tables. One whose name a run has too gets the prefix `rule_`."""
        return {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self)}


@dataclass(frozen=True)
class Sampled(Rule):
    """A thought rule that draws. Its `Thought` holds the action, whose log-density it knows under any policy."""

    @property
    def samples(self) -> bool:
        return True

    def parameters(self, logits: Weights, mix: Mix) -> Float[Tensor, "*lead parameter"]:
        """Parameters of the density under a policy: the logits, unless a rule says otherwise."""
        return logits

    @abstractmethod
    def log_densities(
        self, parameters: Float[Tensor, "*lead parameter"], action: Int[Tensor, "*lead _"] | Float[Tensor, "*lead _"]
    ) -> Float[Tensor, "*lead draw"]:
        """Log-density of each draw of an action under a policy, which its `parameters` stand for."""
