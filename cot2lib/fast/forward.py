"""The model on arrays of one run: what a step or a decoding keeps, the forward pass, and decoding with a cache.

The model is that of `cot2lib.model.stack`, which is what a reader should read. Rows of all arrays are positions x
inputs: position 0 of every input first. So a pass over some positions finds the keys and values of those before it in
place. Inputs may come by their padding, and rows of padding be left out: `starts` says where each position begins. The
last layer computes queries and MLP for the scored positions alone. Decoding follows `cot2lib.decode` for the rules
`Base()` and `Discrete()`.
"""

import math
from collections import namedtuple
from typing import NamedTuple

import numpy as np
from numba import njit

from cot2lib.fast.attention import attend
from cot2lib.fast.entries import COMPILED, entry_point

from cot2lib.fast.kernels import (  # isort: skip
    ONE, ZERO, add, add_row, borrowed, exp, gelu, layer_norm, product, transpose,
)  # fmt: skip
from cot2lib.fast.rows import LANES, drop


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
    shared: int = 0  # positions that all branches share
    branches: int = 1  # sequences that go on from those, laid out as `cot2lib.model.branches` has it


class Pass(NamedTuple):
    """Positions low..high, which are computed together; those before are there."""

    low: int | np.int64
    high: int | np.int64
    scored: int | np.int64  # the last of them, whose logits are needed
    lane: int | np.int64  # where its dropout multipliers begin


class Data(NamedTuple):
    """Inputs and sparse targets: entries starts[k]..starts[k + 1] belong to k = (variant, input, output)."""

    prompts: np.ndarray  # (input, token)
    padding: np.ndarray  # (input,)
    shift: np.ndarray  # (input,) places before the first that is counted
    outputs: np.ndarray  # (input,) how many are scored
    starts: np.ndarray  # (variant x input x output + 1,)
    tokens: np.ndarray  # (entry,)
    weights: np.ndarray  # (entry,)
    steps: int  # outputs of the longest input
    ending: int  # outputs after the answer
    mean: bool  # whether a loss is the mean over positions, else their sum
    sequence: bool  # whether the prompt is scored too


class Noise(NamedTuple):
    """Dropout of one run."""

    key: np.uint64
    counter: np.ndarray  # (draw,)
    threshold: np.int32  # of a 16-bit lane, 0 for no dropout
    scale: np.float32


