"""Two examples of what a factor 1/K on a thought's gradient does, small enough to follow exactly.

They concern the policy ratio of Section 5.1, the geometric mean of the ratios of K draws, whose gradient is 1/K of the
likelihood ratio's. Neither example is in the paper.

1. `climb`: a thought of K draws and an answer share the parameter theta. Each draw is token 1 with probability
   sigma(theta), and q is the share of token 1 among the draws. The answer is right with probability
   a (1 - q) + b sigma(theta). So the expected reward is J = a - (a - b) sigma(theta), and highest without token 1.
   Its gradient has a thought part -a sigma' and an answer part b sigma'. A factor 1/K on the thought part reverses
   the sign of the sum for K > a/b: with the geometric mean the expected reward falls.
2. `entropies`: the thought is all there is, and it learns K times more slowly. So entropies fall less for larger K by
   the ratio alone. The paper reads that as an effect of K on exploration.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

A, B = 0.5, 0.3  # of the first example
VOCAB, UPDATES = 8, 2000  # tokens, and updates in equal steps, of the second example


def share(k: int, ratio: str) -> float:
    """The gradient of a `ratio` over that of the likelihood ratio, for a thought of k draws at equal weights."""
    return 1 / k if ratio == "geometric" else 1.0


def reward(theta: Float[Tensor, "*lead"]) -> Float[Tensor, "*lead"]:
    """J of the first example."""
    return A - (A - B) * theta.sigmoid()


def parts(theta: Float[Tensor, "*lead"]) -> tuple[Float[Tensor, "*lead"], Float[Tensor, "*lead"]]:
    """The gradient of J through the thought's draws, and that through the answer."""
    slope = theta.sigmoid() * (-theta).sigmoid()
    return -A * slope, B * slope


def climb(ks: Sequence[int], ratio: str, updates: int) -> Float[Tensor, "step k"]:
    """J at theta = 0 and after each update along GRPO's expected gradient, with one update per batch."""
    weights = torch.tensor([share(k, ratio) for k in ks], dtype=torch.float64)
    theta = torch.zeros(len(ks), dtype=torch.float64)
    rewards = [reward(theta)]
    for _ in range(updates):
        thought, answer = parts(theta)
        theta = theta + weights * thought + answer
        rewards.append(reward(theta))
    return torch.stack(rewards)


def entropies(ks: Sequence[int], ratio: str, time: float) -> Float[Tensor, " k"]:
    """Final entropies (nat) of one of a thought's K draws, whose reward is the share of one right token among them.

    Training starts uniform over `VOCAB` tokens and follows the expected gradient. `time` is the number of updates
    times the learning rate, the same for every K.
    """
    right = torch.zeros(VOCAB, dtype=torch.float64)
    right[0] = 1.0
    rates = torch.tensor([share(k, ratio) for k in ks], dtype=torch.float64)[:, None] * time / UPDATES
    logits = torch.zeros(len(ks), VOCAB, dtype=torch.float64)
    for _ in range(UPDATES):
        alpha = logits.softmax(-1)  # (k, vocab)
        logits = logits + rates * alpha * (right - alpha[:, :1])
    return torch.distributions.Categorical(logits=logits).entropy()
