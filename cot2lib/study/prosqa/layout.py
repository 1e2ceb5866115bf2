"""Places for the nodes of a graph of ProsQA, so that a reader can follow its edges.

Rows are the longest way that leads to a node. Within the rows nodes move about until fewer edges cross, or pass
through a node; edges are straight lines. Rows are fixed, so all that counts is linear in the slots of the nodes.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import networkx
import numpy as np
from jaxtyping import Float, Int

SLOTS = 7  # places in a row, or more if a row has more nodes
TRIES = 4000
NEAR = 0.45  # of a slot: an edge that comes so near to a node seems to pass through it
PASSED, CROSSED, WIDE = 8.0, 1.0, 0.08  # costs of an edge through a node, of a crossing, and of a slot to the side
WARM, COOLED = 2.0, 0.002  # the temperature at first, and its share that is left in the end

Slots = Float[np.ndarray, " node"]
Rows = Int[np.ndarray, " node"]


class Gaps(NamedTuple):
    """Distances to the side, as maps of the slots.

    Attributes:
        edges: from the start of each edge to its end.
        nodes: from an edge to a node whose row it passes.
        above, below: from one edge to another, in the first and the last row that both have.
    """

    edges: Float[np.ndarray, "edge node"]
    nodes: Float[np.ndarray, "passage node"]
    above: Float[np.ndarray, "pair node"]
    below: Float[np.ndarray, "pair node"]

    def cost(self, slot: Slots) -> float:
        """How hard a drawing is to follow; rounded, so that it is the same on every machine."""
        edges, nodes, above, below = (np.round(part @ slot, 6) for part in self)
        passed, crossed = (abs(nodes) < NEAR).sum(), (above * below < 0).sum()
        return round(PASSED * passed + CROSSED * crossed + WIDE * abs(edges).sum(), 6)


def spread(edges: Sequence[tuple[int, int]], seed: int = 0) -> dict[int, tuple[float, float]]:
    """The place of every node, x in 0..1 and y = 0, -1, ... by rows; the same for the same arguments."""
    layers = list(networkx.topological_generations(networkx.DiGraph(edges)))
    nodes = [node for layer in layers for node in layer]
    row = np.repeat(np.arange(len(layers)), [len(layer) for layer in layers])
    ends = [(nodes.index(start), nodes.index(end)) for start, end in edges]
    slots = max(SLOTS, *map(len, layers))
    first = np.concatenate([np.arange(len(layer)) + (slots - len(layer)) // 2 for layer in layers]).astype(float)
    best = _annealed(np.random.default_rng(seed), _gaps(row.tolist(), ends), first, row, slots)
    return {node: ((x + 0.5) / slots, -float(y)) for node, x, y in zip(nodes, best, row)}


def _gaps(row: list[int], ends: Sequence[tuple[int, int]]) -> Gaps:
    unit = np.eye(len(row))

    def at(edge: tuple[int, int], y: int) -> Slots:
        start, end = edge
        share = (y - row[start]) / (row[end] - row[start])
        return (1 - share) * unit[start] + share * unit[end]

    passages = [
        at(edge, row[node]) - unit[node]
        for edge in ends
        for node in range(len(row))
        if row[edge[0]] < row[node] < row[edge[1]]
    ]
    pairs = [(max(row[a[0]], row[b[0]]), min(row[a[1]], row[b[1]]), a, b) for a, b in itertools.combinations(ends, 2)]
    pairs = [pair for pair in pairs if pair[0] < pair[1]]

    def stacked(found: list[Slots]) -> Float[np.ndarray, "any node"]:
        return np.array(found).reshape(-1, len(row))

    return Gaps(
        edges=unit[[end for _, end in ends]] - unit[[start for start, _ in ends]],
        nodes=stacked(passages),
        above=stacked([at(a, top) - at(b, top) for top, _, a, b in pairs]),
        below=stacked([at(a, bottom) - at(b, bottom) for _, bottom, a, b in pairs]),
    )


def _annealed(rng: np.random.Generator, gaps: Gaps, slot: Slots, row: Rows, slots: int) -> Slots:
    """The best slots that were found while nodes moved, or swapped, within their rows."""
    cost = gaps.cost(slot)
    best, least = slot, cost
    for heat in WARM * COOLED ** np.linspace(0, 1, TRIES):
        node, to = rng.integers(len(slot)), rng.integers(slots)
        moved = slot.copy()
        moved[(row == row[node]) & (slot == to)] = slot[node]
        moved[node] = to
        new = gaps.cost(moved)
        if new < cost or rng.random() < np.exp((cost - new) / heat):
            slot, cost = moved, new
        if cost < least:
            best, least = slot, cost
    return best
