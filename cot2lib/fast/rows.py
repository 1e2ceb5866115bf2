"""Rows of a softmax, their gradients and their dropout, as LLVM vectors.

A row is as short as a sequence or a vocabulary. LLVM turns a plain loop into one over four vectors at a time, and
leaves the rest of a row, often all of it, to scalar code. So these loops are written out, one vector at a time.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.cgutils import for_range, for_range_slice, raw_memcpy
from numba.extending import intrinsic

from cot2lib.fast.entries import COMPILED

from cot2lib.fast.kernels import (  # isort: skip
    C2, C3, C4, C5, C6, FLOAT, FLOATS, HALF, HIGHEST, INDEX, LN2_HIGH, LN2_LOW, LOG2E, ONE, SIZE, U, ZERO, address,
    phi_of,
)  # fmt: skip

DRAWN = U(2)  # bytes of a lane of a draw
LANES = 16  # floats of a vector; rows begin and end at multiples
VECTOR, PLACES = ir.VectorType(FLOAT, LANES), ir.VectorType(ir.IntType(32), LANES)
LEAST, HIDDEN = np.float32(-1e30), np.float32(-1e29)  # score of what is not seen; less than any score that is
TINY = np.float32(1e-30)  # the sum where nothing is seen
NOTHING = np.float32(-88.0)  # no exponent is left for its power, which is 0


@intrinsic
def soft_row(context, row, begin, end, first, last, scale):
    """Floats begin..end from address `row` on: softmax over first..last of scale x, zero elsewhere.

    Nothing is seen where nothing lies between first and last; begin and end are multiples of `LANES`.
    """
    return types.void(row, begin, end, first, last, types.float32), _soft_row


def _soft_row(context, builder, signature, arguments):
    row, begin, end, first, last, scale = arguments
    least, hidden = _spread(builder, LEAST), _spread(builder, HIDDEN)
    bounds = [_spread(builder, builder.trunc(bound, ir.IntType(32)), PLACES) for bound in (first, last)]
    factor = _spread(builder, scale)

    def scaled(k, highest):
        steps = ir.Constant(PLACES, [*range(LANES)])
        places = builder.add(_spread(builder, builder.trunc(k, ir.IntType(32)), PLACES), steps)
        seen = builder.and_(builder.icmp_signed(">=", places, bounds[0]), builder.icmp_signed("<", places, bounds[1]))
        at = _address(builder, row, k)
        value = builder.select(seen, builder.fmul(builder.load(at, align=SIZE), factor), least)
        builder.store(value, at, align=SIZE)
        return _greater(builder, value, highest)

    top = _spread(builder, _greatest(builder, _over(builder, begin, end, hidden, scaled)))

    def raised(k, total):
        at = _address(builder, row, k)
        value = _vector_exp(builder, builder.fsub(builder.load(at, align=SIZE), top))
        builder.store(value, at, align=SIZE)
        return builder.fadd(total, value)

    total = _summed(builder, _over(builder, begin, end, _spread(builder, ZERO), raised))
    share = _spread(builder, builder.fdiv(FLOAT(1.0), builder.fadd(total, FLOAT(float(TINY)))))

    def divided(k, carried):
        at = _address(builder, row, k)
        builder.store(builder.fmul(builder.load(at, align=SIZE), share), at, align=SIZE)
        return carried

    _over(builder, begin, end, share, divided)
    return context.get_dummy_value()


@intrinsic
def soft_row_back(context, row, given, begin, end, scale):
    """Floats begin..end from address `given` on, gradients of a softmax that is at `row`, become those of its scores
    before scaling: scale p (g - sum(p g))."""
    return types.void(row, given, begin, end, types.float32), _soft_row_back


def _soft_row_back(context, builder, signature, arguments):
    row, given, begin, end, scale = arguments
    factor = _spread(builder, scale)

    def along(k, total):
        return _call(builder, "fma", *_loaded(builder, k, row, given), total)

    summed = _spread(builder, _summed(builder, _over(builder, begin, end, _spread(builder, ZERO), along)))

    def centred(k, carried):
        share, slope = _loaded(builder, k, row, given)
        value = builder.fmul(builder.fmul(factor, share), builder.fsub(slope, summed))
        builder.store(value, _address(builder, given, k), align=SIZE)
        return carried

    _over(builder, begin, end, summed, centred)
    return context.get_dummy_value()


@intrinsic
def drop_row(context, row, lanes, out, count, threshold, scale):
    """Floats 0..count from address `out` on = those at `row` times dropout multipliers.

    A multiplier is `scale` where the lane, from address `lanes` on, is `threshold` or more, and else zero.
    """
    return types.void(row, lanes, out, count, types.int32, types.float32), _drop_row


def _drop_row(context, builder, signature, arguments):
    row, lanes, out, count, threshold, scale = arguments
    whole = builder.and_(count, INDEX(-LANES))

    def dropped(k, lane, value, kinds):
        drawn = builder.load(_address(builder, lanes, k, lane, int(DRAWN)), align=int(DRAWN))
        least, times, nothing = kinds
        kept = builder.icmp_signed(">=", builder.zext(drawn, least.type), least)
        multiplier = builder.select(kept, times, nothing)
        product = builder.fmul(builder.load(_address(builder, row, k, value), align=SIZE), multiplier)
        builder.store(product, _address(builder, out, k, value), align=SIZE)

    wide = _spread(builder, threshold, PLACES), _spread(builder, scale), _spread(builder, ZERO)
    with for_range_slice(builder, INDEX(0), whole, INDEX(LANES), INDEX) as (k, _):
        dropped(k, ir.VectorType(ir.IntType(16), LANES), VECTOR, wide)
    with for_range_slice(builder, whole, count, INDEX(1), INDEX) as (k, _):
        dropped(k, ir.IntType(16), FLOAT, (threshold, scale, FLOAT(0.0)))
    return context.get_dummy_value()


@njit(**COMPILED)
def drop(x, out, lanes, batch, noise):
    """out (position x batch, j) = x times dropout multipliers, which run input by input; out may be x."""
    width, positions = x.shape[1], x.shape[0] // batch
    given, made, drawn = address(x), address(out), address(lanes)
    for p in range(positions):
        for i in range(batch):
            row, first = U((p * batch + i) * width) * FLOATS, drawn + U((i * positions + p) * width) * DRAWN
            drop_row(given + row, first, made + row, U(width), noise.threshold, noise.scale)


@intrinsic
def copy_row(context, row, out, count):
    """`count` floats from address `out` on = those from address `row` on."""

    def emit(context, builder, signature, arguments):
        row, out, count = arguments
        to, given = (builder.inttoptr(start, FLOAT.as_pointer()) for start in (out, row))
        raw_memcpy(builder, to, given, count, INDEX(SIZE))
        return context.get_dummy_value()

    return types.void(row, out, count), emit


@intrinsic
def turn_row(context, row, out, step, count):
    """Float j of `count` from address `row` on goes `step` floats farther than the one before, the first to `out`."""

    def emit(context, builder, signature, arguments):
        row, out, step, count = arguments
        with for_range(builder, count) as loop:
            value = builder.load(_address(builder, row, loop.index, FLOAT), align=SIZE)
            builder.store(value, _address(builder, out, builder.mul(loop.index, step), FLOAT), align=SIZE)
        return context.get_dummy_value()

    return types.void(row, out, step, count), emit


@intrinsic
def put(context, place, value):
    """The float at an address = a value."""

    def emit(context, builder, signature, arguments):
        place, value = arguments
        builder.store(value, builder.inttoptr(place, FLOAT.as_pointer()), align=SIZE)
        return context.get_dummy_value()

    return types.void(place, types.float32), emit


def _over(builder, begin, end, carried, body):
    """A loop over the vectors at k = begin.. up to end, at least one: body(k, carried) gives what is carried on."""
    before = builder.block
    loop, after = builder.append_basic_block("over_row"), builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    k, now = phi_of(builder, INDEX, begin, before), phi_of(builder, carried.type, carried, before)
    given = body(k, now)
    following = builder.add(k, INDEX(LANES))
    k.add_incoming(following, loop)
    now.add_incoming(given, loop)
    builder.cbranch(builder.icmp_unsigned("<", following, end), loop, after)
    builder.position_at_end(after)
    return given


def _address(builder, start, k, kind=VECTOR, size=SIZE):
    """Pointer to a vector, or to one entry, at entry k from an address on; entries have `size` bytes."""
    return builder.inttoptr(builder.add(start, builder.mul(k, INDEX(size))), kind.as_pointer())


def _loaded(builder, k, *starts):
    """The vectors at float k from each of some addresses on."""
    return [builder.load(_address(builder, start, k), align=SIZE) for start in starts]


def _spread(builder, value, kind=VECTOR):
    """A vector of one value."""
    if isinstance(value, np.float32):
        return ir.Constant(kind, [float(value)] * LANES)
    one = builder.insert_element(kind(ir.Undefined), value, ir.IntType(32)(0))
    return builder.shuffle_vector(one, kind(ir.Undefined), PLACES(None))


def _call(builder, name, *values):
    """An operation of LLVM on vectors."""
    full = f"llvm.{name}.v{LANES}f32"
    kind = ir.FunctionType(VECTOR, [VECTOR] * len(values))
    return builder.call(builder.module.globals.get(full) or ir.Function(builder.module, kind, full), values)


def _greater(builder, value, other):
    """The greater of two, `other` where one is not a number: one instruction, while LLVM's `maxnum` is three."""
    return builder.select(builder.fcmp_ordered(">", value, other), value, other)


