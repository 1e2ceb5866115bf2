"""What the paper prints: `claims.csv`, one row per number or claim."""

from functools import cache
from pathlib import Path

import pandas as pd


@cache
def claims() -> pd.DataFrame:
    """The paper's numbers and claims by id; columns source, task, setting, metric, paper_value, unit."""
    return pd.read_csv(Path(__file__).with_name("claims.csv"), dtype=str).set_index("id")


def paper_value(claim: str) -> float:
    """The paper's number, in the claim's unit."""
    return float(claims().loc[claim, "paper_value"])
