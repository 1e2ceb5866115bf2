"""How many traces of K tokens bring their average within epsilon of alpha_m (paper, prop. sample-complexity, part i).

With V = E||q_m - alpha_m||^2 of one trace the average of N has mean squared error V / N, so that N = V / (eps^2 delta)
suffices for probability 1 - delta by Chebyshev's inequality. The paper inserts V <= (2 - 1/K) / K; what holds for
every chain is V <= (1 - ||alpha_m||^2) (1 - (1 - 1/K)^m), which grows with m towards the error of a single token.
`failure` gives the exact probability for two tokens that never change, on which the printed N can be held.
"""

import math

import torch
from jaxtyping import Float
from scipy import special
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.theory.estimators import printed_bound

DIAMETER = math.sqrt(2)  # largest distance of two distributions
FEWEST = 2.0  # N V from which the lower bound is a 16th


def largest_variance(k: int, steps: int, diversity: float = 1.0) -> float:
    """Largest V over chains of m steps with 1 - ||alpha_m||^2 = `diversity`."""
    return diversity * (1 - (1 - 1 / k) ** steps)


def printed_size(epsilon: float, delta: float, k: int) -> int:
    """The N that the paper's proof calls enough, (2 - 1/K) / (K eps^2 delta)."""
    _checked(epsilon, delta)
    return math.ceil(printed_bound(k) / (k * epsilon**2 * delta))


def chebyshev_size(epsilon: float, delta: float, variance: float) -> int:
    """An N that is enough for every chain with this V, V / (eps^2 delta)."""
    _checked(epsilon, delta)
    return math.ceil(variance / (epsilon**2 * delta))


def bernstein_size(epsilon: float, delta: float, variance: float) -> int:
    """An N that is enough, logarithmic in 1 / delta: Bernstein's inequality in Hilbert space (Pinelis, 1994)."""
    _checked(epsilon, delta)
    needed = 2 * variance / epsilon**2 + 2 * DIAMETER / (3 * epsilon)
    return math.ceil(needed * math.log(2 / delta))


def least_failure(traces: int, variance: float) -> float:
    """P(error >= epsilon) is at least this for every epsilon with epsilon^2 <= V / (2 N) (Paley and Zygmund)."""
    moved = traces * variance
    return moved / (12 * moved + 8)


def drift(k: int, steps: int) -> Float[Tensor, " count"]:
    """Law of the first of two tokens' count among K, from even odds, if no token ever changes (Wright-Fisher)."""
    counts = torch.arange(k + 1, dtype=torch.float64)
    ways = torch.from_numpy(special.comb(k, counts.numpy()))
    odds = lambda share: ways * share**counts * (1 - share) ** (k - counts)
    law = odds(torch.tensor(0.5, dtype=torch.float64))
    onward = odds((counts / k)[:, None])
    for _ in range(steps - 1):
        law = law @ onward
    return law


def failure(epsilon: float, traces: int, k: int, steps: int) -> float:
    """Exact P(||average - alpha_m|| > epsilon) of N traces on two equally likely tokens that never change.

    The sum of N counts has the N-th power of the characteristic function of `drift`.
    """
    law, largest = drift(k, steps), traces * k
    sums = torch.fft.irfft(torch.fft.rfft(law, largest + 1) ** traces, largest + 1)
    totals = torch.arange(largest + 1, dtype=torch.float64)
    far = (2 * totals - largest).abs() > DIAMETER * epsilon * largest
    return float(sums[far].sum())


def _checked(epsilon: float, delta: float) -> None:
    if not (epsilon > 0 and 0 < delta < 1):
        raise SpecError(f"epsilon={epsilon}, delta={delta}: need epsilon > 0 and 0 < delta < 1.")
