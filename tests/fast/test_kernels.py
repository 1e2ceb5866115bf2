"""What gradients do not show: edges of a softmax, products of odd sizes, batches without their padding."""

import ctypes

import numpy as np
import pytest

from cot2lib import fast
from cot2lib.training.flat import additive

LEAST = np.float32(-1e30)  # a score that is hidden
SCALE = np.float32(0.25)
EXPOSED = f"""
#include "{fast.SOURCE}"
extern "C" {{
void soften(const Array<float, 2>& x, const Int& begin, const Int& end, const Int& first, const Int& last,
            const double& scale) {{
  for (Int i = 0; i < x.size[0]; i++) softmax(x.at + i * x.size[1], begin, end, first, last, scale);
}}
void multiply(const Array<float, 2>& a, const Array<float, 2>& b, const Array<float, 2>& c, const Int& turned,
              const Int& more) {{
  const Side side = turned ? TURNED : PLAIN;
  const float* init = more ? c.at : nullptr;
  product(c.size[0], c.size[1], b.size[0], {{a.at, side, a.size[1], b.at, b.size[1], c.at, c.size[1], init,
                                           c.size[1]}});
}}
void arranged(const Shape& s, const Data& data, const Work& w, const Ints1& inputs, const Int& sparse,
              const Array<Int>& out) {{
  Run r(nullptr, s, data, {{}}, w);
  arrange(r, inputs.at, sparse);
  Int* at = std::copy(r.inputs.begin(), r.inputs.end(), out.at);
  std::copy(r.starts.begin(), r.starts.end(), std::copy(r.first.begin(), r.first.end(), at));
}}
void roots(const Array<float>& x) {{ store(x.at, inverse_root(load<vec>(x.at))); }}
}}
"""


@pytest.fixture(scope="module")
def exposed(tmp_path_factory):
    """Functions of the engine that Python does not call."""
    source = tmp_path_factory.mktemp("exposed") / "exposed.cpp"
    source.write_text(EXPOSED)
    library = ctypes.CDLL(str(fast.built(source)))
    return lambda name, *given: getattr(library, name)(*map(fast._packed, given))


def scores(columns, scale=20.0):
    return np.random.default_rng(0).normal(scale=scale, size=(7, columns)).astype(np.float32)


def by_numpy(rows, first, last):
    """Softmax in double precision, zero elsewhere."""
    seen = (np.arange(rows.shape[1]) >= first) & (np.arange(rows.shape[1]) < last)
    raised = np.where(seen, np.exp(SCALE * (rows - rows[:, first:last].max(1, keepdims=True)).astype(float)), 0)
    return raised / raised.sum(1, keepdims=True)


@pytest.mark.parametrize("first, last", [(0, 16), (0, 1), (3, 11), (0, 48), (5, 33), (47, 48)])
def test_a_row_is_a_softmax_of_what_is_seen(exposed, first, last):
    rows = scores(48)
    begin, end = first // 16 * 16, -(-last // 16) * 16
    found = rows.copy()
    exposed("soften", found, begin, end, first, last, float(SCALE))
    expected = by_numpy(rows, first, last)
    assert np.allclose(found[:, begin:end], expected[:, begin:end], atol=1e-6)
    assert not found[:, begin:first].any() and not found[:, last:end].any(), "exactly nothing of what is not seen"
    assert np.array_equal(found[:, :begin], rows[:, :begin]) and np.array_equal(found[:, end:], rows[:, end:])


def test_a_row_at_its_edges(exposed):
    """Nothing seen, a hidden score, and distant ones: e^-85 is a number of this precision, e^-90 is none."""
    unseen, hidden, distant = scores(32), scores(16), np.zeros((1, 16), np.float32)
    hidden[:, 4] = LEAST
    distant[0, 1:3] = -340.0, -360.0
    exposed("soften", unseen, 0, 32, 20, 20, 0.25)
    exposed("soften", hidden, 0, 16, 0, 16, 0.25), exposed("soften", distant, 0, 16, 0, 16, 0.25)
    assert not unseen.any()
    assert not hidden[:, 4].any() and np.allclose(hidden.sum(1), 1, atol=1e-6)
    assert distant[0, 1] > 0 and distant[0, 2] == 0


@pytest.mark.parametrize("rows", [1, 7, 16, 70])
@pytest.mark.parametrize("columns", [8, 24, 40, 96])
def test_a_product_of_any_size(exposed, rows, columns):
    for k in (0, 5, 130):
        for turned in (False, True):
            a, b, c = (
                np.random.default_rng(k).normal(size=s).astype("f") for s in ((rows, k), (k, columns), (rows, columns))
            )
            given = np.ascontiguousarray(a.T) if turned else a
            for more in (False, True):
                found = c.copy()
                exposed("multiply", given, b, found, turned, more)
                assert np.allclose(found, a @ b + more * c, atol=1e-4)


def test_inverse_roots(exposed):
    x = np.geomspace(1e-30, 1e30, 16).astype(np.float32)
    found = x.copy()
    exposed("roots", found)
    lanes = (found != x).sum()
    assert lanes >= 4 and np.allclose(found[:lanes] * np.sqrt(x[:lanes].astype(float)), 1, atol=3e-7)


@pytest.mark.parametrize("sparse", [True, False])
def test_rows_of_padding_are_left_out(exposed, sparse):
    """Every position has the inputs that it is no padding of, in the same order; ties stay as they come."""
    padding = np.array([3, 0, 2, 5, 2, 0])
    shape = fast.Shape(5, 9, 8, 1, 1, 5, 9, 1, 0, 1, 0)
    data = fast.Data(
        np.zeros((6, 8), np.int64), *[padding] * 5, np.zeros(0, np.float32), 1, 0, False, False, additive(None)
    )
    out = np.zeros(5 + 5 + 10, np.int64)
    exposed("arranged", shape, data, fast.work(shape, 0), np.array([0, 4, 3, 5, 2]), sparse, out)
    order = [5, 4, 2, 0, 3] if sparse else [0, 4, 3, 5, 2]
    assert out[:5].tolist() == order
    assert out[5:10].tolist() == ([padding[i] for i in order] if sparse else [0] * 5)
    counts = [1, 1, 3, 4, 4, 5, 5, 5, 5] if sparse else [5] * 9
    assert np.diff(out[10:]).tolist() == counts and out[10] == 0
