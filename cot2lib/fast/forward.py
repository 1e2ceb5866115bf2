"""The model on arrays of one run: what a step or a decoding keeps, the forward pass, and decoding with a cache.

The model is that of `cot2lib.model.stack`, which is what a reader should read. Rows of all arrays are positions x
inputs: position 0 of every input first. So the positions from t on are the rows from t inputs on, and a pass over
some positions finds the keys and values of those before it in place. The last layer computes queries and MLP for the
scored positions alone.

Decoding follows `cot2lib.decode` for the rules `Base()` and `Discrete()`.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from cot2lib.fast.kernels import (
    COMPILED,
    ENTRY,
    ONE,
    ZERO,
    add,
    add_row,
    drop,
    exp,
    gelu,
    layer_norm,
    place,
    product,
    spaced_product,
    transpose,
)

LEAST = np.float32(-1e30)  # a score that is never the largest
TINY = np.float32(1e-30)  # where nothing is seen
BLOCK = 8  # keys and vocabulary are padded to a multiple


class Work(NamedTuple):
    """What a step computes on the way, for P positions, b inputs, L layers of h heads, width d, vocabulary v padded
    to v'. Rows r are positions x inputs."""

    x: np.ndarray  # (L + 1, r, d) into each layer, and out of the last
    hat: np.ndarray  # (2 L + 1, r, d) of each layer norm: attention's, the MLP's, then the final one
    inverse: np.ndarray  # (2 L + 1, r)
    normed: np.ndarray  # (2 L + 1, r, d)
    qkv: np.ndarray  # (L, r, 3 d)
    seen: np.ndarray  # (L, b h, P, P') attention weights before dropout; P' is P padded
    mixed: np.ndarray  # (L, r, d) values that the heads have mixed
    middle: np.ndarray  # (L, r, d) after attention
    wide: np.ndarray  # (L, r, 4 d) after the GELU
    slope: np.ndarray  # (L, r, 4 d)
    logits: np.ndarray  # (r, v'), then their gradient
    table: np.ndarray  # (d, v') transposed embeddings
    turned: np.ndarray  # (L, 12 d d) transposed matrices of each layer
    keys: np.ndarray  # (d / h, P') of one head, transposed
    scores: np.ndarray  # (2, P, P') of one head
    d_x: np.ndarray  # (r, d) gradients
    d_part: np.ndarray  # (r, d)
    d_normed: np.ndarray  # (r, d)
    d_qkv: np.ndarray  # (r, 3 d)
    d_wide: np.ndarray  # (r, 4 d)
    draws: np.ndarray  # (draw,) 64 bits
    lanes: np.ndarray  # (4 draw,) the same memory, 16 bits
    scales: np.ndarray  # (4 draw,) dropout multipliers
    zeros: np.ndarray  # (4 d or v',)
    gradient: np.ndarray  # (parameter,)


class Shape(NamedTuple):
    """Sizes of a model and of what it computes on."""

    vocab: int
    places: int  # rows of the position table
    width: int
    layers: int
    heads: int
    batch: int
    positions: int
    scored: int  # the last positions, whose logits are needed


class Data(NamedTuple):
    """Inputs of one stack and their targets, sparse: entries starts[k]..starts[k + 1] belong to k = (variant, input,
    output)."""

    prompts: np.ndarray  # (input, token)
    padding: np.ndarray  # (input,)
    outputs: np.ndarray  # (input,) how many are scored
    starts: np.ndarray  # (variant x input x output + 1,)
    tokens: np.ndarray  # (entry,)
    weights: np.ndarray  # (entry,)
    steps: int  # outputs of the longest input
    mean: bool  # whether a loss is the mean over positions, else their sum
    sequence: bool  # whether the prompt is scored too


class Noise(NamedTuple):
    """Dropout of one run."""

    key: np.uint64
    counter: np.ndarray  # (draw,)
    threshold: int  # of a 16-bit lane, 0 for no dropout
    scale: np.float32


