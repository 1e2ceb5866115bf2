"""Attention of one layer, forward and backward: every input and head by itself, in blocks of queries.

A block of queries meets the keys up to its last one, without the padding before them.
"""

import numpy as np
from numba import njit

from cot2lib.fast.entries import COMPILED
from cot2lib.fast.kernels import FLOATS, ZERO, U, place, spaced_product, spaced_sum
from cot2lib.fast.rows import LANES, LEAST, multiply_row, soft_row, soft_row_back

QUERIES = 32  # of a block


@njit(**COMPILED)
def hide_branches(rows, position, high, shape):
    """Scores of a position's row for the keys of other branches become so small that nothing of them is seen."""
    own = (position - shape.shared) % shape.branches
    for start in range(shape.shared, high, shape.branches):
        for branch in range(shape.branches):
            if branch != own:
                rows[position, start + branch] = LEAST


@njit(inline="always", **COMPILED)
def drop_seen(seen, first, out, low, high, begin, end, positions, scales, lane):
    """out (query, key) = attention weights times dropout multipliers, of queries low..high and keys begin..end.

    Query 0 stands in row `first` of `seen`. Multipliers begin with number `lane`, as many a query as `positions`; keys
    beyond have a weight of zero.
    """
    for q in range(low, high):
        times = U(scales.ctypes.data) + U(lane + q * positions + begin) * FLOATS
        multiply_row(place(seen, first + q, begin), times, place(out, q, begin), U(end - begin))


@njit(inline="always", **COMPILED)
def turn_head(rows, i, starts, at, first, last, out):
    """out (j, position) = columns at.. of input i's rows, transposed, from position first to last."""
    for p in range(first, last):
        row = starts[p] + i
        for j in range(out.shape[0]):
            out[j, p] = rows[row, at + j]


@njit(inline="always", **COMPILED)
def take_head(rows, i, starts, at, first, last, low, out):
    """out (position - low, j) = columns at.. of input i's rows, from position first to last.

    Rows of one input lie apart, often by a multiple of 4 KiB. Then they compete for the same few places of the cache.
    """
    for p in range(first, last):
        row = starts[p] + i
        for j in range(out.shape[1]):
            out[p - low, j] = rows[row, at + j]


@njit(inline="always", **COMPILED)
def give_head(made, i, starts, at, first, last, low, rows):
    """The reverse: columns at.. of input i's rows, from position first to last, = made (position - low, j)."""
    for p in range(first, last):
        row = starts[p] + i
        for j in range(made.shape[1]):
            rows[row, at + j] = made[p - low, j]


