"""Targets rules: what each keeps of the frontier, the law of what it draws, and what is refused before training."""

from collections import Counter
from dataclasses import dataclass, replace

import pytest
import torch
from builders import registered, short
from hypothesis import given, settings
from hypothesis import strategies as st
from ragged import Ragged

from cot2lib import targets
from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.specs import Supervision, to_data
from cot2lib.specs.profiles import PROFILES, spec
from cot2lib.supervision import drawn_paths, hindsight_targets, steps_of
from cot2lib.targets import (
    Apart,
    Arrow,
    DrawnState,
    FreshPath,
    Frontier,
    Geometric,
    PathAhead,
    Renamed,
    Rotated,
    Shown,
    Shuffled,
    Smoothed,
    Targets,
    Uniform,
    Visits,
    WrongStates,
)
from cot2lib.tasks import MNNS, ProsQA
from cot2lib.testing import check_targets
from cot2lib.training.data import check_run

SUMS, WORDS = MNNS(1, 5, 3), replace(ProsQA(inputs=200), frontier="complete")
PATH = Frontier(1, "plus-first")
RULES = (
    Frontier(), PATH, DrawnState(), FreshPath(), FreshPath(4), Rotated(), Renamed(), Shuffled(), WrongStates(),
    Uniform(), Smoothed(), Geometric(), PathAhead(), Arrow(), Apart(Frontier(), FreshPath(8)),
    Apart(DrawnState(), Frontier()), Apart(Smoothed(), PATH),
)  # fmt: skip


def visits(task=SUMS, rows=None, seed=42, step=0, repeats=1):
    train = task.split(seed).nonzero()[:, 0]
    rows = train if rows is None else torch.as_tensor(rows)
    steps = torch.arange(step, step + repeats).repeat_interleave(len(rows))
    return Visits(task, rows.repeat(repeats), train, random.run_keys([seed], random.Site.TARGETS), steps)


def test_what_is_left_of_a_path_weighs_less_the_later_it_comes():
    task = MNNS(1, 3, 3)
    (row,) = (task.digits == torch.tensor([1, 2, 1])).all(1).nonzero()[0].tolist()  # 1, -1, 0
    first, second, last = PathAhead()(visits(task, [row])).scored[0]
    whole = 1 + 0.9 + 0.81
    assert {task.tokens[i]: round(whole * float(first[i]), 6) for i in first.nonzero()[:, 0]} == {
        "S1": 1.0, "S-1": 0.9, "S0": 0.81,
    }  # fmt: skip
    assert second[task.state_id(-1)] == pytest.approx(1 / 1.9) and last[task.state_id(0)] == 1


@pytest.mark.parametrize("task", [SUMS, MNNS(1, 3, 4), WORDS, Ragged(2)], ids=["sums", "longer", "graphs", "ragged"])
def test_thoughts_are_distributions_and_the_answer_is_last(task):
    seen = visits(task)
    last = steps_of(task, seen.rows) - 1
    there = torch.arange(task.steps) < last[:, None]
    for rule in RULES:
        check_targets(rule, task, 42, 42)
        for value in rule(seen):
            answer = value[torch.arange(len(last)), last]
            assert torch.equal(answer.argmax(-1), task.answer_ids[seen.rows]) and answer.amax(-1).eq(1).all(), rule
            assert torch.allclose(value[there].sum(-1), torch.ones(1, dtype=value.dtype)), rule
            assert not value[torch.arange(task.steps) > last[:, None]].any(), rule


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_a_visit_depends_on_its_seed_step_and_row_alone(data):
    rule = data.draw(st.sampled_from(RULES))
    train = visits().train.tolist()
    rows = data.draw(st.lists(st.sampled_from(train), min_size=1, max_size=6))
    step, seed = data.draw(st.integers(0, 10**6)), data.draw(st.sampled_from([42, 43]))
    seen = replace(visits(rows=rows, seed=42, step=step), key=random.run_keys([seed], random.Site.TARGETS))
    place = data.draw(st.integers(0, len(rows) - 1))
    alone = replace(seen, rows=seen.rows[place : place + 1], steps=seen.steps[place : place + 1])
    for together, one in zip(rule(seen), rule(alone)):
        assert torch.equal(together[place : place + 1], one)


def test_fresh_targets_differ_from_visit_to_visit_and_no_others_do():
    same = lambda one, other: all(torch.equal(a, b) for a, b in zip(one, other))
    for rule in RULES:
        one, other = rule(visits(step=3)), rule(visits(step=4))
        assert same(one, other) != rule.fresh, rule
        assert rule.fresh or same(one, rule(replace(visits(), steps=None))), rule


# What is drawn


