"""Look up what runs gave: rows, learning curves and trained weights, of shipped records and the local store.

Shipped records come first, for rows, curves and weights alike; with `retrain` only the local store counts.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from functools import cache

import pandas as pd
from jaxtyping import Float
from torch import Tensor

from cot2lib.errors import RecordError, SpecError
from cot2lib.runs import records, store
from cot2lib.specs import Run, from_data


def recorded(specs: Sequence[Run], retrain: bool = False) -> pd.DataFrame:
    """As `run`, for those of the specs that have a shipped record; with `retrain`, a result in the local store."""
    rows = (records.stored() if retrain else records.shipped())[0]
    return described(_in_order(specs, rows))


def tables(specs: Sequence[Run], retrain: bool) -> records.Tables:
    """Rows, in the order of the request, and curves of the known specs; the store is read only if it is needed."""
    wanted = {spec.id for spec in specs}
    tables = records.stored() if retrain else records.shipped()
    if not retrain and not wanted <= set(tables[0]["id"]):
        tables = records.join([tables, records.stored()])
    rows, points = records.choose(tables, wanted)
    return _in_order(specs, rows), points


def _in_order(specs: Sequence[Run], rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of those specs that have one, in the order of the specs."""
    asked = [spec.id for spec in specs]
    rows = rows[rows["id"].isin(asked)].set_index("id")
    return rows.loc[[name for name in asked if name in rows.index]].reset_index()


def curves(specs: Sequence[Run], retrain: bool = False) -> pd.DataFrame:
    """Learning curves of recorded runs: one row per distinct run and evaluation, with the run's main fields.

    Columns besides those: `step`, `epoch`, `loss` (mean since the evaluation before), `accuracy`,
    `entropy_t`. Raises RecordError for specs without a record, SpecError for no specs.
    """
    require_some(specs)
    if left := absent(specs, retrain):
        raise RecordError(absent_message(left))
    rows, points = tables(list(dict.fromkeys(specs)), retrain)
    known = described(rows)
    names = dict.fromkeys(name for spec in specs for name in spec.columns())
    points = points.merge(known[[*names, "id"]], on="id")
    inputs = known.set_index("id").loc[points["id"]]
    points["accuracy"] = (points["correct_a"] + points["correct_b"]) / (inputs["inputs_a"] + inputs["inputs_b"]).values
    points["epoch"] = points["step"] * points["batch"] / inputs["train_inputs"].values
    return points


def by_profile(requests: Mapping[str, Sequence[Run]], retrained: str | None = None) -> records.Tables:
    """Recorded rows and curves of each profile's distinct runs, with a column `profile`; others are left out.

    Args:
        requests: specs by profile.
        retrained: the profile that is read from the local store; the others are read from the shipped records.

    Raises:
        RecordError: if nothing is recorded at all.
        SpecError: if nothing is asked for.
    """
    require_some([spec for specs in requests.values() for spec in specs])
    rows, points = [], []
    for name, specs in requests.items():
        known = recorded(list(dict.fromkeys(specs)), retrain=name == retrained)
        if len(known):
            have = [spec for spec in specs if spec.id in set(known["id"])]
            rows.append(known.assign(profile=name))
            points.append(curves(have, retrain=name == retrained).assign(profile=name))
    if not rows:
        raise RecordError(absent_message([spec for specs in requests.values() for spec in specs]))
    return pd.concat(rows, ignore_index=True), pd.concat(points, ignore_index=True)


def require_some(specs: Sequence[Run]) -> None:
    """Raise SpecError if no runs are asked for."""
    if not specs:
        raise SpecError("no runs were asked for; give at least one seed, dimension and method.")


def absent(specs: Sequence[Run], retrain: bool) -> list[Run]:
    """Distinct runs without a shipped record or a stored result."""
    shipped = set() if retrain else set(records.shipped()[0]["id"])
    left = [spec for spec in dict.fromkeys(specs) if spec.id not in shipped]
    stored = store.finished() if left else {}
    return [spec for spec in left if spec.id not in stored]


def absent_message(missing: Sequence[Run]) -> str:
    """What is missing and how to make it, in one sentence."""
    spec = missing[0]
    others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    where = shlex.join(f"{name}={value}" for name, value in spec.columns().items() if name in spec.telling)
    return (
        f"no record of run {spec.id} ({spec.method}, d={spec.model.d_model}, seed {spec.seed}){others}; "
        f"make it with `cot2 run <chapter> --profile <profile> --where {where}` if `cot2 list` shows its chapter, "
        "or ask with missing='train' (in a chapter: retrain=True)."
    )


def weights(run_id: str, retrain: bool) -> dict[str, Float[Tensor, "..."]] | None:
    """Trained parameters of a run, without the run axis; None where they are neither shipped nor stored."""
    shipped = None if retrain else records.shipped_weights(run_id)
    if shipped is not None:
        return shipped
    stored = store.finished().get(run_id)
    return stored[0].weights(stored[1]) if stored else None


def described(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with the main fields of their specs in front."""
    if rows.empty:
        return rows
    specs = [_spec(text) for text in rows["spec"]]
    main = pd.DataFrame([spec.columns() for spec in specs], index=rows.index)
    train = pd.Series([s.task.size for s in specs], index=rows.index) - rows["inputs_a"] - rows["inputs_b"]
    return pd.concat([main, rows.drop(columns="spec"), train.rename("train_inputs")], axis=1)


@cache
def _spec(text: str) -> Run:
    """A row's spec; many tables hold the same rows."""
    return from_data(json.loads(text))
