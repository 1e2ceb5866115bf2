"""What gradients do not show: edges of a softmax, room between arrays, batches without their padding."""

from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("numba")

from numba import njit

from cot2lib.fast.entries import OPTIONS
from cot2lib.fast.forward import Data, Shape, arrange, work
from cot2lib.fast.kernels import U, place
from cot2lib.fast.rows import LANES, LEAST, soft_row

SCALE = np.float32(0.25)


@njit(**OPTIONS)
def soften(rows, begin, end, first, last, scale):
    for q in range(len(rows)):
        soft_row(place(rows, q, 0), U(begin), U(end), U(first), U(last), scale)


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


def test_a_row_at_its_edges():
    """Nothing seen, a hidden score, and distant ones: e^-85 is a number of this precision, e^-90 is none."""
    unseen, hidden, distant = scores(32), scores(16), np.zeros((1, 16), np.float32)
    hidden[:, 4] = LEAST
    distant[0, 1:3] = -340.0, -360.0
    soften(unseen, 0, 32, 20, 20, SCALE), soften(hidden, 0, 16, 0, 16, SCALE), soften(distant, 0, 16, 0, 16, SCALE)
    assert not unseen.any()
    assert not hidden[:, 4].any() and np.allclose(hidden.sum(1), 1, atol=1e-6)
    assert distant[0, 1] > 0 and distant[0, 2] == 0


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