def test_the_law_of_drawn_paths_is_exact():
    """Draws from the middles of equal cells meet every trajectory of sums as often as any other."""
    middles = (torch.arange(2) + 0.5) / 2
    draws = torch.cartesian_prod(middles, middles, middles)[None].expand(4, -1, -1)
    paths = drawn_paths(SUMS, torch.arange(4), draws)
    for row in range(4):
        digits = SUMS.digits[row]
        signs = torch.cartesian_prod(*[torch.tensor([-1, 1])] * 3)
        expected = {tuple((sign * digits).cumsum(0).tolist()) for sign in signs}
        assert {tuple((path - SUMS.bound).tolist()) for path in paths[row]} == expected


@pytest.mark.parametrize("task", [SUMS, WORDS], ids=["sums", "graphs"])
@pytest.mark.parametrize("rule", [DrawnState(), FreshPath(), FreshPath(3)], ids=lambda rule: rule.label)
def test_the_frontier_is_the_mean_of_many_visits(rule, task):
    rows, repeats = visits(task).train[:3], 4000
    found = rule(visits(task, rows, repeats=repeats)).scored.view(repeats, len(rows), task.steps, -1).mean(0)
    assert (found - hindsight_targets(task, rows=rows)).abs().max() < 5 * 0.5 / repeats**0.5


def test_steps_of_drawn_states_are_independent_and_those_of_a_path_are_not():
    rows, repeats = visits().train[:1], 4000
    joint = {}
    for rule in (DrawnState(), FreshPath()):
        tokens = rule(visits(rows=rows, repeats=repeats)).scored[:, :2].argmax(-1)
        joint[rule] = Counter(map(tuple, tokens.tolist()))
    assert len(joint[DrawnState()]) > len(joint[FreshPath()]) == 4


def test_parts_draw_independently():
    one = Apart(DrawnState(), DrawnState())(visits(repeats=50))
    assert 0.2 < (one.scored[:, 0].argmax(-1) == one.fed[:, 0].argmax(-1)).float().mean() < 0.8


def test_a_path_of_many_is_the_mean_of_as_many():
    weights = FreshPath(4)(visits()).scored[:, :2]
    assert set((weights * 4).unique().tolist()) == {0.0, 1.0, 2.0, 3.0, 4.0}


# What is kept


def test_another_steps_frontier():
    task = MNNS(1, 3, 4)
    seen = visits(task)
    given_, kept = Rotated()(seen).scored, Frontier()(seen).scored
    assert torch.equal(given_[:, :3], kept[:, [1, 2, 0]]) and torch.equal(given_[:, 3], kept[:, 3])


def test_inputs_of_fewer_steps_rotate_among_their_own():
    task = Ragged(2)
    seen = visits(task)
    given_, kept = Rotated()(seen).scored, Frontier()(seen).scored
    three = task.lengths[seen.rows] == 3
    assert torch.equal(given_[three, :2], kept[three][:, [1, 0]])


def test_names_are_one_permutation_for_each_step():
    seen = visits()
    given_, kept = Renamed()(seen).scored[:, :2], Frontier()(seen).scored[:, :2]
    assert torch.equal(given_.sort(-1).values, kept.sort(-1).values)
    maps = [{}, {}]
    for step in range(2):
        for row in range(len(kept)):
            states, others = (set(x[row, step].nonzero()[:, 0].tolist()) for x in (kept, given_))
            for state in states:
                maps[step][state] = maps[step].get(state, others) & others
        assert all(maps[step].values()), "an input's frontier is renamed as all others"
    assert maps[0] != {state: maps[1].get(state) for state in maps[0]}
    assert not torch.equal(Renamed()(visits(seed=42, rows=[0])).scored, Renamed()(visits(seed=43, rows=[0])).scored)


@pytest.mark.parametrize("task", [SUMS, Ragged(3)], ids=["sums", "ragged"])
def test_another_example_is_one_that_is_trained_on(task, monkeypatch):
    asked, frontier = [], Frontier.weights
    monkeypatch.setattr(Frontier, "weights", lambda rule, visits: asked.append(visits.rows) or frontier(rule, visits))
    seen = visits(task)
    for one in (seen, visits(task, seed=43)):
        Shuffled()(one)
    there, other = asked
    assert sorted(there.tolist()) == seen.train.tolist(), "each stands for one"
    assert (there != seen.rows).all() and torch.equal(steps_of(task, there), steps_of(task, seen.rows))
    assert set(other.tolist()) != set(there.tolist()), "another split"


def test_no_other_example():
    task = MNNS(1, 3, 3, inputs=10)
    alone = replace(visits(task), train=torch.tensor([0]), rows=torch.tensor([0]), steps=None)
    with pytest.raises(SpecError, match="only one training input has 3 steps"):
        Shuffled()(alone)


