"""Micro-kernels of the fused engine: products of small matrices, and what is computed element by element.

A product of the engine is C = I + A B with I zeros, a bias row or C itself. `_tile` emits the innermost loop as LLVM
vectors: a few rows of C times one or two vectors stay in registers while k runs. The rows fit the registers that the
processor has. Plain loops would be slower: LLVM must assume that C may overlap A or B. All else is plain loops.
"""

import math

import numpy as np
from llvmlite import binding, ir
from numba import njit, types
from numba.extending import intrinsic

from cot2lib.fast.entries import COMPILED

WIDE = binding.get_host_cpu_features().get("avx512f", False)
ROWS = 8 if WIDE else 4  # of C in registers
FLOAT, INDEX = ir.FloatType(), ir.IntType(64)
SIZE = 4  # bytes of a float


def _tile(rows: int, lanes: int, vectors: int):
    """The loop over k for `rows` rows and `vectors` vectors of `lanes` columns: c[r, j] = init[r, j] + a[r] b[:, j].

    Arguments of the result are an address and its strides, in floats, for a (row, k), b (k), c (row) and init (row);
    columns are neighbours in b, c and init. The last argument is the number of k, at least one.
    """
    vector, places = ir.VectorType(FLOAT, lanes), ir.VectorType(ir.IntType(32), lanes)

    @intrinsic
    def tile(context, a, a_row, a_k, b, b_k, c, c_row, init, init_row, count):
        return types.void(a, a_row, a_k, b, b_k, c, c_row, init, init_row, count), emit

    def emit(context, builder, signature, arguments):
        a, a_row, a_k, b, b_k, c, c_row, init, init_row, count = arguments
        step = lambda start, stride, times: builder.add(start, builder.mul(stride, INDEX(SIZE * times)))
        at = lambda start, kind: builder.inttoptr(start, kind.as_pointer())
        grid = [(r, v) for r in range(rows) for v in range(vectors)]
        corner = lambda start, stride, r, v: step(step(start, stride, r), INDEX(1), v * lanes)
        before = builder.block
        first = [builder.load(at(corner(init, init_row, r, v), vector), align=SIZE) for r, v in grid]
        loop, after = builder.append_basic_block("over_k"), builder.append_basic_block("done")
        builder.branch(loop)
        builder.position_at_end(loop)
        k, a_now, b_now = (phi_of(builder, INDEX, start, before) for start in (INDEX(0), a, b))
        sums = [phi_of(builder, vector, start, before) for start in first]
        columns = [builder.load(at(step(b_now, INDEX(1), v * lanes), vector), align=SIZE) for v in range(vectors)]
        fused = builder.module.globals.get(f"llvm.fma.v{lanes}f32") or ir.Function(
            builder.module, ir.FunctionType(vector, [vector] * 3), f"llvm.fma.v{lanes}f32"
        )
        updated = []
        for r in range(rows):
            value = builder.load(at(step(a_now, a_row, r), FLOAT), align=SIZE)
            one = builder.insert_element(vector(ir.Undefined), value, ir.IntType(32)(0))
            spread = builder.shuffle_vector(one, vector(ir.Undefined), places(None))
            updated += [builder.call(fused, [spread, columns[v], sums[r * vectors + v]]) for v in range(vectors)]
        following = [builder.add(k, INDEX(1)), step(a_now, a_k, 1), step(b_now, b_k, 1), *updated]
        for phi, value in zip([k, a_now, b_now, *sums], following):
            phi.add_incoming(value, loop)
        builder.cbranch(builder.icmp_unsigned("<", following[0], count), loop, after)
        builder.position_at_end(after)
        for (r, v), value in zip(grid, updated):
            builder.store(value, at(corner(c, c_row, r, v), vector), align=SIZE)
        return context.get_dummy_value()

    return tile


def phi_of(builder, kind, start, before):
    """A value of a loop that begins as `start`."""
    phi = builder.phi(kind)
    phi.add_incoming(start, before)
    return phi


