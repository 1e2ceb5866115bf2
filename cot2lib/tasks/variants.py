"""Graphs that test what a model has learnt: added leaves, moved edges; and what they show without a search.

`Distracted` and `Rewritten` change ProsQA, `Blocked` changes ProntoQA. Each has a control that changes as much and
should change no answer.
"""

from dataclasses import dataclass, fields
from functools import lru_cache

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib.tasks import ProntoQA, ProsQA
from cot2lib.tasks.prontoqa import APART, BESIDE, LEAF, OF_BESIDE
from cot2lib.tasks.prosqa import FEWEST_HOPS, UNREACHED
from cot2lib.tasks.reachability import MOST_HOPS, Graphs, Reachability

Ends = Bool[Tensor, "graph edge end"]  # which edges may be led to which nodes
Edges = Int[Tensor, "graph edge 2"]

INPUTS = 1000  # graphs that a test has
LEAVES = 4
CHUNK = 128  # rewritten graphs that are made together
ENTERING = {(BESIDE[2], OF_BESIDE[2]): (OF_BESIDE[2], APART)}
LEAVING = {(BESIDE[0], LEAF): (APART, LEAF), (BESIDE[1], OF_BESIDE[1]): (APART, OF_BESIDE[1])}
ASIDE = {
    (BESIDE[0], LEAF): (OF_BESIDE[2], LEAF),
    (BESIDE[1], OF_BESIDE[1]): (LEAF, OF_BESIDE[1]),
    (BESIDE[2], OF_BESIDE[2]): (OF_BESIDE[2], OF_BESIDE[1]),
}

LED_TO, LEADING = "the other concept is led to", "the other concept leads on"
BOTH, NEITHER = "both", "neither, the same edges moved"
MOVED = {LED_TO: ENTERING, LEADING: LEAVING, BOTH: ENTERING | LEAVING, NEITHER: ASIDE}


# What graphs show without a search from the root


def degrees(task: Reachability) -> tuple[Int[Tensor, "input name"], Int[Tensor, "input name"]]:
    """Edges that enter and edges that leave each name."""
    steps = _adjacency(task.edges, task.names).long()
    return steps.sum(1), steps.sum(2)


def depths(task: Reachability) -> Int[Tensor, "input name"]:
    """Hops from the nearest node that no edge enters."""
    sources = degrees(task)[0] == 0
    return distances(task.edges, task.names).masked_fill(~sources[..., None], UNREACHED).amin(1)


def ancestry(task: Reachability) -> Int[Tensor, "input name"]:
    """Number of nodes from which each name is reached."""
    hops = distances(task.edges, task.names)
    return ((hops > 0) & (hops < UNREACHED)).sum(1)


def distances(edges: Edges, names: int) -> Int[Tensor, "graph from to"]:
    """Hops from each node to each other; `UNREACHED` where there is no way."""
    steps = _adjacency(edges, names)
    reached = torch.eye(names).expand_as(steps)
    hops = torch.where(reached > 0, 0, UNREACHED)
    for hop in range(1, names):
        reached = (reached @ steps).clamp(max=1)
        nearer = (reached > 0) & (hops == UNREACHED)
        if not nearer.any():
            break
        hops = hops.masked_fill(nearer, hop)
    return hops


def _adjacency(edges: Edges, names: int) -> Float[Tensor, "graph from to"]:
    start, end = edges.where(edges >= 0, names).unbind(-1)
    steps = torch.zeros(len(start), names + 1, names + 1)
    return steps.index_put((torch.arange(len(start))[:, None], start, end), torch.ones(()))[:, :-1, :-1]


# Added leaves


@dataclass(frozen=True)
class Distracted(ProsQA):
    """Graphs of `ProsQA` with `LEAVES` more leaves where there is room for them.

    The question, both options and their degrees stay, so what a model loses is due to the leaves. Leaves below nodes
    on a walk from the root widen the frontier (`passed`); leaves below other nodes only lengthen the prompt.
    """

    passed: bool = True

    @property
    def graphs(self) -> Graphs:
        return _with_leaves(_by_numbers(self), self.passed)


def has_room(task: ProsQA) -> Bool[Tensor, " input"]:
    """Which graphs `LEAVES` more nodes and edges fit into."""
    edges = (task.graphs.edges[..., 0] >= 0).sum(1)
    return (task.graphs.nodes + LEAVES <= task.names) & (edges + LEAVES <= task.most_edges)


def _by_numbers(task: ProsQA) -> ProsQA:
    """The graphs of `ProsQA` that a variant changes, each node named by its number."""
    return ProsQA(**{field.name: getattr(task, field.name) for field in fields(ProsQA)} | {"naming": "age"})


@lru_cache(maxsize=4)
def _with_leaves(task: ProsQA, passed: bool) -> Graphs:
    graphs, random, nodes = task.graphs, torch.Generator().manual_seed(task.seed), torch.arange(task.names)
    hops = distances(graphs.edges, task.names)[torch.arange(task.size), graphs.root]  # (graph, node)
    near = hops < graphs.hops[:, None] if passed else hops == UNREACHED
    options = (nodes[:, None] == graphs.options[:, None]).any(-1)  # which have to stay leaves
    hosts = near & (nodes < graphs.nodes[:, None]) & ~options
    room = has_room(task)
    chosen = torch.multinomial(hosts.double(), LEAVES, replacement=True, generator=random)
    leaves = graphs.nodes[:, None] + torch.arange(LEAVES)
    more = torch.stack([chosen, leaves], -1).where(room[:, None, None], -1)  # (graph, leaf, 2)
    edges = torch.cat([graphs.edges, more], 1)
    keys = torch.rand(edges.shape[:2], generator=random).where(edges[..., 0] >= 0, 2.0)
    order = keys.argsort(1)[:, : task.most_edges, None].expand(-1, -1, 2)
    edges = torch.where(room[:, None, None], edges.gather(1, order), graphs.edges)
    return graphs._replace(edges=edges, nodes=graphs.nodes + LEAVES * room)


