"""Intervals over seeds.

A run is one draw of split, initialisation, data order and dropout together, so the spread over
seeds covers all four. Below ten seeds intervals are Student-t, from ten on bootstrap percentiles;
both are cut to the metric's range. The paper gives means of five runs, or single runs, and no
spread; the authors' plots show a standard deviation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

Values = Sequence | np.ndarray | pd.Series
LEVEL = 0.95
BOOTSTRAP_FROM = 10
RESAMPLES = 10_000


@dataclass(frozen=True)
class Interval:
    """A mean over n runs and its 95 % interval; the ends are NaN for a single run."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def half_width(self) -> float:
        """Half the distance between the ends."""
        return (self.high - self.low) / 2


def mean_interval(values: Values, low: float = -np.inf, high: float = np.inf) -> Interval:
    """95 % interval of the mean over runs, cut to [low, high].

    Raises:
        ValueError: without values.
    """
    x = np.asarray(values, dtype=float)
    if not len(x):
        raise ValueError("no runs to take a mean of.")
    if len(x) < BOOTSTRAP_FROM:
        return _cut(x, _t_quantile(len(x)) * _standard_error(x), low, high)
    draws = np.random.default_rng(0).choice(x, size=(RESAMPLES, len(x))).mean(axis=1)
    ends = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(x.mean()), max(low, float(ends[0])), min(high, float(ends[1])), len(x))


def prediction_interval(values: Values, runs: int, low: float = -np.inf, high: float = np.inf) -> Interval:
    """95 % interval for the mean of `runs` further runs of the same kind (Student-t, cut to [low, high])."""
    x = np.asarray(values, dtype=float)
    spread = _standard_error(x) * np.sqrt(1 + len(x) / runs)
    return _cut(x, _t_quantile(len(x)) * spread, low, high)


def paired_interval(above: Values, below: Values) -> Interval:
    """95 % interval of the mean difference above - below of runs paired by seed."""
    return mean_interval(np.asarray(above, dtype=float) - np.asarray(below, dtype=float))


def _standard_error(x: np.ndarray) -> float:
    return float(x.std(ddof=1) / np.sqrt(len(x))) if len(x) > 1 else np.nan


def _t_quantile(n: int) -> float:
    return float(stats.t.ppf((1 + LEVEL) / 2, n - 1)) if n > 1 else np.nan


def _cut(x: np.ndarray, half: float, low: float, high: float) -> Interval:
    mean = float(x.mean())
    return Interval(mean, float(np.maximum(low, mean - half)), float(np.minimum(high, mean + half)), len(x))