@njit(inline="always", **COMPILED)
def block_of(first, high, padding):
    """Queries from `first` on that attend together: where they end; from which key to which they see, no padding."""
    last = min(first + QUERIES, high)
    return last, min(padding // LANES * LANES, last), (last + LANES - 1) // LANES * LANES


@njit(**COMPILED)
def attend(layer, low, high, padding, shape, noise, lane, w):
    """mixed = softmax(q k^T / sqrt(d / h)) v of every input and head, for queries low..high over keys 0..high."""
    b, d, size, queries = shape.batch, shape.width, shape.width // shape.heads, high - low
    qkv, mixed, keys, scale = w.qkv[layer], w.mixed[layer], w.keys, np.float32(size**-0.5)
    wide, starts, query, value, out = keys.shape[1], w.starts, w.sides[0], w.sides[1], w.sides[2]
    for i in range(b):
        for h in range(shape.heads):
            at, seen = h * size, w.seen[layer, i * shape.heads + h]
            there, first = w.first[i], max(low, w.first[i])
            turn_head(qkv, i, starts, d + at, there, high, keys)
            take_head(qkv, i, starts, at, first, high, low, query)
            take_head(qkv, i, starts, 2 * d + at, there, high, 0, value)
            while first < high:
                last, begin, end = block_of(first, high, padding[i])
                rows, own = last - first, first - low  # of the block, in query and out
                here, start = place(query, own, 0), place(seen, first, begin)
                if begin < last:
                    known = place(keys, 0, begin)
                    spaced_product(here, size, 1, known, wide, start, wide, w.zeros, rows, end - begin, size)
                    for q in range(first, last):
                        if shape.branches > 1:
                            hide_branches(seen, q, high, shape)
                        soft_row(place(seen, q, 0), U(begin), U(end), U(padding[i]), U(q + 1), scale)
                    if noise.threshold:
                        drawn = lane + (i * shape.heads + h) * queries * high
                        drop_seen(seen, low, w.scores[0], own, last - low, begin, end, high, w.scales, drawn)
                        start = place(w.scores[0], own, begin)
                    made, held = place(out, own, 0), place(value, begin, 0)
                    spaced_product(start, wide, 1, held, size, made, size, w.zeros, rows, size, last - begin)
                else:
                    out[own : last - low] = ZERO
                first = last
            give_head(out, i, starts, at, max(low, there), high, low, mixed)


@njit(**COMPILED)
def attend_back(layer, first, high, padding, shape, noise, lane, w):
    """Gradients of queries first..high, and what they add to those of keys and values, from d_normed, that of `mixed`.

    They are in d_qkv.
    """
    b, d, size = shape.batch, shape.width, shape.width // shape.heads
    qkv, d_qkv, starts = w.qkv[layer], w.d_qkv[min(layer, len(w.d_qkv) - 1)], w.starts
    query, key, given, d_query, d_key, d_value = w.sides
    for i in range(b):
        for h in range(shape.heads):
            at, number = h * size, i * shape.heads + h
            there, low = w.first[i], max(first, w.first[i])
            turn_head(qkv, i, starts, 2 * d + at, there, high, w.keys)
            take_head(w.d_normed, i, starts, at, low, high, first, given)
            take_head(qkv, i, starts, at, low, high, first, query)
            take_head(qkv, i, starts, d + at, there, high, 0, key)
            take_head(d_qkv, i, starts, d + at, there, high, 0, d_key)
            take_head(d_qkv, i, starts, 2 * d + at, there, high, 0, d_value)
            drawn = lane + number * (high - first) * high
            while low < high:
                low = block_back(low, first, high, padding[i], w.seen[layer, number], noise, drawn, w)
            give_head(d_value, i, starts, 2 * d + at, there, high, 0, d_qkv)
            give_head(d_query, i, starts, at, max(first, there), high, first, d_qkv)
            give_head(d_key, i, starts, d + at, there, high, 0, d_qkv)


@njit(inline="always", **COMPILED)
def block_back(low, first, high, padding, seen, noise, drawn, w):
    """Gradients of one head's block of queries, which begins at `low`; where it ends.

    The rows of its query, its keys, their gradients and what is given are in `sides`, its values in `keys`.
    """
    query, key, given, d_query, d_key, d_value = w.sides
    keys, d_seen, used, wide, size = w.keys, w.scores[1], w.scores[0], w.keys.shape[1], w.keys.shape[0]
    last, begin, end = block_of(low, high, padding)
    rows, own, many, after = last - low, low - first, last - begin, last - first
    if begin == last:
        d_query[own:after] = ZERO
        return last
    here, start, shown = place(given, own, 0), place(d_seen, own, begin), place(seen, low, begin)
    spaced_product(here, size, 1, place(keys, 0, begin), wide, start, wide, w.zeros, rows, end - begin, size)
    if noise.threshold:
        drop_seen(seen, first, used, own, after, begin, end, high, w.scales, drawn)
        drop_seen(d_seen, 0, d_seen, own, after, begin, end, high, w.scales, drawn)
        shown = place(used, own, begin)
    spaced_sum(shown, 1, wide, here, size, place(d_value, begin, 0), size, many, size, rows)
    for q in range(low, last):
        soft_row_back(place(seen, q, 0), place(d_seen, q - first, 0), U(begin), U(end), np.float32(size**-0.5))
    made, asked = place(d_query, own, 0), place(query, own, 0)
    spaced_product(start, wide, 1, place(key, begin, 0), size, made, size, w.zeros, rows, size, many)
    spaced_sum(start, 1, wide, asked, size, place(d_key, begin, 0), size, many, size, rows)
    return last
