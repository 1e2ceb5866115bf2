"""Run specs: frozen data that says everything a trained model depends on.

A spec's id is a hash of the JSON of its fields that differ from their defaults, and of `NUMERICS`.
Adding a field with a default therefore changes no id; changing a default or the meaning of
results does, and needs NUMERICS raised. The device, what a run was stacked with and whether it was
compiled are no part of a spec: they do not change what is trained.
"""

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cot2lib.errors import SpecError
from cot2lib.kit.fields import typed
from cot2lib.losses import RATIOS
from cot2lib.model.trigonometric import check_width
from cot2lib.supervision import TIES
from cot2lib.tasks import MNNS, Task
from cot2lib.thoughts import MTS, Base, Dirichlet, Discrete, Gaussian, Gumbel, Hidden, Rule, Systematic, ZeroSlot

NUMERICS = 1
LOSS_ON = ("outputs", "sequence")
REDUCTIONS = ("sum", "mean")
FEEDING = ("teacher", "self", "stages")
SCHEDULES = ("constant", "cosine")
EMBEDDINGS = ("learned", "cosine", "cosine, frozen")


def _choose(**fields) -> None:
    """Raise for a field whose value, given as (value, choices), is no choice."""
    for name, (value, known) in fields.items():
        if value not in known:
            raise SpecError(f"{name}={value!r}: choose one of {', '.join(known)}.")


def _at_least(least: int, **fields) -> None:
    """Raise for a field below its least value."""
    for name, value in fields.items():
        if value is not None and value < least:
            raise SpecError(f"{name}={value}: must be at least {least}.")


@dataclass(frozen=True)
class Model:
    """A GPT-2 model: its shape and where its token embeddings start.

    Attributes:
        d_model, layers, heads: shape.
        embedding: "learned": drawn at random and trained; "cosine": the table of
            `cot2lib.model.trigonometric` for the task's numbers, trained on; "cosine, frozen": the same, never
            changed.
    """

    d_model: int = 32
    layers: int = 2
    heads: int = 2
    embedding: str = "learned"

    def __post_init__(self):
        typed(self)
        _choose(embedding=(self.embedding, EMBEDDINGS))
        _at_least(1, d_model=self.d_model, layers=self.layers, heads=self.heads)
        if self.d_model % self.heads:
            raise SpecError(f"heads={self.heads} does not divide d_model={self.d_model}; choose a divisor.")
        if self.embedding != "learned":
            check_width(self.d_model)


@dataclass(frozen=True)
class Supervision:
    """What a supervised run is shown and what it is scored on.

    Attributes:
        budget: B trajectories averaged into the targets; None for all, 1 for discrete CoT.
        ties: which of equally good trajectories B keeps (see `cot2lib.supervision`).
        every: which output tokens exist: the answer and every `every`-th before it; None for the
            answer alone (no-CoT).
        arrow: whether the prompt ends in the arrow token.
        eos: whether an end token follows the answer and is trained on.
        loss_on: "outputs", or "sequence" for every position after the first.
        reduction: "sum" or "mean" over the positions scored.
        pauses: further arrows after the prompt's own, which the model may use to compute (pause tokens).
        feeding: whose thoughts are fed in training. "teacher": the targets; "self": the model's own by the
            run's rule, gradients flowing through them; "stages": COCONUT's left-to-right curriculum of m
            stages of equal length, in which one thought more is the model's own each time and only the
            outputs after those are scored.
        switch: under "self", the step before which the teacher is followed.
    """

    budget: int | None = None
    ties: str = "minus-first"
    every: int | None = 1
    arrow: bool = True
    eos: bool = False
    loss_on: str = "outputs"
    reduction: str = "sum"
    pauses: int = 0
    feeding: str = "teacher"
    switch: int = 0

    def __post_init__(self):
        typed(self)
        _choose(ties=(self.ties, TIES), loss_on=(self.loss_on, LOSS_ON), reduction=(self.reduction, REDUCTIONS))
        _choose(feeding=(self.feeding, FEEDING))
        _at_least(1, every=self.every, budget=self.budget)
        _at_least(0, pauses=self.pauses, switch=self.switch)
        if self.feeding != "teacher" and self.loss_on == "sequence":
            raise SpecError(f"loss_on='sequence' needs feeding='teacher', not {self.feeding!r}.")
        if self.pauses and not self.arrow:
            raise SpecError(f"pauses={self.pauses}: pause tokens are further arrows, so arrow must be True.")
        if self.switch and self.feeding != "self":
            raise SpecError(f"switch={self.switch}: only feeding='self' can follow the teacher first.")

    def output_steps(self, steps: int) -> list[int]:
        """Indices, counted from 0, of the output tokens that exist among `steps`."""
        return [steps - 1] if self.every is None else list(range(steps - 1, -1, -self.every))[::-1]

    def own_thoughts(self, outputs: int, step: int, steps: int) -> int:
        """How many leading thoughts, of `outputs` - 1, the model makes itself at training step `step` of `steps`."""
        if self.feeding == "self":
            return outputs - 1 if step >= self.switch else 0
        return outputs * step // steps if self.feeding == "stages" else 0


