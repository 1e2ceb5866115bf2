"""Explanations of the paper's Table 1: what each predicts of runs on the paper's split, and what came out.

`predicted.csv` was committed before the runs that it speaks of, but for those of seed 42 at d = 32 as stated.
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
PARTS = {"accuracies": ["best"], "gains": ["gain"], "entropies": [f"entropy_{token}" for token in (1, 2, 3, 4)]}


def predicted() -> pd.DataFrame:
    """A row for each explanation, dimension and measure: between which values every run is to lie that stands."""
    return pd.read_csv(Path(__file__).with_name("predicted.csv"))


def standing(rows: pd.DataFrame) -> pd.DataFrame:
    """The runs that stand, with `best` and `gain`; a collapsed one answers one thing to everything.

    Args:
        rows: `policies.outcomes` of runs on the paper's split.
    """
    kept = rows[~rows["collapsed"].astype(bool)]
    gain = kept["own_best"] - kept["discrete_before"]  # the paper's start is decoded greedily
    return kept.assign(best=kept["own_best"], gain=gain)


def found(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each of `standing` and every measure that was predicted."""
    long = standing(rows).melt([*TOLD_BY, "k", "seed"], list(WORDS), var_name="measure")
    joined = long.merge(predicted(), on=[*TOLD_BY, "measure"])
    return joined.assign(inside=joined["value"].between(joined["low"], joined["high"]))


def stated(measure: str, d_model: int, k: int) -> float:
    """The paper's value of a measure."""
    if measure.startswith("entropy"):
        return paper_value(f"{stem(k, d_model)}-{measure.replace('_', '')}")
    return paper_value(stem(k, d_model)) - (paper_value(start(d_model)) if measure == "gain" else 0)


def fits(rows: pd.DataFrame) -> pd.DataFrame:
    """Counts of the paper's accuracies, gains and entropies after training that lie among the runs that stand.

    A row for each explanation and dimension, those too of which nothing was predicted.
    """
    names = predicted().drop_duplicates(["dropout", "lr"]).set_index(["dropout", "lr"])["explanation"]
    told = []
    for (d_model, dropout, lr), part in standing(rows).groupby(TOLD_BY):
        row = {"explanation": names[dropout, lr], "d": d_model, "runs": len(part)}
        for kind, measures in PARTS.items():
            among = [
                own[measure].min() <= stated(measure, d_model, k) <= own[measure].max()
                for k, own in part.groupby("k")
                for measure in measures
            ]
            row[kind] = f"{sum(among)} of {len(among)}"
        told.append(row)
    return pd.DataFrame(told).sort_values(["explanation", "d"])


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
