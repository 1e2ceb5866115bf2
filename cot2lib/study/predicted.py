"""Predictions that were committed before the runs, and whether outcomes lie in their ranges.

Each block is a file of rows that never change; `EXPLANATIONS` says whose predictions it has. An entry is "at least 5",
"at most 5", "within 5" (of nothing, either way) or "0 to 6", in the experiment's measure. An empty entry says nothing.
"""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from cot2lib.metrics import Interval, holm, mean_interval

HIT, MISS, OPEN, UNRUN, SILENT = "yes", "no", "open", "not run", ""
CONTROLS, STEPS, ARROW, HOPS = "predictions", "steps_predicted", "arrow_predicted", "hops_predicted"  # blocks
EXPLANATIONS: dict[str, tuple[str, ...]] = {
    CONTROLS: ("set", "labels", "computation", "curriculum"),
    STEPS: ("chain", "local", "look-ahead", "re-read", "room"),
    ARROW: ("arrow", "room"),
    HOPS: ("local", "look-ahead", "re-read"),
}


def predictions(block: str = CONTROLS) -> pd.DataFrame:
    """Return a row for each experiment and explanation, with the predicted range (`low`, `high`) of the measure.

    `counts` is the smallest effect that counts.
    """
    table = pd.read_csv(Path(__file__).parent / "controls" / f"{block}.csv")
    named = ["id", "task", "experiment", "measure", "counts"]
    long = table.melt(named, [*EXPLANATIONS[block]], "explanation", "said", ignore_index=False)
    long = long.dropna().sort_index(kind="stable")
    ends = [bounds(said) for said in long["said"]]
    return long.assign(low=[low for low, _ in ends], high=[high for _, high in ends])


def bounds(said: str) -> tuple[float, float]:
    """Return the lowest and the highest value that an entry allows."""
    words, _, number = said.rpartition(" ")
    last = float(number)
    known = {"at least": (last, math.inf), "at most": (-math.inf, last), "within": (-last, last)}
    return known[words] if words in known else (float(words.removesuffix(" to")), last)


def judged(values: Mapping[str, pd.Series], differences: Iterable[str], block: str = CONTROLS) -> pd.DataFrame:
    """Return each experiment's outcome (`mean`, `low`, `high`, `n`), and whether each explanation was right.

    An explanation is right (`HIT`) if the whole interval lies in its range, wrong (`MISS`) if none of it does, and
    `OPEN` otherwise. `sure` says whether a difference is significant by Holm's test over all `differences`. `values`
    are the measure of each experiment that was run, by seed.
    """
    differences = [name for name in differences if name in values]
    sure = dict(zip(differences, holm([values[name] for name in differences])))
    table = []
    for name, said in predictions(block).groupby("id", sort=False):
        told = said.iloc[0][["id", "task", "experiment", "measure", "counts"]].to_dict()
        found = mean_interval(values[name]) if name in values else None
        ends = {end: getattr(found, end, None) for end in ("mean", "low", "high", "n")}
        got = dict.fromkeys(EXPLANATIONS[block], SILENT)
        got |= {row.explanation: fits(found, row.low, row.high) for row in said.itertuples()}
        table.append(told | ends | {"sure": sure.get(name)} | got)
    return pd.DataFrame(table)


def of_pairs(last: pd.Series, pairs: Mapping[str, tuple], block: str) -> pd.DataFrame:
    """Return `judged` of experiments that are differences of two cells of runs: `pairs` of a cell and the one that is
    subtracted, without those that have no common seeds. `last` is a number of each run, by cell and seed."""
    by_cell = last.unstack("seed")
    values = {
        name: (by_cell.loc[one] - by_cell.loc[other]).dropna()
        for name, (one, other) in pairs.items()
        if {one, other} <= {*by_cell.index}
    }
    return judged({name: some for name, some in values.items() if len(some) > 1}, [*pairs], block)


def fits(found: Interval | None, low: float, high: float) -> str:
    """Say whether an interval lies in a predicted range."""
    if found is None:
        return UNRUN
    if low <= found.low and found.high <= high:
        return HIT
    return MISS if found.high < low or high < found.low else OPEN


def score(table: pd.DataFrame, block: str = CONTROLS) -> pd.DataFrame:
    """Count the predictions of each explanation that held, failed or stayed open, where explanations differ."""
    said = predictions(block).groupby("id").agg({"low": "nunique", "high": "nunique"})
    apart = table[table["id"].isin(said.index[said.max(axis=1) > 1])]
    kinds, columns = (HIT, MISS, OPEN), [*EXPLANATIONS[block]]
    return pd.DataFrame({kind: (apart[columns] == kind).sum() for kind in kinds}).rename_axis("explanation")
