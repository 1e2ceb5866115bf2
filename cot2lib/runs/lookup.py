"""Look up what runs gave: rows, learning curves and trained weights, of shipped records and the local store.

Shipped records come first, for rows, curves and weights alike; with `retrain` only the local store counts.
"""

from collections.abc import Callable, Container, Mapping, Sequence

import pandas as pd

from cot2lib.errors import RecordError, SpecError
from cot2lib.kit.files import Weight
from cot2lib.runs import records, store
from cot2lib.specs import Run

COMMANDS: list[Callable[[Run], str | None]] = []  # each gives the shell command that trains a run, if it knows one


def recorded(specs: Sequence[Run], retrain: bool = False) -> pd.DataFrame:
    """Rows of `run` for specs that have a shipped record; with `retrain`, a result in the local store."""
    rows = store.tables()[0] if retrain else records.shipped_runs()
    return described(records.in_order(rows, [spec.id for spec in specs]), specs)


def known(specs: Sequence[Run], retrain: bool) -> tuple[pd.DataFrame, list[Run]]:
    """Rows of the known specs, in the order of the request, and the distinct specs that are not known.

    The store is read only if it is needed.
    """
    asked = [spec.id for spec in specs]
    rows = records.EMPTY if retrain else records.in_order(records.shipped_runs(), asked)
    if len(rows) < len(asked):
        rows = records.in_order(records.join([rows, store.tables()[0]]), asked)
    found = set(rows["id"])
    return rows, [spec for spec in dict.fromkeys(specs) if spec.id not in found]


def curves(specs: Sequence[Run], retrain: bool = False) -> pd.DataFrame:
    """Learning curves of recorded runs: one row per distinct run and evaluation, with the run's main fields.

    Columns besides those: `step`, `epoch`, `loss` (mean since the evaluation before), `accuracy`,
    `entropy_t` (of step t, in nats). Raises RecordError for specs without a record, SpecError for no specs.
    """
    require_some(specs)
    specs = list(dict.fromkeys(specs))
    rows, left = known(specs, retrain)
    if left:
        raise RecordError(absent_message(left, retrain))
    return _points(rows, specs, retrain)


def _points(rows: pd.DataFrame, specs: Sequence[Run], retrain: bool) -> pd.DataFrame:
    asked = set(rows["id"])
    points = records.EMPTY if retrain else records.shipped_curves(asked)
    if not asked <= set(points["id"]):
        points = records.join([points, store.tables()[1]])
        points = points[points["id"].isin(asked)]
    told = _told(rows, specs, {*points.columns, "accuracy", "epoch"}).assign(id=rows["id"])
    points = points.merge(told, on="id")
    held_out, train = (inputs.set_axis(rows["id"]) for inputs in _inputs(rows, specs))
    points["accuracy"] = (points["correct_a"] + points["correct_b"]) / points["id"].map(held_out)
    points["epoch"] = points["step"] * points["batch"] / points["id"].map(train)
    return points


def by_profile(requests: Mapping[str, Sequence[Run]], retrained: str | None = None) -> records.Tables:
    """Recorded rows and curves of each profile's distinct runs, with a column `profile`; unrecorded runs are left out.

    The profile `retrained` is read from the local store, the others from the shipped records.
    """
    require_some([spec for specs in requests.values() for spec in specs])
    rows, points = [], []
    for name, specs in requests.items():
        found = recorded(list(dict.fromkeys(specs)), retrain=name == retrained)
        if len(found):
            rows.append(found.assign(profile=name))
            points.append(_points(found, specs, retrain=name == retrained).assign(profile=name))
    if not rows:
        raise RecordError(absent_message([spec for specs in requests.values() for spec in specs]))
    return pd.concat(rows, ignore_index=True), pd.concat(points, ignore_index=True)


def require_some(specs: Sequence[Run]) -> None:
    """Raise SpecError if no runs are asked for, no list of them, or something else."""
    if not isinstance(specs, Sequence):
        raise SpecError(f"{type(specs).__name__}: give a list of runs, say [run].")
    if not specs:
        raise SpecError("no runs were asked for; give at least one seed, dimension and method.")
    for spec in specs:
        if not isinstance(spec, Run):
            raise SpecError(f"{spec!r:.60} is no run; give what cot2lib.spec or cot2lib.grpo returns.")


def absent_message(missing: Sequence[Run], retrain: bool = False, lacks: str = "no record") -> str:
    """Say in one sentence what is missing and how to make it: by a command, if one of `COMMANDS` knows a run."""
    spec = missing[0]
    others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    typed = next(filter(None, (command(spec) for command in COMMANDS)), None)
    made = f"make it with `{typed}{' --retrain' * retrain}`, or ask run or load" if typed else "ask run or load"
    return (
        f"{lacks} of run {spec.id} ({spec.method}, d={spec.model.d_model}, seed {spec.seed}){others}; "
        f"{made} with missing='train', which trains what is missing (in a chapter: retrain=True, which trains all "
        "runs that it draws of its profile, recorded ones too)."
    )


def weights(run_id: str, retrain: bool = False) -> dict[str, Weight] | None:
    """Trained parameters of a run, without the run axis; None where they are neither shipped nor stored."""
    shipped = None if retrain else records.shipped_weights(run_id)
    return store.weights(run_id) if shipped is None else shipped


def described(rows: pd.DataFrame, specs: Sequence[Run]) -> pd.DataFrame:
    """Rows of some of these specs, with the main fields of the specs in front."""
    if rows.empty:
        return rows
    measured = rows.drop(columns="spec").assign(train_inputs=_inputs(rows, specs)[1])
    return pd.concat([_told(rows, specs, measured.columns), measured], axis=1)


def _inputs(rows: pd.DataFrame, specs: Sequence[Run]) -> tuple[pd.Series, pd.Series]:
    """How many inputs each run is evaluated on, and how many it trains on."""
    held_out = rows["inputs_a"] + rows["inputs_b"]
    return held_out, rows["id"].map({spec.id: spec.task.size for spec in specs}) - held_out


def _told(rows: pd.DataFrame, specs: Sequence[Run], measured: Container[str]) -> pd.DataFrame:
    """Columns that the specs of rows say; one named like a measurement gets the prefix `spec_`."""
    known = {spec.id: spec for spec in specs}
    told = pd.DataFrame([known[run_id].columns() for run_id in rows["id"]], index=rows.index)
    return told.rename(columns={name: f"spec_{name}" for name in told if name in measured})
