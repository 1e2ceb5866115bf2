"""Variants of graphs: leaves that answer nothing, and questions where rules without a search are of no use."""

from collections import Counter
from dataclasses import asdict
from functools import cache

import networkx as nx
import pytest
import torch
from builders import walk_counts

from cot2lib.study import prontoqa
from cot2lib.tasks import ProntoQA, ProsQA, variants
from cot2lib.tasks.prontoqa import HOPS
from cot2lib.tasks.variants import BOTH, LEADING, LEAVES, LED_TO, MOVED, NEITHER, Blocked, Distracted, has_room

TASK = ProsQA(inputs=300, naming="age")
USUAL = ProntoQA(inputs=60)


@pytest.fixture(scope="module")
def room():
    return has_room(TASK).nonzero()[:, 0].tolist()


@cache
def distracted(passed):
    return Distracted(**asdict(TASK), passed=passed)


@cache
def blocked(rule):
    return Blocked(inputs=60, rule=rule)


def edges_of(task, row):
    return [tuple(edge) for edge in task.edges[row].tolist() if edge[0] >= 0]


def test_distracted_graphs_without_room_stay(room):
    full = sorted(set(range(TASK.size)) - set(room))
    assert len(room) > 30 and len(full) > 100
    for row in full:
        assert TASK.graphs.nodes[row] > TASK.names - LEAVES or len(edges_of(TASK, row)) > TASK.most_edges - LEAVES
    for task in map(distracted, (True, False)):
        assert torch.equal(task.edges[full], TASK.edges[full])
        assert torch.equal(task.graphs.nodes[full], TASK.graphs.nodes[full])


@pytest.mark.parametrize("passed", [True, False], ids=["on the way", "elsewhere"])
def test_distracted_leaves_hang_where_they_should_and_the_question_stays(passed, room):
    task = distracted(passed)
    for row in room:
        before, after = edges_of(TASK, row), edges_of(task, row)
        old, root, hops = int(TASK.graphs.nodes[row]), int(TASK.root[row]), int(TASK.graphs.hops[row])
        added = set(after) - set(before)
        assert set(before) < set(after) and len(after) == len(before) + LEAVES
        assert sorted(leaf for _, leaf in added) == list(range(old, old + LEAVES))
        assert task.graphs.nodes[row] == old + LEAVES
        far = nx.single_source_shortest_path_length(nx.DiGraph(before), root)
        hosts = {host for host, _ in added}
        assert all(far.get(host, hops) < hops for host in hosts) if passed else not hosts & set(far)
        assert not hosts & set(TASK.options[row].tolist())
    for name in ("root", "options", "answer_ids", "lengths"):
        one, other = getattr(TASK, name), getattr(task, name)
        assert (one is None and other is None) or torch.equal(one, other)
    assert torch.equal(TASK.graphs.hops, task.graphs.hops)


def test_distracted_frontiers_widen_by_leaves_on_the_way(room):
    tasks = (TASK, distracted(False), distracted(True))
    none, elsewhere, passed = (torch.stack(walk_counts(task), 1)[room] > 0 for task in tasks)
    assert torch.equal(elsewhere, none)
    wider = passed.sum(-1).double().mean(0) - none.sum(-1).double().mean(0)  # (hop,)
    assert (wider[1:] > 0.3).all()


def test_distracted_leaves_come_in_random_order(room):
    """The last edges of a prompt are no more often new ones than the first."""
    for task in map(distracted, (True, False)):
        places = [
            place / (len(edges) - 1)
            for row in room
            for edges in [edges_of(task, row)]
            for place, (_, end) in enumerate(edges)
            if end >= int(TASK.graphs.nodes[row])
        ]
        assert abs(sum(places) / len(places) - 0.5) < 4 * (1 / 12 / len(places)) ** 0.5


def test_distracted_arguments_alone_decide_the_graphs():
    task = distracted(True)
    first = task.edges
    variants._with_leaves.cache_clear()
    assert torch.equal(Distracted(**asdict(task)).edges, first)
    assert not torch.equal(Distracted(**asdict(task) | {"seed": 1}).edges, first)


# Moved edges of ProntoQA


def counted_edges(task, row):
    return Counter(map(tuple, task.graphs.edges[row].tolist()))


@pytest.mark.parametrize("rule", MOVED)
def test_blocked_moves_the_named_edges_and_nothing_else(rule):
    """Then only the end of the chain is reached."""
    task = blocked(rule)
    for row in range(USUAL.size):
        before, after = counted_edges(USUAL, row), counted_edges(task, row)
        assert before - after == Counter(MOVED[rule].keys()) and after - before == Counter(MOVED[rule].values())
    for name in ("answer_ids", "asked", "options", "root"):
        assert torch.equal(getattr(USUAL, name), getattr(task, name))
    for row in range(10):
        graph, (end, other) = nx.DiGraph(list(counted_edges(task, row))), task.graphs.options[row].tolist()
        root = int(task.graphs.root[row])
        assert nx.shortest_path_length(graph, root, end) == HOPS and not nx.has_path(graph, root, other)


def test_shortcuts_that_are_blocked_are_no_better_than_chance():
    right = {rule: list(prontoqa.shortcuts(blocked(rule)).values())[1:] for rule in MOVED}
    assert right == {
        LED_TO: [50, 100, 100, 100],
        LEADING: [100, 50, 50, 100],
        BOTH: [50, 50, 50, 100],
        NEITHER: [100] * 4,
    }
