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
"""

from dataclasses import dataclass, fields
from functools import lru_cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib.tasks import ProntoQA, ProsQA
from cot2lib.tasks.prontoqa import APART, BESIDE, LEAF, OF_BESIDE
from cot2lib.tasks.reachability import Graphs, Reachability

Edge = tuple[int, int]  # from a node to a node

INPUTS = 1000  # graphs that are looked at, or answered
LEAVES = 4
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
