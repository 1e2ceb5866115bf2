from dataclasses import replace

import pytest
import torch
from builders import REWARDED, noted, rewarded, start, weights_of
from builders import reward_trainer as trainer

from cot2lib import runs
from cot2lib.model import GPT2Stack
from cot2lib.specs import GRPOSpec
from cot2lib.thoughts import MTS, Discrete
from cot2lib.training import data
from cot2lib.training.fused import preferred


def test_mts_of_one_token_is_discrete_grpo():
    one, other = trainer(rewarded(thought=MTS(1))), trainer(rewarded(thought=Discrete(1.0)))
    one.advance(6), other.advance(6)
    assert torch.equal(weights_of(one), weights_of(other))
    assert not torch.equal(weights_of(one), weights_of(trainer(rewarded())))


def test_a_rising_k_ends_at_the_thoughts_own(monkeypatch):
    one = rewarded(thought=MTS(3), first_k=1)
    assert [one.thought_at(step).k for step in range(12)] == [1] * 4 + [2] * 4 + [3] * 4
    seen, trained = noted(monkeypatch), trainer(one)
    trained.train()
    assert [given[1][0].shape[-1] for given in seen] == [1] * 4 + [2] * 4 + [3] * 4


@pytest.mark.parametrize("engine", [lambda made: made, preferred], ids=["torch", "fused"])
def test_no_targets_are_made(monkeypatch, engine):
    monkeypatch.setattr(data, "hindsight_targets", lambda *_: pytest.fail("made"))
    engine(trainer(rewarded())).train()


def test_policy_gradients_raise_the_reward(store):
    """From a half-trained start the failing share falls, and only that of runs with a learning rate."""
    recipe = replace(REWARDED, steps=300, batch=8, lr=3e-3, evaluate_every=100)
    learning = GRPOSpec(recipe, start(epochs=100), Discrete(1.0))
    still = replace(learning, recipe=replace(learning.recipe, lr=0.0))
    progress = preferred(trainer(learning, still, stack=runs.load_stack([learning.start] * 2))).train()
    assert progress.curves[-1]["gradient_norm"][1] > 0
    losses = [point["loss"] for point in progress.curves[1:]]
    assert losses[-1][0] < min(losses[0][0] - 0.1, losses[-1][1] - 0.2)
    assert abs(losses[-1][1] - losses[0][1]) < 0.05
    assert progress.curves[0]["correct_a"][1] == progress.curves[-1]["correct_a"][1]


def test_runs_train_missing_starts_and_chain(store, nothing_shipped):
    """Starts of different strength train side by side."""
    starts = start(epochs=10), start(43, epochs=20)
    specs = [replace(rewarded(), start=one) for one in starts]
    table = runs.run(specs)
    assert table["method"].tolist() == ["discrete CoT + GRPO"] * 2 and table["sampler"].tolist() == ["MTS"] * 2
    assert table["start"].tolist() == [one.id for one in starts] and table["stacked"].tolist() == [2, 2]
    assert len(runs.run(starts, missing="error")) == 2
    assert isinstance(runs.load(specs[0], missing="error"), GPT2Stack)
    points = runs.curves(specs)
    assert points["step"].tolist() == [0, 6, 12] * 2 and points["base_a"].notna().all()
    assert specs[0].shape() != replace(specs[0], thought=MTS(3)).shape()