def test_wrong_states_have_the_shares_of_the_right_ones(monkeypatch):
    seen = visits(WORDS)
    wrong, right = (rule(seen).scored[:, :2] for rule in (WrongStates(), Frontier()))
    assert not (wrong * right).any()
    assert torch.equal(wrong.sort(-1).values, right.sort(-1).values)
    assert not wrong[..., ~torch.isin(torch.arange(WORDS.vocab_size), WORDS.state_ids)].any()
    monkeypatch.setattr(targets, "FRONTIER", Uniform())
    with pytest.raises(SpecError, match="reaches most of the 13 states"):
        WrongStates()(visits(MNNS(1, 2, 3)))


def test_smoothed_paths_have_the_frontiers_entropy():
    seen = visits()
    smooth, path, kept = (rule(seen).scored[:, :2] for rule in (Smoothed(), PATH, Frontier()))
    entropy = lambda weights: torch.special.entr(weights).sum(-1)
    assert torch.allclose(entropy(smooth), entropy(kept), atol=1e-8) and entropy(kept).max() > 1
    assert torch.equal(smooth.argmax(-1), path.argmax(-1))


def test_weights_that_fall_geometrically():
    weights, kept = (rule(visits()).scored[:, 1] for rule in (Geometric(), Frontier()))
    for row in range(20):
        values = weights[row][kept[row] > 0]
        assert torch.allclose(values[1:] / values[:-1], torch.tensor(0.5, dtype=torch.float64))


# Names, ids and faults


def test_the_default_is_what_was():
    plain = short()
    assert plain.supervision.targets is None and "targets" not in to_data(plain.supervision)
    assert plain.columns()["targets"] == "" and plain.method == "CoT2"


@pytest.mark.parametrize("profile", PROFILES)
def test_targets_are_an_option_of_a_run(profile):
    """Whatever budget and ties the method has by itself."""
    for method in ("cot2", "discrete"):
        plain, run = (spec(method, profile, targets=targets) for targets in (None, Frontier(4)))
        usual = replace(plain.supervision, budget=None, ties="minus-first")
        assert run == replace(plain, supervision=replace(usual, targets=Frontier(4)))


def test_a_control_is_told_apart():
    for rule in RULES:
        run = replace(short(), supervision=Supervision(targets=rule))
        assert run.method == "CoT2, other targets" and run.columns()["targets"] == rule.label
        assert run.id != short().id and run.shape() != short().shape()


def test_labels_tell_what_is_no_default():
    assert Apart(Smoothed(), PATH).label == "Apart(scored=Smoothed, fed=Frontier(budget=1, ties=plus-first))"
    assert len({rule.label for rule in RULES}) == len(RULES) and {type(rule) for rule in RULES} == registered(
        "targets"
    )


def own(call):
    """A rule whose call is given."""

    @dataclass(frozen=True)
    class Mine(Targets):
        def __call__(self, visits):
            return call(visits)

    return Mine()


def frontier(visits):
    return hindsight_targets(visits.task, rows=visits.rows)


FAULTS = {
    "is a float64 tensor of shape": lambda v: Shown(frontier(v)[:, :-1], frontier(v)),
    "is of type list; give a float64 tensor": lambda v: Shown(frontier(v), [1]),
    "is of type Tensor; give cot2lib.targets.Shown": frontier,
    "scored are not finite": lambda v: Shown(frontier(v) * float("nan"), frontier(v)),
    "scored fall to -1": lambda v: Shown(-frontier(v), frontier(v)),
    "fed fall to -1": lambda v: Shown(frontier(v), -frontier(v)),
    "scored add up to 2 at some step": lambda v: Shown(2 * frontier(v), frontier(v)),
    "fed add up to 0.5..0.5": lambda v: Shown(frontier(v), frontier(v) / 2),
    "scored are all 0 for some input": lambda v: Shown(frontier(v) * (v.rows > 5)[:, None, None], frontier(v)),
    "scored differ from call to call": lambda v: Shown(torch.rand_like(frontier(v)), frontier(v)),
    "fed of an input change with the others": lambda v: Shown(frontier(v), frontier(v).roll(len(v.rows) // 2, 0)),
    "its call fails": lambda v: v.nothing,
    "need a property `fresh`": lambda v: v.visit_keys,
}


@pytest.mark.parametrize("said", FAULTS)
def test_malformed_targets_are_refused_before_training(said):
    run = replace(short(), supervision=Supervision(targets=own(FAULTS[said])))
    with pytest.raises(SpecError) as error:
        check_run(run)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_fresh_is_true_or_false():
    rule = dataclass(frozen=True)(type("Counted", (type(own(frontier)),), {"fresh": 1}))()
    with pytest.raises(SpecError, match="targets Counted: fresh is neither True nor False"):
        check_targets(rule, SUMS, 42, 42)


def test_nothing_fed_and_labels_of_less_weight_are_allowed():
    rule = own(lambda v: Shown(frontier(v) * 0.5, torch.zeros_like(frontier(v))))
    check_targets(rule, SUMS, 42, 42)
