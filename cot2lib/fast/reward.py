"""A step of policy gradients in one compiled function: `reward`. It computes what `cot2lib.training.grpo` describes.

Prompts are encoded once; the branches of each follow, step by step, as `cot2lib.model.branches` lays them out. What a
rollout leaves in the arrays is what its replay would compute, so the first update needs no other forward pass, unless
dropout or a divergence asks for one.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from cot2lib.fast.entries import COMPILED, entry_point
from cot2lib.fast.forward import Noise, Pass, embed, forward, matrix, think, turn
from cot2lib.fast.kernels import ONE, ZERO, U, adamw, add_row, borrowed, fold, place, product
from cot2lib.fast.rows import drop, soft_row
from cot2lib.fast.rules import POINT, draw_point, draw_tokens, point_density, point_slopes
from cot2lib.fast.step import backward, draw_pass, project_back, scatter

GEOMETRIC, PER_DRAW = 0, 2  # places in `cot2lib.losses.RATIOS`
LEAST_SPREAD = 1e-12  # as in `cot2lib.losses`


class Terms(NamedTuple):
    """The objective of a batch of rollouts, and how often it is descended."""

    ratio: int
    clip: float
    kl: float
    scaled: bool
    updates: int


@entry_point
def reward(
    flat,
    shape,
    data,
    right,
    last,
    order,
    policy,
    terms,
    reference,
    key,
    optimiser,
    noise,
    first,
    losses,
    clipped,
    t,
    w,
):
    """Train on batches by reward, the first of which is step number `first` of the run.

    Leaves each batch's share of failed rollouts in `losses` (step,), the last update's gradients in `w.gradient` and
    its share of clipped ratios in `clipped` (1,). `right` (input, token) says which answers are rewarded, `last`
    (input,) at which step each input is answered; `reference` is the flat array of the start, `key` the rollouts'.
    """
    flat, data, optimiser, noise, t, w = borrowed((flat, data, optimiser, noise, t, w))
    silent = Noise(noise.key, noise.counter, np.int32(0), ONE)
    for s in range(len(order)):
        inputs, step = order[s], first + s
        turn(flat, shape, w)
        roll_out(flat, shape, data, last, inputs, policy, fold(key, step), silent, t, w)
        losses[s] = 1.0 - judge(right, inputs, shape.branches, terms, t)
        if noise.threshold:
            measure(shape, last, inputs, policy, t, t.old, w)
        if terms.kl > 0.0:
            replay(reference, shape, data, last, inputs, policy, silent, step, np.int64(0), w)
            measure(shape, last, inputs, policy, t, t.reference, w)
        for update in range(terms.updates):
            if update > 0 or terms.kl > 0.0 or noise.threshold:
                replay(flat, shape, data, last, inputs, policy, noise, step, update, w)
            measure(shape, last, inputs, policy, t, t.new, w)
            if update == 0 and noise.threshold == 0:
                t.old[:] = t.new  # so that at equal weights every ratio is exactly one
            clipped[0] = score_draws(shape, last, inputs, policy, terms, t, w)
            descend(flat, shape, data, inputs, noise, w)
            count = step * terms.updates + update + 1
            rest = optimiser.mean, optimiser.square, optimiser.rates[s], optimiser.decay, optimiser.beta2, count
            adamw(flat, w.gradient, *rest)


@njit(inline="always", **COMPILED)
def row_of(shape, output, i, branch):
    """The row whose logits are of an output of a branch: the prompt's last for all branches of the first."""
    place = shape.shared - 1 if output == 0 else shape.shared + (output - 1) * shape.branches + branch
    return place * shape.batch + i


@njit(inline="always", **COMPILED)
def fed_row(shape, thought, i, branch):
    """The row of the mixture weights that a branch is fed as a thought."""
    return (thought * shape.branches + branch) * shape.batch + i


@njit(**COMPILED)
def soften(shape, last, inputs, policy, output, w):
    """Logits of an output become distributions: the answer's, or those that thoughts are drawn from."""
    for branch in range(shape.branches if output else 1):
        for i in range(shape.batch):
            heat = policy.temperature if output < last[inputs[i]] else ONE
            row = place(w.logits, row_of(shape, output, i, branch), 0)
            soft_row(row, U(0), U(w.logits.shape[1]), U(0), U(shape.vocab), ONE / heat)


