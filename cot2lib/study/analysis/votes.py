"""Majority votes on graphs (paper, figures on Maj@k): how many samples discrete chain of thought needs.

The measures are those of `cot2lib.study.analysis.passk`: Maj@k is exact from counts, ties shared. The paper goes up to
k = 21 and repeats fresh samples ten times; here three times as many samples as the largest k are drawn once for each
held-out graph. Discrete chain of thought samples from all tokens.
"""

from collections.abc import Sequence
from functools import partial

import pandas as pd

from cot2lib import runs
from cot2lib.runs import lookup, records
from cot2lib.specs import by_shape
from cot2lib.study import searches
from cot2lib.study.analysis import passk

MOST = 21  # largest k
SAMPLES = 3 * MOST
COLUMNS = ["id", "temperature", "k", "pass_at_k", "maj_at_k"]


def measure(profile: str) -> pd.DataFrame:
    """Maj@k (%) of CoT2 and discrete CoT with names by age, of runs whose weights are shipped or stored."""
    count = partial(passk.measure, samples=SAMPLES, most=MOST, kept=(None,))
    parts = []
    for specs in by_shape(searches.dimension(profile, d_models=(32,))):
        known = [spec for spec in specs if lookup.weights(spec.id, retrain=False)]
        if known:
            parts.append(count(runs.load_stack(known, missing="error"), known))
    return pd.concat(parts, ignore_index=True)


def by_profile(profiles: Sequence[str], seeds: Sequence[int]) -> pd.DataFrame:
    """The shipped tables with profile, method and seed of each run."""
    parts = []
    for profile in profiles:
        table = shipped(profile)
        known = {spec.id: spec for spec in searches.dimension(profile, seeds, (32,))}
        part = table[table["id"].isin(known)]
        names = {"method": [known[i].method for i in part["id"]], "seed": [known[i].seed for i in part["id"]]}
        parts.append(part.assign(profile=profile, **names))
    return pd.concat(parts, ignore_index=True)


def shipped(profile: str) -> pd.DataFrame:
    """The table that `cot2 collect votes` has shipped; empty where there is none."""
    table = records.shipped_table(f"votes.{profile}.majority")
    return pd.DataFrame(columns=COLUMNS) if table is None else table
