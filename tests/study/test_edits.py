"""Edits of thoughts: what each takes, gives and asks."""

from dataclasses import replace

import pytest
import torch

from cot2lib import interventions, runs
from cot2lib.locality import masks
from cot2lib.model import GPT2Stack
from cot2lib.runs import Taught
from cot2lib.specs.profiles import grpo, spec
from cot2lib.study.controls import measure
from cot2lib.study.graph_runs import placed
from cot2lib.supervision import ancestors, as_tokens, hindsight_targets, mirrored, reachable
from cot2lib.tasks import MNNS, MNNSLengths, ProsQA
from cot2lib.thoughts import MTS, Base, Discrete, Hidden
from cot2lib.training.supervised import build_stack

TASK = MNNS(1, 5, 3)


@pytest.fixture(scope="module")
def thinking():
    """Untrained models of two seeds, whose thoughts are the exact frontiers."""
    specs = [spec("cot2", task=TASK, d_model=16, seed=seed) for seed in (1, 2)]
    made = interventions.thought(build_stack(specs), specs)
    exact = hindsight_targets(TASK)[made.rows][:, :, :-1]
    return replace(made, weights=exact, vectors=made.stack.mix(exact.float()))


@pytest.fixture
def seen(thinking, monkeypatch):
    """The same models, whose vectors are the weights themselves."""
    monkeypatch.setattr(GPT2Stack, "mix", lambda stack, weights: weights.clone())
    return replace(thinking, vectors=thinking.weights.float())


def named(thinking, name, dose=1.0):
    """One edit."""
    return next(edit for edit in interventions.edits(thinking) if (edit.name, edit.dose) == (name, dose))


def best_after(task, weights, digit):
    """The token of the best sum that a last digit makes of those with weight."""
    sums = (weights[task.state_ids] > 0).nonzero()[:, 0] - task.start
    return task.state_ids[task.start + min(abs(int(total) + sign * digit) for total in sums for sign in (-1, 1))]


def test_answered_without_an_edit():
    for run in (spec("cot2", task=TASK, d_model=16), replace(placed("cot2", d_model=16), task=ProsQA(inputs=60))):
        plain = interventions.thought(build_stack([run]), [run])
        assert torch.equal(plain.answered(plain.vectors), plain.answers)


def test_continued_frontiers_end_at_the_right_answer():
    rows = torch.arange(TASK.size)[None]
    for step in range(TASK.steps):
        found = interventions.continued(TASK, step, rows, reachable(TASK, step, rows))
        assert torch.equal(TASK.state_ids[found], TASK.answer_ids[rows])


def test_removals_take_the_same_weight_from_ancestors_and_elsewhere(seen):
    thinking, task, rows = seen, seen.task, seen.rows
    chosen = mirrored(task, ancestors(task, task.steps - 1, rows, interventions.as_states(task, thinking.right)))
    chosen = as_tokens(task, chosen)
    share = (thinking.last * chosen).sum(-1)
    fed = {}
    for edit in interventions.removals(seen, torch.Generator()):
        fed[edit.name, edit.dose] = edit.fed[:, :, -1]
        assert (share[edit.where] <= interventions.MOST).all() and edit.where.any()
    for dose in interventions.DOSES:
        removed, elsewhere = (fed[name, dose].double() for name in ("ancestors", "elsewhere"))
        left = share * (1 - dose) / (1 - dose * share)
        asked = share <= interventions.MOST
        assert torch.allclose((removed * chosen).sum(-1)[asked], left[asked], atol=1e-6)
        assert torch.allclose((elsewhere * chosen).sum(-1)[asked], (share / (1 - dose * share))[asked], atol=1e-6)
        step = fed["direction", dose] - thinking.last
        assert torch.allclose(step.norm(dim=-1).double(), (removed - thinking.last).norm(dim=-1), atol=1e-5)
    assert not torch.equal(fed["one side", 1.0], fed["ancestors", 1.0])


