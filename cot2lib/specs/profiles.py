"""The two ways of training every model: `paper`, what produced the paper's numbers as far as known, and `quick`.

A profile is data; `spec` turns one of its methods into a run spec. The paper's text and its public
code disagree in places (weight decay, dropout, prompt and loss of each method); `paper` follows the
code there, since the code made the numbers. `quick` trains the same models on the same data with a
larger batch, a higher and decaying learning rate and no regularisation, in about a core-minute.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import pandas as pd

from cot2lib.errors import SpecError
from cot2lib.specs.policy import GRPOSpec
from cot2lib.specs.supervised import RunSpec
from cot2lib.tasks import MNNS, Task
from cot2lib.thoughts import MTS, Base, Discrete, Hidden, Rule, ZeroSlot
from cot2lib.training.settings import Model, Recipe, Supervision

SEEDS = (42, 43, 44, 45, 46)
TEN = (*SEEDS, 47, 48, 49, 50, 51)  # of the supervised MNNS runs: methods, budgets, one layer
THREE = MTS(3)
LARGE = 10_000  # inputs above which a task takes the profile's large batch
METHODS: Mapping[str, Rule] = MappingProxyType(
    {
        "cot2": Base(),
        "discrete": Discrete(),
        "no-cot": Base(),
        "pause": Base(),
        "coconut": Hidden(),
        "coconut-slot": ZeroSlot(),
    }
)


@dataclass(frozen=True)
class Profile:
    """One recipe for every model.

    Attributes:
        batch, large_batch: examples per step, for tasks up to and above 10,000 inputs.
        epochs: passes over the training inputs; an epoch is ceil(80 % of the inputs / batch) steps.
        most_steps: where the epochs end at the latest, or None.
        evaluations: how often a run is evaluated.
        lr, schedule, warmup, weight_decay, dropout: as in `cot2lib.training.settings.Recipe`.
        formats: prompt, targets and loss of each method.
    """

    batch: int
    large_batch: int
    epochs: int
    most_steps: int | None
    evaluations: int
    lr: float
    schedule: str
    warmup: int
    weight_decay: float
    dropout: float
    formats: Mapping[str, Supervision]

    def recipe(self, task: Task) -> Recipe:
        """The recipe in steps for a task's number of inputs."""
        batch = self.large_batch if task.size > LARGE else self.batch
        steps = self.epochs * epoch_steps(task, batch)
        steps = steps if self.most_steps is None else min(steps, self.most_steps)
        return Recipe(
            steps=steps,
            batch=batch,
            lr=self.lr,
            evaluate_every=max(1, steps // self.evaluations),
            schedule=self.schedule,
            warmup=min(self.warmup, steps // 10),
            weight_decay=self.weight_decay,
            dropout=self.dropout,
        )


def epoch_steps(task: Task, batch: int) -> int:
    """Steps of one pass over the training inputs, the same for all seeds."""
    return -(-task.train_size // batch)


def _coconut(**options) -> Supervision:
    return Supervision(budget=1, ties="plus-first", feeding="stages", **options)


PROFILES = {
    "paper": Profile(
        batch=16,
        large_batch=64,
        epochs=1000,
        most_steps=None,
        evaluations=1000,
        lr=1e-4,
        schedule="constant",
        warmup=0,
        weight_decay=0.01,
        dropout=0.1,
        formats=MappingProxyType(
            {
                "cot2": Supervision(arrow=False),
                "discrete": Supervision(budget=1, ties="plus-first", eos=True, loss_on="sequence", reduction="mean"),
                "no-cot": Supervision(every=None, eos=True, loss_on="sequence", reduction="mean"),
                "pause": Supervision(every=None, eos=True, loss_on="sequence", reduction="mean"),
                "coconut": _coconut(reduction="mean"),
                "coconut-slot": _coconut(reduction="mean"),
            }
        ),
    ),
    "quick": Profile(
        batch=64,
        large_batch=64,
        epochs=100,
        most_steps=8200,
        evaluations=50,
        lr=3e-3,
        schedule="cosine",
        warmup=100,
        weight_decay=0.0,
        dropout=0.0,
        formats=MappingProxyType(
            {
                "cot2": Supervision(),
                "discrete": Supervision(budget=1, ties="plus-first"),
                "no-cot": Supervision(every=None),
                "pause": Supervision(every=None),
                "coconut": _coconut(),
                "coconut-slot": _coconut(),
            }
        ),
    ),
}

PAPER_SAYS = {
    "batch": "16 for four digits (app. B.1)",
    "large_batch": "64 for five digits (app. B.1)",
    "epochs": "not stated; 1000 is used as an example for COCONUT's stages (app. B.3)",
    "most_steps": "not stated; five digits have about ten times the data (app. B.1)",
    "evaluations": "not stated; the public code evaluates every epoch and plots the last",
    "lr": "1e-4 (app. B.1)",
    "schedule": "not stated; the public code has none",
    "warmup": "not stated; the public code has none",
    "weight_decay": "none (app. B.1); the public code leaves AdamW's default of .01",
    "dropout": "not mentioned; the public code leaves GPT-2's default of .1",
    "cycles": "not stated; a constant rate knows none",
    "arrow": "the prompt ends in an arrow (sec. 3.1.1); the public CoT2 code has none",
    "eos": "the output ends in EOS (sec. 3.1.1); the public CoT2 code never trains it",
    "loss_on": "the m output tokens (eqs. 1 and 2); the public discrete code adds prompt and EOS",
    "reduction": "sum over steps (eqs. 1 and 2); the public discrete code takes the mean",
    "pauses": "not mentioned; the public code has an encoding with m arrows, and no trainer for it",
    "feeding": "teacher forcing; COCONUT in stages of equal length (app. B.3)",
    "curriculum": "not mentioned; the public code has none",
    "ties": "not stated; the public code is plus-first at B=1 and minus-first above",
}


def profile(name: str) -> Profile:
    """The profile of that name.

    Raises:
        SpecError: if there is none.
    """
    if name not in PROFILES:
        raise SpecError(f"profile {name!r} is unknown; choose one of {', '.join(PROFILES)}.")
    return PROFILES[name]


def spec(
    method: str = "cot2",
    profile_name: str = "quick",
    *,
    task: Task = MNNS(),
    d_model: int = 32,
    layers: int = 2,
    heads: int = 2,
    embedding: str = "learned",
    budget: int | None = None,
    every: int = 1,
    self_fed_from: float | None = None,
    seed: int = 42,
    **recipe,
) -> RunSpec:
    """One run of a method under a profile.

    Args:
        method: "cot2", "discrete", "no-cot" (one arrow, then the answer), "pause" (no-CoT after m arrows),
            "coconut" (thoughts are hidden states) or "coconut-slot" (the authors' variant of it).
        profile_name: "paper" or "quick".
        task: what to learn.
        d_model, layers, heads, embedding: see `cot2lib.training.settings.Model`.
        budget: B of CoT2's targets, None for all trajectories; other methods have none.
        every: which tokens of the discrete path are kept: the answer and every `every`-th before it.
        self_fed_from: share of the training after which CoT2 is fed its own thoughts; None for never.
        seed: see `cot2lib.specs.supervised.RunSpec`.
        **recipe: fields of `cot2lib.training.settings.Recipe` to override.

    Raises:
        SpecError: for an unknown method or profile, or an option that the method does not take.
    """
    chosen = profile(profile_name)
    check_method(method)
    supervision = chosen.formats[method]
    training = staged(replace(chosen.recipe(task), **recipe), supervision, task)
    if method == "pause":
        supervision = replace(supervision, pauses=task.steps - 1)
    if budget is not None:
        if method != "cot2" or budget == 1:
            raise SpecError(f"budget={budget}: only method 'cot2' takes one, above 1; B=1 is method 'discrete'.")
        supervision = replace(supervision, budget=None if budget == task.trajectories else budget)
    if every != 1:
        if method != "discrete":
            raise SpecError(f"every={every}: only method 'discrete' leaves out tokens of the path.")
        supervision = replace(supervision, every=every)
    if self_fed_from is not None:
        if method != "cot2" or not 0 <= self_fed_from < 1:
            raise SpecError(f"self_fed_from={self_fed_from}: a share from 0 to below 1, for method 'cot2' alone.")
        supervision = replace(supervision, feeding="self", switch=round(self_fed_from * training.steps))
    return RunSpec(
        recipe=training,
        task=task,
        model=Model(d_model, layers, heads, embedding),
        supervision=supervision,
        thought=METHODS[method],
        seed=seed,
    )


def staged(training: Recipe, supervision: Supervision, task: Task) -> Recipe:
    """A falling rate begins anew in each of COCONUT's stages, else the last ones would hardly learn."""
    falls = supervision.feeding == "stages" and training.schedule == "cosine"
    return replace(training, cycles=task.steps) if falls else training


def check_method(method: str) -> None:
    """Raise SpecError for a method that is none."""
    if method not in METHODS:
        raise SpecError(f"method {method!r} is unknown; choose one of {', '.join(METHODS)}.")


@dataclass(frozen=True)
class PolicyProfile:
    """One recipe of policy gradients.

    Attributes:
        batch: prompts per step; 16 (app. B.4).
        epochs: passes over the training inputs; not stated, 100 in the public launch script.
        lr: learning rate of MTS; 5e-5 (app. B.4).
        code_lr: the public code's, a tenth of it.
        high_lr: for a look at where training becomes unstable; neither has it.
        dirichlet_lr, cot2_lr: of Dirichlet thoughts from a discrete start, 1e-5, and from CoT2, 1e-6 (app. B.4).
        weight_decay: .01 (app. B.4).
    """

    batch: int
    epochs: int
    lr: float
    code_lr: float
    high_lr: float
    dirichlet_lr: float
    cot2_lr: float
    weight_decay: float


POLICIES = {
    "paper": PolicyProfile(16, 100, 5e-5, 5e-6, 5e-4, 1e-5, 1e-6, 0.01),
    "quick": PolicyProfile(64, 20, 3e-4, 3e-5, 3e-3, 6e-5, 6e-6, 0.01),
}


def grpo(
    start: RunSpec,
    profile_name: str = "quick",
    *,
    thought: Rule = THREE,
    lr: float | None = None,
    dropout: float = 0.0,
    **options,
) -> GRPOSpec:
    """One policy-gradient run from a supervised one under a profile, evaluated once an epoch.

    Args:
        start: where it starts; it may be of the other profile.
        profile_name: "paper" or "quick".
        thought: how thoughts are sampled.
        lr: learning rate, by default the profile's.
        dropout: in the current policy alone, as in the public code.
        **options: further fields of `cot2lib.specs.policy.GRPOSpec`.

    Raises:
        SpecError: for an unknown profile, or what `GRPOSpec` does not take.
    """
    profile(profile_name)
    chosen = POLICIES[profile_name]
    each = epoch_steps(start.task, chosen.batch)
    recipe = Recipe(
        steps=chosen.epochs * each,
        batch=chosen.batch,
        lr=chosen.lr if lr is None else lr,
        evaluate_every=each,
        weight_decay=chosen.weight_decay,
        dropout=dropout,
    )
    return GRPOSpec(recipe, start, thought, **options)


def comparison() -> pd.DataFrame:
    """Both profiles field by field beside what the paper says; method by method where they differ."""
    rows = []
    for name, says in PAPER_SAYS.items():
        values = [_shown(name, profile_name) for profile_name in PROFILES]
        rows.append({"field": name, **dict(zip(PROFILES, values)), "the paper": says})
    return pd.DataFrame(rows)


def _shown(name: str, profile_name: str) -> str:
    """A field as text: the profile's own, or each method's where they differ."""
    if hasattr(PROFILES[profile_name], name):
        return str(getattr(PROFILES[profile_name], name))
    runs = {method: spec(method, profile_name) for method in METHODS}
    part = "recipe" if name == "cycles" else "supervision"
    values = {method: str(getattr(getattr(run, part), name)) for method, run in runs.items()}
    same = len(set(values.values())) == 1
    return next(iter(values.values())) if same else ", ".join(f"{m}: {v}" for m, v in values.items())


def shortened(run: RunSpec, epochs: int, evaluations: int = 1) -> RunSpec:
    """The same run over fewer epochs, evaluated `evaluations` times: warm-up and switch scaled to the new length.

    Raises:
        SpecError: for less than one epoch.
    """
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
