"""The table of recipes, by which `spec` and `grpo` build runs: how every method is trained on every kind of task.

Profile `paper` is the authors' recipe as far as known; on numbers `quick` trains the same models on the same data in a
few core-minutes at most. The paper's text and its public code disagree in places (weight decay, dropout, prompt and
loss of each method). On numbers `paper` follows the code there, which presumably gave its results; supervised runs by
`quick` have batches of 64, a higher and decaying learning rate and no regularisation.

On graphs the paper states batch, rate, optimiser and sizes; 50 passes over the data are COCONUT's. The paper says "no
weight decay"; decay .01 and dropout .1 are what its public code for numbers leaves on. Both recipes for graphs score
the outputs alone, as the paper's equations do. The quick one was chosen in a pilot study, by few runs of CoT2 alone
and on graphs that are not used here. It is the same for every method, but COCONUT's rate falls anew in each stage.
"""

import difflib
import inspect
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from cot2lib.errors import SpecError
from cot2lib.kit.frozen import as_instance, as_int
from cot2lib.locality import Sees
from cot2lib.specs import GRPOSpec, Model, Recipe, RunSpec, Supervision
from cot2lib.specs.run import Embedding, Schedule
from cot2lib.supervision import TIES
from cot2lib.targets import Targets
from cot2lib.tasks import MNNS, Task
from cot2lib.tasks.reachability import Reachability
from cot2lib.thoughts import MTS, Base, Discrete, Hidden, Rule, ZeroSlot

