"""Intervals over seeds, and the worth of several samples of one model: pass@k and maj@k.

A run is one draw of split (unless `RunSpec.split` fixes it), initialisation, data order and dropout together.
Intervals are Student-t: with ten seeds the percentiles of resampled means would still be too narrow. They are cut to a
metric's range only where the caller gives that range.

Difference from the paper: its printed numbers have no spread, and not all say of how many runs they are. Bands in the
authors' plots are a standard deviation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd
import scipy
from jaxtyping import Shaped
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit.frozen import as_int, distinct

Values: TypeAlias = Sequence | np.ndarray | pd.Series
Numbers: TypeAlias = Values | pd.DataFrame | Shaped[Tensor, "..."] | float | int
LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean over n runs and its 95 % interval from low to high, both NaN for a single run."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


def mean_interval(values: Values, low: float = -np.inf, high: float = np.inf) -> Interval:
    """95 % interval of the mean over runs, cut to [low, high]. Raises SpecError if there are no values."""
    return _interval(values, None, low, high)


def prediction_interval(values: Values, runs: int) -> Interval:
    """95 % interval for the mean of `runs` further runs of the same kind. It is Student-t and not cut."""
    return _interval(values, runs)


def _interval(values: Values, runs: int | None, low: float = -np.inf, high: float = np.inf) -> Interval:
    x = np.asarray(values, dtype=float)
    if not len(x):
        raise SpecError("no runs to take a mean of; give at least one.")
    half, mean = _half_width(_deviation(x), len(x), runs), float(x.mean())
    return Interval(mean, float(np.maximum(low, mean - half)), float(np.minimum(high, mean + half)), len(x))


def _half_width(deviation: float, n: int, runs: int | None = None) -> float:
    """Half-width of the interval of the mean of n values or, with `runs`, of the mean of so many further ones."""
    quantile = scipy.special.stdtrit(n - 1, (1 + LEVEL) / 2) if n > 1 else np.nan
    return float(quantile * deviation * np.sqrt(1 / n + (1 / runs if runs else 0)))


def _deviation(x: np.ndarray) -> float:
    return float(x.std(ddof=1)) if len(x) > 1 else np.nan


def paired(above: pd.Series, below: pd.Series) -> pd.Series:
    """Differences above - below of series by seed, at the seeds that both have; SpecError if a seed stands twice."""
    for side in (above, below):
        distinct("seeds", side.index.tolist())
    shared = above.index[above.index.isin(below.index)]
    return above[shared] - below[shared]


def paired_interval(above: pd.Series, below: pd.Series) -> Interval:
    """95 % interval of the mean of the `paired` differences; SpecError if no seed is on both sides."""
    return mean_interval(paired(above, below))


def seeds_for(values: Values, half: float) -> int | None:
    """How many values, spread as these, bring the half-width of a mean's interval below `half`; None if over 1000."""
    spread = _deviation(np.asarray(values, dtype=float))
    return next((n for n in range(2, 1001) if _half_width(spread, n) < half), None)


def holm(differences: Sequence[Values]) -> list[bool]:
    """Which means differ from 0 by two-sided t-tests with Holm's correction at 5 %, from one sequence per test."""
    chances = [_chance(np.asarray(values, dtype=float)) for values in differences]
    order, sure = np.argsort(chances, kind="stable"), [False] * len(chances)
    for tried, place in enumerate(order):
        if not chances[place] <= (1 - LEVEL) / (len(order) - tried):
            break
        sure[place] = True
    return sure


def _chance(x: np.ndarray) -> float:
    """Two-sided p-value of the t-test that a mean is 0."""
    error = _deviation(x) / np.sqrt(len(x))
    if error == 0:
        return float(x.mean() == 0)
    return float(2 * scipy.special.stdtr(len(x) - 1, -abs(x.mean()) / error))


# Several samples of one model


def pass_at_k(correct: Numbers, total: Numbers, k: Numbers) -> np.ndarray | np.float64:
    """Probability that k of `total` samples, drawn without replacement, hold a right one.

    This is the unbiased estimator 1 - C(total - correct, k) / C(total, k) of pass@k, for the numbers of right samples
    and of all samples of each item. The three arguments broadcast.
    """
    correct, total, k = np.broadcast_arrays(_counts("correct", correct), _counts("total", total), _counts("k", k))
    if (k < 1).any() or (k > total).any():
        raise SpecError(f"k={_shown(k)} of {_shown(total)} samples: choose 1 <= k <= total.")
    if (correct < 0).any() or (correct > total).any():
        raise SpecError(f"correct={_shown(correct)} of {_shown(total)} samples: need 0 <= correct <= total.")
    return 1 - scipy.stats.hypergeom.pmf(0, total, correct, k)


def maj_at_k(counts: Numbers, k: int) -> np.ndarray:
    """Probability that the right answer wins a majority vote among k samples, drawn without replacement.

    The value is exact. The numbers of drawn answers are multivariate hypergeometric, and answers that tie for the most
    votes share the win evenly. `counts` are the samples of each item by answer (item, answer); column 0 is the right
    answer.
    """
    counts = _counts("counts", counts)
    if counts.ndim != 2 or not counts.shape[1] or (counts < 0).any():
        raise SpecError("counts must be a table of counts >= 0, one row per item, the right answer in column 0.")
    k = as_int("k", k)
    fewest = int(counts.sum(1).min(initial=np.iinfo(np.int64).max))
    if not 1 <= k <= fewest:
        raise SpecError(f"k={k} votes: the item with the fewest samples has {fewest}; choose 1 <= k <= that.")
    every = scipy.special.comb(counts.sum(1), k)
    if np.isinf(every).any():
        raise SpecError(f"k={k} votes of {counts.sum(1).max()} samples: too many ways to draw them; take fewer.")
    # Ways to draw 0..k samples of each answer: (item, answer, k + 1).
    ways = scipy.special.comb(counts[:, :, None], np.arange(k + 1))
    won = sum(ways[:, 0, votes] * _others(ways[:, 1:], votes, k - votes) for votes in range(1, k + 1))
    return won / every


def _others(ways: np.ndarray, votes: int, left: int) -> np.ndarray:
    """Ways to draw `left` samples of the other answers, at most `votes` of each, each over its number of winners.

    `ways` is (item, answer, samples drawn). The loop adds one answer at a time to a table of the samples and the ties
    so far.
    """
    most = left // votes
    table = np.zeros((len(ways), left + 1, most + 1))  # (item, samples so far, ties so far)
    table[:, 0, 0] = 1.0
    for answer in ways.transpose(1, 2, 0)[:, :, :, None, None]:
        grown = table * answer[0]
        for drawn in range(1, min(votes - 1, left) + 1):
            grown[:, drawn:] += answer[drawn] * table[:, :-drawn]
        if votes <= left:
            grown[:, votes:, 1:] += answer[votes] * table[:, :-votes, :-1]
        table = grown
    return table[:, left] @ (1 / np.arange(1, most + 2))


def _counts(name: str, values: Numbers) -> np.ndarray:
    numbers = np.asarray(values)
    wanted = np.issubdtype(numbers.dtype, np.number) and np.isfinite(numbers).all()
    if numbers.size and not (wanted and (numbers == np.floor(numbers)).all()):
        raise SpecError(f"{name} must be whole numbers.")
    return numbers.astype(np.int64)


def _shown(values: np.ndarray) -> str:
    low, high = values.min(), values.max()
    return str(low) if low == high else f"{low}..{high}"
