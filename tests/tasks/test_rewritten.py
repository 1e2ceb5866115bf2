"""Questions with one edge moved, against networkx."""

from dataclasses import asdict
from functools import cache

import networkx as nx
import pytest
import torch

from cot2lib.tasks import ProsQA, variants
from cot2lib.tasks.variants import Rewritten, can_be_rewritten

TASK = ProsQA(inputs=200, names=28, hops=None, mixture=(0.4, 0.4, 0.2), seed=1, waiting=6, padding_counts=True)


@pytest.fixture(scope="module")
def rows():
    return can_be_rewritten(TASK).tolist()


@cache
def with_edge(moved):
    return Rewritten(**asdict(TASK), moved=moved)


def edges_of(task, row):
    return {tuple(edge) for edge in task.graphs.edges[row].tolist() if edge[0] >= 0}


def one(graphs, row):
    return type(graphs)(*(field[row : row + 1] for field in graphs))


@pytest.mark.parametrize("moved", [True, False])
def test_rewritten_gives_one_edge_another_end(rows, moved):
    """Neither end is an option, so both options keep their number of parents."""
    assert len(rows) > TASK.size / 2
    for row in rows:
        before, after = edges_of(TASK, row), edges_of(with_edge(moved), row)
        (lost,), (made,) = before - after, after - before
        assert lost[0] == made[0] and len(before) == len(after)
        assert not {lost[1], made[1]} & set(TASK.graphs.options[row].tolist())


@pytest.mark.parametrize("moved", [True, False])
def test_rewritten_answers_agree_with_a_search(rows, moved):
    task = with_edge(moved)
    for row in rows:
        graph, (target, other) = nx.DiGraph(edges_of(task, row)), task.graphs.options[row].tolist()
        root, hops = int(task.graphs.root[row]), int(task.graphs.hops[row])
        assert nx.is_directed_acyclic_graph(graph) and 3 <= hops <= 6
        assert nx.shortest_path_length(graph, root, target) == hops and not nx.has_path(graph, root, other)
        old = TASK.graphs.options[row].tolist()
        assert [target, other] == (old[::-1] if moved else old)


def test_rewritten_control_changes_no_walk_from_the_root(rows):
    for row in rows:
        reached = [nx.DiGraph(edges_of(task, row)) for task in (TASK, with_edge(False))]
        root = int(TASK.graphs.root[row])
        below = [{root} | nx.descendants(graph, root) for graph in reached]
        assert below[0] == below[1] and nx.utils.graphs_equal(*(g.subgraph(below[0]) for g in reached))


def test_rewritten_arguments_alone_decide_which_edge_moves():
    first = with_edge(True).graphs.edges
    variants._rewritten.cache_clear()
    assert torch.equal(Rewritten(**asdict(TASK)).graphs.edges, first)


def test_chosen_edges_are_as_many_as_there_are_choices(rows):
    """The new end is drawn from all that fit: no choice of an edge and an end is twice as common as another."""
    graphs = TASK.graphs
    row = next(row for row in rows if variants._moves(one(graphs, row), 28, True)[0].sum() == 2)
    many = type(graphs)(*(field[row : row + 1].expand(2000, *field.shape[1:]) for field in graphs))
    edge, end, *_ = variants._chosen(many, 28, True, torch.Generator().manual_seed(0))
    counts = torch.stack([edge, end], 1).unique(dim=0, return_counts=True)[1]
    assert len(counts) == 2 and abs(int(counts[0]) - 1000) < 4 * 500**0.5
