"""Questions about graphs: how they are made, written, named and answered, against networkx and plain listing."""

import hashlib
from collections import Counter
from dataclasses import replace
from functools import cache

import networkx
import pytest
import torch
from builders import QUESTIONS, graph, walk_counts, walks

from cot2lib.study import prontoqa
from cot2lib.study.prosqa import questions
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import ProntoQA, ProsQA, variants
from cot2lib.tasks.prontoqa import READINGS, TWINS
from cot2lib.tasks.prosqa import SIZES, published
from cot2lib.tasks.reachability import SPECIALS, token

SMALL = ProsQA(inputs=200)
LONG = (0.0, 0.25, 0.25, 0.25, 0.25)  # of three hops none, of four to seven as many
MADE = {
    "19 names": SMALL,
    "28 names": ProsQA(inputs=60, names=28),
    "3-6 hops": ProsQA(inputs=60, names=28, hops=None),
    "reachable": ProntoQA(inputs=60),
    "sign": ProntoQA(inputs=60, reading="sign"),
    "twins": ProntoQA(inputs=60, reading="twins"),
}
NAMES = (*MADE, "published")
WAITING = {
    "19 names": ProsQA(inputs=60, waiting=6),
    "a mixture": ProsQA(inputs=60, names=28, hops=None, mixture=LONG, waiting=8),
    "reachable": ProntoQA(inputs=60, waiting=7),
}


@cache
def made(name):
    return published(QUESTIONS) if name == "published" else MADE.get(name) or WAITING[name]


@cache
def waits(name):
    return published(QUESTIONS, waiting=6) if name == "published" else WAITING[name]


# Graphs


@pytest.mark.parametrize("name", ["19 names", "28 names", "3-6 hops", "published"])
def test_the_root_reaches_the_target_alone(name):
    task = made(name)
    for row in range(40):
        edges, root, hops = graph(task, row), int(task.root[row]), int(task.graphs.hops[row])
        target, other = task.options[row].tolist()
        assert networkx.is_directed_acyclic_graph(edges)
        assert networkx.shortest_path_length(edges, root, target) == hops
        assert not networkx.has_path(edges, root, other)
        assert edges.out_degree(target) == edges.out_degree(other) == 0


@pytest.mark.parametrize("name", ["19 names", "28 names", "3-6 hops"])
def test_degrees_do_not_tell_the_options_apart(name):
    task, size = made(name), SIZES[made(name).names]
    for row in range(40):
        edges, (target, other) = graph(task, row), task.options[row].tolist()
        assert edges.in_degree(target) == edges.in_degree(other)
        roots = [task.name_of[row, node].item() for node in (0, 1)]
        theirs = next(root for root in roots if root != task.root[row])
        assert abs(networkx.shortest_path_length(edges, theirs, other) - int(task.graphs.hops[row])) <= 1
        assert size.least <= task.graphs.nodes[row] <= size.most
        assert edges.number_of_edges() == (task.graphs.edges[row, :, 0] >= 0).sum() <= size.edges


def digest(task):
    return hashlib.sha256(task.prompt().numpy().tobytes()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("19 names", "1ccd319bee4a40be"),
        ("28 names", "bb7331315298e252"),
        ("3-6 hops", "69eec3a8bc6a3d75"),
        ("a mixture", "f0b89db6b1be690a"),
        ("published", "21d3980cee79a325"),
        ("reachable", "f439e6f3c039e470"),
        ("sign", "c5ddbb253cc649e8"),
        ("twins", "e639bd8920f2ff4a"),
    ],
)
def test_the_same_seed_gives_the_same_bytes(name, known):
    """On every machine, as records of runs know their data by these fields alone."""
    task = made(name)
    assert digest(task) == known
    assert digest(replace(task, seed=1)) != known != digest(replace(task, deal=1))
    assert torch.equal(replace(task, deal=1).graphs.edges, task.graphs.edges)


def test_a_longer_list_begins_alike():
    assert torch.equal(ProsQA(inputs=300).prompt()[:200], SMALL.prompt())


def test_depths_are_hops_from_the_nearest_source():
    depths = variants.depths(SMALL)
    for row in range(10):
        edges = graph(SMALL, row)
        sources = [node for node in edges if edges.in_degree(node) == 0]
        far = networkx.multi_source_dijkstra_path_length(edges, sources)
        assert {node: int(depths[row, node]) for node in edges} == far


def test_ancestors_and_rules_are_those_of_counting():
    """On 60 graphs, counted by networkx."""
    task = made("28 names")
    found, rules = variants.ancestry(task), questions.rules(task)
    for row in range(task.size):
        edges = graph(task, row)
        ancestors = {node: len(networkx.ancestors(edges, node)) for node in edges}
        assert {node: int(found[row, node]) for node in edges} == ancestors
        target, other = task.options[row].tolist()
        depths = variants.depths(task)[row]
        right = int(depths[target] > depths[other]) + (ancestors[target] > ancestors[other])
        assert rules[row] == questions.RULES[2 - right]


