"""A training step of one run, forward, backward and AdamW, in one compiled function: `train`.

The model is that of `cot2lib.model.stack`, which is what a reader should read; the loss is that of `cot2lib.losses`.
Here every gradient is written by hand. Parity tests bind the two: each gradient, each dropout bit, the losses of
hundreds of steps. A run is computed alone, in arrays that stay in the core's cache. So runs of a stack need not wait
for each other, and each has a thread of its own.

Rows of all arrays are positions x batch: position 0 of every input first. So the positions from t on are the rows from
t batch on. The last layer computes queries and MLP for the scored positions alone.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from cot2lib.fast.kernels import (
    COMPILED,
    ENTRY,
    ONE,
    ZERO,
    adamw,
    add_product,
    column_sums,
    draw,
    drop,
    exp,
    gelu,
    layer_norm,
    layer_norm_back,
    multiply,
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


class Optimiser(NamedTuple):
    """AdamW of one run."""

    mean: np.ndarray  # (parameter,)
    square: np.ndarray  # (parameter,)
    rates: np.ndarray  # (step,)
    decay: float
    frozen: int  # leading parameters that stay as they are


class Noise(NamedTuple):
    """Dropout of one run."""

    key: np.uint64
    counter: np.ndarray  # (draw,)
    threshold: int  # of a 16-bit lane, 0 for no dropout
    scale: np.float32


def work(shape: Shape) -> Work:
    """Arrays for `train`, or, with fewer positions scored, for decoding."""
    v, _, d, layers, heads, batch, positions, _ = shape
    padded = lambda n: -(-n // BLOCK) * BLOCK
    rows, keys, vocab = positions * batch, padded(positions), padded(v)
    empty = lambda *size: np.zeros(size, np.float32)
    draws = np.zeros(-(-lanes(shape) // 4), np.uint64)
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


def lanes(shape: Shape) -> int:
    """Dropout multipliers of a step: the embedding's, then three sites in each layer."""
    b, d, p = shape.batch, shape.width, shape.positions
    queries = [p] * (shape.layers - 1) + [shape.scored]
    return b * p * d + sum(b * shape.heads * q * p + 2 * b * q * d for q in queries)


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


@njit(**COMPILED)
def turn(flat, shape, w):
    """Transposed copies of all matrices, which the backward pass multiplies by; the table's serves the logits too."""
    d = shape.width
    transpose(matrix(flat, 0, shape.vocab, d), w.table)
    for layer in range(shape.layers):
        at, out = layer_start(shape, layer) + 2 * d, w.turned[layer]
        transpose(matrix(flat, at, d, 3 * d), matrix(out, 0, 3 * d, d))
        at += 3 * d * d + 3 * d
        transpose(matrix(flat, at, d, d), matrix(out, 3 * d * d, d, d))
        at += d * d + 3 * d
        transpose(matrix(flat, at, d, 4 * d), matrix(out, 4 * d * d, 4 * d, d))
        at += 4 * d * d + 4 * d
        transpose(matrix(flat, at, 4 * d, d), matrix(out, 8 * d * d, d, 4 * d))


# Forward