@intrinsic
def from_bits(context, bits):
    """The float32 of 32 bits."""
    return types.float32(types.int32), lambda _, builder, signature, given: builder.bitcast(given[0], FLOAT)


@intrinsic
def address(context, array):
    """Address of an array's first entry."""

    def emit(context, builder, signature, given):
        data = context.make_array(signature.args[0])(context, builder, given[0]).data
        return builder.ptrtoint(data, INDEX)

    return types.uint64(array), emit


@intrinsic
def borrowed(context, value):
    """The same arrays, or tuple of arrays and numbers, without an owner, so that no reference to them is counted.

    Every function that is handed a tuple would count one for each of its arrays, by an atomic operation that waits for
    all that was stored before: up to a third of a step. Whoever calls an entry keeps the arrays.
    """

    def disowned(context, builder, kind, held):
        if isinstance(kind, types.BaseTuple):
            for place, each in enumerate(kind.types):
                inner = disowned(context, builder, each, builder.extract_value(held, place))
                held = builder.insert_value(held, inner, place)
        if not isinstance(kind, types.Array):
            return held
        array = context.make_array(kind)(context, builder, held)
        array.meminfo, array.parent = (one.type(None) for one in (array.meminfo, array.parent))
        return array._getvalue()

    return value(value), lambda context, builder, signature, given: disowned(context, builder, value, given[0])


U, FLOATS = np.uint64, np.uint64(SIZE)


def _strip(lanes: int, vectors: int):
    """All rows of C for `vectors` vectors of columns: tiles of many rows, then of one; arguments as of a tile."""
    block, single = _tile(ROWS, lanes, vectors), _tile(1, lanes, vectors)

    def strip(a, a_row, a_k, b, b_k, c, c_row, init, init_row, rows, count):
        whole, i = rows - rows % U(ROWS), U(0)
        while i < rows:
            ai, ci, start = a + i * a_row * FLOATS, c + i * c_row * FLOATS, init + i * init_row * FLOATS
            if i < whole:
                block(ai, a_row, a_k, b, b_k, ci, c_row, start, init_row, count)
                i += U(ROWS)
            else:
                single(ai, a_row, a_k, b, b_k, ci, c_row, start, init_row, count)
                i += U(1)

    # Strips of one name could be one symbol where two entries meet.
    strip.__qualname__ = f"strip_{lanes}_{vectors}"
    return njit(**COMPILED)(strip)


STRIP_32, STRIP_16, STRIP_8 = _strip(16, 2), _strip(16, 1), _strip(8, 1)
STRIP_4, STRIP_2 = _strip(4, 1), _strip(2, 1)
ROW_PANEL, K_PANEL = U(32), U(64)


@njit(**COMPILED)
def _panel(a, a_row, a_k, b, b_k, c, c_row, init, init_row, rows, columns, count):
    """Strips over C, (rows, columns), of which the columns are an even number."""
    j = U(0)
    while j < columns:
        left, bj, cj, start = columns - j, b + j * FLOATS, c + j * FLOATS, init + j * FLOATS
        if WIDE and left >= U(32):
            STRIP_32(a, a_row, a_k, bj, b_k, cj, c_row, start, init_row, rows, count)
            j += U(32)
        elif left >= U(16):
            STRIP_16(a, a_row, a_k, bj, b_k, cj, c_row, start, init_row, rows, count)
            j += U(16)
        elif left >= U(8):
            STRIP_8(a, a_row, a_k, bj, b_k, cj, c_row, start, init_row, rows, count)
            j += U(8)
        elif left >= U(4):
            STRIP_4(a, a_row, a_k, bj, b_k, cj, c_row, start, init_row, rows, count)
            j += U(4)
        else:
            STRIP_2(a, a_row, a_k, bj, b_k, cj, c_row, start, init_row, rows, count)
            j += U(2)


