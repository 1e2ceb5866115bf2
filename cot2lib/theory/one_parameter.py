"""Two examples, small enough to follow exactly, of what 1/K on a thought's gradient does.

In the first, one parameter is shared by thought and answer, and the geometric mean of the draws' ratios climbs
down the expected reward. In the second the thought is all there is, and it only learns K times slower:
entropies then fall less for larger K by the ratio alone, which the paper reads as an effect of K on exploration.
Neither is in the paper.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from cot2lib import policy
from cot2lib.thoughts import inverse_cdf


def share(k: int, ratio: str) -> float:
    """What a ratio's gradient at equal weights multiplies the likelihood ratio's by, for a thought of k draws."""
    return 1 / k if ratio == "geometric" else 1.0


@dataclass(frozen=True)
class Shared:
    """Each of K draws is token 1 with probability sigma(theta); the answer is right with probability a(1-q) + b sigma.

    q is the share of token 1 among the draws, so that J = a - (a-b) sigma, best without token 1. Its gradient has a
    thought part -a sigma' and an answer part b sigma': weighted 1/K, the former loses to the latter for K > a/b.
    """

    a: float = 0.5
    b: float = 0.3

    def reward(self, theta: Tensor) -> Tensor:
        """Expected reward J."""
        return self.a - (self.a - self.b) * theta.sigmoid()

    def parts(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """The gradient of J through the thought's draws, and through the answer."""
        slope = theta.sigmoid() * (-theta).sigmoid()
        return -self.a * slope, self.b * slope

    def climb(
        self, ks: Sequence[int], ratio: str, updates: int = 4000, rate: float = 1.0
    ) -> Float[Tensor, "update k"]:
        """J before and after every update along the expected gradient of one update per batch, from theta = 0."""
        weights = torch.tensor([share(k, ratio) for k in ks], dtype=torch.float64)
        theta = torch.zeros(len(ks), dtype=torch.float64)
        rewards = [self.reward(theta)]
        for _ in range(updates):
            thought, answer = self.parts(theta)
            theta = theta + rate * (weights * thought + answer)
            rewards.append(self.reward(theta))
        return torch.stack(rewards)

    def surrogate_gradient(self, theta: float, k: int, ratio: str) -> float:
        """The expected gradient once more, by `cot2lib.policy.surrogate` summed over all draws and answers."""
        parameter = torch.tensor(theta, dtype=torch.float64, requires_grad=True)
        draws = torch.cartesian_prod(*[torch.arange(2)] * k).view(-1, k)
        token = torch.stack([torch.nn.functional.logsigmoid(-parameter), torch.nn.functional.logsigmoid(parameter)])
        q = draws.double().mean(-1)
        right = self.a * (1 - q) + self.b * parameter.sigmoid()
        thought = token[draws][None, :, None]
        value = torch.zeros((), dtype=torch.float64)
        for reward, chance in ((1.0, right), (0.0, 1 - right)):
            gain = torch.full((1, len(draws)), reward - float(self.reward(parameter)), dtype=torch.float64)
            answer = chance.log()[None, :, None, None]
            both = [policy.surrogate(new, new.detach(), gain, ratio)[0, :, 0] for new in (thought, answer)]
            value = value + (token[draws].sum(-1).exp() * chance).detach() @ (both[0] + both[1])
        (found,) = torch.autograd.grad(value, [parameter])
        return float(found)


def entropies(ks: Sequence[int], ratio: str, time: float, vocab: int = 8, updates: int = 2000) -> Float[Tensor, " k"]:
    """Entropies (nat) that a thought of K draws ends at if the reward is the share of one right token among them.

    From the uniform law, along the expected gradient for the same `time`, updates times learning rate.
    """
    right = torch.zeros(vocab, dtype=torch.float64)
    right[0] = 1.0
    rates = torch.tensor([share(k, ratio) for k in ks], dtype=torch.float64)[:, None] * time / updates
    logits = torch.zeros(len(ks), vocab, dtype=torch.float64)
    for _ in range(updates):
        law = logits.softmax(-1)
        logits = logits + rates * law * (right - law[:, :1])
    return entropy(logits)


def sampled_entropies(
    k: int, ratio: str, time: float, vocab: int = 8, updates: int = 400, group: int = 64, lanes: int = 64
) -> Float[Tensor, " lane"]:
    """`entropies` by sampled groups: stochastic gradient ascent of `cot2lib.policy.surrogate` in independent lanes."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.zeros(lanes, vocab, dtype=torch.float64)
    for _ in range(updates):
        logits.requires_grad_()
        uniforms = torch.rand(lanes, group, k, generator=generator, dtype=torch.float64)
        law = logits.detach().softmax(-1)[:, None].expand(-1, group, -1)
        draws = inverse_cdf(law.contiguous(), uniforms)
        gain = policy.advantages((draws == 0).double().mean(-1)[:, None], scaled=False)[:, 0]
        new = logits.log_softmax(-1)[:, None].expand(-1, group, -1).gather(-1, draws)[:, :, None]
        value = policy.surrogate(new, new.detach(), gain, ratio).mean((1, 2)).sum()
        (gradient,) = torch.autograd.grad(value, [logits])
        logits = logits.detach() + time / updates * gradient
    return entropy(logits)


def entropy(logits: Float[Tensor, "*lead vocab"]) -> Float[Tensor, "*lead"]:
    """Entropy (nat) of the law of these logits."""
    log_law = logits.log_softmax(-1)
    return -(log_law.exp() * log_law).sum(-1)


def falling_time(target: float, vocab: int = 8) -> float:
    """The time after which `entropies` of the likelihood ratio are down to `target`, by bisection."""
    low, high = 0.0, 1e4
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        above = float(entropies([1], "product", middle, vocab)[0]) > target
        low, high = (middle, high) if above else (low, middle)
    return high


def expected_ratio(
    new: Float[Tensor, " vocab"], old: Float[Tensor, " vocab"], k: int
) -> tuple[float, float]:
    """Expectation of the geometric mean over the old policy's thoughts of k draws, and Renyi's D_{1/k}(new || old).

    The first is exp(-(k-1) times the second): below one unless the laws agree. For k = 1 the order is one, the
    divergence KL(new || old).
    """
    overlap = float((new ** (1 / k) * old ** (1 - 1 / k)).sum())
    if k == 1:
        return 1.0, float((new * (new / old).log()).sum())
    return overlap**k, math.log(overlap) / (1 / k - 1)
