"""Rows of a softmax, their gradients and their dropout, beside NumPy's; the order of a batch without its padding."""

from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("numba")

from numba import njit

from cot2lib.fast.entries import OPTIONS
from cot2lib.fast.forward import Data, Shape, arrange, work
from cot2lib.fast.kernels import FLOATS, U, address, place
from cot2lib.fast.rows import DRAWN, LANES, LEAST, copy_row, drop_row, soft_row, soft_row_back, turn_row

SCALE = np.float32(0.25)


@njit(**OPTIONS)
def soften(rows, begin, end, first, last, scale):
    for q in range(len(rows)):
        soft_row(place(rows, q, 0), U(begin), U(end), U(first), U(last), scale)


@njit(**OPTIONS)
def slope(rows, given, begin, end, scale):
    for q in range(len(rows)):
        soft_row_back(place(rows, q, 0), place(given, q, 0), U(begin), U(end), scale)


@njit(**OPTIONS)
def thin(rows, lanes, out, count, threshold, scale):
    for q in range(len(rows)):
        drawn = address(lanes) + U(q * rows.shape[1]) * DRAWN
        drop_row(place(rows, q, 0), drawn, place(out, q, 0), U(count), threshold, scale)


@njit(**OPTIONS)
def copy(rows, out, count):
    for q in range(len(rows)):
        copy_row(place(rows, q, 0), place(out, q, 0), U(count))


@njit(**OPTIONS)
def turned(rows, out, count):
    for q in range(len(rows)):
        turn_row(place(rows, q, 0), address(out) + U(q) * FLOATS, U(out.shape[1]), U(count))


@njit(**OPTIONS)
def arranged(data, inputs, sparse, w):
    arrange(data, inputs, sparse, w)


def scores(columns, scale=20.0):
    return np.random.default_rng(0).normal(scale=scale, size=(7, columns)).astype(np.float32)


def by_numpy(rows, first, last):
    """Softmax in double precision, zero elsewhere."""
    seen = (np.arange(rows.shape[1]) >= first) & (np.arange(rows.shape[1]) < last)
    raised = np.where(seen, np.exp(SCALE * (rows - rows[:, first:last].max(1, keepdims=True)).astype(float)), 0)
    return raised / raised.sum(1, keepdims=True)


@pytest.mark.parametrize("first, last", [(0, 16), (0, 1), (3, 11), (0, 48), (5, 33), (47, 48)])
def test_a_row_is_a_softmax_of_what_is_seen(first, last):
    rows = scores(48)
    begin, end = first // LANES * LANES, -(-last // LANES) * LANES
    found = rows.copy()
    soften(found, begin, end, first, last, SCALE)
    expected = by_numpy(rows, first, last)
    assert np.allclose(found[:, begin:end], expected[:, begin:end], atol=1e-6)
    assert not found[:, begin:first].any() and not found[:, last:end].any(), "exactly nothing of what is not seen"
    assert np.array_equal(found[:, :begin], rows[:, :begin]) and np.array_equal(found[:, end:], rows[:, end:])


def test_where_nothing_is_seen_nothing_is():
    rows = scores(32)
    soften(rows, 0, 32, 20, 20, SCALE)
    assert not rows.any()


def test_a_hidden_score_counts_for_nothing():
    rows = scores(16)
    rows[:, 4] = LEAST
    found = rows.copy()
    soften(found, 0, 16, 0, 16, SCALE)
    assert not found[:, 4].any() and np.allclose(found.sum(1), 1, atol=1e-6)


def test_distant_scores_lose_their_whole_weight():
    rows = np.zeros((1, 16), np.float32)
    rows[0, 1], rows[0, 2] = -340.0, -360.0  # e^-85 is a number of this precision, e^-90 is none
    soften(rows, 0, 16, 0, 16, SCALE)
    assert rows[0, 1] > 0 and rows[0, 2] == 0


def test_gradients_of_a_row_are_those_of_its_scores():
    rows, given = scores(32, 3.0), scores(32, 1.0)[::-1].copy()
    shares = by_numpy(rows, 2, 29)
    expected = SCALE * shares * (given - (shares * given).sum(1, keepdims=True))
    slope(shares.astype(np.float32), given, 0, 32, SCALE)
    assert np.allclose(given, expected, atol=1e-6)


@pytest.mark.parametrize("count", [1, 15, 16, 24, 48])
def test_what_is_drawn_below_the_threshold_is_dropped(count):
    rows, out = scores(48), np.zeros((7, 48), np.float32)
    lanes = np.random.default_rng(1).integers(0, 2**16, size=(7, 48)).astype(np.uint16)
    lanes[0, :2] = 6553, 6554
    thin(rows, lanes, out, count, np.int32(6554), np.float32(1.25))
    expected = np.where(lanes >= 6554, rows * np.float32(1.25), 0)[:, :count]
    assert np.array_equal(out[:, :count], expected) and not out[:, count:].any()
    assert out[0, 0] == 0 and (count == 1 or out[0, 1] != 0)


@pytest.mark.parametrize("count", [1, 6, 16, 20])
def test_rows_are_copied_and_turned(count):
    rows, copied, columns = scores(20), np.zeros((7, 20), np.float32), np.zeros((20, 7), np.float32)
    copy(rows, copied, count), turned(rows, columns, count)
    assert np.array_equal(copied[:, :count], rows[:, :count]) and not copied[:, count:].any()
    assert np.array_equal(columns, copied.T)


def test_arrays_begin_at_cache_lines_and_lie_apart():
    w = work(Shape(5, 9, 8, 1, 1, 5, 9, 1), 40)
    floats = [(array.ctypes.data, array.nbytes) for array in w if array.dtype == np.float32 and array.size]
    assert all(start % 64 == 0 for start, _ in floats)
    assert all(start + size <= after for (start, size), (after, _) in pairwise(sorted(floats)))
    assert len(w.lanes) >= 40 + LANES, "vectors read beyond the last lane"


@pytest.mark.parametrize("sparse", [True, False])
def test_rows_of_padding_are_left_out(sparse):
    """Every position has the inputs that it is no padding of, in the same order; ties stay as they come."""
    padding = np.array([3, 0, 2, 5, 2, 0])
    data = Data(np.zeros((6, 8), np.int64), padding, padding, padding, padding, padding, padding, 1, 0, False, False)
    w = work(Shape(5, 9, 8, 1, 1, 5, 9, 1), 0)
    arranged(data, np.array([0, 4, 3, 5, 2]), sparse, w)
    order = [5, 4, 2, 0, 3] if sparse else [0, 4, 3, 5, 2]
    assert w.inputs.tolist() == order
    assert w.first.tolist() == ([padding[i] for i in order] if sparse else [0] * 5)
    counts = [1, 1, 3, 4, 4, 5, 5, 5, 5] if sparse else [5] * 9
    assert np.diff(w.starts).tolist() == counts and w.starts[0] == 0