def test_removals_want_the_best_answer_of_what_is_left(seen):
    """Counted by hand: sums of which neither the right answer nor its mirror is reached, and the best that follows."""
    task, rows, edit = seen.task, seen.rows, named(seen, "ancestors")
    sums, order = task.signed_sums(), lambda total: task.preference[total + task.bound]
    for run, place in edit.where.nonzero()[:40].tolist():
        row = int(rows[run, place])
        digit, best = int(task.digits[row, -1]), int(task.answers[row])
        left = [
            total for total in set(sums[row, :, -2].tolist()) if best not in (abs(total - digit), abs(total + digit))
        ]
        after = min((total + sign * digit for total in left for sign in (-1, 1)), key=order)
        assert edit.wanted[run, place] == task.state_id(after) != edit.right[run, place]


def test_swap_feeds_another_input_and_wants_its_continuation(seen):
    thinking, task, rows = seen, seen.task, seen.rows
    edit = interventions.swap(seen, torch.Generator().manual_seed(0))
    fed = edit.fed[:, :, -1]
    for run, place in edit.where.nonzero()[:20].tolist():
        wanted = best_after(task, fed[run, place], int(task.digits[rows[run, place], -1]))
        assert wanted == edit.wanted[run, place] != thinking.right[run, place]
    assert edit.where.any() and not torch.equal(fed, thinking.last.float())
    # one run holds out fewer inputs than the other, and what fills its list up is fed to none
    other = interventions.others(seen.rows.shape[1], torch.Generator().manual_seed(0))
    padded = ~seen.real[:, other]
    assert seen.real.sum(1).unique().numel() == 2 and (edit.wanted != edit.right)[padded & seen.real].any()
    assert not edit.where[padded].any()


def test_insertions_are_reached_by_no_walk(seen):
    task, rows = seen.task, seen.rows
    there = as_tokens(task, reachable(task, task.steps - 1, rows))
    for edit in interventions.insertions(seen):
        added = (edit.fed[:, :, -1] > 0) & ~there
        assert (added.sum(-1)[edit.where] == 1).all() and edit.where.any()
        given = (edit.fed[:, :, -1] * added).sum(-1)[edit.where]
        assert torch.allclose(given, torch.full_like(given, edit.dose))
        assert (edit.wanted == edit.right - interventions.LOWER_BY)[edit.where].all()


@pytest.mark.parametrize("name", ["early digit", "late digit"])
def test_edits_change_one_digit(thinking, name):
    task, edit = thinking.task, named(thinking, name)
    changed = task.digits[edit.rows] != task.digits[thinking.rows]
    assert (changed.sum(-1) == 1).all() and changed[..., -1].all() == (name == "late digit")
    assert torch.equal(edit.right, task.answer_ids[edit.rows])
    assert torch.equal(edit.wanted, thinking.right if name == "early digit" else edit.right)
    assert torch.equal(edit.fed, thinking.vectors)


def test_edits_of_sampled_inputs_change_no_digit():
    """An input with one other digit may not be among them."""
    run = spec("cot2", task=MNNS(length=6, inputs=60), d_model=16)
    names = {edit.name for edit in interventions.edits(interventions.thought(build_stack([run]), [run]))}
    assert "swap" in names and not {"early digit", "late digit"} & names


def test_edits_of_placebos_say_nothing_about_the_input(thinking):
    for name in ("mean", "zero"):
        fed = named(thinking, name).fed[:, :, -1]
        assert torch.equal(fed, fed[:, :1].expand_as(fed))
    noise, plain = named(thinking, "noise").fed[:, :, -1], thinking.vectors[:, :, -1]
    assert torch.allclose(noise.norm(dim=-1), plain.norm(dim=-1), atol=1e-5)


