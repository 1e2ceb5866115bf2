"""Thoughts that are sampled: the mean of K tokens (paper, section 5.1), and a Dirichlet point (5.2).

What `cot2lib.thoughts.sampled.MTS` and `cot2lib.thoughts.simplex.Dirichlet` do for tensors, for one row of a softmax
alpha: draws by the same keys, log-densities, and gradients. The last are with respect to log alpha as if the alpha_j
were free, h_j; those of the scores l are then (h_j - alpha_j sum(h)) / temperature.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from cot2lib.fast.entries import COMPILED
from cot2lib.fast.kernels import GOLDEN, ONE, ZERO, U, mix

TOKENS, POINT = range(2)
PROPOSALS, UNIFORMS, LEAST = 4, 6, 1e-30  # as in `cot2lib.kit.dirichlet`


class Policy(NamedTuple):
    """A rule that samples thoughts."""

    kind: int  # TOKENS or POINT
    draws: int  # K tokens, or one point
    most: int  # tokens that an action holds: K, or the most that have entries of their own
    temperature: np.float32
    gamma: float
    floor: float
    masked: bool


class Traces(NamedTuple):
    """Rollouts, each prompt's side by side, and a row's scratch."""

    tokens: np.ndarray  # (thought, rollout, token)
    apart: np.ndarray  # (thought, rollout) how many tokens of a point have entries of their own
    points: np.ndarray  # (thought, rollout, token + 1) logarithms of a point's entries
    answers: np.ndarray  # (rollout,)
    old: np.ndarray  # (output, rollout, draw) log-densities
    new: np.ndarray
    reference: np.ndarray
    gains: np.ndarray  # (rollout,) advantages
    coefficients: np.ndarray  # (draw,) derivatives of the objective by log-densities
    row: np.ndarray  # (token,) a row's cumulated weights, or what is left of them
    slopes: np.ndarray  # (token,) h


@njit(inline="always", **COMPILED)
def uniform(key, index):
    """The draw number `index` of a key: float32 in (0, 1)."""
    bits = mix(mix(U(index + 1) * GOLDEN) ^ key) >> U(41)
    return (np.float32(bits) + np.float32(0.5)) * np.float32(2.0**-23)


@njit(**COMPILED)
def draw_tokens(alpha, row, key, first, tokens, cumulated):
    """Tokens whose cumulated weight first exceeds each uniform draw, of number `first` on."""
    total, last = 0.0, len(cumulated) - 1
    for j in range(last + 1):
        total += alpha[row, j]
        cumulated[j] = total
    for c in range(len(tokens)):
        x, below = uniform(key, first + c) * cumulated[last], 0
        for j in range(last + 1):
            below += cumulated[j] <= x
        tokens[c] = min(below, last)


@njit(**COMPILED)
def draw_point(policy, alpha, row, key, rollout, tokens, point, fed, left):
    """A Dirichlet point; leaves its mixture in `fed` (token,). Returns how many tokens have entries of their own."""
    vocab, most = len(left), len(tokens)
    beyond = 0.0
    for j in range(vocab):
        left[j] = alpha[row, j]
        beyond += left[j]
    apart, top = 0, ZERO
    while apart < most:
        best = 0
        for j in range(vocab):
            best = j if left[j] > left[best] else best
        value = left[best]
        beyond -= value
        top = value if apart == 0 else top
        own = value >= policy.floor and (beyond >= policy.floor or policy.floor == 0.0)
        if not (value >= policy.floor or value == top if policy.masked else own):
            break
        tokens[apart], left[best] = best, -ONE
        apart += 1
    total, shared = shares(policy, alpha, row, tokens[:apart], vocab)
    top_gamma = -math.inf
    for e in range(most + 1):
        share = own_share(policy, alpha, row, tokens[e], total) if e < apart else shared if e == most else 0.0
        point[e] = -math.inf
        if share > 0.0:
            point[e] = log_gamma(max(policy.gamma * share, LEAST), key, (rollout * (most + 1) + e) * UNIFORMS)
        top_gamma = max(top_gamma, point[e])
    mass = 0.0
    for e in range(most + 1):
        mass += math.exp(point[e] - top_gamma)
    inside = math.exp(point[most] - top_gamma) / mass / max(shared, LEAST)
    for j in range(vocab):
        fed[j] = alpha[row, j] * inside if left[j] >= ZERO else ZERO
    for e in range(most + 1):
        point[e] -= top_gamma + math.log(mass)
        if e < apart:
            fed[tokens[e]] = math.exp(point[e])
    return apart


@njit(**COMPILED)
def log_gamma(shape, key, first):
    """Logarithm of a gamma variate from draws of number `first` on, as `cot2lib.kit.dirichlet.log_gammas`."""
    d, refused, taken = shape + 2 / 3, 1.0, 0.0  # d = (shape + 1) - 1/3
    for proposal in range(PROPOSALS):
        pair = proposal % 2
        angle = 2 * math.pi * uniform(key, first + pair + 2)
        z = math.sqrt(-2 * math.log(uniform(key, first + pair)))
        z *= math.cos(angle) if proposal < 2 else math.sin(angle)
        taken = 3 * math.log(max(1 + z / math.sqrt(9 * d), LEAST))
        refused *= 1 - min(math.exp(z * z / 2 + d * (1 - math.exp(taken) + taken)), 1.0)
        if uniform(key, first + PROPOSALS) >= refused:
            break
    return math.log(d) + taken + math.log(uniform(key, first + PROPOSALS + 1)) / shape


@njit(**COMPILED)
def shares(policy, alpha, row, tokens, vocab):
    """Divisor of own shares, and the share of all other tokens together."""
    own, every = 0.0, 0.0
    for token in tokens:
        own += max(alpha[row, token], policy.floor) if policy.masked else alpha[row, token]
    if policy.masked:
        return own, 0.0
    for j in range(vocab):
        every += alpha[row, j]
    return 1.0, max(every - own, 0.0) if len(tokens) < vocab else 0.0


@njit(inline="always", **COMPILED)
def own_share(policy, alpha, row, token, total):
    """The share of the concentration that a token apart has."""
    return (max(alpha[row, token], policy.floor) if policy.masked else alpha[row, token]) / total


@njit(**COMPILED)
def point_density(policy, alpha, row, tokens, point, vocab):
    """Log-density of a point: lgamma(sum a) + sum(a log x - lgamma(a)), as `cot2lib.kit.dirichlet.log_density`."""
    total, shared = shares(policy, alpha, row, tokens, vocab)
    whole, value, last = 0.0, 0.0, len(point) - 1
    for e in range(len(tokens) + 1):
        x = point[e] if e < len(tokens) else point[last]
        share = own_share(policy, alpha, row, tokens[e], total) if e < len(tokens) else shared
        if x > -math.inf:
            a = max(policy.gamma * share, LEAST)
            whole += a
            value += a * x + math.log(a) - math.lgamma(a + 1)
    return value + math.lgamma(whole)


@njit(**COMPILED)
def point_slopes(policy, alpha, row, tokens, point, times, slopes):
    """Adds `times` the derivatives of a point's log-density to h, as d/da = log x - psi(a) + psi(sum a).

    Returns what is still to be added for every token in units of its alpha.
    """
    total, shared = shares(policy, alpha, row, tokens, len(slopes))
    whole, along, last, scale = 0.0, 0.0, len(point) - 1, times * policy.gamma
    for e in range(len(tokens)):
        whole += max(policy.gamma * own_share(policy, alpha, row, tokens[e], total), LEAST)
    there = point[last] > -math.inf
    whole += max(policy.gamma * shared, LEAST) if there else 0.0
    middle = digamma(whole)
    rest = scale * (point[last] - digamma(max(policy.gamma * shared, LEAST)) + middle) if there else 0.0
    if policy.masked:  # shares are divided by their sum
        for token, x in zip(tokens, point):
            share = own_share(policy, alpha, row, token, total)
            along += share * (x - digamma(max(policy.gamma * share, LEAST)) + middle)
    for token, x in zip(tokens, point):
        if policy.masked and alpha[row, token] < policy.floor:
            continue
        a = policy.gamma * own_share(policy, alpha, row, token, total)
        by_share = scale * (x - digamma(max(a, LEAST)) + middle - along) / total if a > LEAST else 0.0
        slopes[token] += alpha[row, token] * (by_share - rest)
    return rest


@njit(**COMPILED)
def digamma(x):
    """psi(x), x > 0: psi(x) = psi(x + 1) - 1/x up to x >= 6, then the asymptotic series."""
    less = 0.0
    while x < 6.0:
        less += 1 / x
        x += 1.0
    square = 1 / (x * x)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132))))
    return math.log(x) - 1 / (2 * x) - series - less