# ProntoQA


@pytest.mark.parametrize("reading", [*READINGS, TWINS])
def test_rules_without_a_search_answer_every_question_but_twins(reading):
    """`test_variants.py` moves an edge against each of them."""
    of_question, *others = prontoqa.shortcuts(ProntoQA(inputs=60, reading=reading)).values()
    assert others == [50 if reading == TWINS else 100] * 4 and 30 < of_question < 70


def test_prontoqa_has_the_published_shape():
    task = made("sign")
    assert task.graphs.edges.shape[1] == 25 and (task.graphs.nodes == 26).all()
    assert walk_counts(task)[1].shape == (60, 26)
    sizes = [int((mass > 0).sum(1).double().mean()) for mass in walk_counts(task)[1:]]
    assert sizes == [2, 5, 4, 4, 4, 4]


def test_twins_differ_by_the_way_from_the_entity_alone():
    """Two halves that nothing joins, one the image of the other, ends and all."""
    task = made("twins")
    for row in range(20):
        edges, ends = graph(task, row), set(task.options[row].tolist())
        halves = [edges.subgraph(part) for part in networkx.weakly_connected_components(edges)]
        marked = [networkx.DiGraph(half) for half in halves]
        for half in marked:
            networkx.set_node_attributes(half, {node: node in ends for node in half}, "end")
        assert [len(half) for half in marked] == [13, 13] and all(len(ends & set(half)) == 1 for half in marked)
        assert networkx.is_isomorphic(*marked, node_match=lambda one, other: one == other)
    assert task.answer_ids.unique(return_counts=True)[1].tolist() == [30, 30]


@pytest.mark.parametrize("reading", ["reachable", TWINS])
def test_question_asks_whether_the_property_is_reached(reading):
    task = made(reading)
    for row in range(20):
        asked = int(task.asked[row, 0]) - len(SPECIALS)
        reached = networkx.has_path(graph(task, row), int(task.root[row]), asked)
        assert task.tokens[task.answer_ids[row]] == str(reached)


def test_sign_asks_for_the_last_edge_of_the_chain():
    task = made("sign")
    for row in range(20):
        asked, edges = int(task.asked[row, 0]) - len(SPECIALS), graph(task, row)
        chain = networkx.shortest_path(edges, int(task.root[row]), asked)
        signs = {tuple(edge): sign for edge, sign in zip(task.edges[row].tolist(), task.graphs.negative[row].tolist())}
        others = [edge for edge in signs if edge[1] == asked and edge[0] != chain[-2]]
        negated = int(task.asked[row, 1]) == token("not in")
        assert len(chain) == 7 and [signs[edge] for edge in others] == [not signs[chain[-2], asked]]
        assert task.tokens[task.answer_ids[row]] == str(signs[chain[-2], asked] == negated)


# Prompts


@pytest.mark.parametrize("name", NAMES)
def test_pairs_and_sentences_say_the_same(name):
    """The edges, read back from both grammars, are the graph's; both ask the same question."""
    task = made(name)
    words = replace(task, grammar="sentences")
    for row in range(10):
        paired, spelt = task.prompt(arrow=False)[row].tolist(), words.prompt(arrow=False)[row].tolist()
        known = {tuple(edge) for edge in task.edges[row].tolist() if edge[0] >= 0}
        assert paired[: int(task.padding[row])] == [0] * int(task.padding[row]) and paired[int(task.padding[row])]
        assert {_pair(task, id) for id in paired if id >= task.vocab_size} == known
        text = [words.tokens[id] for id in spelt[int(words.padding[row]) :]]
        body = " ".join(text[2 : text.index("}")]).split(" . ")
        said = {(part.split()[0], part.removesuffix(" .").split()[-1]) for part in body}
        assert said == {(task.tokens[len(SPECIALS) + a], task.tokens[len(SPECIALS) + b]) for a, b in known}
        assert [word for word in text[text.index("}") :] if word[0] == "N"][1:] + [task.tokens[paired[-1]]] == [
            task.tokens[id] for id in paired[-3:] if task.tokens[id][0] == "N"
        ]
        assert text[:2] == ["Description", "{"] and text[-3:] == ["}", "Steps", "{"]


def _pair(task, id):
    """From which name to which a pair of tokens leads."""
    start, end = id // task.vocab_size - 1 - len(SPECIALS), id % task.vocab_size - len(SPECIALS)
    assert 0 <= end < task.names <= start
    return start % task.names, end


