"""Exact oracles: which states are reached, which lead on, and a rule from outside that feeds what one says."""

import itertools
from dataclasses import dataclass, replace

import pytest
import torch
from builders import evaluate, short, walks
from ragged import Ragged

from cot2lib import runs
from cot2lib.decode import decode, rules
from cot2lib.errors import SpecError
from cot2lib.supervision import ancestors, hindsight_targets, mirrored, reachable
from cot2lib.tasks import MNNS, ProsQA, Task
from cot2lib.thoughts import Always, Base, Rule, Thought
from cot2lib.training.data import stack_data
from cot2lib.training.supervised import SupervisedTrainer, build_stack

TASK, GRAPHS = MNNS(1, 5, 3), ProsQA(inputs=60)


def listed(task, row):
    """States of every walk of an input, the start first."""
    if isinstance(task, MNNS):
        for signs in itertools.product((-1, 1), repeat=task.length):
            sums = itertools.accumulate((s * d for s, d in zip(signs, task.digits[row].tolist())), initial=0)
            yield [total + task.bound for total in sums]
    elif isinstance(task, Ragged):
        yield from ([int(task.start[row]), *walk] for walk in task.ordered(row))
    else:
        yield from walks(task, row)[-1]


@pytest.mark.parametrize("task", [TASK, GRAPHS, Ragged(2)], ids=["sums", "graphs", "ragged"])
def test_ancestors_are_those_of_listed_walks(task):
    rows = torch.tensor([[0, 3], [5, 7]])
    final = torch.tensor([[next(iter(listed(task, int(row))))[-1] for row in pair] for pair in rows])
    for place in itertools.product(range(2), repeat=2):
        row, told = int(rows[place]), [*listed(task, int(rows[place]))]
        for step in range(len(told[0])):
            there = reachable(task, step, rows)[place].nonzero()[:, 0].tolist()
            if not isinstance(task, ProsQA):  # there walks that end early reach further states
                assert set(there) == {walk[step] for walk in told}
            before = reachable(task, step, rows)[place] & ancestors(task, step, rows, final)[place]
            wanted = {walk[step] for walk in told if walk[-1] == final[place]}
            assert set(before.nonzero()[:, 0].tolist()) == wanted, (row, step)


def test_mirrors_are_sums_of_the_other_sign():
    states = torch.zeros(1, TASK.states, dtype=torch.bool)
    states[0, TASK.bound + 2] = True
    assert (mirrored(TASK, states)[0].nonzero()[:, 0] - TASK.bound).tolist() == [-2, 2]
    assert torch.equal(mirrored(GRAPHS, states[:, :19]), states[:, :19])


@dataclass(frozen=True)
class Exact(Rule):
    """The hindsight target of the step in place of the base thought, from a step on."""

    task: Task
    first: int = 0

    def __call__(self, state):
        weights = state.logits.softmax(-1)
        if state.rows is None or state.step < self.first:
            return Thought(weights)
        return Thought(hindsight_targets(self.task)[state.rows, state.step].float().expand_as(weights))


def test_a_rule_knows_the_step_and_the_inputs():
    """Fed the exact frontier, a model answers as under its teacher; samples of an input lie side by side."""
    run = short()
    stack, data = build_stack([run]), stack_data([run], "cpu")
    rows = data.held_out.index[:, :10]
    edited = Exact(TASK)
    made = decode(stack, data.prompts[rows], rules(edited, 3), rows=rows, samples=2)
    for sample in range(2):
        fed = made.weights[0, sample::2, :2]
        assert torch.equal(fed, hindsight_targets(TASK, rows=rows[0])[:, :2].float())
    later = decode(stack, data.prompts[rows], rules(Exact(TASK, 1), 3), rows=rows)
    plain = decode(stack, data.prompts[rows], rules(Base(), 3))
    assert torch.equal(later.weights[:, :, 0], plain.weights[:, :, 0])
    assert torch.equal(later.weights[:, :, 1], made.weights[:, ::2, 1])


def test_a_run_by_an_oracle_is_evaluated_on_its_inputs(store, nothing_shipped):
    run = replace(short(), thought=Exact(TASK))
    assert run.thought.label == "Exact(task=MNNS(high=5, length=3))"
    row = runs.run([run, short()], device="cpu").set_index("id")
    stack, data = runs.load(run, missing="error"), stack_data([run], "cpu")
    found = evaluate(stack, data, [run])
    assert found["entropy_1"] == evaluate(stack, data, [short()])["entropy_1"]
    assert found["entropy_2"] != evaluate(stack, data, [short()])["entropy_2"]
    rows = data.held_out.index[:, data.held_out.real[0]]
    by_hand = decode(stack, data.prompts[rows], rules(run.thought, 3), rows=rows).logits[0, :, 1].softmax(-1)
    assert found["entropy_2"][0] == pytest.approx(torch.special.entr(by_hand).sum(-1).mean().item(), abs=1e-6)
    assert row["first_losses"].nunique() == 1


def test_a_rule_from_outside_is_never_captured(monkeypatch):
    """Its thoughts are looked at on the CPU, which a CUDA graph could not wait for."""
    trainer = SupervisedTrainer([short()])
    monkeypatch.setattr(trainer.engine, "repeat", lambda name, work: pytest.fail("captured"))
    assert trainer.engine.decoded(rules(Exact(TASK), 3))["correct_a"]


@dataclass(frozen=True)
class Doubled(Rule):
    def __call__(self, state):
        return Thought(2 * state.logits.softmax(-1))


def test_what_is_no_mixture_is_named():
    run = replace(short(), thought=Doubled())
    stack, data = build_stack([run]), stack_data([run], "cpu")
    with pytest.raises(SpecError, match=r"rule Doubled: weights add up to 1\.\.2; a mixture's to 1"):
        evaluate(stack, data, [run])


def test_always_feeds_its_token():
    run = short()
    stack, data = build_stack([run]), stack_data([run], "cpu")
    made = decode(stack, data.prompts[:4][None], rules(Always(3), 3))
    assert (made.weights[:, :, :2].argmax(-1) == 3).all() and made.weights.sum(-1).eq(1).all()
    assert torch.equal(made.answers, made.logits[:, :, -1].argmax(-1))
