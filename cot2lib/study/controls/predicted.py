"""Predictions of each explanation for each experiment, as data: `predictions.csv`, committed before the runs.

An entry is "at least 5", "at most 5", "within 5" (of nothing, either way) or "0 to 6", in the experiment's measure.
"""

import math
import re
from pathlib import Path

import pandas as pd

EXPLANATIONS = ("set", "labels", "computation", "curriculum")
NUMBER = r"(-?\d+(?:\.\d+)?)"
FORM = re.compile(rf"(at least|at most|within|{NUMBER} to) {NUMBER}")


def predictions() -> pd.DataFrame:
    """A row for each experiment and explanation: between which values (`low`, `high`) the measure is to lie.

    `counts` is the smallest effect that counts.
    """
    table = pd.read_csv(Path(__file__).with_name("predictions.csv"))
    told = ["id", "task", "experiment", "measure", "counts"]
    long = table.melt(told, list(EXPLANATIONS), var_name="explanation", value_name="said")
    ends = [bounds(said) for said in long["said"]]
    return long.assign(low=[low for low, _ in ends], high=[high for _, high in ends])


def bounds(said: str) -> tuple[float, float]:
    """The lowest and the highest value that an entry allows.

    Raises:
        ValueError: for an entry of no known form.
    """
    found = FORM.fullmatch(said)
    if found is None:
        raise ValueError(f"{said!r}: write 'at least 5', 'at most 5', 'within 5' or '0 to 6'.")
    word, first, last = found[1], found[2], float(found[3])
    known = {"at least": (last, math.inf), "at most": (-math.inf, last), "within": (-last, last)}
    return known[word] if word in known else (float(first), last)
