"""Shipped records: one table of runs and one of learning curves, as `cot2lib.runs.finished` makes them.

They are a folder of files `<stem>.runs.csv`, `<stem>.curves.xz` (`cot2lib.runs.packed`) and, if weights
ship, `<stem>.weights.safetensors`; a stem is `<chapter>.<profile>`. Measurements on them lie beside them as
`<stem>.<what>.csv`, large tables with `.xz`. `manifest.json` holds their checksums (`cot2lib.runs.manifest`), so a
truncated or foreign file is named and never half read. Tests check every row against its spec and its curve.
"""

import io
import json
import lzma
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Int, Shaped

from cot2lib.errors import RecordError, brief
from cot2lib.kit import paths
from cot2lib.kit.files import Weight, check_finite, load_tensors, save_tensors
from cot2lib.runs import manifest, packed

LARGE = 2**18  # bytes from which a table of measurements is compressed
RUNS, CURVES, WEIGHTS = PARTS = ("runs.csv", "curves.xz", "weights.safetensors")
SHARES = ("last", "closing_mean", "best", "curve_mean", "split_half")
INPUTS = ["inputs_a", "inputs_b"]
MEASURES = (*INPUTS, *SHARES, "first_losses")

Tables = tuple[pd.DataFrame, pd.DataFrame]
EMPTY = pd.DataFrame({"id": pd.Series(dtype=str)})


def shipped(folder: Path | None = None) -> Tables:
    """All shipped rows and curves; of runs that two stems ship, the first."""
    rows = shipped_runs(folder)
    return rows, shipped_curves(rows["id"], folder)


def shipped_runs(folder: Path | None = None) -> pd.DataFrame:
    """All shipped rows; raises as `shipped`, but of curves none is read."""
    return _shipped(*_key(folder)).rows


def shipped_curves(ids: Iterable[str], folder: Path | None = None) -> pd.DataFrame:
    """Shipped curves of some runs, in the order of the files; raises as `shipped`, of the files that hold them."""
    place, listed = _key(folder)
    homes = _shipped(place, listed).homes
    asked: dict[str, list[str]] = {}
    for run in homes.keys() & set(ids):
        asked.setdefault(homes[run], []).append(run)
    parts = [_curves_of(stem, asked[stem], place, listed) for stem in sorted(asked)]
    return pd.concat(parts, ignore_index=True) if parts else EMPTY


def _key(folder: Path | None) -> tuple[Path, tuple[tuple[str, str], ...]]:
    return (place := folder or paths.records()), tuple(sorted(manifest.listed(place).items()))


class _Shipped(NamedTuple):
    """The tables of runs of a folder.

    Attributes:
        tables: by stem.
        rows: all of them; of runs that two stems ship, the first.
        homes: the stem that each run is taken from.
    """

    tables: dict[str, pd.DataFrame]
    rows: pd.DataFrame
    homes: dict[str, str]


@lru_cache(maxsize=4)
def _shipped(folder: Path, listed: tuple[tuple[str, str], ...]) -> _Shipped:
    tables = {stem: _read_runs(folder, f"{stem}.{RUNS}") for stem in stems(folder)}
    homes = {run: stem for stem in reversed(tables) for run in tables[stem]["id"]}
    return _Shipped(tables, join(tables.values()), homes)


def _curves_of(stem: str, runs: Sequence[str], folder: Path, listed: tuple[tuple[str, str], ...]) -> pd.DataFrame:
    curves, places = _shipped_points(stem, folder, listed)
    found = sorted(places[run] for run in runs)
    return curves.iloc[np.concatenate([np.arange(*ends) for ends in found])]


@lru_cache(maxsize=64)
def _shipped_points(
    stem: str, folder: Path, listed: tuple[tuple[str, str], ...]
) -> tuple[pd.DataFrame, dict[str, tuple[int, int]]]:
    curves = _stem_curves(stem, folder)
    ids = curves["id"].to_numpy()
    first = _first(ids).tolist()
    return curves, dict(zip(ids[first], zip(first, [*first[1:], len(ids)])))


def _first(ids: Shaped[np.ndarray, " point"]) -> Int[np.ndarray, " run"]:
    """Where each run's points begin; they follow each other."""
    return np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]][: len(ids)])


def stems(folder: Path) -> list[str]:
    """Which chapters and profiles a folder ships runs of."""
    names = sorted(manifest.listed(folder))
    return [name.removesuffix(f".{RUNS}") for name in names if name.endswith(f".{RUNS}")]


def _stem_curves(stem: str, folder: Path) -> pd.DataFrame:
    name = f"{stem}.{CURVES}"
    return _table(folder, name, packed.unpack) if name in manifest.listed(folder) else EMPTY


def ids_of(stem: str, folder: Path) -> set[str]:
    tables = _shipped(*_key(folder)).tables
    return set(tables[stem]["id"]) if stem in tables else set()


