"""Differences between policy-gradient runs, paired by seed, that statements of the chapters rest on.

`points` are evaluations of runs (`cot2lib.study.analysis.policies.evaluations`), a row each, with the columns `id`,
`profile`, `seed`, `step`, `k`, `gamma`, `ratio`, `entropy_t` (nat) and accuracies in per cent.
"""

from collections.abc import Collection

import pandas as pd

from cot2lib.metrics import Interval, paired_interval
from cot2lib.study.analysis.policies import ends, lost
from cot2lib.study.sweeps import STEPS


def either_ratio(variants: pd.DataFrame, few: int, many: int) -> pd.DataFrame:
    """Of the variants those of `few` and `many` tokens per thought that differ in the ratio alone."""
    return variants[variants["k"].isin([few, many]) & variants["change"].isin(["usual", "product"])]


def entropies_apart(
    points: pd.DataFrame, few: int, many: int, without: Collection[int] = ()
) -> dict[tuple[str, int], Interval]:
    """By (ratio, token): the entropy left by K = `many` tokens per thought less that left by K = `few`.

    For K = 1 both ratios are the same, so that the runs of `few` = 1 serve either. `without` names seeds to leave out.
    """
    last = ends(points[~points["seed"].isin(without)])[1]
    base = last[last["k"] == few].set_index("seed")
    found = {}
    for ratio, part in last[last["k"] == many].groupby("ratio"):
        part = part.set_index("seed")
        seeds = base.index.intersection(part.index)
        for token in STEPS:
            found[ratio, token] = paired_interval(
                part.loc[seeds, f"entropy_{token}"], base.loc[seeds, f"entropy_{token}"]
            )
    return found


def lost_beside(points: pd.DataFrame, gamma: float, decoder: str = "base") -> dict[float, tuple[pd.Series, Interval]]:
    """By scale of runs from one start: points that each run's last epoch lacks of its best, and how many more than
    under `gamma`; by seed."""
    by_gamma = {g: lost(part, decoder, by="seed") for g, part in points.groupby("gamma")}
    return {g: (own, paired_interval(own, by_gamma[gamma])) for g, own in by_gamma.items() if gamma in by_gamma}