# Moved edges


@dataclass(frozen=True)
class Blocked(ProntoQA):
    """Questions of `ProntoQA` under the paper's reading, with the edges of one entry of `MOVED` replaced.

    It is enough there to look at the concept before the property in question: an edge enters the concept before the
    chain's end, and three leave it; the concept before the other property has one edge in all. Here the latter gets
    such edges too, from the sides of the chain, so that a prompt keeps its length and a question its answer. The entry
    `NEITHER` moves the same edges elsewhere and blocks no rule. Rules that look further back still answer these
    questions; the control of two halves (`ProntoQA`) excludes them all.
    """

    rule: str = BOTH

    @property
    def graphs(self) -> Graphs:
        graphs = super().graphs
        edges = graphs.edges  # (input, edge, 2)
        for old, new in MOVED[self.rule].items():
            edges = torch.where((edges == torch.tensor(old)).all(-1, keepdim=True), torch.tensor(new), edges)
        return graphs._replace(edges=edges)


@dataclass(frozen=True)
class Rewritten(ProsQA):
    """Graphs of `ProsQA` with one edge led to another node, where some edge can be; others stay as they are.

    If `moved`, it is an edge that every walk to the target uses. From its new end the other option is reached, which
    so becomes the target. Else it is an edge that no walk from the root uses, and no answer changes. No edge that
    enters an option is moved or made, so both keep their number of parents.
    """

    moved: bool = True

    @property
    def graphs(self) -> Graphs:
        return _rewritten(_by_numbers(self), self.moved)[0]


def can_be_rewritten(task: ProsQA) -> Int[Tensor, " fitting"]:
    """The questions that have an edge to move both ways, with their answer and without."""
    return torch.stack([_rewritten(_by_numbers(task), moved)[1] for moved in (True, False)]).all(0).nonzero()[:, 0]


@lru_cache(maxsize=4)
def _rewritten(task: ProsQA, moved: bool) -> tuple[Graphs, Bool[Tensor, " graph"]]:
    """The graphs, and which of them have an edge moved."""
    graphs, generator = task.graphs, torch.Generator().manual_seed(task.seed)
    chunks = torch.arange(task.size).split(CHUNK)
    parts = [_chosen(Graphs(*(part[rows] for part in graphs)), task.names, moved, generator) for rows in chunks]
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
    found, hops = _moves(graphs, names, moved)
    keys = torch.rand(found.shape, generator=generator).masked_fill(~found, -1.0).flatten(1)
    best, place = keys.max(1)
    return place // names, place % names, hops.flatten(1).gather(1, place[:, None])[:, 0], best >= 0


def _moves(graphs: Graphs, names: int, moved: bool) -> tuple[Ends, Int[Tensor, "graph edge end"]]:
    """Which edges can be led to which nodes, and the hops to the new target then.

    No edge is doubled and no circle is closed. So no shortest way to an edge leads through it.
    """
    rows, nodes = torch.arange(len(graphs.root)), torch.arange(names)
    (target, other), (start, end) = graphs.options.unbind(1), graphs.edges.clamp(min=0).unbind(-1)
    away = distances(graphs.edges, names)  # (graph, from, to)
    below = away[rows, graphs.root]  # (graph, node): hops from the root
    there, exists = graphs.edges[..., :1] >= 0, (nodes < graphs.nodes[:, None])[:, None]
    circle, double = (to[rows[:, None], start] for to in (away.transpose(1, 2) < UNREACHED, away == 1))
    possible = there & exists & ~circle & ~double  # (graph, edge, end)
    options = (nodes[:, None] == graphs.options[:, None]).any(-1)  # (graph, node)
    if not moved:
        unseen = (below.gather(1, start) == UNREACHED) & ~options.gather(1, end)
        found = possible & unseen[..., None] & ~options[:, None]
        return found, torch.zeros_like(found, dtype=torch.int64)
    to_target, to_other = away[rows, :, target], away[rows, :, other]  # (graph, node)
    needed = ~_reached_without(graphs, names)[rows, :, target] & (end != target[:, None])
    ends = (to_other < UNREACHED) & (to_target == UNREACHED) & (nodes != other[:, None])
    hops = below.gather(1, start)[..., None] + 1 + to_other[:, None]
    within = (hops >= FEWEST_HOPS) & (hops <= MOST_HOPS)
    return possible & needed[..., None] & ends[:, None] & within, hops


def _reached_without(graphs: Graphs, names: int) -> Bool[Tensor, "graph edge node"]:
    """Which nodes walks from the root reach if an edge is taken away, for each edge."""
    steps = _adjacency(graphs.edges, names)
    start, end = graphs.edges.clamp(min=0).unbind(-1)
    reached = F.one_hot(graphs.root, names).float()[:, None].repeat(1, start.shape[1], 1)
    for _ in range(names - 1):
        along = reached.gather(2, start[..., None])
        reached = (reached + reached @ steps).scatter_add(2, end[..., None], -along).clamp(0, 1)
    return reached > 0
