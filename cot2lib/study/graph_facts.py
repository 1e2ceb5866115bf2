"""What tells nodes of a graph apart without a search from the root: edges, depths, ancestors."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib.tasks.reachability import Reachability

INPUTS = 1000  # graphs that are looked at, or answered
DENSE = 2.0  # parents of a node, against 1.5 in training


def degrees(task: Reachability) -> tuple[Int[Tensor, "input name"], Int[Tensor, "input name"]]:
    """Edges that enter and that leave each name."""
    start, end = task.ends
    zeros = torch.zeros(task.size, task.names + 1, dtype=torch.int64)
    into, out = (zeros.scatter_add(1, side, torch.ones_like(side))[:, :-1] for side in (end, start))
    return into, out


def depths(task: Reachability) -> Int[Tensor, "input name"]:
    """Hops from the nearest node that nothing leads to."""
    into, _ = degrees(task)
    return away(task, into == 0)


def away(task: Reachability, sources: Bool[Tensor, "input name"]) -> Int[Tensor, "input name"]:
    """Hops from the nearest of some nodes; as many as there are names where no way leads."""
    start, end = task.ends
    far = torch.full((task.size, task.names + 1), task.names)
    far[:, :-1] = torch.where(sources, 0, task.names)
    for _ in range(task.names):
        far = far.scatter_reduce(1, end, far.gather(1, start) + 1, "amin")
        far[:, -1] = task.names
    return far[:, :-1].clamp(max=task.names)


def ancestors(task: Reachability) -> Int[Tensor, "input name"]:
    """How many nodes each name is reached from."""
    start, end = task.ends
    reached = torch.zeros(task.size, task.names + 1, task.names + 1)
    reached[torch.arange(task.size)[:, None], start, end] = 1.0
    reached = reached[:, :-1, :-1]  # (input, from, to)
    for _ in range((task.names - 1).bit_length()):  # ways twice as long
        reached = (reached + reached @ reached).clamp(max=1)
    return reached.sum(1).long()


def with_none(values: Int[Tensor, "input name"]) -> Int[Tensor, "input end"]:
    """A zero after the values of all names, which ends of edges that a graph does not have point at."""
    return torch.cat([values, torch.zeros_like(values[:, :1])], 1)


def mean(values: Int[Tensor, " input"] | Float[Tensor, " input"] | Bool[Tensor, " input"]) -> float:
    """The mean of a value of every input; a share, where it is true or false."""
    return float(values.double().mean())
