"""Every kind of training step runs on a device that holds no data: nothing is left on the host or read back."""

from dataclasses import replace

import pytest
import torch
from ragged import Ragged

from cot2lib.specs import GRPOSpec, Model, Recipe, RunSpec, Supervision
from cot2lib.specs.profiles import spec
from cot2lib.tasks import MNNS
from cot2lib.thoughts import MTS, Base, Dirichlet, Discrete, Gaussian, Gumbel
from cot2lib.training.supervised import build_stack

META = torch.device("meta")
TASK = MNNS(1, 3, 3)
RECIPE = Recipe(steps=6, batch=4, lr=1e-3, evaluate_every=6)
RAGGED = RunSpec(RECIPE, Ragged(), Model(8, 1, 1), Supervision(budget=1), Discrete())


def supervised(method, profile="paper", **options):
    return spec(
        method, profile, task=TASK, d_model=8, layers=1, heads=1, steps=60, batch=4, evaluate_every=60, **options
    )


def rewarded(thought, dropout=0.0, **options):
    return GRPOSpec(replace(RECIPE, dropout=dropout), supervised("discrete", "quick"), thought, group=4, **options)


RUNS = {
    "CSFT with dropout": supervised("cot2"),
    "discrete, whole sequence": supervised("discrete"),
    "no-CoT": supervised("no-cot"),
    "pauses": supervised("pause"),
    "COCONUT": supervised("coconut"),
    "COCONUT, zero slot": supervised("coconut-slot"),
    "self-fed": supervised("cot2", self_fed_from=0.0),
    "ragged": RAGGED,
    "MTS": rewarded(MTS(3)),
    "MTS, divergence": rewarded(MTS(3), kl=0.1),
    "MTS, one-sided dropout, two updates": rewarded(MTS(3), dropout=0.1, updates=2),
    "MTS, rising K": rewarded(MTS(3), first_k=1),
    "Dirichlet": rewarded(Dirichlet(20.0), ratio="product"),
    "Gumbel": rewarded(Gumbel(0.5), ratio="product"),
    "Gaussian": rewarded(Gaussian(0.2), ratio="product"),
    "a mask per rollout": rewarded(Base(), mask=0.1),
    "MTS, ragged": GRPOSpec(RECIPE, RAGGED, MTS(2), group=4),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_step_leaves_nothing_on_the_host(run, monkeypatch):
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda self: None)  # torch's own, whose fused form meta lacks
    trainer = run.trainer([run], lambda starts: build_stack(starts), META)
    trainer.phase = trainer.phase_at(run.recipe.steps - 1)
    before = {tensor.device for tensor in trainer.stack.state_dict().values()}
    trainer.take_step()
    assert before == {META} and {gradient.device for gradient in trainer.gradients} == {META}


def test_reading_a_value_back_is_noticed():
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.ones(1, device=META).item()
