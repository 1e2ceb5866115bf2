"""The fused engine on targets of their own: gradients and losses are torch's, and no run notices its company."""

from dataclasses import replace

import pytest
import torch
from builders import some, weights_of
from parity import assert_company_changes_nothing, assert_same_step, both
from ragged import Ragged

from cot2lib.specs import RunSpec, Supervision
from cot2lib.specs.profiles import spec
from cot2lib.targets import (
    Apart,
    Arrow,
    DrawnState,
    FreshPath,
    Frontier,
    Renamed,
    Rotated,
    Shuffled,
    Smoothed,
    WrongStates,
)
from cot2lib.tasks import MNNS, ProsQA
from cot2lib.training.settings import Model, Recipe

pytestmark = pytest.mark.usefixtures("unchecked")

TASK = MNNS(1, 5, 3)
PATH = Frontier(1, "plus-first")
RULES = (
    Apart(DrawnState(), Frontier()), Apart(Frontier(), FreshPath(4)), Apart(Smoothed(), PATH), DrawnState(),
    FreshPath(), Apart(Frontier(), Arrow()), Apart(Rotated(), Renamed()), Apart(WrongStates(), Shuffled()),
)  # fmt: skip


def control(rule, profile="paper", seed=42, task=TASK, **recipe):
    run = spec(
        "cot2", profile, task=task, d_model=16, seed=seed, **dict(steps=200, evaluate_every=200, batch=16) | recipe
    )
    return replace(run, supervision=replace(run.supervision, targets=rule))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.label)
def test_every_gradient_is_torchs(rule):
    assert_same_step(control(rule))


@pytest.mark.parametrize("rule", some(RULES, 1), ids=lambda rule: rule.label)
def test_losses_of_two_hundred_steps_are_torchs(rule):
    torch_, fused_ = both(*(control(rule, seed=seed) for seed in (42, 43)))
    torch_.advance(200), fused_.advance(200)
    assert (torch_.losses - fused_.losses).abs().max() < 5e-5
    assert (weights_of(torch_, 1) - weights_of(fused_, 1)).abs().max() < 5e-4


@pytest.mark.parametrize(
    "supervision",
    [dict(eos=True), dict(every=2, reduction="mean"), dict(loss_on="sequence"), dict(curriculum="growing")],
    ids=str,
)
def test_every_format_of_the_output(supervision):
    rule = Apart(DrawnState(), FreshPath())
    run = RunSpec(Recipe(21, 8, 1e-3, 21), TASK, Model(16, 2, 2), Supervision(targets=rule, **supervision))
    torch_, fused_ = both(run)
    torch_.train(), fused_.train()
    assert torch_.progress.first_losses[0] == pytest.approx(fused_.progress.first_losses[0], rel=1e-4)


@pytest.mark.parametrize(
    "rule", [Apart(Rotated(), Shuffled()), Apart(DrawnState(), FreshPath())], ids=["fixed", "fresh"]
)
@pytest.mark.parametrize(
    "task", [Ragged(3), ProsQA(inputs=100, naming="fresh")], ids=["several lengths", "names drawn anew"]
)
def test_inputs_of_several_lengths_and_names(task, rule):
    run = RunSpec(Recipe(20, 8, 1e-3, 20), task, Model(16, 1, 2), Supervision(targets=rule, arrow=False))
    torch_, fused_ = both(run)
    torch_.advance(20), fused_.advance(20)
    assert (torch_.losses - fused_.losses).abs().max() < 5e-5
    plain = both(replace(run, supervision=Supervision(arrow=False)))[1]
    plain.advance(20)
    assert (plain.losses - fused_.losses).abs().max() > 1e-3


@pytest.mark.parametrize(
    "rule", [Apart(Rotated(), Shuffled()), Apart(DrawnState(), FreshPath())], ids=["fixed", "fresh"]
)
def test_threads_and_company_change_nothing(rule):
    assert_company_changes_nothing([control(rule, seed=seed) for seed in (42, 43, 44)])


def test_the_frontier_for_both_is_csft():
    """Bit by bit through the entry of CSFT, and to rounding through that which feeds and scores apart."""
    plain = both(replace(control(Frontier()), supervision=replace(control(Frontier()).supervision, targets=None)))[1]
    same, apart = (both(control(rule))[1] for rule in (Frontier(), Apart(Frontier(), Frontier())))
    for trainer in (plain, same, apart):
        trainer.advance(100)
    assert torch.equal(plain.losses, same.losses) and torch.equal(weights_of(plain), weights_of(same))
    assert same._fed is same._data and apart._fed is not apart._data
    assert (plain.losses - apart.losses).abs().max() < 5e-5
