"""Means, gains and their intervals as tables and sentences say them."""

import pandas as pd

from cot2lib.metrics import Interval, mean_interval, paired_interval
from cot2lib.study.report import PERCENT, describe


def mean_of(values: pd.Series, most: float = PERCENT) -> str:
    """Mean with its 95 % t-interval, cut to 0..most; values as they are to be shown."""
    found = mean_interval(values, 0.0, most)
    return describe(found.mean, found.low, found.high)


def describe_mean(shares: pd.Series) -> str:
    """Mean accuracy (%) over runs with its 95 % interval and their number; empty without runs."""
    return f"{mean_of(PERCENT * shares)}, n={len(shares)}" if len(shares) else ""


def gain(above: pd.Series, below: pd.Series) -> str:
    """Mean difference of shares in points, over the seeds that both have, with its 95 % interval; empty without."""
    gap = _gap(above, below)
    return describe(gap.mean, gap.low, gap.high) if gap else ""


def versus(above: pd.Series, below: pd.Series, more: str, less: str) -> str:
    """`gain` in words, see `in_words`; empty without a seed that both have."""
    gap = _gap(above, below)
    return in_words(gap, more, less) if gap else ""


def in_words(gap: Interval, more: str, less: str) -> str:
    """A difference without a sign before its mean: "{} points above" or "{} points below", say."""
    low, high = (gap.low, gap.high) if gap.mean >= 0 else (-gap.high, -gap.low)
    return (more if gap.mean >= 0 else less).format(describe(abs(gap.mean), low, high))


def difference(above: pd.Series, below: pd.Series) -> str:
    """Mean difference of values paired by seed, with its 95 % interval."""
    gap = paired_interval(above, below)
    return describe(gap.mean, gap.low, gap.high)


def _gap(above: pd.Series, below: pd.Series) -> Interval | None:
    seeds = above.index.intersection(below.index)
    return paired_interval(PERCENT * above[seeds], PERCENT * below[seeds]) if len(seeds) else None
