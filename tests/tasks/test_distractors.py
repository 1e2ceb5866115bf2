"""Leaves that answer nothing: what they leave alone, and what they change."""

from dataclasses import asdict

import networkx as nx
import pytest
import torch

from cot2lib.study import graph_facts
from cot2lib.study.graph_facts import LEAVES, Distracted, with_room
from cot2lib.study.prosqa.measure import forward
from cot2lib.tasks import ProsQA

TASK = ProsQA(inputs=300, naming="age")
WITH = {passed: Distracted(**asdict(TASK), passed=passed) for passed in (True, False)}
ROOM = with_room(TASK).tolist()


def edges_of(task, row):
    return [tuple(edge) for edge in task.edges[row].tolist() if edge[0] >= 0]


def test_graphs_without_room_stay_as_they_are():
    full = sorted(set(range(TASK.size)) - set(ROOM))
    assert len(ROOM) > 30 and len(full) > 100
    for row in full:
        assert TASK.graphs.nodes[row] > TASK.names - LEAVES or len(edges_of(TASK, row)) > TASK.most_edges - LEAVES
    for task in WITH.values():
        assert torch.equal(task.edges[full], TASK.edges[full])
        assert torch.equal(task.graphs.nodes[full], TASK.graphs.nodes[full])


@pytest.mark.parametrize("passed", [True, False], ids=["on the way", "elsewhere"])
def test_leaves_hang_where_they_should_and_the_question_stays(passed):
    task = WITH[passed]
    for row in ROOM:
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


def test_only_leaves_on_the_way_widen_frontiers():
    widths = {name: torch.stack(forward(task), 1)[ROOM] > 0 for name, task in {"none": TASK, **WITH}.items()}
    assert torch.equal(widths[False], widths["none"])
    sizes = {name: held.sum(-1).double().mean(0) for name, held in widths.items()}  # (hop,)
    assert (sizes[True][1:] > sizes["none"][1:] + 0.3).all()


def test_leaves_come_in_random_order():
    """The last edges of a prompt are no more often new ones than the first."""
    for task in WITH.values():
        places = [
            place / (len(edges) - 1)
            for row in ROOM
            for edges in [edges_of(task, row)]
            for place, (_, end) in enumerate(edges)
            if end >= int(TASK.graphs.nodes[row])
        ]
        assert abs(sum(places) / len(places) - 0.5) < 4 * (1 / 12 / len(places)) ** 0.5


def test_arguments_alone_decide_the_graphs():
    task = WITH[True]
    first = task.edges
    graph_facts._with_leaves.cache_clear()
    assert torch.equal(Distracted(**asdict(task)).edges, first)
    assert not torch.equal(Distracted(**asdict(task) | {"seed": 1}).edges, first)
