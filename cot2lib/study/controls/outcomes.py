"""Outcomes of the experiments that `predictions.csv` predicts, by seed, and which explanations they fit.

A difference pairs two controls by seed, in accuracy after the last epoch, or a run's answers before and after an edit.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from cot2lib import runs
from cot2lib.errors import RecordError
from cot2lib.metrics import Interval, by_seed, holm, mean_interval
from cot2lib.specs import Run, by_shape
from cot2lib.study import frame, measured
from cot2lib.study.controls import edits
from cot2lib.study.controls.predicted import EXPLANATIONS, predictions
from cot2lib.study.controls.runs import GRAPHS, NUMBERS, has_thoughts, own_rule, trained
from cot2lib.thoughts import Base

HIT, MISS, OPEN, UNRUN = "yes", "no", "open", "not run"
Known = Mapping[tuple[str, str], Sequence[Run]]  # runs by task and control
SUFFICIENT, COMPETITOR, COSTS = 80.0, 25.0, 50.0  # thresholds of SCIT (Ding, Huang and Yang, arXiv:2608.27265), in %


class Gap(NamedTuple):
    """Accuracy of one control above another's."""

    task: str
    above: str
    below: str


class Answered(NamedTuple):
    """A column of an edit's answers, or with `lost` what the edit costs."""

    task: str
    control: str
    edit: str
    column: str = "lost"
    dose: float = 1.0


EXPERIMENTS: Mapping[str, Gap | Answered] = {
    "gap": Gap(NUMBERS, "csft", "fresh-path"),
    "labels-alone": Gap(NUMBERS, "path-fed", "fresh-path"),
    "feed-alone": Gap(NUMBERS, "csft", "path-fed"),
    "drawn-label": Gap(NUMBERS, "csft", "drawn-label"),
    "paths-fed": Gap(NUMBERS, "paths-fed", "path-fed"),
    "other-step": Gap(NUMBERS, "csft", "other-step"),
    "renamed": Gap(NUMBERS, "csft", "renamed"),
    "other-input": Gap(NUMBERS, "csft", "other-input"),
    "wrong-states": Gap(NUMBERS, "csft", "wrong-states"),
    "nothing-fed": Gap(NUMBERS, "csft", "nothing-fed"),
    "deep-nothing-fed": Gap(NUMBERS, "csft", "deep-nothing-fed"),
    "smoothed-path": Gap(NUMBERS, "smoothed-path", "discrete"),
    "swap": Answered(NUMBERS, "csft", "swap", "follows"),
    "swap-fresh-path": Answered(NUMBERS, "fresh-path", "swap", "follows"),
    "removed": Answered(NUMBERS, "csft", "ancestors", "right"),
    "removed-half": Answered(NUMBERS, "csft", "ancestors", "right", 0.5),
    "elsewhere": Answered(NUMBERS, "csft", "elsewhere"),
    "inserted-quarter": Answered(NUMBERS, "csft", "inserted", "follows", 1 / 4),
    "inserted-little": Answered(NUMBERS, "csft", "inserted", "follows", 1 / 32),
    "mean-thought": Answered(NUMBERS, "csft", "mean"),
    "noise": Answered(NUMBERS, "csft", "noise"),
    "control-bites": Answered(NUMBERS, "fresh-path", "ancestors"),
    "early-digit": Answered(NUMBERS, "csft", "early digit", "follows"),
    "late-digit": Answered(NUMBERS, "csft", "late digit", "follows"),
    "own-teacher": Gap(NUMBERS, "own-teacher", "discrete"),
    "lengths": Gap(NUMBERS, "lengths", "lengths-fresh-path"),
    "longer": Answered(NUMBERS, "csft", "longer", "right"),
    "graph-gap": Gap(GRAPHS, "csft", "fresh-path"),
    "graph-feed-alone": Gap(GRAPHS, "csft", "path-fed"),
    "graph-other-input": Gap(GRAPHS, "csft", "other-input"),
    "graph-nothing-fed": Gap(GRAPHS, "csft", "nothing-fed"),
    "graph-removed": Answered(GRAPHS, "csft", "ancestors", "right"),
    "graph-elsewhere": Answered(GRAPHS, "csft", "elsewhere"),
}


