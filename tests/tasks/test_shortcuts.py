"""Questions of ProntoQA where rules without a search are of no use: what stays, and what moves."""

from collections import Counter

import networkx as nx
import pytest
import torch

from cot2lib.study.graph_facts import BOTH, LEADING, LED_TO, MOVED, NEITHER, Blocked
from cot2lib.study.prontoqa import measure
from cot2lib.tasks import ProntoQA
from cot2lib.tasks.prontoqa import HOPS

USUAL = ProntoQA(inputs=60)
BLOCKED = {rule: Blocked(inputs=60, rule=rule) for rule in MOVED}


def edges_of(task, row):
    return Counter(map(tuple, task.graphs.edges[row].tolist()))


@pytest.mark.parametrize("rule", MOVED)
def test_the_named_edges_move_and_nothing_else(rule):
    task = BLOCKED[rule]
    for row in range(USUAL.size):
        before, after = edges_of(USUAL, row), edges_of(task, row)
        assert before - after == Counter(MOVED[rule].keys()) and after - before == Counter(MOVED[rule].values())
    for name in ("answer_ids", "asked", "options", "root"):
        assert torch.equal(getattr(USUAL, name), getattr(task, name))


@pytest.mark.parametrize("rule", MOVED)
def test_only_the_end_of_the_chain_is_reached(rule):
    task = BLOCKED[rule]
    for row in range(10):
        graph, (end, other) = nx.DiGraph(list(edges_of(task, row))), task.graphs.options[row].tolist()
        root = int(task.graphs.root[row])
        assert nx.shortest_path_length(graph, root, end) == HOPS and not nx.has_path(graph, root, other)


def test_a_blocked_rule_is_no_better_than_chance():
    right = {rule: list(measure.shortcuts(task).values())[1:] for rule, task in BLOCKED.items()}
    assert right == {
        LED_TO: [50, 100, 100, 100],
        LEADING: [100, 50, 50, 100],
        BOTH: [50, 50, 50, 100],
        NEITHER: [100] * 4,
    }


def test_they_stand_beside_the_readings():
    table = measure.shortcuts_table().set_index("the answer is yes if")
    assert table.columns.tolist() == ["reachable", "sign", "twins", *MOVED]
    assert table["twins"].tolist() == [50] * 5 and table["reachable"].tolist()[1:] == [100] * 4
