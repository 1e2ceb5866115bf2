"""The fused engine on reward: losses and gradients of many steps are torch's.

`tests/test_contracts.py` asks of every kind of run by reward that gradients, curves and weights agree.
"""

from dataclasses import replace

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
