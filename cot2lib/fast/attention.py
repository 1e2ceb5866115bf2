"""Attention of one layer, forward and backward: every input and head by itself, in blocks of queries.

A block of queries meets the keys up to its last one, without the padding before them. Rows of one input lie apart,
often by a multiple of 4 KiB; then they compete for the same few places of the cache. So a head's rows are gathered
first, each copied as a whole. All of it is told by addresses.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from cot2lib.fast.entries import COMPILED
from cot2lib.fast.kernels import FLOATS, U, address, spaced_product, spaced_sum
from cot2lib.fast.rows import DRAWN, LANES, LEAST, copy_row, drop_row, put, soft_row, soft_row_back, turn_row

QUERIES = 32  # of a block


class Head(NamedTuple):
    """Addresses of the rows (position, j) that one head's products read and make, and how many floats a row has."""

    query: np.uint64
    key: np.uint64
    value: np.uint64  # going back, what is given
    out: np.uint64  # going back, the gradient of the queries
    d_key: np.uint64
    d_value: np.uint64
    turned: np.uint64  # keys, or going back values, transposed
    scores: np.uint64  # (query, key) going back, gradients of what is seen
    used: np.uint64  # (query, key) what is seen, after dropout
    lanes: np.uint64  # of dropout
    zeros: np.uint64
    size: int
    wide: int  # of rows of keys


@njit(inline="always", **COMPILED)
def head_of(w):
    """Addresses of a head's arrays."""
    positions, size, wide = w.sides.shape[1], w.sides.shape[2], w.keys.shape[1]
    sides, scores, step = address(w.sides), address(w.scores), U(positions * size) * FLOATS
    return Head(
        sides, sides + step, sides + step * U(2), sides + step * U(3), sides + step * U(4), sides + step * U(5),
        address(w.keys), scores, scores + U(positions * wide) * FLOATS, address(w.lanes), address(w.zeros), size, wide,
    )  # fmt: skip


@njit(inline="always", **COMPILED)
def row_at(start, i, width, j=0):
    """Address of float j of row i, in rows of some width from an address on."""
    return start + U(i * width + j) * FLOATS


@njit(inline="always", **COMPILED)
def clear_rows(made, rows, head):
    """So many rows from an address on become zero."""
    for q in range(rows):
        copy_row(head.zeros, row_at(made, q, head.size), U(head.size))


@njit(**COMPILED)
def hide_branches(row, position, high, shape):
    """Scores of a position's row for the keys of other branches become so small that nothing of them is seen."""
    own = (position - shape.shared) % shape.branches
    for start in range(shape.shared, high, shape.branches):
        for branch in range(shape.branches):
            if branch != own:
                put(row + U(start + branch) * FLOATS, LEAST)


@njit(inline="always", **COMPILED)
def drop_seen(seen, out, begin, end, positions, lane, low, high, noise, head):
    """out (query, key) = attention weights times dropout multipliers, of queries low..high and keys begin..end.

    Lanes begin with number `lane`, as many a query as `positions`; keys beyond have a weight of zero.
    """
    for q in range(low, high):
        drawn = head.lanes + U(lane + q * positions + begin) * DRAWN
        row, made = row_at(seen, q, head.wide, begin), row_at(out, q, head.wide, begin)
        drop_row(row, drawn, made, U(end - begin), noise.threshold, noise.scale)


@njit(inline="always", **COMPILED)
def take_head(rows, width, at, i, starts, first, last, out, size):
    """Rows (position, j) from `out` on = columns at.. of input i's rows, from position first to last."""
    for p in range(first, last):
        copy_row(row_at(rows, starts[p] + i, width, at), row_at(out, p - first, size), U(size))


@njit(inline="always", **COMPILED)
def give_head(made, size, i, starts, first, last, rows, width, at):
    """The reverse: columns at.. of input i's rows, from position first to last, = rows (position, j) from `made`."""
    for p in range(first, last):
        copy_row(row_at(made, p - first, size), row_at(rows, starts[p] + i, width, at), U(size))


@njit(inline="always", **COMPILED)
def turn_head(rows, size, first, last, out, wide):
    """Rows (j, position) from `out` on = those (position, j) from `rows` on, of positions first to last."""
    for p in range(first, last):
        turn_row(row_at(rows, p, size), out + U(p) * FLOATS, U(wide), U(size))


