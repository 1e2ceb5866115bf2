"""Drawings of graphs: rows by the longest way, a place of its own for each node, and edges that can be followed."""

import networkx
import pytest

from cot2lib.study.prosqa.layout import spread
from cot2lib.tasks import ProsQA

TASK = ProsQA(inputs=40, seed=1)


def edges_of(row):
    return [tuple(edge) for edge in TASK.edges[row].tolist() if edge[0] >= 0]


def crossings(edges, places):
    """Pairs of edges without a common node that cross, by another formula than that of the search."""

    def left(a, b, c):
        return (b[0] - a[0]) * (c[1] - a[1]) > (b[1] - a[1]) * (c[0] - a[0])

    found = 0
    for place, (a, b) in enumerate(edges):
        for c, d in edges[:place]:
            if len({a, b, c, d}) == 4:
                p, q, r, s = (places[node] for node in (a, b, c, d))
                found += left(p, q, r) != left(p, q, s) and left(r, s, p) != left(r, s, q)
    return found


@pytest.mark.parametrize("row", range(3))
def test_edges_lead_down_and_seldom_cross(row):
    edges = edges_of(row)
    places = spread(edges)
    layers = list(networkx.topological_generations(networkx.DiGraph(edges)))
    assert {node: -y for node, (_, y) in places.items()} == {
        node: depth for depth, layer in enumerate(layers) for node in layer
    }
    assert len(set(places.values())) == len(places) and all(0 < x < 1 for x, _ in places.values())
    even = {
        node: ((place + 0.5) / len(layer), -depth)
        for depth, layer in enumerate(layers)
        for place, node in enumerate(layer)
    }
    assert crossings(edges, places) < crossings(edges, even)


def test_no_edge_passes_through_a_node():
    for row in range(3):
        edges = edges_of(row)
        places = spread(edges)
        for start, end in edges:
            (x1, y1), (x2, y2) = places[start], places[end]
            for node, (x, y) in places.items():
                if y2 < y < y1:
                    assert abs(x1 + (x2 - x1) * (y - y1) / (y2 - y1) - x) > 0.3 / 7, (row, node)


def test_a_drawing_is_always_the_same():
    assert spread(edges_of(0)) == spread(edges_of(0))
    (x, top), (same, below) = spread([(3, 5)]).values()
    assert (x, top) == (same, below + 1)