def test_edits_of_hidden_states_and_of_graphs():
    """Hidden states are exchanged and not taken apart; graphs have removals and placebos alone."""
    run, placebos = spec("coconut", task=TASK, d_model=16), {"mean", "noise", "zero"}
    made = interventions.thought(build_stack([run]), [run])
    assert made.weights is None and torch.equal(made.answered(made.vectors), made.answers)
    assert {edit.name for edit in interventions.edits(made)} == placebos | {"swap", "early digit", "late digit"}
    run = replace(placed("cot2", d_model=16), task=ProsQA(inputs=60))
    names = {edit.name for edit in interventions.edits(interventions.thought(build_stack([run]), [run]))}
    assert names == placebos | {"ancestors", "elsewhere", "direction"}


SHORT = dict(d_model=16, layers=1, heads=1, steps=4, evaluate_every=4, warmup=0)


def test_measure_of_models_trained_by_reward(store, monkeypatch):
    """Their thoughts are of sampled tokens: they are edited as others are, and decoded by their own rule, too."""
    monkeypatch.setattr(measure, "LONGER", 60)
    start = spec("discrete", task=TASK, **SHORT)
    run = grpo(start, thought=MTS(3), steps=2, evaluate_every=2, batch=8)
    runs.run([start, run])
    table = measure.edits([run], retrain=True)
    assert set(table["id"]) == {run.id} and {"swap", "ancestors", "longer"} <= set(table["edit"])
    assert {f"decoded by {rule.label}" for rule in (*measure.DECODERS, run.thought)} <= set(table["edit"])
    longer = table[table["edit"] == "longer"].iloc[0]
    assert 0 < longer["inputs"] < 30 and longer["right"] < 50, "inputs of one digit more fit the model"
    thinking = interventions.thought(runs.load_stack([run], missing="error", retrain=True), [measure.as_asked(run)])
    tokens = (thinking.weights > 0).sum(-1)
    assert tokens.max() == 3, "three draws of a hardly trained model are mostly three tokens"


def test_measure_of_several_lengths_decodes_alone(store):
    run = spec("cot2", task=MNNSLengths(1, 3, 3), **SHORT)
    runs.run([run])
    table = measure.edits([run], retrain=True)
    assert set(table["edit"]) == {f"decoded by {rule.label}" for rule in measure.DECODERS}


def test_measure_asks_a_student_without_its_teacher(store, monkeypatch):
    monkeypatch.setattr(measure, "LONGER", 60)
    student, teacher = spec("cot2", task=TASK, **SHORT), spec("discrete", task=TASK, **SHORT)
    student = replace(student, supervision=replace(student.supervision, targets=Taught(teacher)))
    runs.run([student])
    monkeypatch.setattr(Taught, "__call__", lambda *_: pytest.fail("nothing is trained"))
    assert "longer" in set(measure.edits([student], retrain=True)["edit"])


@pytest.mark.parametrize("thought", [Base(), Discrete(), MTS(2), Hidden()], ids=str)
def test_thoughts_that_are_computed_again_without_an_edit_are_the_same(thought):
    """From every thought on, with the draws that each step had."""
    specs = [replace(spec("cot2", task=TASK, d_model=16, seed=seed), thought=thought) for seed in (1, 2)]
    made = interventions.thought(build_stack(specs), specs)
    for count in range(TASK.steps):
        assert torch.equal(made.recomputed(made.vectors, count), made.answers)


def test_a_thought_in_the_middle_changes_those_after_it_alone_if_they_are_computed(thinking):
    other = thinking.exchanged(torch.randn(1, 1, 16), 0)
    assert torch.equal(other[:, :, 1:], thinking.vectors[:, :, 1:])
    computed, kept = thinking.recomputed(other, 1), thinking.answered(other)
    assert torch.equal(thinking.recomputed(other, TASK.steps - 1), kept), "all thoughts are given"
    assert not torch.equal(computed, kept)