def _greatest(builder, vector):
    """The maximum of a vector's entries, by halves."""
    for half in (8, 4, 2, 1):
        upper = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [(lane + half) % LANES for lane in range(LANES)])
        vector = _greater(builder, builder.shuffle_vector(vector, VECTOR(ir.Undefined), upper), vector)
    return builder.extract_element(vector, ir.IntType(32)(0))


def _summed(builder, vector):
    """The sum of a vector's entries."""
    name, kind = f"llvm.vector.reduce.fadd.v{LANES}f32", ir.FunctionType(FLOAT, [FLOAT, VECTOR])
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    return builder.call(function, [FLOAT(0.0), vector], fastmath=("reassoc",))


def _vector_exp(builder, x):
    """`exp` of a vector, but exactly 0 below -88."""
    used = (NOTHING, HIGHEST, LOG2E, HALF, -LN2_HIGH, -LN2_LOW)
    nothing, highest, log2e, half, high, low = (_spread(builder, np.float32(value)) for value in used)
    x = _greater(builder, x, nothing)
    x = builder.select(builder.fcmp_ordered("<", x, highest), x, highest)
    n = _call(builder, "floor", _call(builder, "fma", x, log2e, half))
    f = _call(builder, "fma", n, low, _call(builder, "fma", n, high, x))
    tail = _spread(builder, C6)
    for coefficient in (C5, C4, C3, C2, ONE, ONE):
        tail = _call(builder, "fma", tail, f, _spread(builder, coefficient))
    power = builder.add(builder.fptosi(n, PLACES), ir.Constant(PLACES, [127] * LANES))
    return builder.fmul(tail, builder.bitcast(builder.shl(power, ir.Constant(PLACES, [23] * LANES)), VECTOR))