@dataclass(frozen=True)
class Recipe:
    """How the weights are optimised with AdamW (betas .9/.999, eps 1e-8).

    Attributes:
        steps: optimiser steps.
        batch: examples per step, from the run's endless shuffled stream.
        lr: (peak) learning rate.
        evaluate_every: steps between evaluations on the held-out inputs; the last step is one too.
        schedule: "constant", or "cosine" to zero at the last step.
        warmup: steps of linear rise to lr.
        weight_decay: decoupled, on all parameters.
        dropout: on embeddings, attention weights and both residual branches.
        cycles: equal parts of the training, in each of which warm-up and schedule run anew.
    """

    steps: int
    batch: int
    lr: float
    evaluate_every: int
    schedule: str = "constant"
    warmup: int = 0
    weight_decay: float = 0.0
    dropout: float = 0.0
    cycles: int = 1

    def __post_init__(self):
        typed(self)
        _choose(schedule=(self.schedule, SCHEDULES))
        _at_least(1, steps=self.steps, batch=self.batch, evaluate_every=self.evaluate_every, cycles=self.cycles)
        _at_least(0, warmup=self.warmup, weight_decay=self.weight_decay, lr=self.lr)
        if self.cycles > self.steps:
            raise SpecError(f"cycles={self.cycles} of {self.steps} steps: choose at most one for each step.")
        if not 0 <= self.dropout < 1:
            raise SpecError(f"dropout={self.dropout}: choose 0 <= dropout < 1.")
        if self.schedule == "cosine" and self.warmup >= self.steps // self.cycles:
            length = self.steps // self.cycles
            raise SpecError(f"warmup={self.warmup}: a cosine schedule of {length} steps needs fewer.")


@dataclass(frozen=True)
class RunSpec:
    """One supervised training run.

    Attributes:
        task, model, supervision, recipe: see their classes.
        thought: how the run thinks when it is evaluated.
        seed: split, initialisation, data order and dropout, all together, as in the public code.
    """

    recipe: Recipe
    task: Task = MNNS()
    model: Model = Model()
    supervision: Supervision = Supervision()
    thought: Rule = Base()
    seed: int = 42

    def __post_init__(self):
        typed(self)

    @property
    def outputs(self) -> int:
        """Output tokens up to and with the answer."""
        return len(self.supervision.output_steps(self.task.steps))

    @property
    def id(self) -> str:
        """Twelve hexadecimal digits that name the run."""
        return _identifier(self)

    @property
    def positions(self) -> int:
        """Positions that one input costs in a step."""
        return self.task.positions

    @property
    def method(self) -> str:
        """The method's name in the paper; what the paper does not name is told apart after a comma."""
        if self.supervision.feeding == "stages":
            return "COCONUT, zero slot" if isinstance(self.thought, ZeroSlot) else "COCONUT"
        if self.supervision.every is None:
            return "no-CoT, pauses" if self.supervision.pauses else "no-CoT"
        return "discrete CoT" if self.supervision.budget == 1 else "CoT2"

    @property
    def fed(self) -> str:
        """Whose thoughts are fed in training: "teacher", "self", "teacher, then self" or "stages"."""
        return "teacher, then self" if self.supervision.switch else self.supervision.feeding


