"""Explanations of the paper's Table 1: what each predicts of runs on the paper's split, and what came out.

`predicted.csv` was committed before the runs that it speaks of.
"""

from pathlib import Path

import pandas as pd

from cot2lib.study.frame import at
from cot2lib.study.grpo_mts.draw import start, stem
from cot2lib.study.printed import paper_value
from cot2lib.study.report import ends
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
    """The runs that stand, a row for each and every measure; a collapsed one answers one thing to everything.

    Args:
        rows: `policies.outcomes` of runs on the paper's split.
    """
    kept = rows[~rows["collapsed"].astype(bool)]
    gain = kept["own_best"] - kept["discrete_before"]  # the paper's start is decoded greedily
    values = kept.assign(best=kept["own_best"], gain=gain)
    long = values.melt([*TOLD_BY, "k", "seed"], list(WORDS), var_name="measure")
    joined = long.merge(predicted(), on=[*TOLD_BY, "measure"])
    return joined.assign(inside=joined["value"].between(joined["low"], joined["high"]))


def stated(measure: str, d_model: int, k: int) -> float:
    """The paper's value of a measure."""
    if measure == "entropy_4":
        return paper_value(f"{stem(k, d_model)}-entropy4")
    return paper_value(stem(k, d_model)) - (paper_value(start(d_model)) if measure == "gain" else 0)


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Each prediction, the range of the runs of every K that has some, how many keep to it, and the paper's values."""
    told, runs = [], found(rows)
    for one in predicted().itertuples():
        part = at(runs, explanation=one.explanation, d_model=one.d_model, measure=one.measure)
        digits = 2 if one.measure == "entropy_4" else 1
        row = {"explanation": one.explanation, "d": one.d_model, "measure": WORDS[one.measure]}
        row |= {"predicted": f"{one.low:g} to {one.high:g}"}
        row |= {f"K = {k}": ends(at(part, k=k)["value"], digits) for k in KS}
        row |= {"as predicted": f"{part['inside'].sum()} of {len(part)}" if len(part) else "not run"}
        paper = ", ".join(f"{stated(one.measure, one.d_model, k):.{digits}f}" for k in KS)
        told.append(row | {"the paper": paper})
    return pd.DataFrame(told)