@njit(**COMPILED)
def roll_out(flat, shape, data, last, inputs, policy, key, silent, t, w):
    """Thoughts and answers of all branches, by the draws of `cot2lib.decode.keyed_noise`."""
    tokens, outputs, branches = shape.shared, len(t.old), shape.branches
    embed(flat, shape, data, inputs, tokens, np.int64(0), w)
    padding, shift = data.padding[inputs], data.shift[inputs]
    for output in range(outputs):
        low = tokens + (output - 1) * branches if output else np.int64(0)
        scored = branches if output else np.int64(1)
        forward(flat, shape, Pass(low, tokens + output * branches, scored, np.int64(0)), padding, silent, w)
        soften(shape, last, inputs, policy, output, w)
        draw_output(shape, last, inputs, policy, key, output, t, w)
        if output + 1 < outputs:
            feed(flat, shape, output, shift, w)


@njit(**COMPILED)
def draw_output(shape, last, inputs, policy, key, output, t, w):
    """Draws of all branches at an output: a thought, or the answer by the draws of the last one."""
    here, final, outputs = fold(key, output), fold(key, len(t.old) - 1), len(t.old)
    logits, alpha, answers, cumulated = w.logits, w.alpha, t.answers, t.row[: shape.vocab]
    tokens, points, apart = t.tokens, t.points, t.apart
    for i in range(shape.batch):
        for branch in range(shape.branches):
            rollout, row = i * shape.branches + branch, row_of(shape, output, i, branch)
            if output == last[inputs[i]]:
                draw_tokens(logits, row, final, rollout, answers[rollout : rollout + 1], cumulated)
            if output + 1 == outputs:
                continue
            fed, drawn = alpha[fed_row(shape, output, i, branch)], tokens[output, rollout]
            fed[:] = ZERO
            if policy.kind == POINT:
                point = points[output, rollout]
                apart[output, rollout] = draw_point(policy, logits, row, here, rollout, drawn, point, fed, cumulated)
                continue
            draw_tokens(logits, row, here, rollout * policy.draws, drawn, cumulated)
            for token in drawn:
                fed[token] += ONE / np.float32(policy.draws)


@njit(**COMPILED)
def feed(flat, shape, thought, shift, w):
    """x_0 of all branches' thoughts of a step."""
    size, place = shape.branches * shape.batch, shape.shared + thought
    table = matrix(flat, 0, shape.vocab, shape.width)
    alpha = w.alpha[thought * size : thought * size + size, : shape.vocab]
    think(flat, shape, alpha, shape.shared + thought * shape.branches, place, table, shift, w)


@njit(**COMPILED)
def judge(right, inputs, group, terms, t):
    """The mean reward; advantages of all rollouts within their groups."""
    every = 0.0
    for i in range(len(inputs)):
        total = 0.0
        for rollout in range(i * group, i * group + group):
            t.gains[rollout] = 1.0 if right[inputs[i], t.answers[rollout]] else 0.0
            total += t.gains[rollout]
        mean = total / group
        spread = max(np.sqrt(mean * (1.0 - mean)), LEAST_SPREAD) if terms.scaled else 1.0
        for rollout in range(i * group, i * group + group):
            t.gains[rollout] = (t.gains[rollout] - mean) / spread
        every += mean
    return every / len(inputs)


@njit(**COMPILED)
def replay(flat, shape, data, last, inputs, policy, noise, step, update, w):
    """One forward pass over prompts and all thoughts that were fed, with dropout where there is some."""
    outputs = (shape.positions - shape.shared) // shape.branches + 1
    turn(flat, shape, w)
    embed(flat, shape, data, inputs, shape.shared, np.int64(0), w)
    for thought in range(outputs - 1):
        feed(flat, shape, thought, data.shift[inputs], w)
    if noise.threshold:
        draw_pass(noise, step, update, np.int64(0), np.int64(len(w.draws)), w)
        drop(w.x[0], w.x[0], w.lanes, shape.batch, noise)
    part = Pass(np.int64(0), shape.positions, shape.scored, np.int64(0))
    forward(flat, shape, part, data.padding[inputs], noise, w)
    for output in range(outputs):
        soften(shape, last, inputs, policy, output, w)


@njit(**COMPILED)
def measure(shape, last, inputs, policy, t, out, w):
    """Log-densities (output, rollout, draw) of what rollouts drew, under the distributions that are there."""
    logits, tokens, apart, points, answers = w.logits, t.tokens, t.apart, t.points, t.answers
    for output in range(len(out)):
        for i in range(shape.batch):
            for branch in range(shape.branches):
                rollout, row = i * shape.branches + branch, row_of(shape, output, i, branch)
                if output == last[inputs[i]]:
                    out[output, rollout, 0] = np.log(np.float64(logits[row, answers[rollout]]))
                elif output < last[inputs[i]] and policy.kind == POINT:
                    drawn = tokens[output, rollout, : apart[output, rollout]]
                    density = point_density(policy, logits, row, drawn, points[output, rollout], shape.vocab)
                    out[output, rollout, 0] = density
                elif output < last[inputs[i]]:
                    for draw in range(policy.draws):
                        chance = logits[row, tokens[output, rollout, draw]]
                        out[output, rollout, draw] = np.log(np.float64(chance))


