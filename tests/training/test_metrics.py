import itertools
from collections import Counter
from math import comb

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cot2lib.metrics import (
    holm,
    maj_at_k,
    mean_interval,
    paired,
    paired_interval,
    pass_at_k,
    prediction_interval,
    seeds_for,
)


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


@pytest.mark.parametrize("further", [1, 5, 10**9])
def test_prediction_interval_is_students(further):
    """Of the difference between the mean of these runs and that of further ones."""
    values = [80.0, 82.5, 79.0, 84.0, 81.0]
    half = stats.t.ppf(0.975, 4) * np.std(values, ddof=1) * np.sqrt(1 / 5 + 1 / further)
    assert prediction_interval(values, further).half_width == pytest.approx(half)


def test_sides_pair_by_seed_and_not_by_place():
    """In any order, over the seeds that both have; by place the difference below were 10 and wide."""
    above = pd.Series([60.0, 90.0, 30.0, 7.0], index=[42, 43, 44, 50])
    below = pd.Series([20.0, 50.0, 80.0], index=[44, 42, 43])
    interval = paired_interval(above, below)
    assert (interval.mean, interval.low, interval.high, interval.n) == (10.0, 10.0, 10.0, 3)
    assert paired(above, below).to_dict() == {42: 10.0, 43: 10.0, 44: 10.0}


def test_prediction_interval_is_not_cut():
    values = [99.0, 90.0, 99.9]
    interval = prediction_interval(values, 5)
    assert interval.high > 100 and interval.high - interval.mean == pytest.approx(interval.half_width)


# Several samples


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4).filter(any), st.data())
@settings(deadline=None, max_examples=60)
def test_pass_at_k_and_maj_at_k_count_every_draw(counts, data):
    """Of as many samples of each answer; the first is right, and shares a tie."""
    answers = [answer for answer, count in enumerate(counts) for _ in range(count)]
    k = data.draw(st.integers(1, len(answers)))
    draws = [Counter(draw) for draw in itertools.combinations(answers, k)]
    most = [max(draw.values()) for draw in draws]
    won = [(draw[0] == best) / list(draw.values()).count(best) for draw, best in zip(draws, most)]
    assert maj_at_k([counts], k)[0] == pytest.approx(np.mean(won), abs=1e-13)
    assert pass_at_k(counts[0], len(answers), k) == pytest.approx(np.mean([0 in draw for draw in draws]), abs=1e-14)


def test_pass_at_k_is_elementwise_and_stable():
    found = pass_at_k([0, 1, 7], 10, [3, 3, 4])
    assert found.tolist() == pytest.approx([0.0, 0.3, 1.0], abs=1e-14) and found[2] == 1.0
    assert pass_at_k([2, 2], [5, 5], [1, 2]).tolist() == pytest.approx([0.4, 0.7])
    exact = 1 - comb(4000 - 30, 2000) / comb(4000, 2000)
    assert pass_at_k(30, 4000, 2000) == pytest.approx(exact, rel=1e-12)
    assert pass_at_k([], [], 1).shape == (0,)
    assert pass_at_k(torch.tensor([1, 2]), 4, 2).tolist() == pytest.approx([0.5, 5 / 6])


def test_maj_at_k_of_many_items():
    """Items do not mix, and one vote is the share of right samples."""
    counts = np.random.default_rng(0).multinomial(64, [0.3, *[0.7 / 9] * 9], size=1300)
    assert maj_at_k(counts, 1).tolist() == pytest.approx((counts[:, 0] / 64).tolist())
    together = maj_at_k(counts, 16)
    assert together[7] == pytest.approx(maj_at_k(counts[7:8], 16)[0]) and ((together >= 0) & (together <= 1)).all()
    assert maj_at_k([[4], [9]], 3).tolist() == [1.0, 1.0]


# Several comparisons, and how many seeds


def test_holm_rejects_step_by_step():
    """By scipy's t-tests and the definition: the i-th smallest of m against 5 % / (m - i + 1), until one fails."""
    rng = np.random.default_rng(17)
    tests = [rng.normal(shift, 1.0, size=6) for shift in (0.0, 1.0, 1.6, 3.0, -2.0)]
    chances = [stats.ttest_1samp(x, 0.0).pvalue for x in tests]
    expected, held = [False] * 5, True
    for rank, place in enumerate(np.argsort(chances)):
        held = held and chances[place] <= 0.05 / (5 - rank)
        expected[place] = held
    assert holm(tests) == expected
    assert (
        0 < sum(chance <= 0.05 / 5 for chance in chances) < sum(expected) < sum(chance <= 0.05 for chance in chances)
    )
    assert holm([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]) == [True, False]


def test_as_many_seeds_as_make_an_interval_narrow():
    values = [1.0, 2.0, 4.0]
    count = seeds_for(values, 2.0)
    half = lambda n: stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) * np.sqrt(1 / n)
    assert half(count) < 2.0 <= half(count - 1)
    assert seeds_for(values, 0.01) is None
