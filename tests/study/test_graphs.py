"""Measurements of the chapters on graphs, on oracles whose answers are known."""

from dataclasses import replace

import pytest
import torch
from builders import walks

from cot2lib.decode import Rollout
from cot2lib.specs.profiles import spec
from cot2lib.study import graph_runs, graph_tests, prontoqa, sweeps
from cot2lib.study.prontoqa import RENAMED, SEEN, UNSEEN
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import ProntoQA, ProsQA
from cot2lib.tasks.reachability import token
from cot2lib.tasks.variants import MOVED
from cot2lib.training.supervised import build_stack

TASK = ProsQA(inputs=60)
ROWS = torch.arange(20)


def oracle(weights, answers, runs=1):
    """A rollout that thinks and answers as told; its last logits are one at the answer."""
    steps = weights.shape[1] + 1
    logits = torch.zeros(runs, len(weights), steps, weights.shape[-1])
    logits[:, torch.arange(len(weights)), -1, answers] = 1.0
    told = torch.cat([weights, torch.zeros_like(weights[:, :1])], 1).float().expand(runs, -1, -1, -1)
    answers = answers.expand(runs, -1)
    return Rollout(logits, told, answers, [], [])


@pytest.fixture(scope="module")
def stack():
    """Never asked where answers are told."""
    return build_stack([spec(task=TASK, d_model=8, layers=1)])


def means(stack, task):
    """Means over some questions of a task."""
    run = spec(task=task)
    return graph_tests.summed(graph_tests.by_question(stack, [run], task, ROWS), test="twenty").iloc[0]


def test_held_states_are_those_of_listed_walks():
    held = graph_tests.held_states(TASK, ROWS)
    for row in range(20):
        layers, target = walks(TASK, row), int(TASK.options[row, 0])
        for hop, layer in enumerate(layers):
            assert set(held["frontier"][row, hop].nonzero()[:, 0].tolist()) == {walk[-1] for walk in layer}
            ends = {walk[hop + 1] for walk in layers[-1] if walk[-1] == target}
            assert set(held["in_time"][row, hop].nonzero()[:, 0].tolist()) == ends
        unreached = set(held["unreached"][row, 0].nonzero()[:, 0].tolist()) & set(range(TASK.names))
        assert int(TASK.options[row, 1]) in unreached and target not in unreached


def test_measured_oracle_keeps_its_thoughts_on_the_frontier(stack, monkeypatch):
    targets = hindsight_targets(TASK)[ROWS]
    monkeypatch.setattr(graph_tests, "answered", lambda *_: oracle(targets[:, :-1], TASK.answer_ids[ROWS]))
    row = means(stack, TASK)
    assert row["strict"] == row["pair"] == 1 and row["inputs"] == 20
    for hop in range(1, 5):
        assert row[f"frontier_{hop}"] == pytest.approx(1) and row[f"unreached_{hop}"] == 0
        assert 0 < row[f"in_time_{hop}"] <= 1
    share = targets[torch.arange(20), 3, TASK.answer_ids[ROWS]].mean()
    assert row["in_time_4"] == pytest.approx(float(share))


def test_measured_answers_count_by_their_kind(stack, monkeypatch):
    """The other option is wrong both ways. So is a name that was not asked for: a tie is no choice."""
    thoughts = torch.zeros(20, 4, TASK.vocab_size)
    other = TASK.state_ids[TASK.options[ROWS, 1]]
    thoughts.scatter_(2, other[:, None, None].expand(-1, 4, 1), 1.0)
    neither = TASK.state_ids[TASK.root[ROWS]]
    for answers, strict, pair in ((other, 0, 0), (neither, 0, 0), (TASK.answer_ids[ROWS], 1, 1)):
        monkeypatch.setattr(graph_tests, "answered", lambda *_, answers=answers: oracle(thoughts, answers))
        row = means(stack, TASK)
        assert (row["strict"], row["pair"]) == (strict, pair)
        assert row["unreached_2"] == 1 and row["frontier_2"] == 0


def test_measured_prontoqa_is_answered_by_true_or_false(stack, monkeypatch):
    task = ProntoQA(inputs=60)
    targets, right = hindsight_targets(task)[ROWS], task.answer_ids[ROWS]
    wrong, neither = token("True") + token("False") - right, torch.full_like(right, token("in"))
    for answers, share in ((right, 1), (wrong, 0), (neither, 0)):
        monkeypatch.setattr(graph_tests, "answered", lambda *_, answers=answers: oracle(targets[:, :-1], answers))
        row = means(stack, task)
        assert (row["strict"], row["pair"]) == (share, share)
        assert row["frontier_6"] == pytest.approx(1) and row["in_time_6"] == pytest.approx(0.25)
    specs = [spec(task=replace(task, naming="once"))]
    usual = {UNSEEN, SEEN, RENAMED}
    assert {name for name, *_ in prontoqa.tests(specs)} == usual | set(MOVED)
    for reading in ("sign", "twins"):
        other = spec(task=replace(task, naming="once", reading=reading))
        assert {name for name, *_ in prontoqa.tests([other])} == usual


def test_tests_of_other_questions_and_of_those_trained_on(monkeypatch):
    monkeypatch.setattr(prontoqa, "INPUTS", 40)
    run = spec(task=ProntoQA(inputs=200, naming="once"), seed=42)
    found = {name: (task, rows) for name, task, rows in prontoqa.tests([run, replace(run, seed=43)])}
    (seen, rows), (renamed, same) = found[SEEN], found[RENAMED]
    assert all(run.task.split(seed)[rows].all() for seed in (42, 43)) and len(rows) == 40
    assert torch.equal(rows, same) and torch.equal(seen.graphs.edges, renamed.graphs.edges)
    assert not torch.equal(seen.edges, renamed.edges)
    assert not torch.equal(found[UNSEEN][0].graphs.edges[:5], run.task.graphs.edges[:5])


def test_answered_in_a_batch_as_alone():
    """Decoding a fresh model by `answered` equals decoding one question by itself, whatever its padding."""
    run = spec(task=TASK, d_model=16, layers=1)
    stack = build_stack([run])
    all_at_once = graph_tests.answered(stack, run, TASK, ROWS)
    for row in (0, 7):
        alone = graph_tests.answered(stack, run, TASK, ROWS[row : row + 1])
        assert torch.allclose(alone.logits[:, 0], all_at_once.logits[:, row], atol=1e-5)
    assert all_at_once.weights.shape == (1, 20, 5, TASK.vocab_size)


def test_every_claim_on_graphs_rests_on_listed_runs():
    """So that the command on a card trains them."""
    for profile in ("quick", "paper"):
        listed = {*graph_runs.every(profile)}
        for name in ("prosqa", "prontoqa"):
            assert {*sweeps.sweep(name, profile, graph_runs.THREE)} <= listed
