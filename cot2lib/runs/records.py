"""Records: one table of runs and one of learning curves, the same from the local store and as shipped.

Shipped records are package data, `cot2lib/study/records/<chapter>.<profile>.*`: `runs.csv`, `curves.csv.gz` and,
for runs whose trained weights later chapters start from, `weights.safetensors`. `manifest.json` holds
their checksums, so a truncated or foreign file is named and never half read; every row is checked
against its own spec.
"""

import gzip
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from torch import Tensor

from cot2lib.errors import RecordError
from cot2lib.kit import paths
from cot2lib.kit.files import load_tensors, save_tensors, write_atomic
from cot2lib.runs import store
from cot2lib.specs import from_data, to_data

MANIFEST = "manifest.json"
LAST = 10  # evaluations in the closing mean
DECIMALS = 5  # of losses and entropies in the curves
MEASURES = ("inputs_a", "inputs_b", "last", "closing_mean", "best", "curve_mean", "split_half", "first_losses")

Tables = tuple[pd.DataFrame, pd.DataFrame]
EMPTY = pd.DataFrame({"id": pd.Series(dtype=str)})


# From finished stacks


def stored() -> Tables:
    """All rows and curves of the local store; raises as `cot2lib.runs.store.finished`."""
    return join(_stack_tables(*file) for file in store.finished_files())


@lru_cache(maxsize=4096)
def _stack_tables(path: Path, changed: int) -> Tables:
    """Rows and curves of a finished stack, made once per change of its file."""
    stack = store.read(path, changed)
    try:
        curves = [_run_curve(stack, place) for place in range(len(stack.specs))]
        rows = [_run_row(stack, place, curve) for place, curve in enumerate(curves)]
        return pd.DataFrame(rows), pd.concat(curves, ignore_index=True)
    except (LookupError, TypeError, ValueError) as error:
        raise RecordError(f"{path} holds no results of its runs ({error!r}); delete it.") from error


def _run_curve(stack: store.StackFile, place: int) -> pd.DataFrame:
    at = lambda value: value[place] if isinstance(value, list) else value
    points = [{name: at(value) for name, value in point.items()} for point in stack.progress.curves]
    curve = pd.DataFrame(points).round(DECIMALS)
    curve.insert(0, "id", stack.specs[place].id)
    return curve


def _run_row(stack: store.StackFile, place: int, curve: pd.DataFrame) -> dict:
    spec, progress = stack.specs[place], stack.progress
    return {
        "id": spec.id,
        "spec": json.dumps(to_data(spec), sort_keys=True),
        **accuracies(curve, *stack.held_out[place]),
        "first_losses": json.dumps(progress.first_losses[place]),
        "seconds": round(progress.seconds / len(stack.specs), 3),
        "stacked": len(stack.specs),
        **stack.provenance,
    }


def accuracies(curve: pd.DataFrame, inputs_a: int, inputs_b: int) -> dict[str, float | int]:
    """Closing and selected validation accuracies, as shares, of one run.

    `best` picks the evaluation on the inputs it reports; for `split_half` see there.
    """
    a, b = curve["correct_a"].to_numpy(), curve["correct_b"].to_numpy()
    total = (a + b) / (inputs_a + inputs_b)
    return {
        "inputs_a": inputs_a,
        "inputs_b": inputs_b,
        "last": float(total[-1]),
        "closing_mean": float(total[-LAST:].mean()),
        "best": float(total.max()),
        "best_step": int(curve["step"].iloc[total.argmax()]),
        "curve_mean": float(total.mean()),
        "split_half": split_half(a, b) / (inputs_a + inputs_b),
    }


def split_half(a: np.ndarray, b: np.ndarray) -> float:
    """Right answers where each half of the validation classes is reported at the epoch that is best on the other.

    Tied epochs count alike. `a` and `b`: right answers in the two halves at every evaluation.
    """
    return float(b[a == a.max()].mean() + a[b == b.max()].mean())


# Shipped files