@njit(**COMPILED)
def score_draws(shape, last, inputs, policy, terms, t, w):
    """Distributions become gradients of logits; returns the share of ratios outside the clip range.

    What a rollout's draws do to h (`cot2lib.fast.rules`) is added up in `slopes`, what all tokens get in `common`.
    """
    new, old, reference, gains, coefficients, slopes = t.new, t.old, t.reference, t.gains, t.coefficients, t.slopes
    logits, tokens, apart, points, answers = w.logits, t.tokens, t.apart, t.points, t.answers
    share, common = 0.0, 0.0
    for output in range(len(new)):
        for i in range(shape.batch):
            end = last[inputs[i]]
            weight = 1.0 / (shape.batch * shape.branches * (end + 1))
            heat = policy.temperature if output < end else ONE
            for branch in range(shape.branches):
                rollout, row = i * shape.branches + branch, row_of(shape, output, i, branch)
                if output > 0 or branch == 0:
                    slopes[:] = 0.0
                    common = 0.0
                if output <= end:
                    draws = policy.draws if output < end else 1
                    given = terms, new, old, reference, output, rollout
                    share += weight * weigh(*given, gains[rollout], coefficients, draws, weight)
                if output == end:
                    slopes[answers[rollout]] += coefficients[0]
                elif output < end and policy.kind == POINT:
                    drawn, point = tokens[output, rollout, : apart[output, rollout]], points[output, rollout]
                    if coefficients[0] != 0.0:
                        common += point_slopes(policy, logits, row, drawn, point, coefficients[0], slopes)
                elif output < end:
                    for draw in range(draws):
                        slopes[tokens[output, rollout, draw]] += coefficients[draw]
                if output > 0 or branch + 1 == shape.branches:
                    close(logits, row, slopes, common, heat, shape.vocab)
    return share


@njit(**COMPILED)
def weigh(terms, new, old, reference, output, rollout, gain, coefficients, draws, weight):
    """Derivatives of a rollout's part of the objective, at an output, by its new log-densities (in `coefficients`).

    The part is weight (kl k - surrogate); see `cot2lib.losses`. Returns the share of ratios outside the clip range.
    """
    whole, gap, outside = 0.0, 0.0, 0.0
    for draw in range(draws):
        whole += new[output, rollout, draw] - old[output, rollout, draw]
        gap += reference[output, rollout, draw] - new[output, rollout, draw]
    power = 1.0 / draws if terms.ratio == GEOMETRIC else 1.0
    pull = power * (np.exp(power * gap) - 1.0) * terms.kl if terms.kl > 0.0 else 0.0
    for draw in range(draws):
        apart = new[output, rollout, draw] - old[output, rollout, draw]
        change = apart if terms.ratio == PER_DRAW else power * whole
        ratio = np.exp(change)
        beyond = abs(np.expm1(change)) > terms.clip
        outside += 1.0 / draws if beyond else 0.0
        bounded = min(max(ratio, 1.0 - terms.clip), 1.0 + terms.clip)
        kept = ratio == bounded or ratio * gain < bounded * gain  # the lesser of the two has this gradient
        coefficients[draw] = -weight * ((power * ratio * gain if kept else 0.0) + pull)
    return outside


@njit(**COMPILED)
def close(alpha, row, slopes, common, heat, vocab):
    """A row of alpha becomes the gradient of its logits, (h - alpha sum(h)) / heat, h = slopes + alpha common."""
    along = common  # alpha adds up to one
    for j in range(vocab):
        along += slopes[j]
    for j in range(vocab):
        alpha[row, j] = (slopes[j] + alpha[row, j] * (common - along)) / heat


@njit(**COMPILED)
def descend(flat, shape, data, inputs, noise, w):
    """Gradients of all parameters from those of the logits."""
    b, v, d, begin = shape.batch, shape.vocab, shape.width, shape.shared * shape.batch
    part = Pass(np.int64(0), shape.positions, shape.scored, np.int64(0))
    w.gradient[:] = ZERO
    project_back(flat, shape, part, w)
    backward(flat, shape, part, data.padding[inputs], noise, w)
    scatter(shape, data, inputs, shape.shared, np.int64(0), np.int64(0), w)
    table, places = matrix(w.gradient, 0, v, d), matrix(w.gradient, v * d, shape.places, d)
    product(w.alpha[:, :v].T, w.d_x[begin:], table, table)
    for row in range(len(w.alpha)):
        thought, i = row // (shape.branches * b), row % b
        add_row(places, max(shape.shared + thought - data.shift[inputs[i]], 0), w.d_x, begin + row, ONE)
