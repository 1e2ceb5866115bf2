"""Measurements, tables and figures of the chapters on graphs, on oracles whose answers are known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from builders import QUESTIONS, walks

from cot2lib.decode import Rollout
from cot2lib.errors import SpecError
from cot2lib.specs.profiles import TEN, spec
from cot2lib.study import frame, graph_runs, graph_tests, graphs
from cot2lib.study.graph_facts import MOVED
from cot2lib.study.graph_tests import AGES, RENAMED, SEEN, UNSEEN
from cot2lib.study.prosqa import draw as prosqa
from cot2lib.study.prosqa import measure
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import ProntoQA, ProsQA
from cot2lib.tasks.reachability import token
from cot2lib.training.supervised import build_stack

TASK = ProsQA(inputs=60)
ROWS = torch.arange(20)
TEST = graph_tests.Test("sixty", TASK, ROWS)
STACK = build_stack([spec(task=TASK, d_model=8, layers=1)])  # never asked where answers are told


def oracle(weights, answers, runs=1):
    """A rollout that thinks and answers as told; its last logits are one at the answer."""
    steps = weights.shape[1] + 1
    logits = torch.zeros(runs, len(weights), steps, weights.shape[-1])
    logits[:, torch.arange(len(weights)), -1, answers] = 1.0
    told = torch.cat([weights, torch.zeros_like(weights[:, :1])], 1).float().expand(runs, -1, -1, -1)
    answers = answers.expand(runs, -1)
    return Rollout(logits, told, answers, [], [])


def test_states_are_those_of_listed_walks():
    held = graph_tests.held_states(TASK, ROWS)
    for row in range(20):
        layers, target = walks(TASK, row), int(TASK.options[row, 0])
        for hop, layer in enumerate(layers):
            assert set(held.frontier[row, hop].nonzero()[:, 0].tolist()) == {walk[-1] for walk in layer}
            ends = {walk[hop + 1] for walk in layers[-1] if walk[-1] == target}
            assert set(held.in_time[row, hop].nonzero()[:, 0].tolist()) == ends
        unreached = set(range(TASK.names)) - set(held.reached[row].nonzero()[:, 0].tolist())
        assert int(TASK.options[row, 1]) in unreached and target not in unreached


def test_an_oracle_keeps_its_thoughts_on_the_frontier(monkeypatch):
    targets = hindsight_targets(TASK)[ROWS]
    monkeypatch.setattr(graph_tests, "answered", lambda *_: oracle(targets[:, :-1], TASK.answer_ids[ROWS]))
    row = graph_tests.measured(STACK, [spec(task=TASK)], TEST).iloc[0]
    assert row["strict"] == row["pair"] == 1 and row["inputs"] == 20
    for hop in range(1, 5):
        assert row[f"frontier_{hop}"] == pytest.approx(1) and row[f"unreached_{hop}"] == 0
        assert 0 < row[f"in_time_{hop}"] <= 1
    share = targets[torch.arange(20), 3, TASK.answer_ids[ROWS]].mean()
    assert row["in_time_4"] == pytest.approx(float(share))


def test_a_wrong_answer_counts_by_its_kind(monkeypatch):
    """The other option is wrong both ways. So is a name that was not asked for: a tie is no choice."""
    thoughts = torch.zeros(20, 4, TASK.vocab_size)
    other = TASK.state_ids[TASK.options[ROWS, 1]]
    thoughts.scatter_(2, other[:, None, None].expand(-1, 4, 1), 1.0)
    neither = TASK.state_ids[TASK.root[ROWS]]
    for answers, strict, pair in ((other, 0, 0), (neither, 0, 0), (TASK.answer_ids[ROWS], 1, 1)):
        monkeypatch.setattr(graph_tests, "answered", lambda *_, answers=answers: oracle(thoughts, answers))
        row = graph_tests.measured(STACK, [spec(task=TASK)], TEST).iloc[0]
        assert (row["strict"], row["pair"]) == (strict, pair)
        assert row["unreached_2"] == 1 and row["frontier_2"] == 0


def test_prontoqa_is_answered_by_true_or_false(monkeypatch):
    task = ProntoQA(inputs=60)
    targets, right = hindsight_targets(task)[ROWS], task.answer_ids[ROWS]
    wrong, neither = token("True") + token("False") - right, torch.full_like(right, token("in"))
    for answers, share in ((right, 1), (wrong, 0), (neither, 0)):
        monkeypatch.setattr(graph_tests, "answered", lambda *_, answers=answers: oracle(targets[:, :-1], answers))
        row = graph_tests.measured(STACK, [spec(task=task)], graph_tests.Test("sixty", task, ROWS)).iloc[0]
        assert (row["strict"], row["pair"]) == (share, share)
        assert row["frontier_6"] == pytest.approx(1) and row["in_time_6"] == pytest.approx(0.25)
    specs = [spec(task=replace(task, naming="once"))]
    usual = {UNSEEN, SEEN, RENAMED}
    assert {test.name for test in graph_tests.tests(specs)} == usual | set(MOVED)
    for reading in ("sign", "twins"):
        other = spec(task=replace(task, naming="once", reading=reading))
        assert {test.name for test in graph_tests.tests([other])} == usual


def test_tests_are_of_other_graphs_or_of_those_trained_on(monkeypatch):
    monkeypatch.setattr(graph_tests, "INPUTS", 40)
    run = spec(task=replace(TASK, naming="once"), seed=42)
    found = {test.name: test for test in graph_tests.tests([run, replace(run, seed=43)])}
    assert {UNSEEN, AGES, SEEN, RENAMED} < set(found)
    seen, renamed = found["seen graphs"], found["seen graphs, new names"]
    assert all(run.task.split(seed)[seen.rows].all() for seed in (42, 43)) and len(seen.rows) > 20
    depth = [len(found[name].rows) for name in ("target deeper", "as deep", "other deeper")]
    assert sum(depth) == 40 and depth[0] > depth[2]
    assert torch.equal(seen.rows, renamed.rows)
    assert torch.equal(seen.task.graphs.edges, renamed.task.graphs.edges)
    assert not torch.equal(seen.task.edges, renamed.task.edges)
    unseen = found["drawn names"].task.graphs.edges
    assert not torch.equal(unseen[:5], run.task.graphs.edges[:5]) and torch.equal(
        unseen, found["ages"].task.graphs.edges
    )
    assert {name: int(test.task.graphs.hops[0]) for name, test in found.items() if "hops" in name} == {
        "3 hops": 3, "5 hops": 5,
    }  # fmt: skip
    few = [test for name, test in found.items() if name.startswith("few nodes")]
    assert len(few) == 3 and len(few[0].rows) == 40 and all(torch.equal(test.rows, few[0].rows) for test in few)
    sizes = [test.task.graphs.nodes[test.rows] for test in few]
    assert [(size - sizes[0]).unique().tolist() for size in sizes] == [[0], [4], [4]]
    alone = {test.name for test in graph_tests.tests([spec("no-cot", task=run.task)])}
    assert alone == set(found) - {"3 hops", "5 hops"}


def test_all_published_questions_are_asked():
    asked = list(graph_tests.published_tests(QUESTIONS))
    assert sum(len(test.rows) for test in asked) == 600 and len(asked) == 8


def test_answers_come_from_the_model():
    """Decoding a fresh model by `answered` equals decoding one question by itself, whatever its padding."""
    run = spec(task=TASK, d_model=16, layers=1)
    stack = build_stack([run])
    all_at_once = graph_tests.answered(stack, run, TEST)
    for row in (0, 7):
        alone = graph_tests.answered(stack, run, TEST._replace(rows=ROWS[row : row + 1]))
        assert torch.allclose(alone.logits[:, 0], all_at_once.logits[:, row], atol=1e-5)
    assert all_at_once.weights.shape == (1, 20, 5, TASK.vocab_size)


# Tables and figures


QUICK = graph_runs.naming("quick", (42, 43), ("cot2", "discrete"), ("fresh", "age"))


@pytest.fixture
def tested(monkeypatch):
    """Two runs of two methods on some tests, with shares by hop, as they are shipped."""
    tests = {UNSEEN: 0.9, AGES: 0.8, graph_tests.PUBLISHED[4, "age"]: 0.7, graph_tests.PUBLISHED[5, "age"]: 0.3}
    masses = {f"{kind}_{hop}": 1 / hop for kind in graphs.MASSES for hop in (1, 2, 3)}
    counts = {test: 30 if test.startswith("published, 5") else 100 for test in tests}
    rows = [
        {"id": run.id, "test": test, "inputs": counts[test], "strict": share, "pair": 0.95} | masses
        for run in QUICK
        for test, share in tests.items()
    ]
    monkeypatch.setattr(graph_tests, "shipped", lambda profile: pd.DataFrame(rows))
    return graphs.tested(QUICK)


def test_tested_models_are_told_apart_by_columns(tested):
    assert tested["strict"].max() == 90 and tested["in_time_2"].max() == 50
    assert set(frame.at(tested, test=graph_tests.PUBLISHED[4, "age"])["naming"]) == {"fresh", "age"}
    assert list(tested["method"].cat.categories) == ["CoT2", "discrete CoT"]


def test_thoughts_are_drawn_hop_by_hop(tested):
    shown = graphs.hops(frame.at(tested, test=UNSEEN, naming="fresh"))
    assert len(shown.figure.axes) == 2
    means = shown.numbers.groupby("hop")["share"].mean()
    frontier = frame.at(shown.numbers, held="frontier").groupby("method", observed=True)["share"].mean()
    assert all(f"of {name} {share:.0f} %" in shown.finding for name, share in frontier.items())
    assert means.tolist() == pytest.approx([100, 50, 100 / 3]) and len(shown.numbers) == 2 * 2 * 3 * 3


def test_votes_are_held_against_one_answer(monkeypatch):
    cot2, discrete = (graph_runs.voting("quick", (42,), (name,), ("ProsQA",))[0] for name in graph_runs.BOTH)
    sampled = pd.DataFrame(
        {"id": discrete.id, "temperature": 1.0, "k": [1, 5], "pass_at_k": 90.0, "maj_at_k": [60.0, 70.0]}
    )
    once = pd.DataFrame(
        {"id": cot2.id, "temperature": [0.0, 0.0, 1.0], "k": [1, 5, 5], "pass_at_k": [80.0, 80.0, 20.0]}
    )
    monkeypatch.setattr(graph_tests, "shipped_votes", lambda profile: pd.concat([sampled, once]))
    voted = graphs.votes("ProsQA", (42,))
    assert set(voted["answers"]) == {"discrete CoT, T = 1", "CoT2, one answer"} and voted["right"].min() == 60
    (row,) = graphs.vote_gaps(voted).to_dict("records")
    assert (row["recipe"], row["voted"], row["once"], row["ahead"]) == ("quick recipe", 70, 80, 10)
    assert sorted(set(graphs.vote_curves(voted).numbers["right"])) == [60, 70, 80]
    more = graphs.vote_gaps(graphs.votes("ProsQA", (42,), {"elsewhere": [cot2, discrete]}))
    assert more.set_index("recipe")["ahead"].to_dict() == {"quick recipe": 10, "elsewhere": 10}


def test_the_question_shows_where_the_thought_is():
    thoughts = np.zeros((4, TASK.names))
    target = int(TASK.options[3, 0])
    thoughts[:, target] = 1.0
    shown = prosqa.question(TASK, 3, thoughts)
    assert [axis.get_title() for axis in shown.figure.axes] == [f"after hop {hop}" for hop in range(1, 5)]
    sizes = shown.figure.axes[0].collections[1].get_sizes()
    assert (sizes > 0).sum() == 1 and sizes.max() == prosqa.MOST_SIZE
    assert {"root", "target", "other"} <= {text.get_text() for text in shown.figure.axes[0].texts}
    assert set(shown.numbers.loc[shown.numbers["share (%)"] == 100, "node"]) == {target}


def test_a_question_that_is_not_there_is_refused():
    with pytest.raises(SpecError, match=r"question=60: the test has questions 0\.\.59"):
        measure.thoughts(spec(task=TASK), TASK, 60)


def test_every_choice_is_listed_and_the_usual_one_changes_nothing():
    for choice, part in graph_runs.changes().items():
        assert part[0].method == "CoT2" and (choice == "usual") == (part[0] == spec("cot2", task=ProsQA()))


def test_every_claim_on_graphs_rests_on_listed_runs():
    """So that the command on a card trains them."""
    listed = {run.id for profile in ("quick", "paper") for run in graph_runs.every(profile)}
    for method in graph_runs.METHODS:
        for profile in ("quick", "paper"):
            asked = [
                *graph_runs.naming(profile, methods=(method,), namings=("age",)),
                *graph_runs.answering(profile, methods=(method,), readings=("reachable",)),
            ]
            assert {run.id for run in asked} <= listed


def test_prontoqa_has_the_more_seeds_the_more_they_differ():
    def seeds(profile, **told):
        asked = graph_runs.prontoqa(profile)
        return {run.seed for run in asked if {"method": run.method, "reading": run.task.reading} == told}

    assert all(seeds("quick", method=name, reading="reachable") == {*TEN} for name in ("CoT2", "discrete CoT"))
    assert all(seeds("quick", method=name, reading="reachable") == {*TEN[:6]} for name in ("COCONUT", "no-CoT"))
    assert seeds("quick", method="CoT2", reading="twins") == {*TEN[:6]}
    assert seeds("quick", method="CoT2", reading="sign") == {*TEN[:3]}
    assert {run.seed for run in graph_runs.prontoqa("paper")} == {*TEN[:3]}
    assert len(graph_runs.prontoqa("quick")) == len(set(graph_runs.prontoqa("quick")))
