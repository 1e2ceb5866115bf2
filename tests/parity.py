"""The same runs by torch and by the fused engine, and what must agree between the two."""

import pytest
import torch
from builders import weights_of

from cot2lib import runs
from cot2lib.kit import random
from cot2lib.runs import store as stores
from cot2lib.thoughts import Dirichlet
from cot2lib.training.fused import preferred
from cot2lib.training.grpo import GRPOTrainer
from cot2lib.training.supervised import build_stack


def by_torch(*specs, device="cpu"):
    """A torch trainer of runs; those by reward start from weights that nothing trained."""
    return specs[0].trainer(specs, build_stack, torch.device(device))


def both(*specs, threads=1):
    """A torch trainer and a fused one of the same runs."""
    made = preferred(by_torch(*specs), threads)
    assert made.engine.name == "fused"
    return by_torch(*specs), made


def moved(trainer):
    """A trainer whose weights are far from the start, where gradients are small."""
    noise = random.normal(random.run_keys([7]), weights_of(trainer).numel())[0].float() * 0.1
    sizes = [parameter[0].numel() for parameter in trainer.stack.parameters()]
    with torch.no_grad():
        for parameter, part in zip(trainer.stack.parameters(), noise.split(sizes)):
            parameter += part.view(parameter[0].shape)
    return trainer


def stop_at_a_checkpoint(monkeypatch, *specs, **options):
    """Train runs until their first checkpoint is written; the process dies there."""

    class Interrupt(BaseException):
        pass

    def interrupted(entry, state, original=stores.Entry.save):
        original(entry, state)
        raise Interrupt

    with monkeypatch.context() as patch, pytest.raises(Interrupt):
        patch.setattr(stores, "pause", lambda spent: -1)
        patch.setattr(stores.Entry, "save", interrupted)
        runs.run(specs, device="cpu", **options)


def gradients(trainer):
    """Those of the last step, by parameter."""
    names = [name for name, parameter in trainer.stack.named_parameters() if parameter.requires_grad]
    return {name: gradient[0].flatten() for name, gradient in zip(names, trainer.gradients)}


def assert_same_step(run, step=0):
    """Loss and every gradient of a step of a run, of the last update where there are several.

    A point's density has logarithms of gamma functions, which torch computes in single precision.
    """
    torch_, fused_ = map(moved, both(run))
    for trainer in (torch_, fused_):
        trainer.progress.step = step
        trainer.advance(1)
    near = 3e-4 if isinstance(run.thought, Dirichlet) else 1e-5
    assert fused_.losses[0, 0] == pytest.approx(torch_.losses[0, 0].item(), rel=1e-5)
    if isinstance(torch_, GRPOTrainer):
        assert 0 < fused_.losses[0, 0] < 1, "some are rewarded"
        assert fused_.clip_fraction[0] == pytest.approx(torch_.clip_fraction[0].item(), abs=1e-6)
        assert fused_.optimizer_tensors()["0.step"] == torch_.optimizer_tensors()["0.step"] == run.updates
    expected = gradients(torch_)
    largest = max(gradient.abs().max() for gradient in expected.values())
    assert largest > 0
    for name, gradient in gradients(fused_).items():
        apart = (gradient - expected[name]).abs().max()
        assert apart < near * max(expected[name].abs().max(), 0.01 * largest), name
