"""A training step of one run, forward, backward and AdamW, in one compiled function: `train`.

The losses are those of `cot2lib.losses`. Here every gradient is written by hand. Parity tests bind both to torch: each
gradient, each dropout bit, the losses of hundreds of steps. A run is computed alone, in arrays that stay in the core's
cache. So runs of a stack need not wait for each other, and each has a thread of its own.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from cot2lib.fast.attention import attend_back
from cot2lib.fast.entries import COMPILED, entry_point
from cot2lib.fast.forward import Pass, arrange, embed, entries, forward, layer_starts, linear, matrix, turn

from cot2lib.fast.kernels import (  # isort: skip
    ONE, ZERO, adamw, add, add_row, borrowed, column_sums, draw, exp, fold, layer_norm_back, product,
)  # fmt: skip
from cot2lib.fast.rows import drop


class Optimiser(NamedTuple):
    """AdamW of one run."""

    mean: np.ndarray  # (parameter,)
    square: np.ndarray  # (parameter,)
    rates: np.ndarray  # (step,)
    decay: float
    beta2: float
    frozen: int  # leading parameters that stay as they are


@njit(**COMPILED)
def linear_back(given, x, turned, d_weight, d_bias, d_x, zeros):
    """Gradients of y = x W + bias from that of y: adds x^T given and the sum over rows; leaves given W^T in d_x."""
    product(x.T, given, d_weight, d_weight)
    column_sums(given, d_bias)
    product(given, turned, d_x, zeros)


@njit(inline="always", **COMPILED)
def dropped(rows, end, lane, batch, noise, w):
    """d_part (r, d) = d_x times dropout multipliers, in rows rows..end."""
    if noise.threshold:
        drop(w.d_x[rows:end], w.d_part[rows:end], w.lanes[lane:], batch, noise)
    else:
        w.d_part[rows:end] = ZERO
        add(w.d_part[rows:end], w.d_x[rows:end])


@njit(inline="always", **COMPILED)
def draw_pass(noise, step, number, begin, end, w):
    """Dropout multipliers of a step's pass, from draw `begin` to `end`; passes after the first have their own keys."""
    key, last = (fold(noise.key, step), number) if number else (noise.key, step)
    draw(key, last, noise.counter, w.draws[begin:end])


@njit(inline="always", **COMPILED)
def project_back(flat, shape, part, w):
    """Gradients of logits = h E^T from that of the logits: adds that of E; leaves that of h in d_normed."""
    v, d, final = shape.vocab, shape.width, 2 * shape.layers
    rows, end = w.starts[part.high - part.scored], w.starts[part.high]
    given, d_table = w.logits[rows:end, :v], matrix(w.gradient, 0, v, d)
    product(given.T, w.normed[final, rows:end], d_table, d_table)
    product(given, matrix(flat, 0, v, d), w.d_normed[rows:end], w.zeros)


