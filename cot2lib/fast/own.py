"""A training step through thoughts that the model makes itself: `train_own`.

The passes follow each other, each finding the keys and values of those before: the prompt, one pass for each thought,
and what follows. Backward they are walked the other way. A pass adds to the gradients of all keys and values before
it, and its first position's gradient goes through the thought that was fed there into the pass before:

    z = E^T alpha, alpha = softmax(l):   dE += alpha dz^T,  dl += alpha (E dz - alpha . E dz)
    z = h, the last hidden state:        dh += dz
    z = h of the slot itself, computed with zeros in it: the slot's own pass is computed again and walked back from dz
"""

from numba import njit

from cot2lib.fast.entries import COMPILED, entry_point
from cot2lib.fast.forward import Pass, arrange, embed, forward, matrix, think, turn
from cot2lib.fast.kernels import ONE, ZERO, U, adamw, add, add_row, borrowed, place, product
from cot2lib.fast.rows import drop, soft_row
from cot2lib.fast.step import backward, draw_pass, project_back, scatter, score

MIXTURE, HIDDEN, SLOT = range(3)  # thoughts are those of `Base()`, `Hidden()`, `ZeroSlot()`


@entry_point
def train_own(flat, shape, data, order, variant, parts, own, kind, skipped, optimiser, noise, first, losses, w):
    """Train on batches as `train` does, of which the first `own` thoughts are the model's.

    `parts` (pass, 5) are passes in the order they are computed, and where their dropout multipliers end; with `SLOT`
    one of a slot comes before each that is fed from it. `kind` says what is fed. The first `skipped` outputs are not
    scored.
    """
    flat, data, optimiser, noise, w = borrowed((flat, data, optimiser, noise, w))
    mean, square, frozen = optimiser.mean, optimiser.square, optimiser.frozen
    for s in range(len(order)):
        inputs = order[s]
        turn(flat, shape, w)
        arrange(data, inputs, False, w)
        w.gradient[:] = ZERO
        w.d_qkv[:] = ZERO
        embed(flat, shape, data, inputs, shape.positions, variant, w)
        for number in range(len(parts)):
            part = pass_of(parts, number)
            if noise.threshold:
                draw_pass(noise, first + s, number, part.lane // 4, parts[number, 4] // 4, w)
            if number > 0:
                feed(flat, shape, part, is_slot(parts, number), kind, data, inputs, w)
            run(flat, shape, part, data.padding[inputs], noise, w)
        losses[s] = score(shape, data, inputs, variant, skipped, w)
        for number in range(len(parts) - 1, -1, -1):
            if not is_slot(parts, number):
                walk_back(flat, shape, parts, number, kind, data, inputs, noise, w)
        scatter(shape, data, inputs, shape.positions, variant, own, w)
        rest = mean[frozen:], square[frozen:], optimiser.rates[s], optimiser.decay, optimiser.beta2, first + s + 1
        adamw(flat[frozen:], w.gradient[frozen:], *rest)


@njit(inline="always", **COMPILED)
def pass_of(parts, number):
    """A row of passes."""
    return Pass(parts[number, 0], parts[number, 1], parts[number, 2], parts[number, 3])


@njit(inline="always", **COMPILED)
def is_slot(parts, number):
    """Whether a pass computes a slot: the next one begins where it does."""
    return number > 0 and number + 1 < len(parts) and parts[number, 0] == parts[number + 1, 0]


@njit(**COMPILED)
def feed(flat, shape, part, slot, kind, data, inputs, w):
    """x_0 of the thought that a pass begins with, made from the pass before; zeros for a slot."""
    b, d, v = shape.batch, shape.width, shape.vocab
    shift, begin, tokens = data.shift[inputs], part.low * b, data.prompts.shape[1]
    if kind == MIXTURE:
        alpha = w.alpha[begin - tokens * b : begin - tokens * b + b]
        for i in range(b):
            alpha[i] = ZERO
            add_row(alpha, i, w.logits, begin - b + i, ONE)
            soft_row(place(alpha, i, 0), U(0), U(alpha.shape[1]), U(0), U(v), ONE)
        think(flat, shape, alpha[:, :v], part.low, part.low, matrix(flat, 0, v, d), shift, w)
        return
    before = begin if kind == SLOT else begin - b
    x, states, places = w.x[0], w.normed[2 * shape.layers], matrix(flat, v * d, shape.places, d)
    for i in range(b):
        x[begin + i] = ZERO
        if not slot:
            add_row(x, begin + i, states, before + i, ONE)
        add_row(x, begin + i, places, max(part.low - shift[i], 0), ONE)


@njit(**COMPILED)
def run(flat, shape, part, padding, noise, w):
    """A pass, dropout of its embeddings first."""
    if noise.threshold:
        x = w.x[0, part.low * shape.batch : part.high * shape.batch]
        drop(x, x, w.lanes[part.lane :], shape.batch, noise)
    forward(flat, shape, part, padding, noise, w)


@njit(**COMPILED)
def pass_back(flat, shape, part, padding, noise, w):
    """`backward`, compiled once."""
    backward(flat, shape, part, padding, noise, w)


@njit(**COMPILED)
def walk_back(flat, shape, parts, number, kind, data, inputs, noise, w):
    """A pass backward, and through the thought that it begins with."""
    b, part = shape.batch, pass_of(parts, number)
    end = part.high * b
    project_back(flat, shape, part, w)
    if kind == HIDDEN and number + 1 < len(parts):  # the next pass was fed the last states of this one
        add(w.d_normed[end - b : end], w.d_x[end : end + b])
    pass_back(flat, shape, part, data.padding[inputs], noise, w)
    if number == 0:
        return
    if kind == MIXTURE:
        mixture_back(shape, part.low, data.prompts.shape[1], w)
    if kind == SLOT:
        slot_back(flat, shape, pass_of(parts, number - 1), data, inputs, noise, w)


@njit(**COMPILED)
def mixture_back(shape, low, tokens, w):
    """Contribution of dz of the mixtures at a position to the gradients of the table and of the logits before."""
    b, v, d, begin = shape.batch, shape.vocab, shape.width, low * shape.batch
    alpha, given, logits = w.alpha[begin - tokens * b : begin - tokens * b + b], w.d_x[begin : begin + b], w.logits
    d_table = matrix(w.gradient, 0, v, d)
    product(alpha[:, :v].T, given, d_table, d_table)
    d_alpha = w.d_thought[:, : w.table.shape[1]]
    product(given, w.table, d_alpha, w.zeros)
    for i in range(b):
        along, row = ZERO, begin - b + i
        for j in range(v):
            along += alpha[i, j] * d_alpha[i, j]
        for j in range(v):
            logits[row, j] += alpha[i, j] * (d_alpha[i, j] - along)


@njit(**COMPILED)
def slot_back(flat, shape, part, data, inputs, noise, w):
    """Gradients of the pass that computed a slot, from dz, which is in d_x; d_x becomes that of the place's embedding.

    What the slot's pass has left was overwritten by that of the thought, so it is computed again.
    """
    d, begin, end = shape.width, part.low * shape.batch, part.high * shape.batch
    feed(flat, shape, part, True, SLOT, data, inputs, w)
    run(flat, shape, part, data.padding[inputs], noise, w)
    kept, given = w.d_thought[:, :d], w.d_x[begin:end]
    kept[:] = ZERO
    add(kept, given)
    w.d_normed[begin:end] = ZERO
    add(w.d_normed[begin:end], given)
    w.d_qkv[:, begin:end] = ZERO
    pass_back(flat, shape, part, data.padding[inputs], noise, w)
    add(w.d_x[begin:end], kept)
