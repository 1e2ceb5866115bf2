"""Outcomes of the controls: the experiments of `predictions.csv`, and the other measurements.

A difference pairs two controls by seed, in accuracy after the last epoch, or a run's answers before and after an edit.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from cot2lib import runs
from cot2lib.errors import RecordError
from cot2lib.specs import Run, by_shape
from cot2lib.study import frame, measured
from cot2lib.study.controls import runs as controls
from cot2lib.study.controls.measure import edits
from cot2lib.study.controls.runs import GRAPHS, NUMBERS
from cot2lib.study.predicted import CONTROLS, STEPS, judged, predictions
from cot2lib.study.targets import baselines

Known = Mapping[tuple[Any, str], Sequence[Run]]  # by task, or another part of the key, and control


def experiments(block: str = CONTROLS) -> pd.DataFrame:
    """Return what each experiment of a block of predictions measures, by id: a `column` of the runs of `one` control,
    or of its answers after an `edit` of some `dose` (`lost` is the cost of it); less the same of an `other` control,
    or `against` another edit."""
    file = {CONTROLS: "experiments.csv", STEPS: "steps_experiments.csv"}[block]
    table = pd.read_csv(Path(__file__).with_name(file), keep_default_na=False).set_index("id")
    return table.assign(task=predictions(block).drop_duplicates("id").set_index("id")["task"])


def read(
    seeds: Sequence[int], retrain: bool = False, device: str = "auto", profile: str = "quick"
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return two frames: accuracies (%) of all controls, and answers after edits of their thoughts.

    Both have `told` (the task), `control` and `seed`. Accuracies (`last`) are by each control's own decoder. `lost` is
    the cost of an edit. With `retrain` runs are trained and measured here; RecordError if none of them is recorded.
    """
    known = {place: [run for run in some if run.seed in seeds] for place, some in controls.trained(profile).items()}
    rows = recorded(known, retrain, device)
    edited = answered("edits", edits, controls.thinking, known, profile, retrain)
    own = {run.id: f"decoded by {controls.own_rule(run).label}" for some in known.values() for run in some}
    return decoded(rows, edited[edited["edit"] == edited["id"].map(own)]), edited


def decoded(rows: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Replace accuracies by the right answers of another decoder, where there are any."""
    return rows.assign(last=rows["id"].map(answers.set_index("id")["right"]).fillna(rows["last"]))


def recorded(known: Known, retrain: bool = False, device: str = "auto", by: str = "told") -> pd.DataFrame:
    """Return tidy rows of the recorded runs by key, as `placed` names them; with `retrain` they are trained here.

    RecordError if none of them is recorded.
    """
    asked = [run for some in known.values() for run in some]
    if retrain:
        runs.run(asked, retrain=True, device=device)
    rows = runs.recorded(asked, retrain=retrain)
    if rows.empty:
        raise RecordError("no run of these seeds is recorded; set `retrain = True` to train them here.")
    return placed(frame.tidy(rows), known, by)


def answered(
    name: str, measure: Callable, asked: Callable, known: Known, profile: str = "quick", retrain: bool = False
) -> pd.DataFrame:
    """Return the shipped rows of `cot2 measure NAME`, as `placed` names them, with the cost of each edit (`lost`).

    With `retrain` they are what `measure` makes here of the runs `asked` by profile that are `known`.
    """
    if retrain:
        here = {run for some in known.values() for run in some}
        groups = by_shape([run for run in asked(profile) if run in here])
        found = pd.concat([measure(group, retrain=True) for group in groups], ignore_index=True)
    else:
        found = measured.read(name, profile)
    return placed(found.assign(lost=found["before"] - found["right"]), known)


def placed(rows: pd.DataFrame, known: Known, by: str = "told") -> pd.DataFrame:
    """Add to the rows of some runs their `control`, `seed` and, in the column `by`, the other part of their key."""
    told = [(run.id, *place, run.seed) for place, some in known.items() for run in some]
    named = pd.DataFrame(told, columns=["id", by, "control", "seed"])
    return rows.drop(columns="seed", errors="ignore").merge(named, on="id")


def measures(rows: pd.DataFrame, edited: pd.DataFrame, block: str = CONTROLS) -> dict[str, pd.Series]:
    """Return the measure of each experiment that was run, by seed; `rows` and `edited` are the frames of `read`."""
    found = {}
    for each in experiments(block).itertuples():
        sides = []
        for control, edit in ((each.one, each.edit), (each.other or each.one, each.against or each.edit)):
            part = frame.at(edited, edit=edit, dose=each.dose) if edit else rows
            sides.append(frame.at(part, told=each.task, control=control).set_index("seed")[each.column])
        values = sides[0] - sides[1] if each.other or each.against else sides[0]  # by seed
        found[each.Index] = values.dropna()
    return {name: values for name, values in found.items() if len(values) > 1}


def outcomes(rows: pd.DataFrame, edited: pd.DataFrame, block: str = CONTROLS) -> pd.DataFrame:
    """Return the outcome of each experiment, judged by the predictions (`predicted.judged`).

    RecordError if numbers or graphs have no experiment with two seeds, so that there is no interval.
    """
    values, asked = measures(rows, edited, block), experiments(block)
    if lacking := {NUMBERS, GRAPHS} - {*asked.loc[[*values], "task"]}:
        raise RecordError(
            f"no interval over seeds for {min(lacking)}; give two seeds or more, of 62 to 66 for graphs."
        )
    differences = asked.index[asked["other"].ne("") | asked["against"].ne("") | asked["column"].eq("lost")]
    return judged(values, differences, block)


def by_digits(seeds: Sequence[int]) -> pd.DataFrame:
    """Return final accuracies (%) of the recorded runs of some seeds: `digits`, `control`, `seed`, `last`."""
    asked = controls.grown([seed for seed in controls.FIVE if seed in seeds])
    rows = recorded(asked, by="digits")
    return rows.assign(control=frame.ordered(rows["control"], controls.GROWING))


def by_parity() -> dict[int, float]:
    """Return the accuracy (%) of answering by the parity of the digits' sum alone, for each number of digits.

    The parity of this sum is the parity of the answer; the rule gives the commonest answer of each.
    """
    tasks = {digits: controls.grown()[digits, controls.GROWING[0]][0].task for digits in controls.DIGITS}
    return {digits: baselines(task)["all inputs (%)"].iloc[-1] for digits, task in tasks.items()}