def work(shape: Shape, lanes: int) -> Work:
    """Arrays for `train` with so many dropout multipliers, or, with one position scored and none, for decoding."""
    v, _, d, layers, heads, batch, positions, _ = shape
    padded = lambda n: -(-n // BLOCK) * BLOCK
    rows, keys, vocab = positions * batch, padded(positions), padded(v)
    empty = lambda *size: np.zeros(size, np.float32)
    draws = np.zeros(-(-lanes // 4), np.uint64)
    parts = dict(
        x=empty(layers + 1, rows, d),
        hat=empty(2 * layers + 1, rows, d),
        inverse=empty(2 * layers + 1, rows),
        normed=empty(2 * layers + 1, rows, d),
        qkv=empty(layers, rows, 3 * d),
        seen=empty(layers, batch * heads, positions, keys),
        mixed=empty(layers, rows, d),
        middle=empty(layers, rows, d),
        wide=empty(layers, rows, 4 * d),
        slope=empty(layers, rows, 4 * d),
        logits=empty(rows, vocab),
        table=empty(d, vocab),
        turned=empty(layers, 12 * d * d),
        keys=empty(d // heads, keys),
        scores=empty(2, positions, keys),
        d_x=empty(rows, d),
        d_part=empty(rows, d),
        d_normed=empty(rows, d),
        d_qkv=empty(rows, 3 * d),
        d_wide=empty(rows, 4 * d),
        draws=draws,
        lanes=draws.view(np.uint16),
        scales=empty(4 * len(draws)),
        zeros=empty(max(4 * d, vocab)),
        gradient=empty(parameters(shape)),
    )
    return Work(**parts)


def parameters(shape: Shape) -> int:
    """How many parameters a model has."""
    d = shape.width
    return (shape.vocab + shape.places) * d + shape.layers * (12 * d * d + 13 * d) + 2 * d


# Where parameters lie in the flat array: in the order of the stack's own


@njit(inline="always", **COMPILED)
def matrix(flat, start, rows, columns):
    """(rows, columns) of a flat array."""
    return flat[start : start + rows * columns].reshape(rows, columns)


@njit(**COMPILED)
def layer_start(shape, layer):
    """Where a layer's parameters begin: two rows of a norm, qkv, projection, two rows of a norm, MLP."""
    d = shape.width
    return (shape.vocab + shape.places) * d + layer * (12 * d * d + 13 * d)


@njit(inline="always", **COMPILED)
def layer_starts(shape, layer):
    """Where the parts of a layer begin: norm, qkv, projection, norm, the MLP's two linear maps."""
    d = shape.width
    norm_1 = layer_start(shape, layer)
    qkv = norm_1 + 2 * d
    projection = qkv + 3 * d * d + 3 * d
    norm_2 = projection + d * d + d
    up = norm_2 + 2 * d
    return norm_1, qkv, projection, norm_2, up, up + 4 * d * d + 4 * d


@njit(inline="always", **COMPILED)
def linear(flat, start, rows, columns):
    """Matrix (rows, columns) and bias (columns,) of the linear map that begins there."""
    bias = start + rows * columns
    return matrix(flat, start, rows, columns), flat[bias : bias + columns]


@njit(**COMPILED)
def turn(flat, shape, w):
    """Transposed copies of all matrices, which the backward pass multiplies by; the table's serves the logits too."""
    d = shape.width
    transpose(matrix(flat, 0, shape.vocab, d), w.table)
    for layer in range(shape.layers):
        _, qkv, projection, _, up, down = layer_starts(shape, layer)
        out = w.turned[layer]
        transpose(matrix(flat, qkv, d, 3 * d), matrix(out, 0, 3 * d, d))
        transpose(matrix(flat, projection, d, d), matrix(out, 3 * d * d, d, d))
        transpose(matrix(flat, up, d, 4 * d), matrix(out, 4 * d * d, 4 * d, d))
        transpose(matrix(flat, down, 4 * d, d), matrix(out, 8 * d * d, d, 4 * d))


@njit(inline="always", **COMPILED)
def entries(data, variant, row, output):
    """First and last entry of an input's target at an output."""
    k = (variant * len(data.prompts) + row) * data.steps + output
    return data.starts[k], data.starts[k + 1]


@njit(**COMPILED)
def embed(flat, shape, data, inputs, positions, variant, w):
    """x_0 = embedding of each prompt's token, then E^T alpha* of each fed target, plus that of its position."""
    b, d, tokens = shape.batch, shape.width, data.prompts.shape[1]
    table, places = matrix(flat, 0, shape.vocab, d), matrix(flat, shape.vocab * d, shape.places, d)
    x = w.x[0]
    for p in range(positions):
        for i in range(b):
            row, at = p * b + i, max(p - data.padding[inputs[i]], 0)
            for j in range(d):
                x[row, j] = places[at, j]
            if p < tokens:
                add_row(x, row, table, data.prompts[inputs[i], p], ONE)
            else:
                begin, end = entries(data, variant, inputs[i], p - tokens)
                for entry in range(begin, end):
                    add_row(x, row, table, data.tokens[entry], data.weights[entry])


# Forward


@njit(**COMPILED)
def norm(flat, at, which, source, first, last, w):
    """Layer norm number `which` of rows first..last; its weight and bias begin at `at`."""
    d = source.shape[1]
    hat, out = w.hat[which, first:last], w.normed[which, first:last]
    layer_norm(
        source[first:last], flat[at : at + d], flat[at + d : at + 2 * d], hat, w.inverse[which, first:last], out
    )


@njit(inline="always", **COMPILED)
def softmax_row(rows, q, columns, first, last, scale):
    """rows[q] = softmax over keys first..last of scale x row, zero elsewhere; nothing is seen where there is none."""
    top, total = LEAST, TINY
    for k in range(columns):
        rows[q, k] = rows[q, k] * scale if first <= k < last else LEAST
        top = max(top, rows[q, k])
    for k in range(columns):
        rows[q, k] = exp(rows[q, k] - top) if first <= k < last else ZERO
        total += rows[q, k]
    for k in range(columns):
        rows[q, k] *= ONE / total


@njit(inline="always", **COMPILED)
def drop_seen(seen, out, queries, positions, scales, lane):
    """out (query, key) = attention weights times dropout multipliers from number `lane` on."""
    for q in range(queries):
        for k in range(positions):
            out[q, k] = seen[q, k] * scales[lane + q * positions + k]


@njit(inline="always", **COMPILED)
def turn_head(rows, i, batch, at, positions, out):
    """out (j, position) = columns at.. of input i's rows, transposed."""
    for p in range(positions):
        for j in range(out.shape[0]):
            out[j, p] = rows[p * batch + i, at + j]


@njit(**COMPILED)
def attend(layer, low, high, padding, shape, noise, lane, w):
    """mixed = softmax(q k^T / sqrt(d / h)) v of every input and head, for queries low..high over keys 0..high."""
    b, d, size, queries = shape.batch, shape.width, shape.width // shape.heads, high - low
    qkv, mixed, keys, scale = w.qkv[layer], w.mixed[layer], w.keys, np.float32(size**-0.5)
    across, apart, wide = (high + BLOCK - 1) // BLOCK * BLOCK, 3 * d * b, keys.shape[1]
    for i in range(b):
        for h in range(shape.heads):
            at, seen = h * size, w.seen[layer, i * shape.heads + h]
            turn_head(qkv, i, b, d + at, high, keys)
            query, value = place(qkv, low * b + i, at), place(qkv, i, 2 * d + at)
            start = place(seen, 0, 0)
            spaced_product(query, apart, 1, place(keys, 0, 0), wide, start, wide, w.zeros, queries, across, size)
            for q in range(queries):
                softmax_row(seen, q, across, padding[i], low + q + 1, scale)
            used = seen
            if noise.threshold:
                used = w.scores[0]
                drop_seen(seen, used, queries, high, w.scales, lane + (i * shape.heads + h) * queries * high)
            out = place(mixed, low * b + i, at)
            spaced_product(place(used, 0, 0), wide, 1, value, apart, out, d * b, w.zeros, queries, size, high)


@njit(**COMPILED)
def forward(flat, shape, low, high, padding, noise, w):
    """All layers for positions low..high, whose keys and values join those of the positions before.

    Leaves logits in the rows of the last scored positions.
    """
    b, d = shape.batch, shape.width
    begin, end, lane = low * b, high * b, b * (high - low) * d
    for layer in range(shape.layers):
        norm_1, qkv_start, projection, norm_2, up, down = layer_starts(shape, layer)
        first = high - shape.scored if layer == shape.layers - 1 else low
        rows, queries = first * b, high - first
        norm(flat, norm_1, 2 * layer, w.x[layer], begin, end, w)
        weight, bias = linear(flat, qkv_start, d, 3 * d)
        normed, qkv = w.normed[2 * layer], w.qkv[layer]
        product(normed[rows:end], weight[:, :d], qkv[rows:end, :d], bias[:d])
        product(normed[begin:end], weight[:, d:], qkv[begin:end, d:], bias[d:])
        attend(layer, first, high, padding, shape, noise, lane, w)
        lane += b * shape.heads * queries * high
        middle, out, wide = w.middle[layer], w.x[layer + 1], w.wide[layer, rows:end]
        weight, bias = linear(flat, projection, d, d)
        product(w.mixed[layer, rows:end], weight, middle[rows:end], bias)
        if noise.threshold:
            drop(middle[rows:end], w.scales[lane:], b)
        lane += b * queries * d
        add(middle[rows:end], w.x[layer, rows:end])
        norm(flat, norm_2, 2 * layer + 1, middle, rows, end, w)
        weight, bias = linear(flat, up, d, 4 * d)
        product(w.normed[2 * layer + 1, rows:end], weight, wide, bias)
        gelu(wide, w.slope[layer, rows:end])
        weight, bias = linear(flat, down, 4 * d, d)
        product(wide, weight, out[rows:end], bias)
        if noise.threshold:
            drop(out[rows:end], w.scales[lane:], b)
        lane += b * queries * d
        add(out[rows:end], middle[rows:end])
    rows = (high - shape.scored) * b
    norm(flat, layer_start(shape, shape.layers), 2 * shape.layers, w.x[shape.layers], rows, end, w)
    product(w.normed[2 * shape.layers, rows:end], w.table, w.logits[rows:end], w.zeros)


# Decoding


@njit(**ENTRY)
def decode(flat, shape, data, inputs, last, greedy, noise, answers, entropies, w):
    """Answers (input,) to all inputs, and the sum of each step's entropies (step,) in nats.

    Args:
        flat: parameters of one run.
        shape: one position scored; as many inputs at once as its batch.
        data: prompts and their padding.
        inputs: rows of the task's inputs.
        last: the step at which each of them is answered.
        greedy: whether a thought is the likeliest token, else the mixture of all.
        noise: no dropout.
        w: work arrays of that shape.
    """
    b, tokens, table = shape.batch, data.prompts.shape[1], matrix(flat, 0, shape.vocab, shape.width)
    turn(flat, shape, w)
    entropies[:] = 0.0
    chunk = np.empty(b, np.int64)
    for begin in range(0, len(inputs), b):
        for i in range(b):
            chunk[i] = inputs[min(begin + i, len(inputs) - 1)]
        embed(flat, shape, data, chunk, tokens, begin, w)
        padding, low = data.padding[chunk], np.int64(0)
        for step in range(len(entropies)):
            high = tokens + step
            forward(flat, shape, low, high, padding, noise, w)
            low = high
            for i in range(min(b, len(inputs) - begin)):
                best, entropy = soften(w.logits, (high - 1) * b + i, shape.vocab, greedy)
                if step <= last[begin + i]:
                    entropies[step] += entropy
                if step == last[begin + i]:
                    answers[begin + i] = best
            if step + 1 < len(entropies):
                think(flat, shape, high, table, padding, w)


@njit(**COMPILED)
def soften(logits, row, vocab, greedy):
    """A row of logits becomes the thought that is fed; the likeliest token and the entropy of the softmax."""
    best, total, along = 0, ZERO, ZERO
    for j in range(vocab):
        if logits[row, j] > logits[row, best]:
            best = j
    top = logits[row, best]
    for j in range(vocab):
        gap = logits[row, j] - top
        logits[row, j] = exp(gap)
        total += logits[row, j]
        along += logits[row, j] * gap
    for j in range(vocab):
        logits[row, j] = (ONE if j == best else ZERO) if greedy else logits[row, j] / total
    return best, np.log(total) - along / total


@njit(**COMPILED)
def think(flat, shape, position, table, padding, w):
    """x_0 of the position to come: E^T alpha of the thoughts before it, plus the position's embedding."""
    b, d = shape.batch, shape.width
    x, before = w.x[0], (position - 1) * b
    places = matrix(flat, shape.vocab * d, shape.places, d)
    product(w.logits[before : before + b, : shape.vocab], table, x[position * b : (position + 1) * b], w.zeros)
    for i in range(b):
        add_row(x, position * b + i, places, max(position - padding[i], 0), ONE)
