"""The fused engine on reward: actions, points and losses are torch's.

`tests/test_contracts.py` asks of every kind of run by reward that gradients, curves and weights agree.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from builders import REWARDED, rewarded, start, weights_of
from parity import both, moved

from cot2lib.tasks import MNNS
from cot2lib.thoughts import MTS, Dirichlet

RECIPE = replace(REWARDED, steps=200, batch=8, lr=1e-4, weight_decay=0.01, evaluate_every=200)
DEEP = replace(start(), task=MNNS(1, 3, 4), model=replace(start().model, layers=2, heads=2))


THREE = MTS(3)


def run(thought=THREE, recipe=RECIPE, before=DEEP, **options):
    return replace(rewarded(thought=thought, recipe=recipe, **options), start=before)


@pytest.mark.parametrize("thought", [THREE, Dirichlet(4.0, floor=0.03)], ids=lambda rule: rule.label)
def test_actions_and_points_are_torchs(thought, monkeypatch):
    torch_, fused_ = map(moved, both(run(thought, replace(RECIPE, batch=32))))
    rollouts, traces = [], []
    original, made = torch_.decode, fused_.engine.traces
    monkeypatch.setattr(torch_, "decode", lambda *a, **o: rollouts.append(original(*a, **o)) or rollouts[-1])
    monkeypatch.setattr(fused_.engine, "traces", lambda: traces.append(made()) or traces[-1])
    torch_.advance(1), fused_.advance(1)
    (rollout,), (trace,) = rollouts, traces
    assert np.array_equal(trace.answers, rollout.answers[0].numpy())
    for step, action in enumerate(rollout.actions[:-1]):
        if isinstance(thought, MTS):
            assert np.array_equal(trace.tokens[step], action[0].numpy())
            continue
        most = trace.tokens.shape[-1]
        there = torch.from_numpy(np.arange(most) < trace.apart[step][:, None])
        drawn = torch.from_numpy(trace.points[step]).exp().float()
        assert torch.equal(there, action[0, :, most:-1].isfinite()) and 0 < there.float().mean() < 1
        assert torch.equal(torch.from_numpy(trace.tokens[step])[there], action[0, :, :most].long()[there])
        assert (drawn - action[0, :, most:].exp()).abs().max() < 1e-4


def test_losses_of_sixty_steps_are_torchs():
    """A rewarded answer more or less is 1/64 of a loss; rounding may turn a draw near the edge of two tokens."""
    one = run(recipe=replace(RECIPE, dropout=0.1), kl=0.1)
    torch_, fused_ = both(one, replace(one, start=replace(DEEP, seed=43)))
    torch_.advance(60), fused_.advance(60)
    apart = (torch_.losses - fused_.losses).abs()[:, :60]
    assert (apart > 0).float().mean() < 0.05 and apart.max() < 0.02
    assert torch_.losses[:, :60].std(1).min() > 0.003
    assert (weights_of(torch_, 1) - weights_of(fused_, 1)).abs().mean() < 1e-4


def test_points_from_the_weights_of_each_of_forty_steps_are_torchs():
    """One step at a time: rounding may swap two tokens of nearly one weight, and with them draws of a point."""
    torch_, fused_ = map(moved, both(run(Dirichlet(4.0), replace(RECIPE, lr=1e-3))))
    alike = 0
    for _ in range(40):
        fused_.stack.load_state_dict(torch_.stack.state_dict())
        torch_.advance(1), fused_.advance(1)
        expected, made = (torch.cat([g.flatten() for g in trainer.gradients]) for trainer in (torch_, fused_))
        near = (made - expected).abs().max() <= 1e-4 * expected.abs().max()
        alike += bool(near and torch_.losses[0, 0] == fused_.losses[0, 0])
    assert alike >= 36