def shipped(folder: Path | None = None) -> Tables:
    """All shipped rows and curves.

    Raises:
        RecordError: naming a file that is missing, truncated or foreign.
    """
    folder = folder or paths.RECORDS
    return _shipped(folder, tuple(sorted(manifest(folder).items())))


@lru_cache(maxsize=4)
def _shipped(folder: Path, listed: tuple[tuple[str, str], ...]) -> Tables:
    names = [name for name, _ in listed]
    rows = [_read_runs(folder, name) for name in names if name.endswith(".runs.csv")]
    curves = [_read_curves(folder, name) for name in names if name.endswith(".curves.csv.gz")]
    if not rows:
        return EMPTY, EMPTY
    tables = pd.concat(rows, ignore_index=True), pd.concat(curves or [EMPTY], ignore_index=True)
    if lost := set(tables[0]["id"]) - set(tables[1]["id"]):
        raise RecordError(f"{folder} holds no curve of run {min(lost)}; put its files back or collect them again.")
    return _reselected(*tables)


def _reselected(rows: pd.DataFrame, curves: pd.DataFrame) -> Tables:
    """The tables with `split_half` computed anew: rows collected before 22 November 2026 took the first tied epoch."""
    halves = [(run, part.to_numpy()) for run, part in curves.groupby("id")[["correct_a", "correct_b"]]]
    right = {run: split_half(*part.T) for run, part in halves}
    return rows.assign(split_half=rows["id"].map(right) / (rows["inputs_a"] + rows["inputs_b"])), curves


def shipped_ids(stem: str, folder: Path) -> set[str]:
    """Runs that a folder ships for one chapter and profile (`stem`)."""
    name = f"{stem}.runs.csv"
    return set(_read_runs(folder, name)["id"]) if name in manifest(folder) else set()


def shipped_weights(run_id: str, folder: Path | None = None) -> dict[str, Tensor] | None:
    """Trained parameters of a run whose weights are shipped, else None."""
    folder = folder or paths.RECORDS
    for name in sorted(manifest(folder)):
        if name.endswith(".weights.safetensors"):
            _checked(folder, name)
            tensors, meta = load_tensors(folder / name, f"{run_id}.")
            if run_id in meta.get("runs", ()):
                return tensors
    return None


def shipped_table(name: str, folder: Path | None = None) -> pd.DataFrame | None:
    """The table `<name>.csv` that `ship_table` wrote, or None; raises RecordError if it is not as it was shipped."""
    folder, file = folder or paths.RECORDS, f"{name}.csv"
    checksum = manifest(folder).get(file)
    return None if checksum is None else _shipped_table(folder, file, checksum)


@lru_cache(maxsize=16)
def _shipped_table(folder: Path, name: str, checksum: str) -> pd.DataFrame:
    return _table(folder, name, lambda content: content)


def ship_table(name: str, table: pd.DataFrame, folder: Path | None = None) -> Path:
    """Write what was measured on shipped models as `<name>.csv`, replacing what was there."""
    return _write({f"{name}.csv": lambda path: path.write_bytes(_csv(table))}, folder or paths.RECORDS)[0]


def manifest(folder: Path) -> dict[str, str]:
    """Checksums of the shipped files by name; empty if nothing is shipped."""
    path = folder / MANIFEST
    if not path.exists():
        return {}
    try:
        listed = json.loads(path.read_text())
    except ValueError as error:
        raise RecordError(f"{path} is not valid JSON; put it back from git.") from error
    if not isinstance(listed, dict) or not all(isinstance(checksum, str) for checksum in listed.values()):
        raise RecordError(f"{path} is not a list of checksums that `cot2 collect` wrote; put it back from git.")
    return listed


