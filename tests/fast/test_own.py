"""The fused engine on own thoughts: gradients, dropout bits and losses are torch's, for each feeding."""

from dataclasses import replace

import pytest
import torch
from builders import some, weights_of
from parity import assert_company_changes_nothing, assert_same_step, both, multipliers
from ragged import Ragged

from cot2lib.model.dropout import Dropout
from cot2lib.specs import RunSpec
from cot2lib.tasks import MNNS, ProsQA
from cot2lib.thoughts import Base, Hidden, ZeroSlot
from cot2lib.training import engines
from cot2lib.training.engines import preferred
from cot2lib.training.settings import Model, Recipe, Supervision
from cot2lib.training.supervised import SupervisedTrainer

pytestmark = pytest.mark.usefixtures("unchecked")

TASK = MNNS(1, 3, 4)
RULES = (Hidden(), Base(), ZeroSlot())  # the first is COCONUT


def own(thought=Base(), feeding="self", task=TASK, model=Model(16, 2, 2), steps=200, seed=42, **options):
    """A run of own thoughts, with dropout unless told otherwise."""
    recipe = dict(batch=16, lr=1e-3, evaluate_every=steps, dropout=0.1, weight_decay=0.01)
    recipe |= {name: options.pop(name) for name in list(options) if name in recipe}
    return RunSpec(Recipe(steps, **recipe), task, model, Supervision(feeding=feeding, **options), thought, seed)


def at(run, step):
    """The two trainers of a run as a step comes."""
    trainers = both(run)
    for trainer in trainers:
        trainer.progress.step = step
    return trainers


LAST = dict(steps=8)  # a run whose step 7 is in COCONUT's last stage
CASES = {
    "four layers": dict(model=Model(32, 4, 4)),
    "one layer": dict(model=Model(24, 1, 1)),
    "no dropout": dict(dropout=0.0),
    "an end token, the mean": dict(eos=True, reduction="mean"),
    "every other output": dict(every=2, arrow=False),
    "odd batch": dict(batch=7),
    "several lengths": dict(task=Ragged(3)),
    "frozen": dict(model=Model(24, 2, 2, embedding="cosine, frozen")),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("thought", RULES, ids=lambda rule: rule.label)
def test_every_gradient_is_torchs(thought, case):
    assert_same_step(own(thought, **CASES[case]))


@pytest.mark.parametrize("thought", RULES, ids=lambda rule: rule.label)
@pytest.mark.parametrize("stage", range(4))
@pytest.mark.parametrize("options", [dict(), dict(eos=True, reduction="mean"), dict(task=Ragged(3))], ids=str)
def test_every_gradient_of_each_stage(thought, stage, options):
    run = own(thought, "stages", steps=8, **options)
    assert_same_step(run, at(run, stage * 2))


@pytest.mark.parametrize("thought", RULES, ids=lambda rule: rule.label)
def test_dropout_bits_of_every_pass_are_torchs(thought):
    run = own(thought)
    torch_, fused_ = both(run)
    fused_.advance(3)
    torch_.step.fill_(2)
    shape, drawn = fused_._shape, torch_.dropout()
    assert isinstance(drawn, Dropout)
    parts = fused_._parts(3)
    assert len(parts) == (7 if isinstance(thought, ZeroSlot) else 4)
    for low, high, scored, begin, end in parts.tolist():
        lanes = torch_.stack.dropout_lanes(shape.batch, high - low, scored, low)
        expected = torch.cat(list(drawn.scales(lanes)), 1)[0]
        made = multipliers(fused_, begin, begin + len(expected))
        assert torch.equal(made, expected) and 0 < (expected == 0).float().mean() < 0.2 and begin + len(made) <= end


@pytest.mark.parametrize("thought", some(RULES, 1), ids=lambda rule: rule.label)
@pytest.mark.parametrize("feeding", some(["stages", "self"], 1))
def test_losses_of_two_hundred_steps_are_torchs(thought, feeding):
    torch_, fused_ = both(*(own(thought, feeding, seed=seed) for seed in (42, 43)))
    while torch_.progress.step < 200:
        before = torch_.progress.step
        ahead = torch_.ahead()
        assert ahead == fused_.ahead()
        torch_.advance(ahead), fused_.advance(ahead)
        assert (torch_.losses - fused_.losses).abs().max() < 5e-5, before
    assert (weights_of(torch_, 1) - weights_of(fused_, 1)).abs().mean() < 1e-5


def test_the_switch_from_teacher_to_own_thoughts():
    runs = own(steps=40, switch=20, evaluate_every=10), own(steps=40, evaluate_every=10)
    for run, first in zip(runs, (0, 3)):
        torch_, fused_ = both(run)
        assert fused_.phase[0] == first
        torch_.train(), fused_.train()
        assert [point["loss"][0] for point in torch_.progress.curves] == pytest.approx(
            [point["loss"][0] for point in fused_.progress.curves], abs=5e-5
        )
        assert (weights_of(torch_) - weights_of(fused_)).abs().mean() < 1e-5


def test_names_drawn_anew():
    torch_, fused_ = both(own(task=ProsQA(inputs=100, naming="fresh"), steps=20, batch=8, arrow=False))
    torch_.advance(20), fused_.advance(20)
    assert (torch_.losses - fused_.losses).abs().max() < 5e-5


@pytest.mark.parametrize("thought", RULES, ids=lambda rule: rule.label)
def test_threads_and_company_change_nothing(thought):
    assert_company_changes_nothing([own(thought, seed=seed) for seed in (42, 43, 44)])


def test_rules_that_the_engine_does_not_feed_are_left_to_torch(capsys):
    engines._say.cache_clear()
    assert type(preferred(SupervisedTrainer([own(Base(2.0))]))) is SupervisedTrainer
    assert "does not feed Base(temperature=2.0) in training" in capsys.readouterr().err
    assert both(own(Base(2.0), "teacher"))[1].engine == "fused", "there it acts at evaluation alone"
    of_set = own(Base(), "teacher")
    of_set = replace(of_set, supervision=replace(of_set.supervision, scoring="set"))
    assert type(preferred(SupervisedTrainer([of_set]))) is SupervisedTrainer
    assert "does not score sets" in capsys.readouterr().err