PROFILES = ("paper", "quick")
SEEDS = (42, 43, 44, 45, 46)
TEN = (*SEEDS, 47, 48, 49, 50, 51)  # of most runs on graphs
TWENTY = (*TEN, *range(52, 62))  # of the supervised MNNS runs: methods and budgets
LARGE = 10_000  # inputs above which a task takes the row's large batch
THREE = MTS(3)
REWARD = "grpo"  # the row of policy gradients
METHODS: Mapping[str, Rule] = {
    "cot2": Base(), "discrete": Discrete(), "no-cot": Base(), "pause": Base(), "coconut": Hidden(),
    "coconut-slot": ZeroSlot(),
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One entry of the table: a method on a kind of task under a profile."""

    batch: int
    epochs: int | None  # passes over the training inputs; None for `most_steps` alone
    evaluations: int  # how often a run is evaluated
    lr: float  # this and what follows as in `cot2lib.specs.Recipe`
    schedule: Schedule = "constant"
    warmup: int = 0
    weight_decay: float = 0.0
    dropout: float = 0.0
    large_batch: int | None = None  # of tasks above 10,000 inputs, where it is another
    most_steps: int | None = None  # where the epochs end at the latest
    supervision: Supervision = Supervision()  # prompt, targets and loss of the method
    model: Model = Model()  # its usual shape

    def recipe(self, task: Task, **given) -> Recipe:
        """The recipe in steps for a task's number of inputs, with some fields as given; warm-up is at most a tenth."""
        batch = self.large_batch if self.large_batch and task.size > LARGE else self.batch
        epochs = [] if self.epochs is None else [self.epochs * epoch_steps(task, batch)]
        steps = min(epochs + ([] if self.most_steps is None else [self.most_steps]))
        warmup = min(self.warmup, as_int("steps", given.get("steps", steps)) // 10)
        own = {name: getattr(self, name) for name in ("lr", "schedule", "weight_decay", "dropout")}
        usual = dict(steps=steps, batch=batch, evaluate_every=max(1, steps // self.evaluations), warmup=warmup, **own)
        made = Recipe(**usual | given)
        if self.supervision.feeding != "stages" or made.schedule != "cosine":
            return made
        return replace(made, cycles=task.steps)  # a falling rate begins anew in each stage, else the last hardly learn


@dataclass(frozen=True)
class Reward(Row):
    """The recipe of policy gradients on a kind of task."""

    thought: Rule = THREE  # how thoughts are sampled by default
    lr_of: Mapping[Rule, float] = field(default_factory=dict)  # of single rules that have their own


def epoch_steps(task: Task, batch: int) -> int:
    """Steps of one pass over the training inputs, the same for all seeds."""
    return -(-task.train_size // batch)


def _coconut(**options) -> Supervision:
    return Supervision(budget=1, ties="plus-first", feeding="stages", **options)


def _rows(usual: Row, shown: Mapping[str, Supervision], reward: Reward) -> dict[str, Row]:
    """Rows of a kind of task under a profile, by method: they differ in what is shown, and in policy gradients."""
    return {method: replace(usual, supervision=each) for method, each in shown.items()} | {REWARD: reward}


CODE = {  # on numbers, by the public code
    "cot2": Supervision(arrow=False),
    "discrete": Supervision(budget=1, ties="plus-first", eos=True, loss_on="sequence", reduction="mean"),
    "no-cot": Supervision(every=None, eos=True, loss_on="sequence", reduction="mean"),
    "pause": Supervision(every=None, eos=True, loss_on="sequence", reduction="mean"),
    "coconut": _coconut(reduction="mean"),
    "coconut-slot": _coconut(reduction="mean"),
}
ALIKE = {  # every method by the paper's equations
    "cot2": Supervision(),
    "discrete": Supervision(budget=1, ties="plus-first"),
    "no-cot": Supervision(every=None),
    "pause": Supervision(every=None),
    "coconut": _coconut(),
    "coconut-slot": _coconut(),
}
ROOTED = {  # on graphs, where a prompt ends in the root
    method: replace(ALIKE[method], arrow=False) for method in ("cot2", "discrete", "no-cot", "coconut")
}
CODE_LEAVES: dict[str, Any] = dict(weight_decay=0.01, dropout=0.1)  # defaults of AdamW and of GPT-2
WIDE = Model(layers=4, heads=2, embedding_sd=0.15)
EIGHT: dict[str, Any] = dict(batch=16, epochs=1, evaluations=10, weight_decay=0.01, thought=MTS(8))
TABLE: Mapping[str, Mapping[str, dict[str, Row]]] = {
    "numbers": {
        "paper": _rows(
            Row(batch=16, large_batch=64, epochs=1000, evaluations=1000, lr=1e-4, **CODE_LEAVES),
            CODE,
            Reward(batch=16, epochs=100, evaluations=100, lr=5e-5, weight_decay=0.01),
        ),
        "quick": _rows(
            Row(
                batch=64, large_batch=64, epochs=100, most_steps=8200, evaluations=50, lr=3e-3, schedule="cosine",
                warmup=100,
            ),
            ALIKE,
            Reward(batch=64, epochs=20, evaluations=20, lr=3e-4, weight_decay=0.01),
        ),
    },
    "graphs": {
        "paper": _rows(
            Row(batch=64, epochs=50, evaluations=50, lr=1e-4, model=Model(layers=4, heads=4), **CODE_LEAVES),
            ROOTED,
            Reward(lr=1e-5, lr_of={MTS(6): 1e-6}, **EIGHT),  # both rates: app. B.4
        ),
        "quick": _rows(
            Row(
                batch=32, epochs=None, most_steps=20_000, evaluations=50, lr=3e-3, schedule="cosine", warmup=1000,
                model=WIDE,
            ),
            ROOTED,
            Reward(lr=1e-4, **EIGHT),
        ),
    },
}  # fmt: skip


def profile(name: str) -> str:
    """The name, if it is a profile's; else raises SpecError."""
    if name not in PROFILES:
        raise SpecError(f"profile {name!r} is unknown; choose one of {', '.join(PROFILES)}.")
    return name


def rows_of(task: Task, profile_name: str) -> dict[str, Row]:
    """The rows of a task under a profile, by method; a task of a reader has those of numbers."""
    return TABLE["graphs" if isinstance(task, Reachability) else "numbers"][profile(profile_name)]


RECIPE = [field.name for field in fields(Recipe)]
REWARDED = [field.name for field in fields(GRPOSpec) if field.name not in ("recipe", "start", "thought")]
POLICIES = {name: rows_of(MNNS(), name)[REWARD] for name in PROFILES}


def spec(
    method: str = "cot2",
    profile_name: str = "quick",
    *,
    task: Task = MNNS(),
    d_model: int = 32,
    layers: int | None = None,
    heads: int | None = None,
    embedding: Embedding = "learned",
    budget: int | None = None,
    every: int = 1,
    self_fed_from: float | None = None,
    targets: Targets | None = None,
    sees: Sees = "all",
    arrow: bool | None = None,
    thought: Rule | None = None,
    seed: int = 42,
    **recipe,
) -> RunSpec:
    """One run of a method under a profile.

    Args:
        method: "cot2", "discrete", "no-cot" (one arrow, then the answer) or "coconut" (thoughts are hidden states); on
            numbers also "pause" (no-CoT after m arrows) or "coconut-slot" (the authors' variant of COCONUT).
        profile_name: "paper" or "quick".
        task: what to learn.
        d_model, layers, heads, embedding: see `cot2lib.specs.Model`; layers and heads are by default those
            of the table, two of each on numbers.
        budget: B of CoT2's targets, None for all trajectories; other methods have none.
        every: which tokens of the discrete path are kept: the answer and every `every`-th before it.
        self_fed_from: share of the training after which CoT2 is fed its own thoughts; None for never.
        targets: what is scored and fed in place of the method's own targets (`cot2lib.targets`); they need a method
            that a teacher feeds, "cot2" or "discrete".
        sees: what a step may attend to, see `cot2lib.specs.Supervision`.
        arrow: whether the prompt ends in the arrow, by default as the table says; a mask needs it.
        thought, seed: see `cot2lib.specs.RunSpec`; the rule is by default the method's.
        **recipe: fields of `cot2lib.specs.Recipe` to override.
    """
    as_instance("task", task, Task)
    _refuse_unknown(spec, recipe, RECIPE)
    rows = rows_of(task, profile_name)
    if method not in (known := [name for name in METHODS if name in rows]):
        raise SpecError(f"method {method!r}: on {type(task).__name__} choose one of {', '.join(known)}.")
    row = rows[method]
    training = row.recipe(task, **recipe)
    prompted = row.supervision
    if arrow is not None or sees != "all":
        prompted = replace(prompted, sees=sees, arrow=arrow is not False)
    shown = _shown(method, prompted, training, task, budget, every, self_fed_from, targets)
    shape = {name: value for name, value in (("layers", layers), ("heads", heads)) if value is not None}
    return RunSpec(
        recipe=training,
        task=task,
        model=replace(row.model, d_model=d_model, embedding=embedding, **shape),
        supervision=shown,
        thought=METHODS[method] if thought is None else thought,
        seed=seed,
    )


def _shown(
    method: str,
    usual: Supervision,
    training: Recipe,
    task: Task,
    budget: int | None,
    every: int,
    self_fed_from: float | None,
    targets: Targets | None,
) -> Supervision:
    if targets is not None:
        usual = replace(usual, targets=targets, budget=None, ties=TIES[0])
    if method == "pause":
        usual = replace(usual, pauses=task.steps - 1)
    if budget is not None:
        if method != "cot2" or budget == 1:
            raise SpecError(f"budget={budget}: only method 'cot2' takes one, above 1; B=1 is method 'discrete'.")
        all_of_them = budget == task.most_trajectories and task.frontier == "complete"
        usual = replace(usual, budget=None if all_of_them else budget)
    if every != 1:
        if method != "discrete":
            raise SpecError(f"every={every}: only method 'discrete' leaves out tokens of the path.")
        usual = replace(usual, every=every)
    if self_fed_from is not None:
        known = isinstance(self_fed_from, numbers.Real) and 0 <= self_fed_from < 1
        if method != "cot2" or not known:
            raise SpecError(f"self_fed_from={self_fed_from!r}: give a share from 0 to below 1, with method 'cot2'.")
        usual = replace(usual, feeding="self", switch=round(self_fed_from * training.steps))
    return usual


def _refuse_unknown(function: Callable, options: Iterable[str], further: Sequence[str]) -> None:
    """Raise SpecError for one of a function's **options that is no `further` one, and name the nearest."""
    for name in options:
        if name not in further:
            known = [*list(inspect.signature(function).parameters)[:-1], *further]
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
            raise SpecError(f"{function.__name__} takes no {name}; did you mean {near}? It takes {', '.join(known)}.")


def grpo(start: RunSpec, profile_name: str = "quick", *, thought: Rule | None = None, **options) -> GRPOSpec:
    """One policy-gradient run from a supervised one under a profile.

    Args:
        start: the supervised run, which may be of the other profile.
        profile_name: "paper" or "quick".
        thought: how thoughts are sampled, by default MTS of 3 tokens on numbers and of 8 on graphs.
        **options: fields of `cot2lib.specs.Recipe` to override, and further ones of `cot2lib.specs.GRPOSpec`.
    """
    as_instance("start", start, RunSpec)
    row = rows_of(start.task, profile_name)[REWARD]
    assert isinstance(row, Reward)
    thought = row.thought if thought is None else as_instance("thought", thought, Rule)
    _refuse_unknown(grpo, options, [*RECIPE, *REWARDED])
    training = {"lr": row.lr_of.get(thought, row.lr)} | {name: options[name] for name in RECIPE if name in options}
    rest = {name: options[name] for name in REWARDED if name in options}
    return GRPOSpec(row.recipe(start.task, **training), start, thought, **rest)


def shortened(run: RunSpec, epochs: int, evaluations: int = 1) -> RunSpec:
    """The same run over fewer epochs, evaluated `evaluations` times; warm-up is at most a tenth, switch is scaled."""
    if epochs < 1:
        raise SpecError(f"epochs={epochs}: train for at least one.")
    steps = epochs * epoch_steps(run.task, run.recipe.batch)
    warmup = min(run.recipe.warmup, steps // 10)
    switch = run.supervision.switch * steps // run.recipe.steps
    return replace(
        run,
        recipe=replace(run.recipe, steps=steps, warmup=warmup, evaluate_every=max(1, steps // evaluations)),
        supervision=replace(run.supervision, switch=switch),
    )
