"""How often K sampled traces of MNNS hold a path to the answer.

The tokens before the answer are sampled, each sign with probability 1/2. The last step tries both signs of the last
digit and takes the best sum it finds.

Difference from the paper: Prop. sample-complexity (Section 4.2) assumes a linear read-off. This one is not linear, so
a trace of K tokens can be right where a single token is not.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.supervision import forward_counts
from cot2lib.tasks import MNNS
from cot2lib.theory.simulation import DRAWS


def coverage(task: MNNS, k: int, sampler: str, repeats: int = 8) -> Float[Tensor, " repeat"]:
    """Share of the task's inputs whose answer a trace of K tokens holds. Each input gets `repeats` traces.

    The sampler is "multinomial" (MTS) or "systematic". A path is a sequence of signs. Paths stay apart where sums
    are equal, and are sorted by sum before each draw; that draws the same sums as merging them would.
    """
    draw, key = DRAWS[sampler], random.run_keys([0], Site.CHAIN, k)
    digits = task.digits.expand(repeats, -1, -1)  # (repeat, input, step)
    sums, drawn = torch.zeros_like(digits[..., :1]), torch.ones(repeats, task.size, 1)  # (repeat, input, path)
    for step in range(task.length - 1):
        sums = _both_signs(sums, digits[..., step])  # twice as many paths
        order = sums.argsort(-1)
        sums, chances = sums.gather(-1, order), torch.cat([drawn, drawn], -1).gather(-1, order) / 2
        drawn = draw(chances, k, random.fold(key, step))
    right = _both_signs(sums, digits[..., -1]) == task.answers[:, None]
    held = (torch.cat([drawn, drawn], -1) > 0) & right
    return held.any(-1).float().mean(-1)


def _both_signs(sums: Int[Tensor, "*input path"], digit: Int[Tensor, "*input"]) -> Int[Tensor, "*input paths"]:
    return torch.cat([sums - digit[..., None], sums + digit[..., None]], -1)


def independent_coverage(task: MNNS, k: int) -> float:
    """Exact share of inputs whose answer at least one of K independent discrete traces holds."""
    missed = 1 - (_marginals(task)[-2] * hits(task)).sum(1)
    return float((1 - missed**k).mean())


def hits(task: MNNS) -> Bool[Tensor, "input state"]:
    """Whether a sum before the last digit leads to the answer by one of that digit's signs."""
    answers = (task.answers + task.start)[:, None, None]
    return (task.children(task.length - 1) == answers).any(-1)


def answer_mass(task: MNNS) -> Float[Tensor, " input"]:
    """alpha_m(answer): the share of all trajectories that end in the answer."""
    return _marginals(task)[-1].gather(1, (task.answers + task.start)[:, None])[:, 0]


def _marginals(task: MNNS) -> list[Float[Tensor, "input state"]]:
    """Share of all trajectories in each sum: before the first step, then after every step."""
    graph = [task.children(step) for step in range(task.length)]
    return [counts / counts.sum(1, keepdim=True) for counts in forward_counts(graph, task.states, task.start)]
