"""More digits: held-out accuracy of some controls by the number of digits, and of rules that do not search."""

from collections.abc import Sequence

import pandas as pd
import torch

from cot2lib import runs
from cot2lib.errors import RecordError
from cot2lib.study import frame, look, show
from cot2lib.study.controls.outcomes import placed
from cot2lib.study.controls.runs import DIGITS, FIVE, GROWING, grown, name
from cot2lib.study.series import GREY
from cot2lib.study.targets import baselines
from cot2lib.supervision import reachable
from cot2lib.tasks import MNNS

COMMONEST, BY_PARITY = "one answer", "one of each parity"  # the commonest ones


def read(seeds: Sequence[int]) -> pd.DataFrame:
    """Accuracies (%) after the last epoch of the recorded runs of some seeds: `digits`, `control`, `seed`, `last`.

    Raises:
        RecordError: if nothing is recorded of these seeds.
    """
    asked = grown([seed for seed in FIVE if seed in seeds])
    rows = runs.recorded([run for some in asked.values() for run in some])
    if rows.empty:
        raise RecordError(f"no run of more digits is recorded for the seeds {list(seeds)}; choose 62 to 66.")
    rows = placed(frame.tidy(rows), asked, "digits")
    return rows.assign(control=frame.ordered(rows["control"], GROWING))


def rules() -> pd.DataFrame:
    """A row for each number of digits: its sizes, and how often (%) rules are right.

    `states` are those of the last frontier before the answer, on average. `paths` lead there. The parity
    of the digits' sum is the parity of the answer.
    """
    table = []
    for digits in DIGITS:
        task = grown()[digits, GROWING[0]][0].task
        right = dict(zip((COMMONEST, BY_PARITY), baselines(task)["all inputs (%)"]))
        held = {"states": _states(task), "paths": 2 ** (digits - 1)}
        table.append({"digits": digits, "inputs": task.size} | held | right)
    return pd.DataFrame(table)


def _states(task: MNNS) -> float:
    """States of the last frontier before the answer, on average over at most a thousand inputs."""
    rows = torch.arange(0, task.size, 1 + task.size // 1000)
    return reachable(task, task.steps - 1, rows).sum(1).float().mean().item()


def draw(rows: pd.DataFrame, known: pd.DataFrame, finding: str) -> look.Shown:
    """Accuracy by number of digits and control, every seed as a dot; grey bars: the better rule.

    Args:
        rows: the frame of `read`.
        known: that of `rules`.
        finding: what the figure shows.
    """
    named = rows.assign(trained=rows["control"].map(name))
    shown = look.ends(named, "trained", "digits", None, finding=finding, label="held-out accuracy (%)")
    axis = shown.figure.axes[0]
    axis.plot(range(len(known)), known[BY_PARITY], "_", markersize=40, color=GREY, zorder=1)
    axis.set_xlabel("grey bars: answers by parity alone")
    return shown


def table(rows: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracies with their intervals beside the rules, a row for each number of digits."""
    cells = rows.groupby(["digits", "control"], observed=True)["last"].agg(show.mean_of).unstack()
    cells.columns = [name(control) for control in cells]
    known = known.rename(columns={"inputs": "inputs used"})
    return known.merge(cells.reset_index(), on="digits")
