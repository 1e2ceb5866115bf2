"""Two examples, small enough to follow exactly, of what 1/K on a thought's gradient does.

In the first, one parameter is shared by thought and answer, and the geometric mean of the draws' ratios climbs
down the expected reward. In the second the thought is all there is, and it only learns K times slower:
entropies then fall less for larger K by the ratio alone, which the paper reads as an effect of K on exploration.
Neither is in the paper.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from cot2lib import losses


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

    def climb(self, ks: Sequence[int], ratio: str, updates: int = 4000, rate: float = 1.0) -> Float[Tensor, "step k"]:
        """J before and after every update along GRPO's expected gradient with one update per batch, from theta = 0."""
        weights = torch.tensor([share(k, ratio) for k in ks], dtype=torch.float64)
        theta = torch.zeros(len(ks), dtype=torch.float64)
        rewards = [self.reward(theta)]
        for _ in range(updates):
            thought, answer = self.parts(theta)
            theta = theta + rate * (weights * thought + answer)
            rewards.append(self.reward(theta))
        return torch.stack(rewards)

    def surrogate_gradient(self, theta: float, k: int, ratio: str) -> float:
        """The gradient that `climb` follows once more: of `cot2lib.losses.surrogate` over all draws and answers."""
        parameter = torch.tensor(theta, dtype=torch.float64, requires_grad=True)
        draws = torch.cartesian_prod(*[torch.arange(2)] * k).view(-1, k)
        thought = torch.stack([F.logsigmoid(-parameter), F.logsigmoid(parameter)])[draws]
        right = self.a * (1 - draws.double().mean(-1)) + self.b * parameter.sigmoid()
        baseline, value = self.reward(parameter.detach()), parameter.new_zeros(())
        for reward, chance in ((1.0, right), (0.0, 1 - right)):
            gain = (reward - baseline).expand(1, len(draws))
            steps = (thought[None, :, None], chance.log()[None, :, None, None])
            surrogate = sum(losses.surrogate(new, new.detach(), gain, ratio)[0, :, 0] for new in steps)
            value = value + (thought.sum(-1).exp() * chance).detach() @ surrogate
        return float(torch.autograd.grad(value, [parameter])[0])


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


def entropy(logits: Float[Tensor, "*lead vocab"]) -> Float[Tensor, "*lead"]:
    """Entropy (nat) of the law of these logits."""
    log_law = logits.log_softmax(-1)
    return -(log_law.exp() * log_law).sum(-1)