@njit(inline="always", **COMPILED)
def backward(flat, shape, part, padding, noise, w):
    """Adds what a pass does to the gradients of all parameters, from that of its last states, which is in d_normed.

    Leaves that of its embeddings in d_x. What later passes add to the gradients of its keys and values is in d_qkv; a
    pass over all positions has none later.
    """
    b, d, low, high = shape.batch, shape.width, part.low, part.high
    g, begin, end = w.gradient, w.starts[low], w.starts[high]
    w.d_x[begin:end] = ZERO
    norm_back(flat, layer_starts(shape, shape.layers)[0], 2 * shape.layers, w.starts[high - part.scored], end, w)
    for layer in range(shape.layers - 1, -1, -1):
        first = high - part.scored if layer == shape.layers - 1 else low
        rows, queries, turned = w.starts[first], high - first, w.turned[layer]
        attention = part.lane + b * (high - low) * (d + layer * (shape.heads * high + 2 * d))
        norm_1, qkv, projection, norm_2, up, down = layer_starts(shape, layer)
        after = attention + b * shape.heads * queries * high  # lanes of the projection, then of the MLP
        part_here, d_wide = w.d_part[rows:end], w.d_wide[rows:end]
        dropped(rows, end, after + b * queries * d, b, noise, w)
        d_matrix, d_bias = linear(g, down, 4 * d, d)
        turned_here = matrix(turned, 8 * d * d, d, 4 * d)
        linear_back(part_here, w.wide[layer, rows:end], turned_here, d_matrix, d_bias, d_wide, w.zeros)
        multiply_rows(d_wide, w.slope[layer, rows:end])
        d_matrix, d_bias = linear(g, up, d, 4 * d)
        normed, d_normed = w.normed[2 * layer + 1, rows:end], w.d_normed[rows:end]
        linear_back(d_wide, normed, matrix(turned, 4 * d * d, 4 * d, d), d_matrix, d_bias, d_normed, w.zeros)
        norm_back(flat, norm_2, 2 * layer + 1, rows, end, w)
        dropped(rows, end, after, b, noise, w)
        d_matrix, d_bias = linear(g, projection, d, d)
        turned_here = matrix(turned, 3 * d * d, d, d)
        linear_back(part_here, w.mixed[layer, rows:end], turned_here, d_matrix, d_bias, d_normed, w.zeros)
        d_qkv = w.d_qkv[min(layer, len(w.d_qkv) - 1)]
        if high - low == shape.positions:
            d_qkv[:, d:] = ZERO
        attend_back(layer, first, high, padding, shape, noise, attention, w)
        inputs_back(layer, shape, qkv, rows, begin, end, d_qkv, w)
        norm_back(flat, norm_1, 2 * layer, begin, end, w)
    if noise.threshold:
        drop(w.d_x[begin:end], w.d_x[begin:end], w.lanes[part.lane :], b, noise)


@njit(inline="always", **COMPILED)
def inputs_back(layer, shape, qkv, rows, begin, end, d_qkv, w):
    """Contribution of queries (from row `rows` on), keys and values to the gradients of their matrix and inputs."""
    d = shape.width
    d_matrix, d_bias = linear(w.gradient, qkv, d, 3 * d)
    normed, turned, key = w.normed[2 * layer], matrix(w.turned[layer], 0, 3 * d, d), d_matrix[:, d:]
    given, query = d_qkv[begin:end, d:], d_qkv[rows:end, :d]
    linear_back(given, normed[begin:end], turned[d:], key, d_bias[d:], w.d_normed[begin:end], w.zeros)
    product(normed[rows:end].T, query, d_matrix[:, :d], d_matrix[:, :d])
    column_sums(query, d_bias[:d])
    product(query, turned[:d], w.d_normed[rows:end], w.d_normed[rows:end])


@njit(**COMPILED)
def norm_back(flat, at, which, rows, end, w):
    """Adds to d_x what layer norm number `which` passes back from d_normed, in rows rows..end."""
    d = w.d_x.shape[1]
    d_weight, d_bias = w.gradient[at : at + d], w.gradient[at + d : at + 2 * d]
    hat, inverse = w.hat[which, rows:end], w.inverse[which, rows:end]
    layer_norm_back(w.d_normed[rows:end], flat[at : at + d], hat, inverse, d_weight, d_bias, w.d_x[rows:end])


