"""What chapters train live: small requests that a reader may change, and their figure."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from cot2lib.errors import SpecError
from cot2lib.specs import RunSpec
from cot2lib.specs.profiles import shortened, spec
from cot2lib.study.figures.style import COLOURS, DASHES, panels
from cot2lib.study.figures.tasks import baselines
from cot2lib.tasks import MNNS
from cot2lib.tasks.mnns import ENUMERABLE

SAMPLED = 20_000  # inputs, where a task has too many to list
FEWEST_CLASSES = 5  # the least of which a split of 80 % holds one out
POINTS = 12  # evaluations of a live run
MARGIN = 10  # points
OTHERS = ("#CC79A7", "#7A7A7A", "#B08D00")  # for budgets that no other figure has


def task(low: int, high: int, length: int) -> MNNS:
    """The task of a live training: every input where they can be listed, else a sample.

    Raises:
        SpecError: if its digits are out of range, or too few kinds of input exist to hold some out.
    """
    size = max(0, high - low + 1) ** max(0, length)
    made = MNNS(low, high, length, inputs=SAMPLED if size > ENUMERABLE else None)
    if int(made.classes.max()) + 1 < FEWEST_CLASSES:
        raise SpecError(
            f"{length} digits of {low}..{high} make fewer than {FEWEST_CLASSES} different multisets, too few to hold "
            "some out; widen the range or take more digits."
        )
    return made


def specs(task: MNNS, profile: str, budgets: Sequence[int], d_model: int, epochs: int, seed: int) -> list[RunSpec]:
    """One shortened run per budget: 1 is discrete CoT, 0 stands for all trajectories; equal ones are trained once.

    Raises:
        SpecError: for a value that cannot be run, or without budgets.
    """
    if not budgets:
        raise SpecError("no live budget was given; give at least one, say [16].")
    options = dict(task=task, d_model=d_model, seed=seed)
    kinds = [("discrete", None) if budget == 1 else ("cot2", budget or None) for budget in budgets]
    made = [shortened(spec(name, profile, budget=b, **options), epochs, POINTS) for name, b in kinds]
    return list(dict.fromkeys(made))


def curves(found: pd.DataFrame) -> Figure:
    """Learning curves of live runs (`cot2lib.runs.run.curves`), a line per budget."""
    figure, axes = panels(1, 1, width=6.0, height=3.2)
    axis = axes[0, 0]
    for place, (budget, run) in enumerate(found.sort_values("step", kind="stable").groupby("budget")):
        look = dict(color=OTHERS[place % len(OTHERS)], linestyle="-")
        if (name := f"B = {budget}") in COLOURS:
            look = dict(color=COLOURS[name], linestyle=DASHES[name])
        label = f"{run['method'].iloc[0]}, {name}"
        axis.plot(run["epoch"], 100 * run["accuracy"], label=label, marker="o", markersize=3, **look)
    axis.set(xlabel="epoch", ylabel="validation accuracy (%)", ylim=(0, 102))
    axis.legend(loc="upper left", frameon=False)
    return figure


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """What live training gave: task, method, budget, dimension, steps, accuracy (%), seconds."""
    chosen = rows[["task", "method", "budget", "d_model", "steps"]].rename(columns={"d_model": "d"})
    return chosen.assign(**{"validation accuracy (%)": 100 * rows["last"], "seconds": rows["seconds"]})


def checks(rows: pd.DataFrame, task: MNNS) -> dict[str, bool]:
    """That the live run of the largest budget learnt more than the parity of the digits' sum tells."""
    rule = float(baselines(task)["all inputs (%)"].max())
    learnt = 100 * rows.loc[rows["budget"].idxmax(), "last"]
    claim = f"the largest live budget is {MARGIN} points above the best rule that does not search"
    return {claim: bool(learnt > rule + MARGIN)}