def ship(
    stem: str,
    tables: Tables,
    weights: Mapping[str, Mapping[str, Tensor]],
    folder: Path | None = None,
) -> list[Path]:
    """Write the records of one chapter and profile (`stem`), replacing what was there."""
    folder = folder or paths.RECORDS
    rows, curves = tables
    files = {
        f"{stem}.runs.csv": lambda path: path.write_bytes(_csv(rows)),
        f"{stem}.curves.csv.gz": lambda path: path.write_bytes(gzip.compress(_csv(curves), mtime=0)),
    }
    if weights:
        tensors = {f"{run}.{name}": value for run, part in weights.items() for name, value in part.items()}
        files[f"{stem}.weights.safetensors"] = lambda path: save_tensors(path, tensors, {"runs": sorted(weights)})
    return _write(files, folder, dropped=f"{stem}.")


def _write(files: Mapping[str, Callable[[Path], object]], folder: Path, dropped: str | None = None) -> list[Path]:
    """Write files and their checksums; what the manifest lists under the prefix `dropped` beside them is removed."""
    before = manifest(folder)
    known = {name: sum for name, sum in before.items() if dropped is None or not name.startswith(dropped)}
    for name, write in files.items():
        write_atomic(folder / name, write)
        known[name] = _checksum(folder / name)
    text = json.dumps(known, indent=1, sort_keys=True) + "\n"
    write_atomic(folder / MANIFEST, lambda path: path.write_text(text))
    for name in set(before) - set(known):
        (folder / name).unlink(missing_ok=True)
    return [folder / name for name in files]


def _csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False, lineterminator="\n").encode()


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _checked(folder: Path, name: str) -> bytes:
    """Bytes of a shipped file, if they are the ones that were shipped."""
    path = folder / name
    if not path.exists():
        raise RecordError(f"{path} is missing; put it back from git or run `cot2 collect` again.")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != manifest(folder)[name]:
        raise RecordError(f"{path} is truncated or changed since it was collected; put it back from git.")
    return content


def _read_runs(folder: Path, name: str) -> pd.DataFrame:
    rows = _table(folder, name, lambda content: content)
    if not {"id", "spec", *MEASURES} <= set(rows):
        raise RecordError(f"{folder / name} is not a table of runs that `cot2 collect` wrote.")
    for row in rows.itertuples():
        try:
            known = from_data(json.loads(row.spec)).id
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise RecordError(f"{folder / name}, run {row.id}: {error}") from error
        if known != row.id:
            raise RecordError(f"{folder / name}: run {row.id} was made by another version (its spec is now {known}).")
    return rows


def _read_curves(folder: Path, name: str) -> pd.DataFrame:
    curves = _table(folder, name, gzip.decompress)
    if not {"id", "step"} <= set(curves):
        raise RecordError(f"{folder / name} is not a table of curves that `cot2 collect` wrote.")
    return curves


def _table(folder: Path, name: str, unpack: Callable[[bytes], bytes]) -> pd.DataFrame:
    content = _checked(folder, name)
    try:
        return _read_csv(unpack(content))
    except (OSError, ValueError, EOFError) as error:
        raise RecordError(f"{folder / name} is not a table ({error}); put it back from git.") from error


def _read_csv(content: bytes) -> pd.DataFrame:
    """Parse floats to the bit; pandas before 3.1 has to be asked to."""
    version = tuple(int(part) for part in pd.__version__.split(".")[:2])
    exactly = {} if version >= (3, 1) else {"float_precision": "round_trip"}
    return pd.read_csv(io.BytesIO(content), dtype={"id": str}, **exactly)


def choose(tables: Tables, ids: Iterable[str]) -> Tables:
    """The rows and curves of some runs."""
    return tuple(table[table["id"].isin(set(ids))] for table in tables)


def join(parts: Iterable[Tables]) -> Tables:
    """One pair of tables from several; of runs that occur twice, the first."""
    kept, seen = [], set()
    for rows, curves in parts:
        kept.append(choose((rows, curves), set(rows["id"]) - seen))
        seen |= set(rows["id"])
    filled = [part for part in kept if len(part[0])]
    if not filled:
        return EMPTY, EMPTY
    return tuple(pd.concat(tables, ignore_index=True) for tables in zip(*filled))


def first_losses(row: pd.Series) -> np.ndarray:
    """Training losses of a run's first steps."""
    return np.array(json.loads(row["first_losses"]))
