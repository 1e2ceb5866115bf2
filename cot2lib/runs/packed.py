"""Learning curves in few bytes, read back to the bit.

Every column becomes whole numbers (a loss in units of .00001). Of these the steps from one to the next are kept, whose
high bytes are nearly all alike. The bytes are laid out place by place, and xz compresses them.
"""

import json
import lzma

import numpy as np
import pandas as pd
from jaxtyping import Int, Num, UInt8

from cot2lib.errors import RecordError

DECIMALS = 5  # that a value may have
WIDTH = 8  # bytes of a number, the least first
GAP = -(2**53)  # the number of a value that is missing


def pack(table: pd.DataFrame) -> bytes:
    """A table of runs' points (`id`, then numbers of at most five decimals; gaps allowed) as bytes."""
    codes, ids = pd.factorize(table["id"])
    columns = {name: _whole(name, table[name].to_numpy()) for name in table if name != "id"}
    head = {"ids": ids.tolist(), "points": len(table), "columns": {name: form for name, (form, _) in columns.items()}}
    parts = [codes, *(numbers for _, numbers in columns.values())]
    body = b"".join(_planes(numbers.astype("<i8")) for numbers in parts)
    return lzma.compress(json.dumps(head).encode() + b"\n" + body)


def unpack(content: bytes) -> pd.DataFrame:
    """The table that `pack` wrote."""
    first, _, body = lzma.decompress(content).partition(b"\n")
    head = json.loads(first)
    forms = head["columns"]
    planes = np.frombuffer(body, np.uint8).reshape(1 + len(forms), WIDTH, head["points"])
    codes, *columns = map(_numbers, planes)
    value = lambda numbers: np.where(numbers == GAP, np.nan, numbers / 10**DECIMALS)
    made = {
        name: numbers if form == "whole" else value(numbers) for (name, form), numbers in zip(forms.items(), columns)
    }
    return pd.DataFrame({"id": np.array(head["ids"], dtype=object)[codes]} | made).astype({"id": "str"})


def _whole(name: str, values: Num[np.ndarray, " point"]) -> tuple[str, Num[np.ndarray, " point"]]:
    """A column's form (`whole`, or `decimal` in units of the last decimal) and its numbers."""
    if np.issubdtype(values.dtype, np.integer):
        return "whole", values
    gaps, scaled = np.isnan(values), np.rint(values * 10**DECIMALS)
    if not ((scaled / 10**DECIMALS == values) & (abs(scaled) < 2**53) | gaps).all():
        raise RecordError(
            f"{name} of a curve has more than {DECIMALS} decimals or is too large; train that run again."
        )
    return "decimal", np.where(gaps, GAP, scaled)


def _planes(numbers: Int[np.ndarray, " point"]) -> bytes:
    steps = np.diff(numbers, prepend=0)
    unsigned = (steps << 1 ^ steps >> 63).view(np.uint8)  # small for small steps of either sign
    return unsigned.reshape(-1, WIDTH).T.tobytes()


def _numbers(planes: UInt8[np.ndarray, "byte point"]) -> Int[np.ndarray, " point"]:
    unsigned = planes.T.copy().view("<u8")[:, 0]
    return np.cumsum((unsigned >> 1).astype(np.int64) ^ -(unsigned & 1).astype(np.int64))