@njit(**COMPILED)
def norm(flat, at, which, source, first, last, w):
    """Layer norm number `which` of rows first..last; its weight and bias begin at `at`."""
    d = source.shape[1]
    hat, out = w.hat[which, first:last], w.normed[which, first:last]
    layer_norm(source[first:last], flat[at : at + d], flat[at + d : at + 2 * d], hat, w.inverse[which, first:last], out)


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
        at = layer_start(shape, layer)
        first = high - shape.scored if layer == shape.layers - 1 else low
        rows = first * b
        norm(flat, at, 2 * layer, w.x[layer], begin, end, w)
        at += 2 * d
        weight, bias = matrix(flat, at, d, 3 * d), flat[at + 3 * d * d : at + 3 * d * d + 3 * d]
        normed, qkv = w.normed[2 * layer], w.qkv[layer]
        product(normed[rows:end], weight[:, :d], qkv[rows:end, :d], bias[:d])
        product(normed[begin:end], weight[:, d:], qkv[begin:end, d:], bias[d:])
        attend(layer, first, high, padding, shape, noise, lane, w)
        lane += b * shape.heads * (high - first) * high
        at += 3 * d * d + 3 * d
        middle, out = w.middle[layer], w.x[layer + 1]
        product(w.mixed[layer, rows:end], matrix(flat, at, d, d), middle[rows:end], flat[at + d * d : at + d * d + d])
        if noise.threshold:
            drop(middle[rows:end], w.scales[lane:], b)
        lane += b * (high - first) * d
        add(middle[rows:end], w.x[layer, rows:end])
        at += d * d + d
        norm(flat, at, 2 * layer + 1, middle, rows, end, w)
        at += 2 * d
        wide, bias = w.wide[layer, rows:end], flat[at + 4 * d * d : at + 4 * d * d + 4 * d]
        product(w.normed[2 * layer + 1, rows:end], matrix(flat, at, d, 4 * d), wide, bias)
        gelu(wide, w.slope[layer, rows:end])
        at += 4 * d * d + 4 * d
        bias = flat[at + 4 * d * d : at + 4 * d * d + d]
        product(wide, matrix(flat, at, 4 * d, d), out[rows:end], bias)
        if noise.threshold:
            drop(out[rows:end], w.scales[lane:], b)
        lane += b * (high - first) * d
        add(out[rows:end], middle[rows:end])
    rows = (high - shape.scored) * b
    norm(flat, layer_start(shape, shape.layers), 2 * shape.layers, w.x[shape.layers], rows, end, w)
    product(w.normed[2 * shape.layers, rows:end], w.table, w.logits[rows:end], w.zeros)


