"""Move results from the local store into a folder of shipped records, whole runs at a time."""

from collections.abc import Callable, Container, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from cot2lib.errors import RecordError, SpecError
from cot2lib.kit import paths
from cot2lib.kit.files import Weight
from cot2lib.kit.frozen import outsiders
from cot2lib.runs import records, store
from cot2lib.specs import Run

Origin = tuple[records.Tables, Callable[[str], dict[str, Weight] | None]]  # rows and curves, weights of a run


def collect(
    stem: str,
    specs: Sequence[Run],
    *,
    with_weights: Container[Run] = (),
    sources: Sequence[Path] = (),
    folder: Path | None = None,
    replace: bool = False,
    half: bool = False,
) -> list[Path]:
    """Merge what is shipped, `sources` (stores, or folders that `collect` wrote) and the local store.

    A run comes whole from the first of them that has it: its row, its curve and its weights are of one training. What
    was shipped under `stem` is replaced. Returns the files written, and prints how many runs went, lack weights or
    stayed as they were, though others are there.

    Args:
        stem: what the records are called, `<chapter>.<profile>`.
        specs: the runs, in the order of the table; those that are not finished are left out.
        with_weights: runs whose weights ship too.
        folder: where to write, the package's records by default.
        replace: take what is shipped last, not first.
        half: ship weights in half precision, for models that would weigh too much.
    """
    if foreign := [kind.__name__ for spec in specs for kind in outsiders(spec)]:
        raise SpecError(f"{foreign[0]} is defined outside the package: runs with it stay in the local store.")
    folder = folder or paths.records()
    origins = [_records(folder), *map(_source, sources), _store(paths.store())]
    origins = origins[1:] + origins[:1] if replace else origins
    home: dict[str, Origin] = {}
    for origin in origins:
        for run_id in origin[0][0]["id"]:
            home.setdefault(run_id, origin)
    chosen = [spec for spec in specs if spec.id in home]
    if not chosen:
        raise RecordError(f"nothing to collect: no finished run of {stem} is in {paths.store()}.")
    found = {spec.id: home[spec.id][1](spec.id) for spec in chosen if spec in with_weights}
    weights = {run_id: part for run_id, part in found.items() if part}
    if half:
        weights = {run_id: {name: value.half() for name, value in part.items()} for run_id, part in weights.items()}
    ids = [spec.id for spec in chosen]
    dropped = set(records.read_runs(stem, folder)["id"]) - {spec.id for spec in specs}
    if dropped:
        print(f"{len(dropped)} runs dropped from the records: no longer in the sweep of {stem}")
    if len(weights) < len(found):
        print(f"{len(found) - len(weights)} runs without weights where they come from (--replace prefers the store)")
    joined = map(records.join, zip(*(tables for tables, _ in origins)))
    rows, curves = (table.set_index("id").loc[ids].reset_index() for table in joined)
    made = pd.concat([tables[0] for tables, _ in origins]).drop_duplicates(["id", "commit", "date"])
    shipped = {run_id for run_id in ids if home[run_id] is origins[0]}
    if not replace and (out := made["id"].isin(shipped).sum() - len(shipped)):
        print(f"{out} other results left out of runs that are shipped (--replace prefers them)")
    return records.ship(stem, (rows, curves), weights, folder)


def _records(folder: Path) -> Origin:
    return records.shipped(folder), partial(records.shipped_weights, folder=folder)


def _store(folder: Path) -> Origin:
    return store.tables(folder), partial(store.weights, folder=folder)


def _source(folder: Path) -> Origin:
    if (folder / records.MANIFEST).is_file():
        return _records(folder)
    if any(folder.glob("*.safetensors")):
        return _store(folder)
    raise RecordError(
        f"{folder} holds no {records.MANIFEST} and no finished stack; name a folder that `cot2 collect --out` wrote, "
        "or a store."
    )
