"""Rows and learning curves of finished stacks in a store."""

import json
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from cot2lib.errors import RecordError, brief
from cot2lib.kit.frozen import UndefinedError
from cot2lib.runs import packed, records, store
from cot2lib.runs.records import Tables
from cot2lib.specs import to_data

LAST = 10  # evaluations in the closing mean


def tables(folder: Path | None = None) -> Tables:
    """All rows and curves of a store, the local one by default; leaves out and raises as `store.finished`."""
    parts = []
    for file in store.finished_files(folder):
        with suppress(UndefinedError):
            parts.append(_stack_tables(*file))
    rows, curves = zip(*parts) if parts else ((), ())
    return records.join(rows), records.join(curves)


@lru_cache(maxsize=4096)
def _stack_tables(path: Path, changed: int) -> Tables:
    """Rows and curves of a finished stack, made once per change of its file."""
    stack, rows, curves = store.read(path, changed), [], []
    progress = stack.progress
    try:
        for place, spec in enumerate(stack.specs):
            at = lambda value, place=place: value[place] if isinstance(value, list) else value
            curve = pd.DataFrame([{name: at(value) for name, value in point.items()} for point in progress.curves])
            curves.append(curve.round(packed.DECIMALS))
            curves[-1].insert(0, "id", spec.id)
            row = {"id": spec.id, "spec": json.dumps(to_data(spec), sort_keys=True)}
            row |= accuracies(curves[-1], *stack.held_out[place])
            row |= {"first_losses": json.dumps(progress.first_losses[place])}
            row |= {"seconds": round(progress.seconds / stack.trainings, 3), "stacked": stack.trainings}
            rows.append(row | stack.provenance)
        found = pd.DataFrame(rows), pd.concat(curves, ignore_index=True)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise RecordError(f"{path} holds no results of its runs ({brief(error)}); delete it.") from error
    return found


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