def shipped_weights(run_id: str, folder: Path | None = None) -> dict[str, Weight] | None:
    """Trained parameters of a run whose weights are shipped, else None."""
    folder = folder or paths.records()
    for name in (f"{stem}.{WEIGHTS}" for stem in stems(folder)):
        if name in manifest.listed(folder):
            path, _ = manifest.content(folder, name)
            tensors, meta = load_tensors(path, f"{run_id}.")
            if run_id in meta.get("runs", ()):
                check_finite(tensors, f"{path}, run {run_id}")
                return tensors
    return None


def shipped_table(name: str) -> pd.DataFrame | None:
    """The table that `ship_table` wrote, or None; raises RecordError if it is not as it was shipped."""
    folder = paths.records()
    known = manifest.listed(folder)
    file = next((file for file in _files(name) if file in known), None)
    return None if file is None else _shipped_table(folder, file, known[file])


def shipped_rows(name: str, columns: Sequence[str]) -> pd.DataFrame:
    """`shipped_table`, or a table of these columns without rows where there is none."""
    table = shipped_table(name)
    return pd.DataFrame(columns=list(columns)) if table is None else table


@lru_cache(maxsize=16)
def _shipped_table(folder: Path, name: str, checksum: str) -> pd.DataFrame:
    return _table(folder, name)


def _files(name: str) -> list[str]:
    return [f"{name}.csv", f"{name}.csv.xz"]


def ship_table(name: str, table: pd.DataFrame, folder: Path | None = None) -> Path:
    """Write what was measured on shipped models as `<name>.csv`, or compressed if it is large, replacing both."""
    content, (file, packed) = _csv(table), _files(name)
    if len(content) > LARGE:
        file, content = packed, lzma.compress(content)
    return manifest.replace({file: lambda path: path.write_bytes(content)}, folder or paths.records(), _files(name))[0]


def ship_tensors(name: str, tensors: Mapping[str, Weight], meta: dict, folder: Path | None = None) -> Path:
    """Write tensors that belong to no record of a run as `<name>.safetensors`, replacing what was there."""
    files = {f"{name}.safetensors": lambda path: save_tensors(path, tensors, meta)}
    return manifest.replace(files, folder or paths.records())[0]


def shipped_tensors(name: str, prefix: str) -> tuple[dict[str, Weight], dict, Path]:
    """Those of `<name>.safetensors` that a prefix begins, without it, the file's metadata, and where it lies."""
    file = f"{name}.safetensors"
    if file not in manifest.listed(paths.records()):
        raise RecordError(f"{paths.records()} has no {file}; collect it.")
    path, _ = manifest.content(paths.records(), file)
    return *load_tensors(path, prefix), path


def ship(
    stem: str, tables: Tables, weights: Mapping[str, Mapping[str, Weight]], folder: Path | None = None
) -> list[Path]:
    """Write the records of one chapter and profile (`stem`), replacing what was there, all at once."""
    rows, curves = tables
    files = {
        f"{stem}.{RUNS}": lambda path: path.write_bytes(_csv(rows)),
        f"{stem}.{CURVES}": lambda path: path.write_bytes(packed.pack(curves)),
    }
    if weights:
        tensors = {f"{run}.{name}": value for run, part in weights.items() for name, value in part.items()}
        files[f"{stem}.{WEIGHTS}"] = lambda path: save_tensors(path, tensors, {"runs": sorted(weights)})
    return manifest.replace(files, folder or paths.records(), [f"{stem}.{part}" for part in PARTS])


def _csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False, lineterminator="\n").encode()


def _read_runs(folder: Path, name: str) -> pd.DataFrame:
    rows = _table(folder, name)
    if not {"id", "spec", *MEASURES} <= set(rows):
        raise RecordError(f"{folder / name} is not a table of runs that `cot2 collect` wrote.")
    return rows


def _table(folder: Path, name: str, read: Callable[[bytes], pd.DataFrame] | None = None) -> pd.DataFrame:
    path, content = manifest.content(folder, name)
    try:
        return read(content) if read else _read_csv(lzma.decompress(content) if name.endswith(".xz") else content)
    except (lzma.LZMAError, ValueError, EOFError) as error:
        raise RecordError(f"{path} is not a table ({brief(error)}); put it back from git.") from error


def _read_csv(content: bytes) -> pd.DataFrame:
    """Parse floats to the bit; pandas before 3.1 has to be asked to."""
    version = tuple(int(part) for part in pd.__version__.split(".")[:2])
    exactly = {} if version >= (3, 1) else {"float_precision": "round_trip"}
    return pd.read_csv(io.BytesIO(content), dtype={"id": str}, **exactly)


def in_order(rows: pd.DataFrame, ids: Sequence[str]) -> pd.DataFrame:
    """The rows of those runs that have one, in the order of `ids`."""
    found = pd.Index(rows["id"]).get_indexer(ids)
    return rows.iloc[found[found >= 0]].reset_index(drop=True)


def join(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """One table from several; of runs that several have, the first."""
    kept: list[pd.DataFrame] = []
    seen: set[str] = set()
    for table in tables:
        kept.append(table[~table["id"].isin(seen)])
        seen |= set(table["id"])
    filled = [part for part in kept if len(part)]
    return pd.concat(filled, ignore_index=True) if filled else EMPTY


def first_losses(row: pd.Series) -> np.ndarray:
    return np.array(json.loads(row["first_losses"]))
