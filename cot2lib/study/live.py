"""Live trainings of chapters: small requests that a reader may change, and their curves."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.patches import Patch

from cot2lib import runs
from cot2lib.errors import SpecError
from cot2lib.kit.provenance import resolve_device
from cot2lib.kit.timing import told
from cot2lib.specs import GRPOSpec, Recipe, RunSpec
from cot2lib.specs.profiles import TWENTY, shortened
from cot2lib.study.frame import tidy
from cot2lib.study.look import Shown, above, panels
from cot2lib.study.series import told_apart
from cot2lib.study.sweeps import of_budget
from cot2lib.tasks import MNNS
from cot2lib.tasks.mnns import ENUMERABLE, LONGEST
from cot2lib.thoughts import Rule
from cot2lib.training.fused import preferred
from cot2lib.training.grpo import GRPOTrainer

SAMPLED = 20_000  # inputs, where a task has too many to list
FEWEST_CLASSES = 5  # the least of which a split of 80 % holds one out
POINTS = 25  # evaluations of a live run
BATCH = 16  # prompts per live step of policy gradients


def task(low: int, high: int, length: int) -> MNNS:
    """The task of a live training: every input where they can be listed, else a sample.

    SpecError if its digits are out of range, or too few kinds of input exist to hold some out.
    """
    size = max(0, high - low + 1) ** min(max(0, length), LONGEST)  # which refuses longer ones
    made = MNNS(low, high, length, inputs=SAMPLED if size > ENUMERABLE else None)
    if int(made.classes.max()) + 1 < FEWEST_CLASSES:
        raise SpecError(
            f"{length} digits of {low}..{high} make fewer than {FEWEST_CLASSES} different multisets, too few to hold "
            "some out; widen the range or take more digits."
        )
    return made


def specs(task: MNNS, profile: str, budgets: Sequence[int], d_model: int, epochs: int, seed: int) -> list[RunSpec]:
    """One shortened run per budget; a budget above the task's number of trajectories keeps them all.

    Equal runs are trained once.
    """
    options = dict(task=task, d_model=d_model, seed=seed)
    made = [of_budget(min(budget, task.trajectories), profile, **options) for budget in budgets]
    return list(dict.fromkeys(shortened(run, epochs, POINTS) for run in made))


def recorded(asked: Sequence[RunSpec], profile: str) -> pd.DataFrame | None:
    """Tidy learning curves of the recorded runs of the same task, budgets and dimension, seeds 42 to 61; None without.

    `asked` is what `specs` gives.
    """
    wanted = [
        of_budget(run.columns()["budget"], profile, task=run.task, d_model=run.model.d_model, seed=seed)
        for run in asked
        for seed in TWENTY
    ]
    known = set(runs.recorded(wanted)["id"])
    return tidy(runs.curves([run for run in wanted if run.id in known])) if known else None


def rewards(starts: Sequence[RunSpec], rule: Rule, steps: int, lr: float, device: str = "cpu") -> pd.DataFrame:
    """Share (%) of rollouts that are right, step by step, in a short training by reward; a column per seed."""
    if steps < 2:
        raise SpecError(f"live_steps={steps}: train for at least two.")
    chosen = [GRPOSpec(Recipe(steps, BATCH, lr, steps), start, rule) for start in starts]
    trainer = preferred(GRPOTrainer(chosen, runs.load_stack(starts, missing="error"), resolve_device(device)))
    found = []
    with told("learning by reward", steps) as tell:
        while trainer.progress.step < steps:
            taken = trainer.ahead()
            trainer.advance(taken)
            found.append(100 * (1 - trainer.losses[:, :taken].T.cpu().numpy()))
            tell(trainer.progress.step)
    return pd.DataFrame(np.concatenate(found), columns=[spec.seed for spec in chosen])


def curves(
    found: pd.DataFrame,
    recorded: pd.DataFrame | None = None,
    hue: str = "budget",
    level: tuple[str, float] | None = None,
) -> Shown:
    """Learning curves of live runs (tidy), a line for each, before the range of the `recorded` seeds of such runs.

    `level` is the name and the height (%) of a dashed line.
    """
    parts = {"live": found} | ({} if recorded is None else {"recorded": recorded})
    data, apart = told_apart(pd.concat(parts, names=["made"]).reset_index("made"), hue)
    options = {name: apart[name] for name in ("hue", "palette", "hue_order")} | {"x": "epoch", "y": "accuracy"}
    behind, data = data[data["made"] == "recorded"].copy(), data[data["made"] == "live"]
    figure, axes = panels(1, 1, width=6.0, height=2.6)
    axis = axes[0, 0]
    if len(behind):
        behind["epoch"] = behind.groupby(["series", "step"], observed=True)["epoch"].transform("mean")
        sns.lineplot(behind, estimator="mean", errorbar=("pi", 100), err_kws={"alpha": 0.2, "linewidth": 0},
                     linewidth=0, legend=False, ax=axis, **options)  # fmt: skip
    sns.lineplot(data, units="seed", estimator=None, style="series", style_order=apart["hue_order"], ax=axis,
                 dashes=apart["dashes"], markers=apart["markers"], markersize=4, **options)  # fmt: skip
    if level:
        axis.axhline(level[1], color="black", linestyle="--", linewidth=1.2, label=level[0])
    axis.set(xlabel="epoch", ylabel="validation accuracy (%)", ylim=(0, 102))
    handles, labels = axis.get_legend_handles_labels()
    ranges = {*behind["series"]} - {*data["series"]}  # of series without a line
    patches = {name: Patch(color=apart["palette"][name], alpha=0.2) for name in ranges}
    shown = [patches.get(label, handle) for handle, label in zip(handles, labels)]
    axis.get_legend().remove()
    above(figure, shown, labels)
    ends = data.sort_values("epoch").groupby(["series", "seed"], observed=True)["accuracy"].last()
    told = [f"{name} ends at {mean:.1f} %" for name, mean in ends.groupby("series", observed=True).mean().items()]
    said = told + ([f"{level[0]}: {level[1]:.1f} %"] if level else [])
    numbers = data[[*dict.fromkeys(["method", hue, "seed", "epoch", "accuracy"])]]
    return Shown(figure, numbers, f"{'; '.join(said)}.")
