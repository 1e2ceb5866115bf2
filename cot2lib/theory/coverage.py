"""How often K sampled traces of MNNS hold a path to the answer.

The thoughts before the answer are sampled, signs with probability 1/2; the last step looks over both signs of the
last digit and takes the best sum it finds. That read-off is not linear, so that here, unlike in prop.
sample-complexity, a trace of K tokens can be right where one token is not.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.supervision import forward_counts
from cot2lib.tasks import MNNS
from cot2lib.theory.simulation import independent, systematic

SAMPLERS = {"multinomial": independent, "systematic": systematic}


def coverage(task: MNNS, k: int, sampler: str, repeats: int = 8, seed: int = 0) -> Float[Tensor, " repeat"]:
    """Share of the task's inputs whose answer a trace of K tokens holds, for several traces per input.

    Paths are followed by their signs, the smaller sum first, which draws the same sums as merging equal ones would.

    `sampler`: "multinomial" (MTS) or "systematic". Raises SpecError for another, or k < 1.
    """
    if sampler not in SAMPLERS:
        raise SpecError(f"sampler={sampler!r}: choose one of {', '.join(SAMPLERS)}.")
    if k < 1:
        raise SpecError(f"k={k}: a thought needs at least one token.")
    draw, key = SAMPLERS[sampler], random.run_keys([seed], Site.CHAIN, k)
    digits = task.digits.expand(repeats, -1, -1)
    sums, drawn = torch.zeros_like(digits[..., :1]), torch.ones(repeats, task.size, 1)
    for step in range(task.length - 1):
        sums = _both_signs(sums, digits[..., step])
        order = sums.argsort(-1)
        sums, laws = sums.gather(-1, order), torch.cat([drawn, drawn], -1).gather(-1, order) / 2
        drawn = draw(laws, k, random.fold(key, step))
    right = _both_signs(sums, digits[..., -1]) == task.answers[:, None]
    held = (torch.cat([drawn, drawn], -1) > 0) & right
    return held.any(-1).float().mean(-1)


def _both_signs(sums: Int[Tensor, "*input sum"], digit: Int[Tensor, "*input"]) -> Int[Tensor, "*input sums"]:
    return torch.cat([sums - digit[..., None], sums + digit[..., None]], -1)


def independent_coverage(task: MNNS, k: int) -> float:
    """Exact share of inputs whose answer at least one of K independent discrete traces holds."""
    missed = 1 - (_shares(task)[-2] * hits(task)).sum(1)
    return float((1 - missed**k).mean())


def hits(task: MNNS) -> Bool[Tensor, "input state"]:
    """Sums before the last digit from which one of its signs leads to the answer."""
    answers = (task.answers + task.start)[:, None, None]
    return (task.children(task.length - 1) == answers).any(-1)


def answer_mass(task: MNNS) -> Float[Tensor, " input"]:
    """alpha_m(answer): the share of all trajectories that end in the answer."""
    return _shares(task)[-1].gather(1, (task.answers + task.start)[:, None])[:, 0]


def _shares(task: MNNS) -> list[Float[Tensor, "input state"]]:
    """Share of all trajectories in each sum, from before the first step on."""
    graph = [task.children(step) for step in range(task.length)]
    return [counts / counts.sum(1, keepdim=True) for counts in forward_counts(graph, task.states, task.start)]
