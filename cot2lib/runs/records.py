"""Shipped records: a folder of tables of runs and learning curves, with a manifest of checksums.

The files are `<stem>.runs.csv`, `<stem>.curves.xz` (`cot2lib.runs.packed`) and, if weights ship,
`<stem>.weights.safetensors`; a stem is `<chapter>.<profile>`. Measurements on them lie beside them as
`<stem>.<what>.csv`, large tables with `.xz`. A file is read if it has the checksum that `manifest.json` lists, so a
truncated or foreign one is named and never half read. Tests check every row against its spec and its curve.

Files are replaced one by one, each whole, and the manifest last. A writer that is killed between them leaves files
that the manifest does not fit: readers name them, and git has the old ones, the local store what makes the new ones.
"""

import hashlib
import io
import json
import lzma
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Int

from cot2lib.errors import RecordError
from cot2lib.kit import paths
from cot2lib.kit.files import Weight, check_finite, load_meta, load_tensors, save_tensors, write_atomic
from cot2lib.runs import packed

MANIFEST = "manifest.json"
RECORD = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+\.(csv|xz|csv\.xz|safetensors)")  # <chapter>.<profile>.<what>.<ending>
LARGE = 2**18  # bytes from which a table of measurements is compressed
RUNS, CURVES, WEIGHTS = PARTS = ("runs.csv", "curves.xz", "weights.safetensors")
SHARES = ("last", "closing_mean", "best", "curve_mean", "split_half")
INPUTS = ["inputs_a", "inputs_b"]

Tables = tuple[pd.DataFrame, pd.DataFrame]
Listed = tuple[tuple[str, str], ...]  # names of files and their checksums
EMPTY = pd.DataFrame({"id": pd.Series(dtype=str)})


# Files


def listed(folder: Path) -> dict[str, str]:
    """Checksums of the shipped files by name; empty if nothing is shipped."""
    path, remedy = folder / MANIFEST, "put it back from git"
    try:
        entries = dict(json.loads(path.read_bytes())) if path.exists() else {}
    except (ValueError, TypeError) as error:
        raise RecordError(f"{path} is not a list of checksums that `cot2 collect` wrote; {remedy}.") from error
    there = os.listdir(folder) if folder.is_dir() else []
    if others := sorted(name for name in there if name not in entries and RECORD.fullmatch(name)):
        raise RecordError(
            f"{folder / others[0]} is not listed by the {MANIFEST} beside it; put the manifest back from git, or move "
            "the file out of this folder."
        )
    return entries


def _content(folder: Path, name: str, checksum: str) -> bytes:
    path = folder / name
    if not path.exists():
        raise RecordError(f"{path} is missing; put it back from git or run `cot2 collect` again.")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != checksum:
        raise RecordError(f"{path} is truncated or changed since it was collected; put it back from git.")
    return content


