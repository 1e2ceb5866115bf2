"""Rows of a softmax, their gradients and their dropout, as LLVM vectors.

A row is as short as a sequence or a vocabulary. LLVM turns a plain loop into one over four vectors at a time, and
leaves the rest of a row, often all of it, to scalar code. So these loops are written out, one vector at a time.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from cot2lib.fast.kernels import (  # isort: skip
    C2, C3, C4, C5, C6, FLOAT, HALF, HIGHEST, INDEX, LN2_HIGH, LN2_LOW, LOG2E, ONE, SIZE, ZERO, phi_of,
)  # fmt: skip

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
        return _call(builder, "maxnum", highest, value)

    top = _spread(builder, _reduced(builder, "fmax", _over(builder, begin, end, hidden, scaled)))

    def raised(k, total):
        at = _address(builder, row, k)
        value = _vector_exp(builder, builder.fsub(builder.load(at, align=SIZE), top))
        builder.store(value, at, align=SIZE)
        return builder.fadd(total, value)

    total = _reduced(builder, "fadd", _over(builder, begin, end, _spread(builder, ZERO), raised))
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

    summed = _spread(builder, _reduced(builder, "fadd", _over(builder, begin, end, _spread(builder, ZERO), along)))

    def centred(k, carried):
        share, slope = _loaded(builder, k, row, given)
        value = builder.fmul(builder.fmul(factor, share), builder.fsub(slope, summed))
        builder.store(value, _address(builder, given, k), align=SIZE)
        return carried

    _over(builder, begin, end, summed, centred)
    return context.get_dummy_value()


@intrinsic
def multiply_row(context, row, other, out, count):
    """Floats 0..count from address `out` on = those at `row` times those at `other`, a multiple of `LANES` of them."""
    return types.void(row, other, out, count), _multiply_row


def _multiply_row(context, builder, signature, arguments):
    row, other, out, count = arguments

    def multiplied(k, carried):
        value = builder.fmul(*_loaded(builder, k, row, other))
        builder.store(value, _address(builder, out, k), align=SIZE)
        return carried

    _over(builder, INDEX(0), count, _spread(builder, ZERO), multiplied)
    return context.get_dummy_value()


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


def _address(builder, start, k):
    """Pointer to the vector at float k from an address on."""
    return builder.inttoptr(builder.add(start, builder.mul(k, INDEX(SIZE))), VECTOR.as_pointer())


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


def _reduced(builder, name, vector):
    """The sum or the maximum of a vector's entries."""
    full, starts = f"llvm.vector.reduce.{name}.v{LANES}f32", [FLOAT(0.0)] if name == "fadd" else []
    kind = ir.FunctionType(FLOAT, [start.type for start in starts] + [VECTOR])
    function = builder.module.globals.get(full) or ir.Function(builder.module, kind, full)
    return builder.call(function, [*starts, vector], fastmath=("reassoc",))


def _vector_exp(builder, x):
    """`exp` of a vector, but exactly 0 below -88."""
    used = (NOTHING, HIGHEST, LOG2E, HALF, -LN2_HIGH, -LN2_LOW)
    nothing, highest, log2e, half, high, low = (_spread(builder, np.float32(value)) for value in used)
    x = _call(builder, "minnum", _call(builder, "maxnum", x, nothing), highest)
    n = _call(builder, "floor", _call(builder, "fma", x, log2e, half))
    f = _call(builder, "fma", n, low, _call(builder, "fma", n, high, x))
    tail = _spread(builder, C6)
    for coefficient in (C5, C4, C3, C2, ONE, ONE):
        tail = _call(builder, "fma", tail, f, _spread(builder, coefficient))
    power = builder.add(builder.fptosi(n, PLACES), ir.Constant(PLACES, [127] * LANES))
    return builder.fmul(tail, builder.bitcast(builder.shl(power, ir.Constant(PLACES, [23] * LANES)), VECTOR))