@pytest.mark.parametrize("name", NAMES)
def test_negative_edges_have_a_role_of_their_own(name):
    task = made(name)
    starts = task.prompt(arrow=False) // task.vocab_size - 1 - len(SPECIALS)
    assert (starts >= 2 * task.names).sum() == task.graphs.negative.sum()


def test_positions_hold_the_longest_sequence():
    for task in (*map(made, NAMES), *map(waits, [*WAITING, "published"])):
        for grammar in ("pairs", "sentences"):
            written = replace(task, grammar=grammar)
            assert written.prompt().shape[1] + written.steps <= written.positions


# Targets


def shares(task, ends):
    """Over the vocabulary: how many of some walks end in each state, of all of them."""
    expected = torch.zeros(task.vocab_size, dtype=torch.float64)
    for state, count in ends.items():
        expected[task.state_ids[state]] = count / sum(ends.values())
    return expected


@pytest.mark.parametrize("frontier", ["walks", "nodes", "complete"])
@pytest.mark.parametrize("name", NAMES)
def test_targets_are_shares_of_walks(name, frontier):
    task = replace(made(name), frontier=frontier)
    targets = hindsight_targets(task)
    for row in range(8):
        layers = walks(task, row)
        for step, layer in enumerate(layers):
            ends = Counter(walk[step + 1] for walk in (layers[-1] if frontier == "complete" else layer))
            ends = dict.fromkeys(ends, 1) if frontier == "nodes" else ends
            assert torch.allclose(targets[row, step], shares(task, ends))
        assert targets[row, len(layers)].argmax() == task.answer_ids[row] and targets[row, len(layers)].max() == 1


@pytest.mark.parametrize("name", NAMES)
def test_one_trajectory_is_a_walk_to_the_target(name):
    task = made(name)
    targets = hindsight_targets(task, 1, "plus-first")
    for row in range(8):
        hops = int(task.graphs.hops[row])
        assert (targets[row, : hops + 1].max(-1).values == 1).all()
        chain = (targets[row, :hops].argmax(-1) - len(SPECIALS)).tolist()
        assert (int(task.root[row]), *chain) in walks(task, row)[-1] and chain[-1] == task.options[row, 0]
        assert task.trajectories[row] == len(walks(task, row)[-1])


def waiting_walks(task, row):
    """All walks of as many steps as there are thoughts: one that has ended stays."""
    edges, layers = graph(task, row), [[(int(task.root[row]),)]]
    for _ in range(task.waiting):
        further = lambda walk: list(edges.successors(walk[-1])) if walk[-1] in edges else []
        layers.append([(*walk, after) for walk in layers[-1] for after in further(walk) or [walk[-1]]])
    return layers[1:]


@pytest.mark.parametrize("frontier", ["walks", "nodes"])
@pytest.mark.parametrize("name", [*WAITING, "published"])
def test_walks_that_have_ended_wait(name, frontier):
    """Every question has as many thoughts, and its answer comes after them."""
    task = replace(waits(name), frontier=frontier)
    targets, one = hindsight_targets(task), hindsight_targets(task, 1, "plus-first")
    assert task.lengths is None and targets.shape[1] == task.steps == task.waiting + 1
    for row in range(8):
        layers = waiting_walks(task, row)
        for step, layer in enumerate(layers):
            ends = Counter(walk[-1] for walk in layer)
            ends = dict.fromkeys(ends, 1) if frontier == "nodes" else ends
            assert torch.allclose(targets[row, step], shares(task, ends))
        assert targets[row, -1].argmax() == task.answer_ids[row] and targets[row, -1].max() == 1
        assert task.trajectories[row] == len(layers[-1])
        chain = (one[row, :-1].argmax(-1) - len(SPECIALS)).tolist()
        assert (int(task.root[row]), *chain) in layers[-1] and chain[-1] == task.options[row, 0]


def test_a_mixture_has_its_shares_and_is_fair():
    """Long chains too; degrees tell nothing."""
    task = ProsQA(inputs=24, names=60, hops=None, mixture=(0.5, 0.0, 0.0, 0.0, 0.0, 0.25, 0.25))
    assert Counter(task.graphs.hops.tolist()) == {3: 12, 8: 6, 9: 6} and task.steps == 10
    assert not torch.equal(task.graphs.hops, task.graphs.hops.sort().values)
    for row in range(24):
        edges, (target, other) = graph(task, row), task.options[row].tolist()
        hops, root = int(task.graphs.hops[row]), int(task.root[row])
        assert networkx.shortest_path_length(edges, root, target) == hops and not networkx.has_path(edges, root, other)
        assert edges.in_degree(target) == edges.in_degree(other)
        assert edges.number_of_nodes() <= 60 and edges.number_of_edges() <= task.most_edges
