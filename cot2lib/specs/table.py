"""The table of recipes: how every method is trained on every kind of task, by two profiles.

Profile `paper` is what produced the paper's numbers as far as known; `quick` trains the same models on the same data
in about a core-minute. The paper's text and its public code disagree in places (weight decay, dropout, prompt and loss
of each method). On numbers `paper` follows the code there, since the code made the numbers; `quick` has a larger
batch, a higher and decaying learning rate and no regularisation.

On graphs the paper states batch, rate, optimiser and sizes; 50 passes over the data are COCONUT's. It says "no weight
decay"; decay .01 and dropout .1 are what its public code for numbers leaves on. Both recipes score the outputs alone,
as the paper's equations do. The quick one comes from a pilot study that tried two rates and two scales of embeddings,
with CoT2 alone and on graphs that are not used here. It serves every method alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from cot2lib.errors import SpecError
from cot2lib.tasks import Task
from cot2lib.tasks.reachability import Reachability
from cot2lib.thoughts import MTS, Base, Discrete, Hidden, Rule, ZeroSlot
from cot2lib.training.settings import Model, Recipe, Schedule, Supervision

PROFILES = ("paper", "quick")
LARGE = 10_000  # inputs above which a task takes the row's large batch
THREE = MTS(3)
REWARD = "grpo"  # the row of policy gradients
METHODS: Mapping[str, Rule] = MappingProxyType({
    "cot2": Base(), "discrete": Discrete(), "no-cot": Base(), "pause": Base(), "coconut": Hidden(),
    "coconut-slot": ZeroSlot(),
})  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One entry of the table: a method on a kind of task under a profile.

    Attributes:
        batch: examples per step.
        epochs: passes over the training inputs, each ceil(training inputs / batch) steps; None for `most_steps` alone.
        evaluations: how often a run is evaluated.
        lr, schedule, warmup, weight_decay, dropout: as in `cot2lib.training.settings.Recipe`.
        large_batch: the batch of tasks above 10,000 inputs, where it is another.
        most_steps: where the epochs end at the latest, or None.
        supervision: prompt, targets and loss of the method.
        model: its usual shape.
    """

    batch: int
    epochs: int | None
    evaluations: int
    lr: float
    schedule: Schedule = "constant"
    warmup: int = 0
    weight_decay: float = 0.0
    dropout: float = 0.0
    large_batch: int | None = None
    most_steps: int | None = None
    supervision: Supervision = Supervision()
    model: Model = Model()

    def recipe(self, task: Task) -> Recipe:
        """The recipe in steps for a task's number of inputs."""
        batch = self.large_batch if self.large_batch and task.size > LARGE else self.batch
        epochs = [] if self.epochs is None else [self.epochs * epoch_steps(task, batch)]
        steps = min(epochs + ([] if self.most_steps is None else [self.most_steps]))
        given = {name: getattr(self, name) for name in ("lr", "schedule", "weight_decay", "dropout")}
        every, warmup = max(1, steps // self.evaluations), min(self.warmup, steps // 10)
        return Recipe(steps=steps, batch=batch, evaluate_every=every, warmup=warmup, **given)


@dataclass(frozen=True)
class Reward(Row):
    """The recipe of policy gradients on a kind of task.

    Attributes:
        thought: how thoughts are sampled by default.
        lr_of: learning rates of single rules that have their own.
        code_lr: the public code's learning rate, a tenth of the paper's.
        high_lr: for a look at where training becomes unstable; neither has it.
        dirichlet_lr, cot2_lr: of Dirichlet thoughts from a discrete start, 1e-5, and from CoT2, 1e-6 (app. B.4).
    """

    thought: Rule = THREE
    lr_of: Mapping[Rule, float] = field(default_factory=dict)
    code_lr: float | None = None
    high_lr: float | None = None
    dirichlet_lr: float | None = None
    cot2_lr: float | None = None


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
            Reward(
                batch=16, epochs=100, evaluations=100, lr=5e-5, weight_decay=0.01, code_lr=5e-6, high_lr=5e-4,
                dirichlet_lr=1e-5, cot2_lr=1e-6,
            ),
        ),
        "quick": _rows(
            Row(
                batch=64, large_batch=64, epochs=100, most_steps=8200, evaluations=50, lr=3e-3, schedule="cosine",
                warmup=100,
            ),
            ALIKE,
            Reward(
                batch=64, epochs=20, evaluations=20, lr=3e-4, weight_decay=0.01, code_lr=3e-5, high_lr=3e-3,
                dirichlet_lr=6e-5, cot2_lr=6e-6,
            ),
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
    "curriculum": "no order of what is scored is mentioned; the public code has none",
    "ties": "not stated; the public code is plus-first at B=1 and minus-first above",
}


def profile(name: str) -> str:
    """The name of a profile."""
    if name not in PROFILES:
        raise SpecError(f"profile {name!r} is unknown; choose one of {', '.join(PROFILES)}.")
    return name


def rows_of(task: Task, profile_name: str) -> dict[str, Row]:
    """The rows of a task under a profile, by method; a task of a reader has those of numbers."""
    return TABLE["graphs" if isinstance(task, Reachability) else "numbers"][profile(profile_name)]