@njit(**COMPILED)
def _product(a, a_row, a_k, b, b_k, c, c_row, init, init_row, rows, columns, count):
    """C in panels of rows and k, which stay in the core's first cache; addresses, and strides in floats.

    Every entry adds up in the same order as without panels.
    """
    k = U(0)
    while k < count:
        many, i = min(count - k, K_PANEL), U(0)
        start, start_row = (c, c_row) if k else (init, init_row)
        while i < rows:
            ai, ci = a + (i * a_row + k * a_k) * FLOATS, c + i * c_row * FLOATS
            begun, some = start + i * start_row * FLOATS, min(rows - i, ROW_PANEL)
            _panel(ai, a_row, a_k, b + k * b_k * FLOATS, b_k, ci, c_row, begun, start_row, some, columns, many)
            i += ROW_PANEL
        k += K_PANEL


@njit(**COMPILED)
def product(a, b, c, init):
    """c = init + a b: a (i, k) may be transposed; b (k, j) and c (i, j) have neighbouring columns.

    What it starts from is a row (j,), or has all rows, (i, j), and may be c.
    """
    _product(
        address(a), U(a.strides[0] // SIZE), U(a.strides[1] // SIZE),
        address(b), U(b.strides[0] // SIZE), address(c), U(c.strides[0] // SIZE),
        address(init), U((init.ndim - 1) * init.strides[0] // SIZE), U(c.shape[0]), U(c.shape[1]), U(a.shape[1]),
    )  # fmt: skip


@njit(inline="always", **COMPILED)
def place(a, i, j):
    """Address of a[i, j], a (row, column) without gaps."""
    return address(a) + U(i * a.shape[1] + j) * FLOATS


@njit(inline="always", **COMPILED)
def spaced_product(a, a_row, a_k, b, b_k, c, c_row, zeros, rows, columns, count):
    """c = a b of addresses and strides, for rows that lie apart; zeros (column,)."""
    _product(a, U(a_row), U(a_k), b, U(b_k), c, U(c_row), zeros, U(0), U(rows), U(columns), U(count))


@njit(inline="always", **COMPILED)
def spaced_sum(a, a_row, a_k, b, b_k, c, c_row, rows, columns, count):
    """c += a b, as `spaced_product`."""
    _product(a, U(a_row), U(a_k), b, U(b_k), c, U(c_row), c, U(c_row), U(rows), U(columns), U(count))


@njit(**COMPILED)
def transpose(a, out):
    """out (j, i) = a (i, j)^T."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[j, i] = a[i, j]


@njit(**COMPILED)
def column_sums(a, out):
    """out (j,) += sum over i of a (i, j)."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[j] += a[i, j]


# Element by element

LOG2E, LN2_HIGH, LN2_LOW = np.float32(1.44269504), np.float32(0.693359375), np.float32(-2.12194440e-4)
LOWEST, HIGHEST = np.float32(-87.0), np.float32(88.0)
ZERO, HALF, ONE, TWO, THREE = (np.float32(x) for x in (0, 0.5, 1, 2, 3))
C6, C5, C4, C3, C2 = (np.float32(1 / math.factorial(n)) for n in (6, 5, 4, 3, 2))
GELU, CUBE = np.float32(math.sqrt(2 / math.pi)), np.float32(0.044715)
EPS = np.float32(1e-5)


@njit(inline="always", **COMPILED)
def exp(x):
    """e^x within 3e-7 of itself, for float32 x cut to -87..88: 2^n times a polynomial on |f| <= ln(2) / 2."""
    x = min(max(x, LOWEST), HIGHEST)
    n = np.floor(x * LOG2E + HALF)
    f = (x - n * LN2_HIGH) - n * LN2_LOW
    tail = ((((C6 * f + C5) * f + C4) * f + C3) * f + C2) * f * f + f + ONE
    return tail * from_bits((np.int32(n) + np.int32(127)) << np.int32(23))


@njit(**COMPILED)
def gelu(x, slope):
    """x (i, j) becomes its tanh GELU, x sigmoid(2u) with u = sqrt(2/pi) (x + .044715 x^3); slope its derivative."""
    flat, out = x.reshape(-1), slope.reshape(-1)  # one loop: a row is short beside what vectors need to begin
    for j in range(len(flat)):
        h = flat[j]
        square = h * h
        s = ONE / (ONE + exp(-TWO * GELU * h * (ONE + CUBE * square)))
        flat[j] = h * s
        out[j] = s + h * s * (ONE - s) * TWO * GELU * (ONE + THREE * CUBE * square)


@njit(**COMPILED)
def layer_norm(x, weight, bias, hat, inverse, out):
    """out (i, j) = weight hat + bias, hat = (x - mean) inverse, inverse (i,) = (variance + 1e-5)^-1/2."""
    share = ONE / np.float32(x.shape[1])
    for i in range(x.shape[0]):
        mean, square = ZERO, ZERO
        for j in range(x.shape[1]):
            mean += x[i, j]
        mean *= share
        for j in range(x.shape[1]):
            square += (x[i, j] - mean) * (x[i, j] - mean)
        inverse[i] = ONE / math.sqrt(square * share + EPS)
        for j in range(x.shape[1]):
            hat[i, j] = (x[i, j] - mean) * inverse[i]
            out[i, j] = hat[i, j] * weight[j] + bias[j]


@njit(**COMPILED)
def layer_norm_back(given, weight, hat, inverse, d_weight, d_bias, d_x):
    """d_x (i, j) += inverse (g - mean g - hat mean(g hat)), g = given weight; adds sums over i to weight and bias."""
    share = ONE / np.float32(hat.shape[1])
    for i in range(hat.shape[0]):
        mean, along = ZERO, ZERO
        for j in range(hat.shape[1]):
            g = given[i, j] * weight[j]
            mean += g
            along += g * hat[i, j]
        mean *= share
        along *= share
        for j in range(hat.shape[1]):
            d_bias[j] += given[i, j]
            d_weight[j] += given[i, j] * hat[i, j]
            d_x[i, j] += inverse[i] * (given[i, j] * weight[j] - mean - hat[i, j] * along)


@njit(**COMPILED)
def add(x, other):
    """x (i, j) += other."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] += other[i, j]


@njit(inline="always", **COMPILED)
def add_row(x, i, other, k, times):
    """x[i] += times other[k]."""
    for j in range(x.shape[1]):
        x[i, j] += times * other[k, j]


# Keyed randomness, as in `cot2lib.kit.random`

GOLDEN, SIGNS = U(0x9E3779B97F4A7C15), U(0x8000800080008000)


@njit(inline="always", **COMPILED)
def mix(x):
    """The SplitMix64 finaliser."""
    x = (x ^ (x >> U(30))) * U(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> U(27))) * U(0x94D049BB133111EB)
    return x ^ (x >> U(31))


@njit(inline="always", **COMPILED)
def fold(key, part):
    """A key one level deeper."""
    return mix(mix(key + GOLDEN) + U(part))


@njit(**COMPILED)
def draw(key, step, counter, draws):
    """Draws (draw,) of a run's key at a step; each is four 16-bit lanes, whose sign bits are turned as in torch."""
    here = fold(key, step)
    for i in range(len(draws)):
        draws[i] = mix(counter[i] ^ here) ^ SIGNS


@njit(**COMPILED)
def adamw(weights, gradient, mean, square, rate, decay, beta2, step):
    """One step of torch.optim.AdamW (beta_1 = .9, eps 1e-8) on flat arrays; `step` counts from 1."""
    keep = np.float32(1 - rate * decay)
    size = np.float32(rate / (1 - 0.9**step))
    root = np.float32(1 / math.sqrt(1 - beta2**step))
    b1, b2, eps = np.float32(0.1), np.float32(beta2), np.float32(1e-8)
    for i in range(len(weights)):
        g = gradient[i]
        mean[i] += b1 * (g - mean[i])
        square[i] = b2 * square[i] + (ONE - b2) * g * g
        weights[i] = weights[i] * keep - size * mean[i] / (math.sqrt(square[i]) * root + eps)
