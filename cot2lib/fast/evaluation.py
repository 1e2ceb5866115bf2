"""Decoding of held-out inputs with a cache, for learning curves: base and discrete thoughts.

The arithmetic is that of `cot2lib.decode` for the rules `Base()` and `Discrete()`. The prompt is computed once; each
thought adds one position, whose keys and values join those in the work arrays.
"""

import numpy as np
from numba import njit

from cot2lib.fast.kernels import COMPILED, ENTRY, ONE, ZERO, exp, product
from cot2lib.fast.step import add_row, embed, forward, matrix, turn


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
