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
from cot2lib.training.grpo import objective, replayed
from cot2lib.training.supervised import build_stack

TWO = MTS(2)


def test_one_sided_dropout_moves_the_ratio_at_equal_weights(monkeypatch):
    """The public code's case: the current policy drops out, the old one does not."""
    seen = noted(monkeypatch)
    trainer(rewarded(group=4, recipe=replace(REWARDED, dropout=0.1))).advance(1)
    ((new, old, *_),) = seen
    assert all((one - other).abs().max() > 1e-3 for one, other in zip(new, old))


def test_the_divergence_is_from_the_start(monkeypatch):
    """Its densities are under the start's weights, however far the policy has moved."""
    run, written = rewarded(group=4, kl=0.1), []
    begun = build_stack([run.start])
    seen, one = noted(monkeypatch), trainer(run, stack=begun.select([0]))
    with torch.no_grad():
        one.stack.transformer.wte.weight.mul_(3)
    roll_out = one.roll_out
    monkeypatch.setattr(one, "roll_out", lambda *given: written.append((*given, roll_out(*given))) or written[-1][-1])
    one.advance(1)
    ((new, *_, reference, _),), ((index, names, rollout),) = seen, written
    assert all(
        torch.equal(*pair)
        for pair in zip(reference, replayed(begun, TWO, one.data.shown(index, names), None, rollout))
    )
    assert all((one - other).abs().max() > 0.1 for one, other in zip(new, reference))


def test_mts_of_one_token_is_discrete_grpo():
    one, other = trainer(rewarded(thought=MTS(1))), trainer(rewarded(thought=Discrete(1.0)))
    one.advance(6), other.advance(6)
    assert torch.equal(weights_of(one), weights_of(other))
    assert not torch.equal(weights_of(one), weights_of(trainer(rewarded())))


def test_objective_by_hand():
    """One prompt, two rollouts of one thought of two tokens and an answer, all weighted alike."""
    new = [torch.tensor([[[[-1.0, -2.0]], [[-1.5, -0.5]]]]), torch.tensor([[[[-0.3]], [[-0.7]]]])]
    old = [torch.tensor([[[[-1.2, -1.9]], [[-1.5, -0.4]]]]), torch.tensor([[[[-0.3]], [[-0.9]]]])]
    gain, thought = torch.tensor([[1.0, -1.0]]), [0.1, -0.1]
    clip = lambda r, a: min(r * a, min(max(r, 0.9), 1.1) * a)
    for ratio, power in (("product", 1.0), ("geometric", 0.5)):
        made = [torch.tensor(power * change).exp().item() for change in thought]
        answers = [1.0, torch.tensor(0.2).exp().item()]
        expected = -sum(clip(r, a) for rs in (made, answers) for r, a in zip(rs, (1, -1))) / 4
        assert objective(new, old, gain, ratio, 0.1).item() == pytest.approx(expected, abs=1e-6)


def test_a_rising_k_ends_at_the_thoughts_own(monkeypatch):
    one = rewarded(thought=MTS(3), first_k=1)
    assert [one.thought_at(step).k for step in range(12)] == [1] * 4 + [2] * 4 + [3] * 4
    seen, trained = noted(monkeypatch), trainer(one)
    trained.train()
    assert [given[1][0].shape[-1] for given in seen] == [1] * 4 + [2] * 4 + [3] * 4
    flat, rising = trainer(rewarded(thought=MTS(1))), trainer(rewarded(thought=MTS(3), first_k=1))
    flat.advance(4), rising.advance(rising.ahead())
    assert rising.progress.step == 4 and torch.equal(weights_of(flat), weights_of(rising))


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
