"""Explanations of the paper's Table 1: what each predicts of runs on the paper's split, and what came out.

`predicted.csv` was committed before the runs that it speaks of.
"""

from pathlib import Path

import pandas as pd

from cot2lib.study.printed import paper_value
from cot2lib.study.sweeps import KS

TOLD_BY = ["d_model", "dropout", "lr"]  # what an explanation fixes
WORDS = {
    "best": "best epoch (%)",
    "gain": "best epoch less the start (points)",
    "entropy_4": "entropy of the answer (nat)",
}


def predicted() -> pd.DataFrame:
    """A row for each explanation, dimension and measure: between which values every run is to lie that stands."""
    return pd.read_csv(Path(__file__).with_name("predicted.csv"))


def found(rows: pd.DataFrame) -> pd.DataFrame:
    """What runs that stand gave, one row for each and every measure; a collapsed run answers one thing to everything.

    Args:
        rows: `policies.outcomes` of runs on the paper's split.
    """
    kept = rows[~rows["collapsed"].astype(bool)]
    values = kept.assign(
        best=kept["own_best"], gain=kept["own_best"] - kept["discrete_before"]
    )  # the paper's start is decoded greedily
    long = values.melt([*TOLD_BY, "k", "seed"], list(WORDS), var_name="measure")
    joined = long.merge(predicted(), on=[*TOLD_BY, "measure"])
    return joined.assign(inside=joined["value"].between(joined["low"], joined["high"]))


def stated(measure: str, d_model: int, k: int) -> float:
    """The paper's value of a measure."""
    stem = f"grpo-mts-d{d_model}-k{k}"
    if measure == "entropy_4":
        return paper_value(f"{stem}-entropy4")
    return paper_value(stem) - (paper_value(f"grpo-mts-d{d_model}-sft") if measure == "gain" else 0)


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Each prediction, the range of the runs of every K that has some, how many keep to it, and the paper's values."""
    told, runs = [], found(rows)
    for one in predicted().itertuples():
        part = runs[(runs["explanation"] == one.explanation) & (runs["d_model"] == one.d_model)]
        part, digits = part[part["measure"] == one.measure], 2 if one.measure == "entropy_4" else 1
        row = {"explanation": one.explanation, "d": one.d_model, "measure": WORDS[one.measure]}
        row |= {"predicted": f"{one.low:g} to {one.high:g}"}
        row |= {f"K = {k}": _range(part[part["k"] == k]["value"], digits) for k in KS}
        row |= {"as predicted": f"{part['inside'].sum()} of {len(part)}" if len(part) else "not run"}
        paper = ", ".join(f"{stated(one.measure, one.d_model, k):.{digits}f}" for k in KS)
        told.append(row | {"the paper": paper})
    return pd.DataFrame(told)


def _range(values: pd.Series, digits: int) -> str:
    """The lowest and the highest value; "" of none."""
    ends = dict.fromkeys(f"{end:.{digits}f}" for end in (values.min(), values.max())) if len(values) else ()
    return " to ".join(ends)
