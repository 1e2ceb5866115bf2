"""Majority votes on graphs (paper, figures on Maj@k): how many samples discrete chain of thought needs.

The measures are those of `cot2lib.study.analysis.passk`: Maj@k is exact from counts, ties shared. The paper goes up to
k = 21 and repeats fresh samples ten times; here three times as many samples as the largest k are drawn once for each
held-out graph. Discrete chain of thought samples from all tokens.
"""

from collections.abc import Sequence

import pandas as pd

from cot2lib import runs
from cot2lib.runs import records
from cot2lib.specs import RunSpec
from cot2lib.study import searches
from cot2lib.study.analysis import passk

MOST = 21  # largest k
SAMPLES = 3 * MOST
COLUMNS = ["id", "temperature", "k", "pass_at_k", "maj_at_k"]


def measure(specs: Sequence[RunSpec]) -> pd.DataFrame:
    """Maj@k (%) of trained runs of one shape; raises RecordError if the weights of one are not here."""
    return passk.measure(runs.load_stack(specs, missing="error"), specs, samples=SAMPLES, most=MOST, kept=(None,))


def by_profile(profiles: Sequence[str], seeds: Sequence[int]) -> pd.DataFrame:
    """The shipped tables with profile, task, method and seed of each run."""
    tables = [
        passk.with_runs(shipped(name), searches.voting(name, seeds, tasks=[task])).assign(profile=name, task=task)
        for task in searches.TASKS
        for name in profiles
    ]
    return pd.concat(tables, ignore_index=True)


def shipped(profile: str) -> pd.DataFrame:
    """The table that `cot2 collect votes` has shipped; empty where there is none."""
    return records.shipped_rows(f"votes.{profile}.majority", COLUMNS)
