import numpy as np
import pytest
from scipy import stats

from cot2lib.metrics import mean_interval, paired_interval, prediction_interval


def test_t_interval_is_scipys():
    values = [80.0, 82.5, 79.0, 84.0, 81.0]
    interval = mean_interval(values)
    low, high = stats.t.interval(0.95, 4, loc=np.mean(values), scale=stats.sem(values))
    assert (interval.mean, interval.low, interval.high, interval.n) == pytest.approx((np.mean(values), low, high, 5))


def test_intervals_are_cut_to_the_range():
    interval = mean_interval([99.9, 99.0, 98.0], 0.0, 100.0)
    assert interval.high == 100.0 and interval.low > 90


def test_single_run_has_no_interval():
    interval = mean_interval([50.0])
    assert interval.mean == 50.0 and np.isnan(interval.low) and np.isnan(interval.high)
    with pytest.raises(ValueError, match="no runs"):
        mean_interval([])


def test_bootstrap_from_ten_runs():
    values = np.random.default_rng(0).normal(50, 5, 30)
    interval = mean_interval(values)
    t = stats.t.interval(0.95, 29, loc=values.mean(), scale=stats.sem(values))
    assert interval.low == pytest.approx(t[0], abs=0.4) and interval.high == pytest.approx(t[1], abs=0.4)
    assert interval == mean_interval(values), "the bootstrap is seeded"


def test_prediction_interval_covers_a_new_mean():
    """Simulated: the mean of five further runs falls inside in 95 % of the cases."""
    generator = np.random.default_rng(1)
    inside = 0
    for _ in range(4000):
        ours, theirs = generator.normal(70, 4, 5), generator.normal(70, 4, 5).mean()
        interval = prediction_interval(ours, 5)
        inside += interval.low <= theirs <= interval.high
    assert inside / 4000 == pytest.approx(0.95, abs=0.012)


def test_prediction_of_a_single_run_is_wider():
    values = [80.0, 82.5, 79.0, 84.0, 81.0]
    assert prediction_interval(values, 1).half_width > prediction_interval(values, 5).half_width
    assert prediction_interval(values, 10**9).half_width == pytest.approx(mean_interval(values).half_width, rel=1e-3)


def test_paired_interval_removes_what_seeds_share():
    shared = np.array([10.0, -10.0, 25.0, 3.0, -8.0])
    interval = paired_interval(60 + shared + [0.1, -0.1, 0, 0.1, -0.1], 55 + shared)
    assert interval.mean == pytest.approx(5.0) and interval.low > 4.5