def read(
    seeds: Sequence[int], retrain: bool = False, device: str = "auto", profile: str = "quick"
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two frames of runs of some seeds: accuracies of all controls (%), and answers after edits of their thoughts.

    Both have `told` (the task), `control` and `seed`. Accuracies (`last`) are by each control's own decoder. `lost` is
    what an edit costs.

    Args:
        seeds: of the runs.
        retrain: whether to train and measure the runs here, instead of reading the shipped records.
        device: of the trainings.
        profile: the recipe.

    Raises:
        RecordError: if nothing is recorded of these runs.
    """
    known = trained(profile)
    asked = [run for some in known.values() for run in some if run.seed in seeds]
    if retrain:
        runs.run(asked, retrain=True, device=device)
    rows = placed(frame.tidy(runs.recorded(asked, retrain=retrain)), known)
    edited = placed(_measured(asked) if retrain else measured.read("edits", profile), known)
    edited = edited[edited["seed"].isin(seeds)]
    if rows.empty or edited.empty:
        raise RecordError("no control of these seeds is recorded; set `retrain = True` to train them here.")
    return _by_own_decoder(rows, edited, known), edited.assign(lost=edited["before"] - edited["right"])


def _by_own_decoder(rows: pd.DataFrame, edited: pd.DataFrame, known: Known) -> pd.DataFrame:
    """Accuracies where a control is judged by another rule than that which its run was evaluated by."""
    own = {run.id: f"decoded by {own_rule(run).label}" for some in known.values() for run in some}
    return _decoded(rows, edited[edited["edit"] == edited["id"].map(own)])


def by_mixtures(rows: pd.DataFrame, edited: pd.DataFrame) -> pd.DataFrame:
    """The first frame of `read`, but every control that thinks feeds itself mixtures, whatever it was fed."""
    return _decoded(rows, frame.at(edited, edit=f"decoded by {Base().label}"))


def _decoded(rows: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Accuracies with those of a decoder's answers, where it has any."""
    return rows.assign(last=rows["id"].map(answers.set_index("id")["right"]).fillna(rows["last"]))


def _measured(asked: Sequence[Run]) -> pd.DataFrame:
    """Answers of trained runs after edits, of those that have thoughts."""
    groups = by_shape([run for run in asked if has_thoughts(run)])
    return pd.concat([edits.measure(group, retrain=True) for group in groups], ignore_index=True)


def placed(rows: pd.DataFrame, known: Mapping[tuple[Any, str], Sequence[Run]], by: str = "told") -> pd.DataFrame:
    """The rows of some runs with their `control`, `seed` and, in the column `by`, what they are known by besides."""
    told = [(run.id, *place, run.seed) for place, some in known.items() for run in some]
    named = pd.DataFrame(told, columns=["id", by, "control", "seed"])
    return rows.drop(columns="seed", errors="ignore").merge(named, on="id")


def measures(rows: pd.DataFrame, edited: pd.DataFrame) -> dict[str, pd.Series]:
    """The measure of each experiment by seed, of those that were run.

    Args:
        rows, edited: the frames of `read`.
    """
    found = {name: _of(experiment, rows, edited) for name, experiment in EXPERIMENTS.items()}
    return {name: values for name, values in found.items() if len(values) > 1}


def _of(experiment: Gap | Answered, rows: pd.DataFrame, edited: pd.DataFrame) -> pd.Series:
    if isinstance(experiment, Gap):
        sides = [_accuracy(rows, experiment.task, name) for name in (experiment.above, experiment.below)]
        above, below = by_seed(*sides) if all(map(len, sides)) else sides
        return (above - below).dropna()
    asked = dict(told=experiment.task, control=experiment.control, edit=experiment.edit, dose=experiment.dose)
    return frame.at(edited, **asked).set_index("seed")[experiment.column].dropna()


def _accuracy(rows: pd.DataFrame, task: str, control: str) -> pd.Series:
    return frame.at(rows, told=task, control=control).set_index("seed")["last"]


def outcomes(rows: pd.DataFrame, edited: pd.DataFrame) -> pd.DataFrame:
    """A row for each experiment: its outcome (`mean`, `low`, `high`, `n`), and whether each explanation was right.

    An explanation is right (`HIT`) if the whole interval lies where it said, wrong (`MISS`) if none of it does, and
    `OPEN` else. `sure` is Holm's test over all differences that one is not 0.

    Raises:
        RecordError: if numbers or graphs have no experiment with two seeds, so that there is no interval.
    """
    values = measures(rows, edited)
    if lacking := {NUMBERS, GRAPHS} - {EXPERIMENTS[name].task for name in values}:
        raise RecordError(
            f"no interval over seeds for {min(lacking)}; give two seeds or more, of 62 to 66 for graphs."
        )
    differences = [name for name in values if _differs(name)]
    sure = dict(zip(differences, holm([values[name] for name in differences])))
    table = []
    for name, said in predictions().groupby("id", sort=False):
        told = said.iloc[0][["id", "task", "experiment", "measure", "counts"]].to_dict()
        found = mean_interval(values[name]) if name in values else None
        ends = {} if found is None else dict(mean=found.mean, low=found.low, high=found.high, n=found.n)
        got = {row.explanation: fits(found, row.low, row.high) for row in said.itertuples()}
        table.append(told | ends | {"sure": sure.get(name)} | got)
    return pd.DataFrame(table)


def _differs(name: str) -> bool:
    experiment = EXPERIMENTS[name]
    return isinstance(experiment, Gap) or experiment.column == "lost"


def fits(found: Interval | None, low: float, high: float) -> str:
    """Whether an interval lies where an explanation said."""
    if found is None:
        return UNRUN
    if low <= found.low and found.high <= high:
        return HIT
    return MISS if found.high < low or high < found.low else OPEN


def score(table: pd.DataFrame) -> pd.DataFrame:
    """How many predictions of each explanation held, failed or stayed open, where they are not all alike."""
    said = predictions().groupby("id").agg({"low": "nunique", "high": "nunique"})
    apart = table[table["id"].isin(said.index[said.max(axis=1) > 1])]
    kinds = (HIT, MISS, OPEN)
    return pd.DataFrame({kind: (apart[[*EXPLANATIONS]] == kind).sum() for kind in kinds}).rename_axis("explanation")


def called(edited: pd.DataFrame) -> pd.DataFrame:
    """Whether the last thought of each control on numbers is read, by the thresholds of SCIT; means over seeds (%).

    It is `read` if another input's thought is followed often enough and the own answer is given seldom enough, and
    noise of the same norm costs enough. It is `not read` if the own answer stays as often as following would have to
    be. Else there is no call.
    """
    told = frame.at(edited, told=NUMBERS)
    swap = frame.at(told, edit="swap").groupby("control", sort=False)[["follows", "right"]].mean()
    costs = frame.at(told, edit="noise").groupby("control", sort=False)["lost"].mean()
    table = swap.rename(columns={"right": "own answer"}).join(costs.rename("noise costs"))
    return table.assign(call=[_call(*row) for row in table.itertuples(index=False)])


def _call(follows: float, own: float, costs: float) -> str:
    if follows >= SUFFICIENT and own <= COMPETITOR and costs >= COSTS:
        return "read"
    return "not read" if own >= SUFFICIENT else "no call"