def sizes(shape: Shape, own: int = 0) -> dict[str, tuple[int, ...]]:
    """Sizes of the arrays that a step fills on the way: float32, of positions x inputs rows.

    `own` is how many positions are fed with thoughts that the model makes itself.
    """
    v, _, d, layers, heads, batch, positions = shape[:7]
    padded = lambda n: -(-n // LANES) * LANES
    rows, keys, vocab = positions * batch, padded(positions), padded(v)
    return dict(
        x=(layers + 1, rows, d),  # into each layer, and out of the last
        hat=(2 * layers + 1, rows, d),  # of each layer norm: attention's, the MLP's, then the final one
        inverse=(2 * layers + 1, rows),
        normed=(2 * layers + 1, rows, d),
        qkv=(layers, rows, 3 * d),
        seen=(layers, batch * heads, positions, keys),  # attention weights before dropout
        mixed=(layers, rows, d),  # values that the heads have mixed
        middle=(layers, rows, d),  # after attention
        wide=(layers, rows, 4 * d),  # after the GELU
        slope=(layers, rows, 4 * d),
        logits=(rows, vocab),  # then their gradient
        table=(d, vocab),  # transposed embeddings
        turned=(layers, 12 * d * d),  # transposed matrices of each layer
        keys=(d // heads, keys),  # of one head, transposed
        scores=(2, positions, keys),  # of one head
        sides=(6, positions, d // heads),  # rows of one head: what its products read and make
        d_x=(rows, d),  # gradients
        d_part=(rows, d),
        d_normed=(rows, d),
        d_qkv=(layers if own else 1, rows, 3 * d),
        d_wide=(rows, 4 * d),
        zeros=(max(4 * d, vocab, keys),),
        gradient=(parameters(shape),),
        alpha=(own * batch, vocab),  # mixture weights of own thoughts
        d_thought=(batch, max(vocab, d)),
    )


def work(shape: Shape, lanes: int, own: int = 0) -> tuple:
    """Arrays for `train` with so many dropout multipliers, or, with one position scored and none, for decoding."""
    draws = np.zeros((lanes + LANES) // 4 + 1, np.uint64)  # vectors read beyond the last lane
    noise = dict(draws=draws, lanes=draws.view(np.uint16))
    rows = dict(starts=shape.batch * np.arange(shape.positions + 1), first=np.zeros(shape.batch, np.int64))
    order = dict(inputs=np.zeros(shape.batch, np.int64))
    return Work(**_arrays(sizes(shape, own)), **noise, **rows, **order)


def _arrays(sizes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Zeros of some sizes in one block, each from the start of a cache line on, so that few vectors lie in two."""
    counts = {name: math.prod(size) for name, size in sizes.items()}
    block = np.zeros(sum(counts.values()) + LANES * (len(sizes) + 1), np.float32)
    arrays, begin = {}, -block.ctypes.data // block.itemsize % LANES
    for name, count in counts.items():
        arrays[name] = block[begin : begin + count].reshape(sizes[name])
        begin += -(-count // LANES) * LANES
    return arrays


def parameters(shape: Shape) -> int:
    """How many parameters a model has."""
    d = shape.width
    return (shape.vocab + shape.places) * d + shape.layers * (12 * d * d + 13 * d) + 2 * d


OTHERS = ("draws", "lanes", "starts", "first", "inputs")  # arrays that have no entry in `sizes`
Work = namedtuple("Work", [*sizes(Shape(1, 1, 1, 1, 1, 1, 1, 1)), *OTHERS])  # type: ignore[misc]  # from a function


@njit(inline="always", **COMPILED)
def matrix(flat, start, rows, columns):
    """(rows, columns) of a flat array."""
    return flat[start : start + rows * columns].reshape(rows, columns)


@njit(inline="always", **COMPILED)
def layer_starts(shape, layer):
    """Places where a layer's norm, qkv, projection, norm and two linear maps begin in the flat array, which is in the
    stack's order. The final norm is the first of the layer after the last."""
    d = shape.width
    norm_1 = (shape.vocab + shape.places) * d + layer * (12 * d * d + 13 * d)
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


@njit(**COMPILED)
def arrange(data, inputs, sparse, w):
    """Rows of a batch: inputs as they come, or if it is `sparse` by their padding, whose rows are left out.

    Leaves the order in `inputs`, the first position of each that has a row in `first`, and where each position's rows
    begin in `starts`.
    """
    for i in range(len(inputs)):
        at = i
        while sparse and at > 0 and data.padding[w.inputs[at - 1]] > data.padding[inputs[i]]:
            w.inputs[at] = w.inputs[at - 1]
            at -= 1
        w.inputs[at] = inputs[i]
    for i in range(len(inputs)):
        w.first[i] = data.padding[w.inputs[i]] if sparse else 0
    there = 0
    for p in range(len(w.starts) - 1):
        while there < len(inputs) and w.first[there] <= p:
            there += 1
        w.starts[p + 1] = w.starts[p] + there


@njit(inline="always", **COMPILED)
def entries(data, variant, row, output):
    """First and last entry of an input's target at an output."""
    k = (variant * len(data.prompts) + row) * data.steps + output
    return data.starts[k], data.starts[k + 1]


@njit(**COMPILED)
def embed(flat, shape, data, inputs, positions, variant, w):
    """x_0 = embedding of each prompt's token, then E^T alpha* of each fed target, plus that of its position."""
    d, tokens = shape.width, data.prompts.shape[1]
    table, places = matrix(flat, 0, shape.vocab, d), matrix(flat, shape.vocab * d, shape.places, d)
    x = w.x[0]
    for p in range(positions):
        for i in range(w.starts[p + 1] - w.starts[p]):
            row, at = w.starts[p] + i, max(p - data.shift[inputs[i]], 0)
            x[row] = ZERO  # copying a row would compile Numba's message about shapes, for seconds
            add_row(x, row, places, at, ONE)
            if p < tokens:
                token = data.prompts[inputs[i], p]
                add_row(x, row, table, token % shape.vocab, ONE)
                if token >= shape.vocab:  # a pair
                    add_row(x, row, table, token // shape.vocab - 1, ONE)
            else:
                begin, end = entries(data, variant, inputs[i], p - tokens)
                for entry in range(begin, end):
                    add_row(x, row, table, data.tokens[entry], data.weights[entry])


@njit(**COMPILED)
def norm(flat, at, which, source, first, last, w):
    """Layer norm number `which` of rows first..last; its weight and bias begin at `at`."""
    d = source.shape[1]
    weight, bias, hat, inverse = flat[at : at + d], flat[at + d : at + 2 * d], w.hat[which], w.inverse[which]
    layer_norm(source[first:last], weight, bias, hat[first:last], inverse[first:last], w.normed[which, first:last])


@njit(**COMPILED)
def forward(flat, shape, part, padding, noise, w):
    """All layers for the positions of a pass, whose keys and values join those of the positions before.

    Leaves logits in the rows of the last scored positions.
    """
    b, d, low, high = shape.batch, shape.width, part.low, part.high
    begin, end, lane = w.starts[low], w.starts[high], part.lane + b * (high - low) * d
    for layer in range(shape.layers):
        norm_1, qkv_start, projection, norm_2, up, down = layer_starts(shape, layer)
        first = high - part.scored if layer == shape.layers - 1 else low
        rows, queries = w.starts[first], high - first
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
            drop(middle[rows:end], middle[rows:end], w.lanes[lane:], b, noise)
        lane += b * queries * d
        add(middle[rows:end], w.x[layer, rows:end])
        norm(flat, norm_2, 2 * layer + 1, middle, rows, end, w)
        weight, bias = linear(flat, up, d, 4 * d)
        product(w.normed[2 * layer + 1, rows:end], weight, wide, bias)
        gelu(wide, w.slope[layer, rows:end])
        weight, bias = linear(flat, down, 4 * d, d)
        product(wide, weight, out[rows:end], bias)
        if noise.threshold:
            drop(out[rows:end], out[rows:end], w.lanes[lane:], b, noise)
        lane += b * queries * d
        add(out[rows:end], middle[rows:end])
    rows = w.starts[high - part.scored]
    norm(flat, layer_starts(shape, shape.layers)[0], 2 * shape.layers, w.x[shape.layers], rows, end, w)
    product(w.normed[2 * shape.layers, rows:end], w.table, w.logits[rows:end], w.zeros)


@entry_point
def decode(flat, shape, data, inputs, last, greedy, noise, answers, entropies, w):
    """Answers (input,) to all inputs, and the sum of each step's entropies (step,) in nats.

    The shape scores one position; its batch is decoded at once. `inputs` are rows of the data, `last` the steps at
    which they are answered. Thoughts are the likeliest token if `greedy`, else the mixture of all.
    """
    flat, data, noise, w = borrowed((flat, data, noise, w))
    b, tokens, table = shape.batch, data.prompts.shape[1], matrix(flat, 0, shape.vocab, shape.width)
    turn(flat, shape, w)
    entropies[:] = 0.0
    chunk = np.empty(b, np.int64)
    for begin in range(0, len(inputs), b):
        for i in range(b):
            chunk[i] = inputs[min(begin + i, len(inputs) - 1)]
        embed(flat, shape, data, chunk, tokens, begin, w)
        padding, shift, low = data.padding[chunk], data.shift[chunk], np.int64(0)
        for step in range(len(entropies)):
            high = tokens + step
            forward(flat, shape, Pass(low, high, shape.scored, np.int64(0)), padding, noise, w)
            low = high
            for i in range(min(b, len(inputs) - begin)):
                best, entropy = soften(w.logits, (high - 1) * b + i, shape.vocab, greedy)
                if step <= last[begin + i]:
                    entropies[step] += entropy
                if step == last[begin + i]:
                    answers[begin + i] = best
            if step + 1 < len(entropies):
                before = (high - 1) * b
                think(flat, shape, w.logits[before : before + b, : shape.vocab], high, high, table, shift, w)


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
def think(flat, shape, alpha, position, place, table, shift, w):
    """x_0 of positions to come: E^T alpha of thoughts (position x input, token), plus the embedding of their place."""
    b, d = shape.batch, shape.width
    x, places, begin = w.x[0], matrix(flat, shape.vocab * d, shape.places, d), position * b
    product(alpha, table, x[begin : begin + len(alpha)], w.zeros)
    for row in range(len(alpha)):
        add_row(x, begin + row, places, max(place - shift[row % b], 0), ONE)