@njit(inline="always", **COMPILED)
def block_of(first, high, padding):
    """Queries from `first` on that attend together: where they end; from which key to which they see, no padding."""
    last = min(first + QUERIES, high)
    return last, min(padding // LANES * LANES, last), (last + LANES - 1) // LANES * LANES


@njit(**COMPILED)
def attend(layer, low, high, padding, shape, noise, lane, w):
    """mixed = softmax(q k^T / sqrt(d / h)) v of every input and head, for queries low..high over keys 0..high."""
    d, starts, head, positions = shape.width, w.starts, head_of(w), w.seen.shape[2]
    qkv, mixed, seen, size = address(w.qkv[layer]), address(w.mixed[layer]), address(w.seen[layer]), head.size
    for i in range(shape.batch):
        there, begun = w.first[i], max(low, w.first[i])
        for h in range(shape.heads):
            at, number = h * size, i * shape.heads + h
            key, value = row_at(head.key, there, size), row_at(head.value, there, size)
            take_head(qkv, 3 * d, d + at, i, starts, there, high, key, size)
            turn_head(head.key, size, there, high, head.turned, head.wide)
            take_head(qkv, 3 * d, at, i, starts, begun, high, row_at(head.query, begun - low, size), size)
            take_head(qkv, 3 * d, 2 * d + at, i, starts, there, high, value, size)
            drawn, first = lane + number * (high - low) * high, begun
            own = row_at(seen, number * positions, head.wide)
            while first < high:
                first = block(first, low, high, padding[i], shape, own, noise, drawn, head)
            give_head(row_at(head.out, begun - low, size), size, i, starts, begun, high, mixed, d, at)


@njit(inline="always", **COMPILED)
def block(low, first, high, padding, shape, seen, noise, drawn, head):
    """Values that one head's block of queries mixes, which begins at `low`, into its rows of `out`; where it ends.

    Query `first` has the first row of `query` and of `out`.
    """
    size, wide, own = head.size, head.wide, low - first
    last, begin, end = block_of(low, high, padding)
    made, start = row_at(head.out, own, size), row_at(seen, low, wide, begin)
    if begin == last:
        clear_rows(made, last - low, head)
        return last
    asked, known = row_at(head.query, own, size), row_at(head.turned, 0, wide, begin)
    spaced_product(asked, size, 1, known, wide, start, wide, head.zeros, last - low, end - begin, size)
    for q in range(low, last):
        row = row_at(seen, q, wide)
        if shape.branches > 1:
            hide_branches(row, q, high, shape)
        soft_row(row, U(begin), U(end), U(padding), U(q + 1), np.float32(size**-0.5))
    if noise.threshold:
        drop_seen(row_at(seen, first, wide), head.used, begin, end, high, drawn, own, last - first, noise, head)
        start = row_at(head.used, own, wide, begin)
    held = row_at(head.value, begin, size)
    spaced_product(start, wide, 1, held, size, made, size, head.zeros, last - low, size, last - begin)
    return last


@njit(**COMPILED)
def attend_back(layer, first, high, padding, shape, noise, lane, w):
    """Gradients of queries first..high, and what they add to those of keys and values, from d_normed, that of `mixed`.

    They are in d_qkv.
    """
    d, starts, head, positions = shape.width, w.starts, head_of(w), w.seen.shape[2]
    d_qkv, d_mixed = address(w.d_qkv[min(layer, len(w.d_qkv) - 1)]), address(w.d_normed)
    qkv, seen, size = address(w.qkv[layer]), address(w.seen[layer]), head.size
    for i in range(shape.batch):
        there, begun = w.first[i], max(first, w.first[i])
        for h in range(shape.heads):
            at, number, low = h * size, i * shape.heads + h, begun
            key, d_key = row_at(head.key, there, size), row_at(head.d_key, there, size)
            d_value, own = row_at(head.d_value, there, size), begun - first
            take_head(qkv, 3 * d, 2 * d + at, i, starts, there, high, key, size)
            turn_head(head.key, size, there, high, head.turned, head.wide)
            take_head(d_mixed, d, at, i, starts, begun, high, row_at(head.value, own, size), size)
            take_head(qkv, 3 * d, at, i, starts, begun, high, row_at(head.query, own, size), size)
            take_head(qkv, 3 * d, d + at, i, starts, there, high, key, size)
            take_head(d_qkv, 3 * d, d + at, i, starts, there, high, d_key, size)
            take_head(d_qkv, 3 * d, 2 * d + at, i, starts, there, high, d_value, size)
            drawn, shown = lane + number * (high - first) * high, row_at(seen, number * positions, head.wide)
            while low < high:
                low = block_back(low, first, high, padding[i], shown, noise, drawn, head)
            give_head(d_value, size, i, starts, there, high, d_qkv, 3 * d, 2 * d + at)
            give_head(row_at(head.out, own, size), size, i, starts, begun, high, d_qkv, 3 * d, at)
            give_head(d_key, size, i, starts, there, high, d_qkv, 3 * d, d + at)


@njit(inline="always", **COMPILED)
def block_back(low, first, high, padding, seen, noise, drawn, head):
    """Gradients of one head's block of queries, which begins at `low`; where it ends.

    What is given is in `value`, the gradient of the queries goes to `out`, and values are in `turned`.
    """
    size, wide, own = head.size, head.wide, low - first
    last, begin, end = block_of(low, high, padding)
    rows, many, made = last - low, last - begin, row_at(head.out, own, size)
    if begin == last:
        clear_rows(made, rows, head)
        return last
    given, start = row_at(head.value, own, size), row_at(head.scores, own, wide, begin)
    known, shown = row_at(head.turned, 0, wide, begin), row_at(seen, low, wide, begin)
    spaced_product(given, size, 1, known, wide, start, wide, head.zeros, rows, end - begin, size)
    if noise.threshold:
        drop_seen(row_at(seen, first, wide), head.used, begin, end, high, drawn, own, last - first, noise, head)
        drop_seen(head.scores, head.scores, begin, end, high, drawn, own, last - first, noise, head)
        shown = row_at(head.used, own, wide, begin)
    spaced_sum(shown, 1, wide, given, size, row_at(head.d_value, begin, size), size, many, size, rows)
    for q in range(low, last):
        row, slopes = row_at(seen, q, wide), row_at(head.scores, q - first, wide)
        soft_row_back(row, slopes, U(begin), U(end), np.float32(size**-0.5))
    asked, key = row_at(head.query, own, size), row_at(head.key, begin, size)
    spaced_product(start, wide, 1, key, size, made, size, head.zeros, rows, size, many)
    spaced_sum(start, 1, wide, asked, size, row_at(head.d_key, begin, size), size, many, size, rows)
    return last
