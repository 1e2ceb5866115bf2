"""Differences between policy-gradient runs, paired by seed, that statements of the chapters rest on.

`points` are evaluations of runs, a row each, with the columns `id`, `seed`, `step`, `k`, `ratio`,
`entropy_t` (nat) and accuracies in per cent.
"""

from collections.abc import Collection, Mapping, Sequence

import pandas as pd

from cot2lib.metrics import Interval, paired_interval
from cot2lib.specs import GRPOSpec

TOKENS = (1, 2, 3, 4)


def entropies_apart(
    points: pd.DataFrame, few: int, many: int, without: Collection[int] = ()
) -> dict[tuple[str, int], Interval]:
    """By (ratio, token): the entropy left by K = `many` tokens per thought less that left by K = `few`.

    For K = 1 both ratios are the same, so that the runs of `few` = 1 serve either. `without` names seeds to leave out.
    """
    last = _last(points[~points["seed"].isin(without)])
    base = last[last["k"] == few].set_index("seed")
    found = {}
    for ratio, part in last[last["k"] == many].groupby("ratio"):
        part = part.set_index("seed").loc[base.index]
        for token in TOKENS:
            found[ratio, token] = paired_interval(part[f"entropy_{token}"], base[f"entropy_{token}"])
    return found


def lost_beside(
    points: pd.DataFrame, by_gamma: Mapping[float, Sequence[GRPOSpec]], gamma: float, decoder: str = "base"
) -> dict[float, tuple[pd.Series, Interval]]:
    """By scale: points that each run's last epoch lacks of its best, by seed, and how many more than under `gamma`."""
    lost = {g: _lost(points, specs, decoder) for g, specs in by_gamma.items()}
    return {g: (own, paired_interval(own, lost[gamma])) for g, own in lost.items()}


def _lost(points: pd.DataFrame, specs: Sequence[GRPOSpec], decoder: str) -> pd.Series:
    mine = points[points["id"].isin({spec.id for spec in specs})]
    return (mine.groupby("seed")[decoder].max() - _last(mine).set_index("seed")[decoder]).sort_index()


def _last(points: pd.DataFrame) -> pd.DataFrame:
    """The last evaluation of every run."""
    return points.sort_values("step", kind="stable").groupby("id", sort=False).last().reset_index()