@njit(**COMPILED)
def add(x, other):
    """x (i, j) += other."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] += other[i, j]


# Backward


@njit(**COMPILED)
def linear_back(given, x, turned, d_weight, d_bias, d_x, zeros):
    """Gradients of y = x W + bias from that of y: x^T given, the sum over rows, given W^T."""
    product(x.T, given, d_weight, zeros)
    column_sums(given, d_bias)
    product(given, turned, d_x, zeros)


@njit(**COMPILED)
def attend_back(layer, first, shape, noise, lane, w):
    """Gradients of queries, keys and values, d_qkv, from that of `mixed`, which is in d_normed."""
    b, d, size, high = shape.batch, shape.width, shape.width // shape.heads, shape.positions
    qkv, d_qkv, keys, d_seen = w.qkv[layer], w.d_qkv, w.keys, w.scores[1]
    scale, queries, apart, wide = np.float32(size**-0.5), high - first, 3 * d * b, keys.shape[1]
    for i in range(b):
        for h in range(shape.heads):
            at, seen = h * size, w.seen[layer, i * shape.heads + h]
            given, start = place(w.d_normed, first * b + i, at), place(d_seen, 0, 0)
            turn_head(qkv, i, b, 2 * d + at, high, keys)
            spaced_product(given, d * b, 1, place(keys, 0, 0), wide, start, wide, w.zeros, queries, wide, size)
            used = seen
            if noise.threshold:
                used, here = w.scores[0], lane + (i * shape.heads + h) * queries * high
                drop_seen(seen, used, queries, high, w.scales, here)
                drop_seen(d_seen, d_seen, queries, high, w.scales, here)
            d_value = place(d_qkv, i, 2 * d + at)
            spaced_product(place(used, 0, 0), 1, wide, given, d * b, d_value, apart, w.zeros, high, size, queries)
            for q in range(queries):
                softmax_row_back(seen, d_seen, q, high, scale)
            query, d_query = place(qkv, first * b + i, at), place(d_qkv, first * b + i, at)
            key, d_key = place(qkv, i, d + at), place(d_qkv, i, d + at)
            spaced_product(start, wide, 1, key, apart, d_query, apart, w.zeros, queries, size, high)
            spaced_product(start, 1, wide, query, apart, d_key, apart, w.zeros, high, size, queries)


@njit(inline="always", **COMPILED)
def softmax_row_back(rows, given, q, columns, scale):
    """given[q] becomes the gradient of the scores before scaling: scale row (given - sum(row given))."""
    along = ZERO
    for k in range(columns):
        along += rows[q, k] * given[q, k]
    for k in range(columns):
        given[q, k] = scale * rows[q, k] * (given[q, k] - along)


@njit(**COMPILED)
def dropped(rows, lane, batch, noise, w):
    """d_part (r, d) = d_x times dropout multipliers, from row `rows` on."""
    for i in range(rows, w.d_x.shape[0]):
        for j in range(w.d_x.shape[1]):
            w.d_part[i, j] = w.d_x[i, j]
    if noise.threshold:
        drop(w.d_part[rows:], w.scales[lane:], batch)


@njit(**COMPILED)
def backward(flat, shape, noise, w):
    """Gradients of all parameters but what the embeddings of the inputs add, which `scatter` does, from d logits."""
    b, d, v, high = shape.batch, shape.width, shape.vocab, shape.positions
    g, rows = w.gradient, (high - shape.scored) * b
    table, final = matrix(flat, 0, v, d), 2 * shape.layers
    product(w.logits[rows:, :v].T, w.normed[final, rows:], matrix(g, 0, v, d), w.zeros)
    product(w.logits[rows:, :v], table, w.d_normed[rows:], w.zeros)
    w.d_x[:] = ZERO
    norm_back(flat, layer_start(shape, shape.layers), final, rows, w)
    for layer in range(shape.layers - 1, -1, -1):
        first = high - shape.scored if layer == shape.layers - 1 else 0
        rows, queries, turned = first * b, high - first, w.turned[layer]
        at, attention = layer_start(shape, layer), b * high * d + layer * b * high * (shape.heads * high + 2 * d)
        qkv, bias = at + 2 * d, at + 2 * d + 3 * d * d
        projection = bias + 3 * d
        norm_2 = projection + d * d + d
        up = norm_2 + 2 * d
        down = up + 4 * d * d + 4 * d
        after = attention + b * shape.heads * queries * high  # lanes of the projection, then of the MLP
        part, d_wide = w.d_part[rows:], w.d_wide[rows:]
        dropped(rows, after + b * queries * d, b, noise, w)
        d_matrix, d_bias = matrix(g, down, 4 * d, d), g[down + 4 * d * d : down + 4 * d * d + d]
        linear_back(part, w.wide[layer, rows:], matrix(turned, 8 * d * d, d, 4 * d), d_matrix, d_bias, d_wide, w.zeros)
        multiply_rows(d_wide, w.slope[layer, rows:])
        d_matrix, d_bias = matrix(g, up, d, 4 * d), g[up + 4 * d * d : down]
        normed, d_normed = w.normed[2 * layer + 1, rows:], w.d_normed[rows:]
        linear_back(d_wide, normed, matrix(turned, 4 * d * d, 4 * d, d), d_matrix, d_bias, d_normed, w.zeros)
        norm_back(flat, norm_2, 2 * layer + 1, rows, w)
        dropped(rows, after, b, noise, w)
        d_matrix, d_bias = matrix(g, projection, d, d), g[projection + d * d : norm_2]
        turned_here = matrix(turned, 3 * d * d, d, d)
        linear_back(part, w.mixed[layer, rows:], turned_here, d_matrix, d_bias, d_normed, w.zeros)
        attend_back(layer, first, shape, noise, attention, w)
        d_matrix, d_bias, normed = matrix(g, qkv, d, 3 * d), g[bias:projection], w.normed[2 * layer]
        turned_here = matrix(turned, 0, 3 * d, d)
        linear_back(w.d_qkv[:, d:], normed, turned_here[d:], d_matrix[:, d:], d_bias[d:], w.d_normed, w.zeros)
        product(normed[rows:].T, w.d_qkv[rows:, :d], d_matrix[:, :d], w.zeros)
        column_sums(w.d_qkv[rows:, :d], d_bias[:d])
        add_product(w.d_qkv[rows:, :d], turned_here[:d], d_normed)
        norm_back(flat, at, 2 * layer, np.int64(0), w)
    if noise.threshold:
        drop(w.d_x, w.scales, b)


@njit(**COMPILED)
def norm_back(flat, at, which, rows, w):
    """Adds to d_x what layer norm number `which` passes back from d_normed, from row `rows` on."""
    d = w.d_x.shape[1]
    d_weight, d_bias = w.gradient[at : at + d], w.gradient[at + d : at + 2 * d]
    hat, inverse = w.hat[which, rows:], w.inverse[which, rows:]
    layer_norm_back(w.d_normed[rows:], flat[at : at + d], hat, inverse, d_weight, d_bias, w.d_x[rows:])


@njit(**COMPILED)
def multiply_rows(x, other):
    """x (i, j) *= other."""
    for i in range(x.shape[0]):
        multiply(x[i], other[i])


# Inputs and loss


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
                k = (variant * len(data.prompts) + inputs[i]) * data.steps + p - tokens
                for entry in range(data.starts[k], data.starts[k + 1]):
                    add_row(x, row, table, data.tokens[entry], data.weights[entry])


@njit(**COMPILED)
def scatter(shape, data, inputs, variant, w):
    """Adds d_x to the gradients of what `embed` has looked up."""
    b, d, tokens = shape.batch, shape.width, data.prompts.shape[1]
    table, places = matrix(w.gradient, 0, shape.vocab, d), matrix(w.gradient, shape.vocab * d, shape.places, d)
    places[:] = ZERO
    for p in range(shape.positions):
        for i in range(b):
            row = p * b + i
            add_row(places, max(p - data.padding[inputs[i]], 0), w.d_x, row, ONE)
            if p < tokens:
                add_row(table, data.prompts[inputs[i], p], w.d_x, row, ONE)
            else:
                k = (variant * len(data.prompts) + inputs[i]) * data.steps + p - tokens
                for entry in range(data.starts[k], data.starts[k + 1]):
                    add_row(table, data.tokens[entry], w.d_x, row, data.weights[entry])


@njit(inline="always", **COMPILED)
def add_row(x, i, other, k, times):
    """x[i] += times other[k]."""
    for j in range(x.shape[1]):
        x[i, j] += times * other[k, j]


@njit(**COMPILED)
def score(shape, data, inputs, variant, w):
    """Soft cross-entropy of the scored positions; their logits become its gradient, weight (alpha sum(t) - t)."""
    b, v, tokens, loss = shape.batch, shape.vocab, data.prompts.shape[1], 0.0
    for p in range(shape.positions - shape.scored, shape.positions):
        for i in range(b):
            row, output = w.logits[p * b + i], p - tokens + 1
            scored = data.outputs[inputs[i]] + (tokens - 1 if data.sequence else 0)
            weight = 1.0 / (b * scored) if data.mean else 1.0 / b
            if output >= data.outputs[inputs[i]]:
                row[:] = ZERO
                continue
            top = row[0]
            for j in range(v):
                top = max(top, row[j])
            token, value = data.prompts[inputs[i], min(p + 1, tokens - 1)], row[0]
            k = (variant * len(data.prompts) + inputs[i]) * data.steps + max(output, 0)
            first, last = (data.starts[k], data.starts[k + 1]) if output >= 0 else (0, 0)
            shown, along = (ONE, row[token] - top) if output < 0 else (ZERO, ZERO)
            for entry in range(first, last):
                value = data.weights[entry]
                shown += value
                along += value * (row[data.tokens[entry]] - top)
            total = ZERO
            for j in range(v):
                row[j] = exp(row[j] - top)
                total += row[j]
            loss += weight * (shown * np.log(total) - along)
            share = np.float32(weight) * shown / total
            for j in range(v):
                row[j] *= share
            if output < 0:
                row[token] -= np.float32(weight)
            for entry in range(first, last):
                row[data.tokens[entry]] -= np.float32(weight) * data.weights[entry]
    return loss


@njit(**ENTRY)
def train(flat, shape, data, order, variant, optimiser, noise, first, losses, w):
    """Train on the batches of `order` (step, batch), the first of which is step number `first` of the run.

    Leaves each batch's loss in `losses` (step,) and the last one's gradients in `w.gradient`.
    """
    mean, square, frozen = optimiser.mean, optimiser.square, optimiser.frozen
    for s in range(len(order)):
        inputs = order[s]
        turn(flat, shape, w)
        embed(flat, shape, data, inputs, shape.positions, variant, w)
        if noise.threshold:
            draw(noise.key, first + s, noise.counter, noise.threshold, noise.scale, w.draws, w.lanes, w.scales)
            drop(w.x[0], w.scales, shape.batch)
        forward(flat, shape, np.int64(0), shape.positions, data.padding[inputs], noise, w)
        losses[s] = score(shape, data, inputs, variant, w)
        backward(flat, shape, noise, w)
        scatter(shape, data, inputs, variant, w)
        trained, moments = flat[frozen:], (mean[frozen:], square[frozen:])
        adamw(trained, w.gradient[frozen:], *moments, optimiser.rates[s], optimiser.decay, first + s + 1)
