"""The two builders of run specs: `spec` and `grpo` turn a row of the table (`cot2lib.specs.table`) into one run."""

import difflib
import inspect
import numbers
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from functools import cache

import pandas as pd

from cot2lib.errors import SpecError
from cot2lib.kit.frozen import part
from cot2lib.specs.policy import GRPOSpec
from cot2lib.specs.supervised import RunSpec
from cot2lib.specs.table import METHODS, PAPER_SAYS, PROFILES, REWARD, Reward, Row, epoch_steps, profile, rows_of
from cot2lib.supervision import TIES
from cot2lib.targets import Targets
from cot2lib.tasks import MNNS, Task
from cot2lib.thoughts import Rule
from cot2lib.training.settings import Embedding, Recipe, Supervision

__all__ = [
    "METHODS", "POLICIES", "PROFILES", "SEEDS", "TEN", "TWENTY", "comparison", "grpo", "profile", "shortened", "spec",
]  # fmt: skip

SEEDS = (42, 43, 44, 45, 46)
TEN = (*SEEDS, 47, 48, 49, 50, 51)  # of most runs on graphs
TWENTY = (*TEN, *range(52, 62))  # of the supervised MNNS runs: methods and budgets
RECIPE = [field.name for field in fields(Recipe)]
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
        d_model, layers, heads, embedding: see `cot2lib.training.settings.Model`; layers and heads are by default those
            of the table, two of each on numbers.
        budget: B of CoT2's targets, None for all trajectories; other methods have none.
        every: which tokens of the discrete path are kept: the answer and every `every`-th before it.
        self_fed_from: share of the training after which CoT2 is fed its own thoughts; None for never.
        targets: what is scored and fed in place of the method's own targets (`cot2lib.targets`); they need a method
            that a teacher feeds, "cot2" or "discrete".
        thought: the rule that the run thinks by, by default the method's.
        seed: see `cot2lib.specs.supervised.RunSpec`.
        **recipe: fields of `cot2lib.training.settings.Recipe` to override.

    Raises SpecError for an unknown method, profile or field, or an option that the method does not take.
    """
    part("task", task, Task)
    refuse_unknown("spec", recipe, [*arguments(spec), *RECIPE])
    row = _row_of(method, task, profile_name)
    training = staged(replace(row.recipe(task), **recipe), row.supervision, task)
    shape = {name: value for name, value in (("layers", layers), ("heads", heads)) if value is not None}
    return RunSpec(
        recipe=training,
        task=task,
        model=replace(row.model, d_model=d_model, embedding=embedding, **shape),
        supervision=_shown(method, row.supervision, training, task, budget, every, self_fed_from, targets),
        thought=METHODS[method] if thought is None else thought,
        seed=seed,
    )


def _row_of(method: str, task: Task, profile_name: str) -> Row:
    rows = rows_of(task, profile_name)
    known = [name for name in METHODS if name in rows]
    if method not in known:
        raise SpecError(f"method {method!r}: on {type(task).__name__} choose one of {', '.join(known)}.")
    return rows[method]


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
            raise SpecError(f"self_fed_from={self_fed_from!r}: a share from 0 to below 1, for method 'cot2' alone.")
        usual = replace(usual, feeding="self", switch=round(self_fed_from * training.steps))
    return usual


def refuse_unknown(caller: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise SpecError for a keyword argument that a function does not know, and name the nearest one that it does."""
    known = list(known)
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
            raise SpecError(f"{caller} takes no {name}; did you mean {near}? It takes {', '.join(known)}.")


@cache
def arguments(function: Callable) -> tuple[str, ...]:
    """Names of a function's arguments, without those that it passes on."""
    found = inspect.signature(function).parameters.values()
    return tuple(argument.name for argument in found if argument.kind is not argument.VAR_KEYWORD)


def staged(training: Recipe, supervision: Supervision, task: Task) -> Recipe:
    """A falling rate begins anew in each of COCONUT's stages, else the last ones would hardly learn."""
    falls = supervision.feeding == "stages" and training.schedule == "cosine"
    return replace(training, cycles=task.steps) if falls else training


def grpo(start: RunSpec, profile_name: str = "quick", *, thought: Rule | None = None, **options) -> GRPOSpec:
    """One policy-gradient run from a supervised one under a profile.

    Args:
        start: where it starts; it may be of the other profile.
        profile_name: "paper" or "quick".
        thought: how thoughts are sampled, by default MTS of 3 tokens on numbers and of 8 on graphs.
        **options: fields of `cot2lib.training.settings.Recipe` to override, and further ones of
            `cot2lib.specs.policy.GRPOSpec`.

    Raises SpecError for an unknown profile or field, or what `GRPOSpec` does not take.
    """
    part("start", start, RunSpec)
    row = rows_of(start.task, profile_name)[REWARD]
    assert isinstance(row, Reward)
    thought = row.thought if thought is None else part("thought", thought, Rule)
    own = [name for name in arguments(GRPOSpec) if name not in ("recipe", "start", "thought")]
    refuse_unknown("grpo", options, [*arguments(grpo), *RECIPE, *own])
    training = {"lr": row.lr_of.get(thought, row.lr)} | {name: options[name] for name in RECIPE if name in options}
    rest = {name: options[name] for name in own if name in options}
    return GRPOSpec(replace(row.recipe(start.task), **training), start, thought, **rest)


def comparison() -> pd.DataFrame:
    """Both profiles on numbers, field by field, beside what the paper says; method by method where they differ."""
    rows = []
    for name, says in PAPER_SAYS.items():
        values = [_told(name, profile_name) for profile_name in PROFILES]
        rows.append({"field": name, **dict(zip(PROFILES, values)), "the paper": says})
    return pd.DataFrame(rows)


def _told(name: str, profile_name: str) -> str:
    values = {}
    for method, row in rows_of(MNNS(), profile_name).items():
        if method != REWARD:
            run = spec(method, profile_name)
            values[method] = str(
                next(getattr(p, name) for p in (row, run.recipe, run.supervision) if hasattr(p, name))
            )
    same = len(set(values.values())) == 1
    return next(iter(values.values())) if same else ", ".join(f"{m}: {v}" for m, v in values.items())


def shortened(run: RunSpec, epochs: int, evaluations: int = 1) -> RunSpec:
    """The same run over fewer epochs, evaluated `evaluations` times: warm-up and switch scaled to the new length."""
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
