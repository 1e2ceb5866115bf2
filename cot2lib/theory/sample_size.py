"""How many traces of K tokens bring their average within epsilon of alpha_m (Section 4.2, Prop. sample-complexity, i).

Let V = E||q_m - alpha_m||^2 be the mean squared error of one trace. The average of N traces has V / N. By Chebyshev's
inequality N = V / (eps^2 delta) suffices for probability 1 - delta.

Difference from the paper: its proof inserts V <= (2 - 1/K) / K. For every chain only
V <= (1 - ||alpha_m||^2) (1 - (1 - 1/K)^m) holds, which grows with m towards the error of a single token. `failure`
gives the exact probability for two tokens that never change. The printed N can be tested on it.
"""

import math

import torch
from jaxtyping import Float
from scipy import special
from torch import Tensor

from cot2lib.theory.estimators import printed_bound

DIAMETER = math.sqrt(2)  # largest distance of two distributions


def largest_variance(k: int, steps: int, diversity: float = 1.0) -> float:
    """The largest V of any chain of m steps with 1 - ||alpha_m||^2 = `diversity`."""
    return diversity * (1 - (1 - 1 / k) ** steps)


def printed_size(epsilon: float, delta: float, k: int) -> int:
    """The N that the paper's proof calls enough: (2 - 1/K) / (K eps^2 delta)."""
    return math.ceil(printed_bound(k) / (k * epsilon**2 * delta))


def chebyshev_size(epsilon: float, delta: float, variance: float) -> int:
    """An N that is enough for every chain with this V: V / (eps^2 delta)."""
    return math.ceil(variance / (epsilon**2 * delta))


def bernstein_size(epsilon: float, delta: float, variance: float) -> int:
    """An N that is enough and grows only with ln(1 / delta).

    Source: Bernstein's inequality in Hilbert space (Pinelis, 1994).
    """
    needed = 2 * variance / epsilon**2 + 2 * DIAMETER / (3 * epsilon)
    return math.ceil(needed * math.log(2 / delta))


def drift(k: int, steps: int) -> Float[Tensor, " count"]:
    """Distribution of the first token's count among K, for two equally likely tokens that never change.

    This is the Wright-Fisher model without mutation.
    """
    counts = torch.arange(k + 1, dtype=torch.float64)
    ways = torch.from_numpy(special.comb(k, counts.numpy()))
    binomial = lambda share: ways * share**counts * (1 - share) ** (k - counts)
    chances = binomial(torch.tensor(0.5, dtype=torch.float64))  # (count)
    moves = binomial((counts / k)[:, None])  # (count before, count)
    for _ in range(steps - 1):
        chances = chances @ moves
    return chances


def failure(epsilon: float, traces: int, k: int, steps: int) -> float:
    """Exact P(||average - alpha_m|| > epsilon) of N traces, for two equally likely tokens that never change.

    The characteristic function of the sum of N counts is the N-th power of that of `drift`.
    """
    chances, largest = drift(k, steps), traces * k
    sums = torch.fft.irfft(torch.fft.rfft(chances, largest + 1) ** traces, largest + 1)  # (total)
    totals = torch.arange(largest + 1, dtype=torch.float64)
    far = (2 * totals - largest).abs() > DIAMETER * epsilon * largest
    return float(sums[far].sum())