@dataclass(frozen=True)
class GRPOSpec:
    """One policy-gradient run from a supervised start (paper, section 5).

    Attributes:
        recipe: how the weights are optimised; `batch` counts prompts, `dropout` acts on the current policy alone, as
            in the public code.
        start: the supervised run whose weights it starts from, and whose task, model, prompt, split and seed it keeps.
        thought: how the thoughts before the answer are sampled, in training and where the run is evaluated.
        ratio: policy ratio of a thought of several draws, see `cot2lib.losses`.
        group: rollouts G of each prompt.
        clip: eps of the clipped surrogate.
        kl: beta, the weight of the divergence from the start.
        updates: optimiser steps mu on each batch of rollouts.
        scaled: whether advantages are divided by their group's standard deviation.
        first_k: tokens of a thought as training starts, if fewer than those of `thought`, to which they rise one by
            one in equal parts of the training (a curriculum that the paper proposes, section 5.3).
        mask: dropout probability of a mask that each rollout keeps over all of its positions
            (`cot2lib.training.masked`); its thoughts are then the base ones.
    """

    recipe: Recipe
    start: RunSpec
    thought: Rule
    ratio: str = "geometric"
    group: int = 8
    clip: float = 0.1
    kl: float = 0.0
    updates: int = 1
    scaled: bool = True
    first_k: int | None = None
    mask: float = 0.0

    def __post_init__(self):
        typed(self)
        _choose(ratio=(self.ratio, RATIOS))
        _at_least(1, updates=self.updates)
        _at_least(2, group=self.group)
        _at_least(0, clip=self.clip, kl=self.kl)
        if not 0 <= self.mask < 1:
            raise SpecError(f"mask={self.mask}: choose 0 <= mask < 1.")
        if self.mask and (self.thought != Base() or self.recipe.dropout or self.kl):
            raise SpecError(f"mask={self.mask}: masked rollouts need thought=Base(), dropout=0 and kl=0.")
        if not self.mask and (not hasattr(self.thought, "log_densities") or self.thought == Discrete()):
            raise SpecError(f"thought={self.thought}: policy gradients need a rule that samples and has a density.")
        if self.first_k is not None and not (isinstance(self.thought, MTS) and 1 <= self.first_k < self.thought.k):
            raise SpecError(f"first_k={self.first_k}: a rising K needs thought=MTS(k) and 1 <= first_k < k.")
        if self.start.outputs < 2:
            raise SpecError(f"a start by {self.start.method} has no thoughts that could be sampled.")

    def k_at(self, step: int) -> int:
        """Tokens of a thought at a step under `first_k`."""
        return self.first_k + (self.thought.k - self.first_k + 1) * step // self.recipe.steps

    @property
    def task(self) -> Task:
        """The start's."""
        return self.start.task

    @property
    def model(self) -> Model:
        """The start's."""
        return self.start.model

    @property
    def supervision(self) -> Supervision:
        """The start's, of which the prompt's format is kept."""
        return self.start.supervision

    @property
    def asked(self) -> RunSpec:
        """The start with what policy gradients keep of its supervision: its prompt, and which outputs exist."""
        shown = self.start.supervision
        kept = Supervision(every=shown.every, arrow=shown.arrow, pauses=shown.pauses)
        return replace(self.start, supervision=kept)

    @property
    def seed(self) -> int:
        """The start's: split, data order and rollouts."""
        return self.start.seed

    @property
    def outputs(self) -> int:
        """Output tokens up to and with the answer."""
        return self.start.outputs

    @property
    def fed(self) -> str:
        """Whose thoughts are fed in training."""
        return "self"

    @property
    def positions(self) -> int:
        """Positions that one prompt costs in a step, rollouts and their replay."""
        return 2 * (self.start.positions + (self.group - 1) * self.outputs)

    @property
    def id(self) -> str:
        """Twelve hexadecimal digits that name the run."""
        return _identifier(self)

    @property
    def method(self) -> str:
        """The supervised method it starts from, and GRPO."""
        return f"{self.start.method} + GRPO"


Run = RunSpec | GRPOSpec
RULES = (Base, Discrete, MTS, Systematic, Dirichlet, Gumbel, Gaussian, Hidden, ZeroSlot)
KINDS = {kind.__name__: kind for kind in (RunSpec, GRPOSpec, Recipe, Supervision, Model, MNNS, *RULES)}


def _identifier(spec: Run) -> str:
    text = json.dumps([NUMERICS, to_data(spec)], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def shape_of(spec: Run) -> Run:
    """The spec with everything reset that may differ between runs of one stack.

    Of a start that is seed, recipe and whatever its weights were made with, but not the model or the prompt's format.
    """
    recipe = replace(spec.recipe, lr=1.0)
    if isinstance(spec, GRPOSpec):
        start = replace(spec.asked, recipe=recipe, thought=Base(), seed=0)
        return replace(spec, recipe=recipe, start=start)
    supervision = replace(spec.supervision, budget=None, ties="minus-first")
    return replace(spec, seed=0, recipe=recipe, supervision=supervision)


def by_shape(specs: Sequence[Run]) -> list[list[Run]]:
    """Distinct runs in groups that can be stacked, in the order they come."""
    shapes: dict[Run, list[Run]] = {}
    for spec in dict.fromkeys(specs):
        shapes.setdefault(shape_of(spec), []).append(spec)
    return list(shapes.values())


def to_data(spec) -> dict:
    """Plain data of a spec: its kind and the fields that differ from their defaults."""
    data = {"kind": type(spec).__name__}
    for entry in dataclasses.fields(spec):
        value = getattr(spec, entry.name)
        if value != entry.default:
            data[entry.name] = to_data(value) if dataclasses.is_dataclass(value) else value
    return data


def from_data(data: dict):
    """The spec that `to_data` described.

    Raises:
        SpecError: for a kind or field this version does not know.
    """
    fields = dict(data)
    kind = KINDS.get(fields.pop("kind", None))
    if kind is None:
        raise SpecError(f"spec of kind {data.get('kind')!r}: this version of cot2lib knows {', '.join(KINDS)}.")
    unknown = set(fields) - {entry.name for entry in dataclasses.fields(kind)}
    if unknown:
        raise SpecError(f"{kind.__name__} has no field {', '.join(sorted(unknown))} in this version of cot2lib.")
    return kind(**{name: from_data(value) if isinstance(value, dict) else value for name, value in fields.items()})