def test_earlier_edits_by_hand(seen):
    """The second thought of another input leads to the best sum by the digits that are left; weights move as named."""
    task, rows = seen.task, seen.rows
    edits_ = {edit.name: edit for edit in interventions.earlier(seen, 2)}
    swapped, removed, moved = (edits_[f"{name} 2"] for name in ("swap", "ancestors", "elsewhere"))
    assert all(torch.equal(edit.fed[:, :, 0], seen.vectors[:, :, 0]) for edit in edits_.values())
    for run, place in swapped.where.nonzero()[:20].tolist():
        wanted = best_after(task, swapped.fed[run, place, 1], int(task.digits[rows[run, place], -1]))
        assert wanted == swapped.wanted[run, place]
    leads = as_tokens(task, mirrored(task, ancestors(task, 2, rows, interventions.as_states(task, seen.right))))
    asked = removed.where
    assert asked.any() and not (removed.fed[:, :, 1] * leads)[asked].any()
    share = (seen.weights[:, :, 1] * leads).sum(-1)[asked]
    assert torch.allclose((moved.fed[:, :, 1] * leads).sum(-1)[asked].double(), share / (1 - share), atol=1e-6)


def test_tokens_that_name_another_state_are_read_as_it(thinking):
    """After one step, from +d or -d: the best that the own digits still give."""
    task, one = TASK, torch.nn.functional.one_hot
    first = thinking.task.digits[thinking.rows, 0]
    weights = one(task.state_ids[task.start + first], task.vocab_size).double()[:, :, None].expand(-1, -1, 2, -1)
    tokens = replace(thinking, weights=weights, vectors=thinking.stack.mix(weights.float()))
    (edit,) = (edit for edit in interventions.earlier(tokens, 1) if edit.name == "swap 1")
    other = interventions.others(tokens.rows.shape[1], torch.Generator().manual_seed(1))
    for run, place in edit.where.nonzero()[:20].tolist():
        taken = int(first[run, other[place]])
        _, b, c = task.digits[tokens.rows[run, place]].tolist()
        totals = [taken + s * b + t * c for s in (-1, 1) for t in (-1, 1)]
        best = min(totals, key=lambda total: task.preference[total + task.bound])
        assert edit.wanted[run, place] == task.state_id(best)


def test_walks_of_single_tokens(thinking):
    """Half of the thoughts are steps, and every second first one leads to the answer, in paths that are made so."""
    task, rows = TASK, thinking.rows
    digits = task.digits[rows]
    leads = ancestors(task, 1, rows, interventions.as_states(task, thinking.right))
    plus = leads.gather(2, (task.start + digits[..., :1]))[..., 0]
    sign = torch.where(plus, 1, -1)  # a first state that leads to the answer
    sign[:, ::2] = torch.where(plus & leads.gather(2, task.start - digits[..., :1])[..., 0], 1, -sign)[:, ::2]
    states = task.start + torch.stack([sign * digits[..., 0], sign * digits[..., 0] + digits[..., 1] + 1], 2)
    weights = torch.nn.functional.one_hot(task.state_ids[states], task.vocab_size).double()
    walks, first = measure._walked(replace(thinking, weights=weights))
    assert walks["follows"].tolist() == [50, 50]
    expected = leads.gather(2, states[..., :1])[..., 0]
    assert first["right"].tolist() == pytest.approx(
        (100 * (expected & thinking.real).sum(1) / thinking.real.sum(1)).tolist()
    )
    assert first["right"].lt(95).all()


def test_measure_of_steps_has_every_intervention(store):
    table = {}
    for method in ("cot2", "discrete"):
        run = spec(method, task=TASK, **SHORT)
        runs.run([run])
        table[method] = measure.steps([run], retrain=True)
        assert list(table[method]) == measure.COLUMNS
    edits_ = {"swap 1", "swap 1, kept", "swap 2", "ancestors 2", "elsewhere 1, kept"}
    assert edits_ | {*masks(TASK, 5)} <= set(table["cot2"]["edit"])
    assert {"walks", "first thought"} == set(table["discrete"]["edit"]) - set(table["cot2"]["edit"])
    strict = spec("cot2", task=TASK, sees="strict", **SHORT)
    runs.run([strict])
    found = measure.steps([strict], retrain=True)
    assert not {*masks(TASK, 5)} & set(found["edit"]), "its steps are masked already"
