"""The same runs by torch and by the fused engine, and what must agree between the two."""

import pytest
import torch
from builders import weights_of

from cot2lib import runs
from cot2lib.kit import random
from cot2lib.runs import store as stores
from cot2lib.runs import train
from cot2lib.training.engines import preferred
from cot2lib.training.fused import FusedTrainer
from cot2lib.training.supervised import SupervisedTrainer


def both(*specs, threads=1):
    """A torch trainer and a fused one of the same runs."""
    made = preferred(SupervisedTrainer(specs), threads)
    assert isinstance(made, FusedTrainer)
    return SupervisedTrainer(specs), made


def assert_company_changes_nothing(company, both=both):
    """Three runs together, on two threads, and the second one alone end with the same bits."""
    one, two, alone = both(*company)[1], both(*company, threads=2)[1], both(company[1])[1]
    for trainer in (one, two, alone):
        trainer.advance(20)
    assert two.threads == 2 and torch.equal(one.losses, two.losses) and torch.equal(one.losses[1], alone.losses[0])
    assert torch.equal(weights_of(one, 1), weights_of(alone))
    assert all(torch.equal(weights_of(one, run), weights_of(two, run)) for run in range(3))
    assert one.evaluate() == two.evaluate()


def moved(trainer):
    """A trainer whose weights are far from the start, where gradients are small."""
    noise = random.normal(random.run_keys([7]), weights_of(trainer).numel())[0].float() * 0.1
    sizes = [parameter[0].numel() for parameter in trainer.stack.parameters()]
    with torch.no_grad():
        for parameter, part in zip(trainer.stack.parameters(), noise.split(sizes)):
            parameter += part.view(parameter[0].shape)
    return trainer


def stop_at_a_checkpoint(monkeypatch, run, **options):
    """Train a run until its first checkpoint is written; the process dies there."""

    class Interrupt(Exception):
        pass

    def interrupted(trainer, made, original=stores.save_checkpoint):
        original(trainer, made)
        raise Interrupt

    monkeypatch.setattr(train, "CHECKPOINT_SECONDS", -1)
    with monkeypatch.context() as patch, pytest.raises(Interrupt):
        patch.setattr(stores, "save_checkpoint", interrupted)
        runs.run([run], device="cpu", **options)


def multipliers(fused, begin, end):
    """Dropout multipliers of the last step's lanes from `begin` to `end`."""
    noise, lanes = fused._noise(0, fused.specs[0].recipe.dropout), fused._works[0][0].lanes[begin:end]
    return torch.from_numpy((lanes.astype(int) >= noise.threshold) * noise.scale)


def gradients(trainer):
    """Those of the last step, by parameter."""
    names = [name for name, parameter in trainer.stack.named_parameters() if parameter.requires_grad]
    if not isinstance(trainer, FusedTrainer):
        return {name: gradient[0].flatten() for name, gradient in zip(names, trainer.gradients)}
    sizes = {name: parameter[0].numel() for name, parameter in trainer.stack.named_parameters()}
    flat = torch.from_numpy(trainer._works[0][0].gradient).split(list(sizes.values()))
    return {name: part for name, part in zip(sizes, flat) if name in names}


def assert_same_step(run, trainers=None):
    """Loss and every gradient of one step of a run, or of its `trainers` if the first step is not meant."""
    torch_, fused_ = map(moved, trainers or both(run))
    fused_.advance(1), torch_.advance(1)
    assert fused_.losses[0, 0] == pytest.approx(torch_.losses[0, 0].item(), rel=1e-5)
    expected = gradients(torch_)
    largest = max(gradient.abs().max() for gradient in expected.values())
    for name, gradient in gradients(fused_).items():
        apart = (gradient - expected[name]).abs().max()
        assert apart < 1e-5 * max(expected[name].abs().max(), 0.01 * largest), name