@njit(**COMPILED)
def multiply_rows(x, other):
    """x (i, j) *= other."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] *= other[i, j]


@njit(**COMPILED)
def scatter(shape, data, inputs, positions, variant, own, w):
    """Adds d_x to the gradients of what `embed` has looked up; the first `own` thoughts were not looked up."""
    d, tokens = shape.width, data.prompts.shape[1]
    table, places = matrix(w.gradient, 0, shape.vocab, d), matrix(w.gradient, shape.vocab * d, shape.places, d)
    for p in range(positions):
        for i in range(w.starts[p + 1] - w.starts[p]):
            row = w.starts[p] + i
            add_row(places, max(p - data.shift[inputs[i]], 0), w.d_x, row, ONE)
            if p < tokens:
                token = data.prompts[inputs[i], p]
                add_row(table, token % shape.vocab, w.d_x, row, ONE)
                if token >= shape.vocab:
                    add_row(table, token // shape.vocab - 1, w.d_x, row, ONE)
            elif p >= tokens + own:
                begin, end = entries(data, variant, inputs[i], p - tokens)
                for entry in range(begin, end):
                    add_row(table, data.tokens[entry], w.d_x, row, data.weights[entry])


@njit(**COMPILED)
def score(shape, data, inputs, variant, skipped, w):
    """Soft cross-entropy of the scored positions; their logits become its gradient, weight (alpha sum(t) - t).

    The first `skipped` outputs do not count, as far as they come before the answer.
    """
    b, v, tokens, loss = shape.batch, shape.vocab, data.prompts.shape[1], 0.0
    for p in range(shape.positions - shape.scored, shape.positions):
        for i in range(b):
            row, output = w.logits[w.starts[p] + i], p - tokens + 1
            least = min(skipped, max(data.outputs[inputs[i]] - data.ending - 1, 0))
            scored = data.outputs[inputs[i]] - least + (tokens - 1 if data.sequence else 0)
            weight = 1.0 / (b * scored) if data.mean else 1.0 / b
            if output >= data.outputs[inputs[i]] or 0 <= output < least:
                row[:] = ZERO
                continue
            top = row[0]
            for j in range(v):
                top = max(top, row[j])
            token = data.prompts[inputs[i], min(p + 1, tokens - 1)]
            first, last = entries(data, variant, inputs[i], output) if output >= 0 else (0, 0)
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


@njit(inline="always", **COMPILED)
def one_step(flat, shape, data, fed, inputs, variant, optimiser, noise, first, s, w):
    """One batch, the step number `first` + `s` of the run: targets of `data` scored, those of `fed` fed; its loss."""
    turn(flat, shape, w)
    arrange(data, inputs, noise.threshold == 0 and not data.sequence, w)
    inputs = w.inputs
    embed(flat, shape, fed, inputs, shape.positions, variant, w)
    if noise.threshold:
        draw(noise.key, first + s, noise.counter, w.draws)
        drop(w.x[0], w.x[0], w.lanes, shape.batch, noise)
    part = Pass(np.int64(0), shape.positions, shape.scored, np.int64(0))
    padding = data.padding[inputs]
    forward(flat, shape, part, padding, noise, w)
    loss = score(shape, data, inputs, variant, np.int64(0), w)
    w.gradient[:] = ZERO
    project_back(flat, shape, part, w)
    backward(flat, shape, part, padding, noise, w)
    scatter(shape, fed, inputs, shape.positions, variant, np.int64(0), w)
    mean, square, frozen = optimiser.mean, optimiser.square, optimiser.frozen
    rest = mean[frozen:], square[frozen:], optimiser.rates[s], optimiser.decay, optimiser.beta2, first + s + 1
    adamw(flat[frozen:], w.gradient[frozen:], *rest)
    return loss


@entry_point
def train(flat, shape, data, fed, order, variant, optimiser, noise, first, losses, w):
    """Train on the batches of `order` (step, batch), the first of which is step number `first` of the run.

    The targets of `data` are scored and those of `fed` are fed: two tables of the same inputs, or the same table
    twice. Leaves each batch's loss in `losses` (step,) and the last one's gradients in `w.gradient`.
    """
    flat, data, fed, optimiser, noise, w = borrowed((flat, data, fed, optimiser, noise, w))
    for s in range(len(order)):
        losses[s] = one_step(flat, shape, data, fed, order[s], variant, optimiser, noise, first, s, w)
