"""Questions about graphs with edges added or moved, so that a model loses by what it rests on.

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

from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from cot2lib.study.graph_facts import away
from cot2lib.tasks import ProntoQA, ProsQA
from cot2lib.tasks.prontoqa import APART, BESIDE, LEAF, OF_BESIDE
from cot2lib.tasks.reachability import Graphs

Edge = tuple[int, int]  # from a node to a node

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
        return _with_leaves(self.inputs, self.names, self.hops, self.parents, self.seed, self.passed)


def with_room(task: ProsQA) -> Int[Tensor, " fitting"]:
    """The graphs that `LEAVES` more nodes and edges fit into."""
    return _room(task.graphs, task.names).nonzero()[:, 0]


def _room(graphs: Graphs, names: int) -> Bool[Tensor, " graph"]:
    edges = (graphs.edges[..., 0] >= 0).sum(1)
    return (graphs.nodes + LEAVES <= names) & (edges + LEAVES <= graphs.edges.shape[1])


@lru_cache(maxsize=4)
def _with_leaves(inputs: int, names: int, hops: int | None, parents: float, seed: int, passed: bool) -> Graphs:
    task = ProsQA(inputs=inputs, names=names, hops=hops, parents=parents, seed=seed, naming="age")  # a name is a node
    graphs, random = task.graphs, torch.Generator().manual_seed(seed)
    room = _room(graphs, names)
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
