"""Graphs looked at without a search from the root, and questions whose edges are added to or moved.

Nodes are told apart by edges, depths and ancestors.

`Distracted` is ProsQA with nodes that answer nothing: leaves below nodes on a walk from the root, or below others. A
graph keeps its question, both options and their degrees. So what a model loses by the added leaves is due to them
alone. Leaves below nodes that walks pass widen the frontier. Leaves elsewhere only lengthen the prompt.

`Blocked` is ProntoQA as the paper reads it, with edges moved so that rules about the concept before the property are
of no use. An edge enters the concept before the chain's end, and three leave it. The concept before the other property
has one edge in all (see `cot2lib.tasks.prontoqa`). Here it gets such edges too. They are taken from the sides of the
chain, so a prompt keeps its length and a question its answer. One entry moves the same edges elsewhere and blocks no
rule: it says what a model loses by moved edges alone. Rules that look further back still answer these questions; the
longest of them is a search from the property. The control of two halves excludes them all.

`Rewritten` is ProsQA with one edge moved, so that the answer moves too, or stays. An edge that every walk from the
root to the target uses is led to another node instead, from where the other option is reached. So the other option
becomes the target. No edge that enters an option is moved or made: both keep their number of parents. A breadth-first
search of the new graph has the last word (`tests/tasks/test_rewritten.py`). The control moves an edge that no walk
from the root uses, and leads it to where it changes no answer. It says what a model loses by a moved edge alone.
"""

from dataclasses import dataclass, fields
from functools import lru_cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib.tasks import ProntoQA, ProsQA
from cot2lib.tasks.prontoqa import APART, BESIDE, LEAF, OF_BESIDE
from cot2lib.tasks.prosqa import FAR, FEWEST_HOPS
from cot2lib.tasks.reachability import MOST_HOPS, Graphs, Reachability

Edge = tuple[int, int]  # from a node to a node

INPUTS = 1000  # graphs that are looked at, or answered
LEAVES = 4
CHUNK = 128  # rewritten graphs that are looked at together
ENTERING = {(BESIDE[2], OF_BESIDE[2]): (OF_BESIDE[2], APART)}
LEAVING = {(BESIDE[0], LEAF): (APART, LEAF), (BESIDE[1], OF_BESIDE[1]): (APART, OF_BESIDE[1])}
ASIDE = {
    (BESIDE[0], LEAF): (OF_BESIDE[2], LEAF),
    (BESIDE[1], OF_BESIDE[1]): (LEAF, OF_BESIDE[1]),
    (BESIDE[2], OF_BESIDE[2]): (OF_BESIDE[2], OF_BESIDE[1]),
}

LED_TO, LEADING = "the other concept is led to", "the other concept leads on"
BOTH, NEITHER = "both", "neither, the same edges moved"
MOVED: dict[str, dict[Edge, Edge]] = {LED_TO: ENTERING, LEADING: LEAVING, BOTH: ENTERING | LEAVING, NEITHER: ASIDE}


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


# Added and moved edges


@dataclass(frozen=True)
class Distracted(ProsQA):
    """Graphs of `ProsQA`; those that have room for them get `LEAVES` more leaves.

    Args:
        passed: whether leaves hang below nodes that walks from the root leave within the hops that are asked for, or
            below nodes that no walk from it reaches.
    """

    passed: bool = True

    @property
    def graphs(self) -> Graphs:
        return _with_leaves(by_numbers(self), self.passed)


def with_room(task: ProsQA) -> Int[Tensor, " fitting"]:
    """The graphs that `LEAVES` more nodes and edges fit into."""
    return _room(task.graphs, task.names).nonzero()[:, 0]


def _room(graphs: Graphs, names: int) -> Bool[Tensor, " graph"]:
    edges = (graphs.edges[..., 0] >= 0).sum(1)
    return (graphs.nodes + LEAVES <= names) & (edges + LEAVES <= graphs.edges.shape[1])


def by_numbers(task: ProsQA) -> ProsQA:
    """The graphs of `ProsQA` that a variant of it changes, each node named by its number."""
    return ProsQA(**{field.name: getattr(task, field.name) for field in fields(ProsQA)} | {"naming": "age"})


@lru_cache(maxsize=4)
def _with_leaves(task: ProsQA, passed: bool) -> Graphs:
    graphs, random = task.graphs, torch.Generator().manual_seed(task.seed)
    room = _room(graphs, task.names)
    chosen = torch.multinomial(_hosts(task, passed).double(), LEAVES, replacement=True, generator=random)
    leaves = graphs.nodes[:, None] + torch.arange(LEAVES)
    more = torch.stack([chosen, leaves], -1).where(room[:, None, None], -1)  # (graph, leaf, 2)
    edges = torch.cat([graphs.edges, more], 1)
    keys = torch.rand(edges.shape[:2], generator=random).where(edges[..., 0] >= 0, 2.0)
    order = keys.argsort(1)[:, : task.most_edges, None].expand(-1, -1, 2)
    edges = torch.where(room[:, None, None], edges.gather(1, order), graphs.edges)
    return graphs._replace(edges=edges, nodes=graphs.nodes + LEAVES * room)


def _hosts(task: ProsQA, passed: bool) -> Bool[Tensor, "input node"]:
    """Nodes that leaves may hang from; never an option, which has to stay a leaf."""
    root = torch.nn.functional.one_hot(task.root, task.names).bool()
    hops, nodes = away(task, root), torch.arange(task.names)
    asked = (nodes[:, None] == task.options[:, None]).any(-1)
    there = nodes < task.graphs.nodes[:, None]
    near = hops < task.graphs.hops[:, None] if passed else hops >= task.names
    return near & there & ~asked


@dataclass(frozen=True)
class Blocked(ProntoQA):
    """Questions of `ProntoQA` under the paper's reading, with the edges of one entry of `MOVED` replaced.

    Args:
        rule: which entry.
    """

    rule: str = BOTH

    @property
    def graphs(self) -> Graphs:
        graphs = super().graphs
        edges = graphs.edges  # (input, edge, 2)
        for old, new in MOVED[self.rule].items():
            edges = torch.where((edges == torch.tensor(old)).all(-1, keepdim=True), torch.tensor(new), edges)
        return graphs._replace(edges=edges)


# One edge that moves the answer, or does not


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
