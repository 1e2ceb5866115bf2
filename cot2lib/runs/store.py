"""The local store: a file for every finished training, and one for every training that goes on.

A file holds tensors and, as JSON, what belongs to them; its name is the hash of the ids of its runs. A finished stack
holds the weights of its runs, and their rows and learning curves as they are read. A checkpoint holds AdamW's state
too; the same request finds it again. Files are replaced atomically: a killed worker loses its work since the last
checkpoint and nothing else. `cot2lib.llm.runs` keeps its runs in the same way, in a folder of its own.
"""

import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from cot2lib.errors import RecordError
from cot2lib.kit import paths
from cot2lib.kit.files import Weight, check_finite, load_meta, load_tensors, save_tensors
from cot2lib.runs import packed, records
from cot2lib.runs.records import Tables
from cot2lib.specs import to_data
from cot2lib.training.trainer import Progress, StackTrainer

FORMAT = 3
WEIGHTS, OPTIMIZER = "weights.", "optimizer."  # prefixes of tensors
CHECKPOINT, FINISHED = ".checkpoint.safetensors", ".safetensors"
LAST = 10  # evaluations in the closing mean

Content = tuple[dict[str, Weight], dict]  # tensors, and what belongs to them


def load(path: Path, prefix: str = "") -> Content:
    """Tensors whose names start with a prefix, without it, and what belongs to them."""
    tensors, meta = load_tensors(path, prefix)
    return tensors, _current(path, meta)


def read_meta(path: Path) -> dict:
    """What belongs to the tensors of a file."""
    return _current(path, load_meta(path))


def _current(path: Path, meta: dict) -> dict:
    if meta.get("format") != FORMAT:
        raise RecordError(f"{path} was made by another version of cot2lib; collect it with that one, or move it away.")
    return meta


def pause(spent: float) -> float:
    """Seconds until the next checkpoint, after one that took `spent`: a minute, or more where that takes long."""
    return max(60, 20 * spent)


class Entry:
    """The place of a training in a store, by the ids of its runs."""

    def __init__(self, ids: Iterable[str], folder: Path | None = None):
        name = hashlib.sha256(" ".join(ids).encode()).hexdigest()[:12]
        self.finished, self.checkpoint = ((folder or paths.store()) / (name + end) for end in (FINISHED, CHECKPOINT))
        self.due = time.monotonic() + pause(0)

    def resume(self, restore: Callable[[dict[str, Weight], dict], None]) -> dict:
        """Let `restore` bring a training to where its checkpoint stands; what belongs to it, empty without one."""
        if not self.checkpoint.exists():
            return {}
        tensors, meta = load(self.checkpoint)
        try:
            restore(tensors, meta)
        except (RuntimeError, LookupError, TypeError, ValueError) as error:
            path, what = self.checkpoint, type(error).__name__
            raise RecordError(f"{path} does not fit its runs ({what}); delete it.") from error
        return meta

    def save(self, state: Callable[[], Content]) -> None:
        """Write a checkpoint if it is time for one."""
        if (now := time.monotonic()) >= self.due:
            tensors, meta = state()
            save_tensors(self.checkpoint, tensors, {"format": FORMAT, **meta})
            self.due = time.monotonic() + pause(time.monotonic() - now)

    def finish(self, tensors: dict[str, Weight], meta: dict) -> None:
        save_tensors(self.finished, tensors, {"format": FORMAT, **meta})
        self.checkpoint.unlink(missing_ok=True)


def prepare() -> None:
    """Make the store's folder."""
    try:
        paths.store().mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=paths.store()).close()
    except OSError as error:
        raise RecordError(
            f"the store {paths.store()} cannot be written to ({error.strerror}); set COT2_STORE to a folder that can."
        ) from error


# Stacks in training


def state(trainer: StackTrainer, provenance: dict) -> Content:
    """The content of a checkpoint of a stack."""
    tensors = {WEIGHTS + name: value for name, value in trainer.stack.state_dict().items()}
    tensors |= {OPTIMIZER + name: value for name, value in trainer.optimizer_tensors().items()}
    ids = [spec.id for spec in trainer.asked]
    return tensors, {"ids": ids, "progress": asdict(trainer.progress), "provenance": provenance}


def restore(trainer: StackTrainer, tensors: dict[str, Weight], meta: dict) -> None:
    """Bring a fresh trainer to where its checkpoint stands."""
    if meta["ids"] != [spec.id for spec in trainer.asked]:
        raise ValueError("other runs")
    part = lambda prefix: {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
    trainer.restore(part(WEIGHTS), part(OPTIMIZER), Progress(**meta["progress"]))


# Finished stacks


def results(trainer: StackTrainer, provenance: dict) -> Content:
    """The content of a finished stack: weights of every run, its rows and its curves."""
    rows, curves, progress = [], [], trainer.progress
    for place, (spec, model) in enumerate(zip(trainer.asked, trainer.model_of)):
        at = lambda value, place=place: value[place] if isinstance(value, list) else value
        curve = pd.DataFrame([{name: at(value) for name, value in point.items()} for point in progress.curves])
        curves.append(curve.round(packed.DECIMALS))
        rows.append(
            {
                "id": spec.id,
                "spec": json.dumps(to_data(spec), sort_keys=True),
                **accuracies(curves[-1], *trainer.data.held_out.sizes[model]),
                "first_losses": json.dumps(progress.first_losses[model]),
                "seconds": round(progress.seconds / len(trainer.specs), 3),
                "stacked": len(trainer.specs),
                **provenance,
            }
        )
        curves[-1].insert(0, "id", spec.id)
    weights = {WEIGHTS + name: value[trainer.model_of] for name, value in trainer.stack.state_dict().items()}
    return weights, {"rows": rows, "curves": pd.concat(curves).to_dict("list")}


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


def tables(folder: Path | None = None) -> Tables:
    """Rows and curves of all finished stacks of a store, the local one by default."""
    rows, curves = zip((records.EMPTY, records.EMPTY), *(_tables(*file) for file in _finished(folder)))
    return records.join(rows), records.join(curves)


def _finished(folder: Path | None) -> list[tuple[Path, int]]:
    """Files of the finished stacks in a store, and when each was changed (ns)."""
    files = sorted((folder or paths.store()).glob(f"*{FINISHED}"))
    return [(path, path.stat().st_mtime_ns) for path in files if not path.name.endswith(CHECKPOINT) and path.exists()]


@lru_cache(maxsize=4096)
def _tables(path: Path, changed: int) -> Tables:
    """Rows and curves of a finished stack, read once per change of its file."""
    meta = read_meta(path)
    return pd.DataFrame(meta["rows"]), pd.DataFrame(meta["curves"])


def weights(run_id: str, folder: Path | None = None) -> dict[str, Weight] | None:
    """Trained parameters of a finished run, without the run axis; None if the store does not have it."""
    for path, changed in _finished(folder):
        ids = _tables(path, changed)[0]["id"].tolist()
        if run_id in ids:
            found = {name: value[ids.index(run_id)] for name, value in load(path, WEIGHTS)[0].items()}
            check_finite(found, f"{path}, run {run_id}")
            return found
    return None
