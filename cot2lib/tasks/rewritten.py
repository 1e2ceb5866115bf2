"""Questions of ProsQA with one edge moved, so that the answer moves too, or stays.

An edge that every walk from the root to the target uses is led to another node instead, from where the other option is
reached. So the other option becomes the target. No edge that enters an option is moved or made: both keep their number
of parents. A breadth-first search of the new graph has the last word (`tests/tasks/test_rewritten.py`).

The control moves an edge that no walk from the root uses, and leads it to where it changes no answer. It says what a
model loses by a moved edge alone.
"""

from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib.tasks import ProsQA
from cot2lib.tasks.prosqa import FAR, FEWEST_HOPS
from cot2lib.tasks.reachability import MOST_HOPS, Graphs
from cot2lib.tasks.variants import by_numbers

CHUNK = 128  # graphs that are looked at together


@dataclass(frozen=True)
class Rewritten(ProsQA):
    """Graphs of `ProsQA` with one edge moved each, where some edge can be; others stay as they are.

    Args:
        moved: whether the answer moves with the edge.
    """

    moved: bool = True

    @property
    def graphs(self) -> Graphs:
        return _rewritten(by_numbers(self), self.moved)[0]


def can_be_rewritten(task: ProsQA) -> Int[Tensor, " fitting"]:
    """The questions that have an edge to move both ways: with their answer, and without."""
    return torch.stack([_rewritten(by_numbers(task), moved)[1] for moved in (True, False)]).all(0).nonzero()[:, 0]


@lru_cache(maxsize=4)
def _rewritten(task: ProsQA, moved: bool) -> tuple[Graphs, Bool[Tensor, " graph"]]:
    """The graphs, and which of them have an edge moved."""
    graphs, generator = task.graphs, torch.Generator().manual_seed(task.seed)
    parts = [_chosen(Graphs(*(field[rows] for field in graphs)), task.names, moved, generator)
             for rows in torch.arange(task.size).split(CHUNK)]  # fmt: skip
    edge, end, hops, there = (torch.cat(part) for part in zip(*parts))
    rows = there.nonzero()[:, 0]
    edges, options, new_hops = graphs.edges.clone(), graphs.options, graphs.hops
    edges[rows, edge[rows], 1] = end[rows]
    if moved:
        options = torch.where(there[:, None], options.flip(1), options)
        new_hops = torch.where(there, hops, new_hops)
    return graphs._replace(edges=edges, options=options, hops=new_hops), there


def _chosen(graphs: Graphs, names: int, moved: bool, generator: torch.Generator) -> tuple[Tensor, ...]:
    """For each graph an edge and its new end, drawn from all that fit, the hops to the target, and if there is one."""
    found, hops = _moves(graphs, names) if moved else _idle_moves(graphs, names)
    keys = torch.rand(found.shape, generator=generator).masked_fill(~found, -1.0).flatten(1)
    best, place = keys.max(1)
    edge, end = place // names, place % names
    return edge, end, hops[torch.arange(len(edge)), edge, end], best >= 0


def _moves(graphs: Graphs, names: int) -> tuple[Bool[Tensor, "graph edge end"], Int[Tensor, "graph edge end"]]:
    """Which edges can be led to which nodes, so that the other option is reached and the target is not; the hops then.

    There is no circle, so no shortest way to an edge leads through it.
    """
    away, (target, other) = distances(graphs, names), graphs.options.unbind(1)
    start, end = graphs.edges.clamp(min=0).unbind(-1)  # (graph, edge)
    left = _reached_without(graphs, names)  # (graph, edge, node)
    kept = left.gather(2, target[:, None, None].expand(-1, left.shape[1], 1))[..., 0] > 0
    needed = ~kept & (end != target[:, None])
    to_other, to_target = (_column(away, node) for node in (other, target))  # (graph, node)
    ends = (to_other < FAR) & (to_target == FAR) & (torch.arange(names) != other[:, None])
    root = away[torch.arange(len(away)), graphs.root]  # (graph, node)
    hops = root.gather(1, start)[..., None] + 1 + to_other[:, None]
    within = (hops >= FEWEST_HOPS) & (hops <= MOST_HOPS)
    return _possible(graphs, away) & needed[..., None] & ends[:, None] & within, hops


def _idle_moves(graphs: Graphs, names: int) -> tuple[Bool[Tensor, "graph edge end"], Int[Tensor, "graph edge end"]]:
    """Which edges can be led to which nodes without a change that a walk from the root would see."""
    away = distances(graphs, names)
    start, end = graphs.edges.clamp(min=0).unbind(-1)
    root = away[torch.arange(len(away)), graphs.root]
    asked = (torch.arange(names)[:, None] == graphs.options[:, None]).any(-1)  # (graph, node)
    unseen = (root.gather(1, start) == FAR) & ~asked.gather(1, end)
    found = _possible(graphs, away) & unseen[..., None] & ~asked[:, None]
    return found, torch.zeros_like(found, dtype=torch.int64)


def _possible(graphs: Graphs, away: Int[Tensor, "graph node node"]) -> Bool[Tensor, "graph edge end"]:
    """Which edges can be led to which nodes at all: there is no such edge yet, and no way back."""
    names = away.shape[1]
    there, start = graphs.edges[..., 0] >= 0, graphs.edges[..., 0].clamp(min=0)
    rows = torch.arange(len(start))[:, None]
    back = away.transpose(1, 2)[rows, start] < FAR  # (graph, edge, end): from the new end to the start
    nodes = torch.arange(names) < graphs.nodes[:, None]
    return there[..., None] & nodes[:, None] & ~back & (away[rows, start] != 1)


def distances(graphs: Graphs, names: int) -> Int[Tensor, "graph node node"]:
    """Hops from each node to each other; `FAR` where no way leads."""
    steps = _adjacency(graphs, names)
    reached = torch.eye(names).expand_as(steps)
    away = torch.where(reached > 0, 0, FAR)
    for hop in range(1, names):
        reached = (reached @ steps).clamp(max=1)
        away = torch.where((reached > 0) & (away == FAR), hop, away)
    return away


def _reached_without(graphs: Graphs, names: int) -> Float[Tensor, "graph edge node"]:
    """Which nodes walks from the root reach (1) if an edge is taken away, for each edge."""
    steps = _adjacency(graphs, names)
    start, end = graphs.edges.clamp(min=0).unbind(-1)
    reached = torch.nn.functional.one_hot(graphs.root, names).float()[:, None].repeat(1, start.shape[1], 1)
    for _ in range(names - 1):
        along = reached.gather(2, start[..., None])
        reached = (reached + reached @ steps).scatter_add(2, end[..., None], -along).clamp(0, 1)
    return reached


def _adjacency(graphs: Graphs, names: int) -> Float[Tensor, "graph node node"]:
    start, end = graphs.edges.where(graphs.edges >= 0, names).unbind(-1)
    steps = torch.zeros(len(start), names + 1, names + 1)
    return steps.index_put((torch.arange(len(start))[:, None], start, end), torch.ones(()))[:, :-1, :-1]


def _column(away: Int[Tensor, "graph node node"], node: Int[Tensor, " graph"]) -> Int[Tensor, "graph node"]:
    """Hops from every node to one."""
    return away[torch.arange(len(away)), :, node]