def _replace(files: Mapping[str, Callable[[Path], object]], folder: Path, owned: Sequence[str] = ()) -> list[Path]:
    """Write files, then the manifest; returns the files written.

    Names that are `owned` by these files as a whole, and not among them, are removed.
    """
    entries = {name: checksum for name, checksum in listed(folder).items() if name not in owned}
    for name, write in files.items():
        write_atomic(folder / name, write)
        entries[name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    for name in set(owned) - set(files):
        (folder / name).unlink(missing_ok=True)
    text = json.dumps(dict(sorted(entries.items())), indent=1) + "\n"
    write_atomic(folder / MANIFEST, lambda path: path.write_text(text))
    return [folder / name for name in files]


def _key(folder: Path | None) -> tuple[Path, Listed]:
    """A folder as it is, the shipped one by default; what is read of it is read once."""
    return (place := folder or paths.records()), tuple(listed(place).items())


# Runs


def shipped(folder: Path | None = None) -> Tables:
    """All shipped rows and curves; of runs that two stems ship, the first."""
    rows = shipped_runs(folder)
    return rows, shipped_curves(rows["id"], folder)


def shipped_runs(folder: Path | None = None) -> pd.DataFrame:
    """All shipped rows; of curves none is read."""
    return _rows(*_key(folder))[0]


def shipped_curves(ids: Iterable[str], folder: Path | None = None) -> pd.DataFrame:
    """Shipped curves of some runs, in the order of the files; of these only those are read that hold one."""
    key = _key(folder)
    homes = _rows(*key)[1]
    asked: dict[str, list[str]] = {}
    for run in homes.keys() & set(ids):
        asked.setdefault(homes[run], []).append(run)
    parts = []
    for stem in sorted(asked):
        curves, places = _curves(stem, *key)
        parts.append(curves.iloc[np.sort(np.concatenate([places[run] for run in asked[stem]]))])
    return pd.concat(parts, ignore_index=True) if parts else EMPTY


@lru_cache(maxsize=4)
def _rows(folder: Path, files: Listed) -> tuple[pd.DataFrame, dict[str, str]]:
    """All rows, and the stem that each run is taken from."""
    tables = {stem: read_runs(stem, folder) for stem in stems(folder)}
    homes = {run: stem for stem in reversed(tables) for run in tables[stem]["id"]}
    return join(tables.values()), homes


@lru_cache(maxsize=64)
def _curves(stem: str, folder: Path, files: Listed) -> tuple[pd.DataFrame, dict[str, Int[np.ndarray, " point"]]]:
    """The points of a stem's runs, and which are those of each."""
    curves = packed.unpack(_content(folder, f"{stem}.{CURVES}", dict(files)[f"{stem}.{CURVES}"]))
    return curves, curves.groupby("id").indices


def stems(folder: Path) -> list[str]:
    """Which chapters and profiles a folder ships runs of."""
    return [name.removesuffix(f".{RUNS}") for name in sorted(listed(folder)) if name.endswith(f".{RUNS}")]


def read_runs(stem: str, folder: Path) -> pd.DataFrame:
    """The rows of a stem; none if it is not shipped."""
    checksum = listed(folder).get(f"{stem}.{RUNS}")
    return EMPTY if checksum is None else _read_csv(_content(folder, f"{stem}.{RUNS}", checksum))


def shipped_weights(run_id: str, folder: Path | None = None) -> dict[str, Weight] | None:
    """Trained parameters of a run whose weights are shipped, else None."""
    folder = folder or paths.records()
    for name, checksum in listed(folder).items():
        if name.endswith(f".{WEIGHTS}") and run_id in _weighted(folder / name, checksum):
            tensors, _ = load_tensors(folder / name, f"{run_id}.")
            check_finite(tensors, f"{folder / name}, run {run_id}")
            return tensors
    return None


@lru_cache(maxsize=64)
def _weighted(path: Path, checksum: str) -> frozenset[str]:
    """Runs whose weights a file has, which is checked once."""
    _content(path.parent, path.name, checksum)
    return frozenset(load_meta(path)["runs"])


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
    return _replace(files, folder or paths.records(), [f"{stem}.{part}" for part in PARTS])


# Measurements


def shipped_table(name: str, columns: Sequence[str] = ()) -> pd.DataFrame:
    """The table that `ship_table` wrote, or one of these columns without rows where there is none."""
    folder = paths.records()
    known = listed(folder)
    file = next((file for file in _files(name) if file in known), None)
    return pd.DataFrame(columns=list(columns)) if file is None else _table(folder, file, known[file])


@lru_cache(maxsize=16)
def _table(folder: Path, name: str, checksum: str) -> pd.DataFrame:
    content = _content(folder, name, checksum)
    return _read_csv(lzma.decompress(content) if name.endswith(".xz") else content)


def _files(name: str) -> list[str]:
    return [f"{name}.csv", f"{name}.csv.xz"]


def ship_table(name: str, table: pd.DataFrame, folder: Path | None = None) -> Path:
    """Write what was measured on shipped models as `<name>.csv`, or compressed if it is large, replacing both."""
    content, (file, compressed) = _csv(table), _files(name)
    if len(content) > LARGE:
        file, content = compressed, lzma.compress(content)
    return _replace({file: lambda path: path.write_bytes(content)}, folder or paths.records(), _files(name))[0]


def ship_tensors(name: str, tensors: Mapping[str, Weight], meta: dict, folder: Path | None = None) -> Path:
    """Write tensors that belong to no record of a run as `<name>.safetensors`, replacing what was there."""
    files = {f"{name}.safetensors": lambda path: save_tensors(path, tensors, meta)}
    return _replace(files, folder or paths.records())[0]


def shipped_tensors(name: str, prefix: str) -> tuple[dict[str, Weight], dict, Path]:
    """Those of `<name>.safetensors` that a prefix begins, without it, the file's metadata, and where it lies."""
    file, folder = f"{name}.safetensors", paths.records()
    if file not in (known := listed(folder)):
        raise RecordError(f"{folder} has no {file}; collect it.")
    _content(folder, file, known[file])
    return *load_tensors(folder / file, prefix), folder / file


# Tables


def _csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False, lineterminator="\n").encode()


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
