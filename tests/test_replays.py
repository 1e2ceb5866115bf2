"""Rollouts replayed by the fused engine: logits, gradients and whole steps are the torch stack's."""

from dataclasses import replace

import pytest
import torch
from ragged import Ragged

from cot2lib.kit import random
from cot2lib.specs import GRPOSpec, Recipe
from cot2lib.specs.profiles import spec
from cot2lib.tasks import MNNS
from cot2lib.thoughts import MTS, Base, Dirichlet, Discrete, Gaussian
from cot2lib.training.engines import preferred
from cot2lib.training.grpo import GRPOTrainer
from cot2lib.training.replays import FusedReplay
from cot2lib.training.supervised import build_stack

pytest.importorskip("numba")

RECIPE = Recipe(steps=12, batch=5, lr=1e-2, evaluate_every=6)


TWO, TASK = MTS(2), MNNS(1, 4, 3)


def run_of(thought=TWO, seed=42, task=TASK, d_model=16, layers=2, **options):
    start = spec("discrete", task=task, d_model=d_model, layers=layers, heads=2, seed=seed)
    return GRPOSpec(options.pop("recipe", RECIPE), start, thought, **dict(group=3) | options)


def both(*specs, threads=1):
    """A torch trainer and one that replays by the engine, from the same weights, with drawn advantages.

    The weights are far from where gradients are small; such policies earn nothing.
    """
    stack = build_stack([run.start for run in specs])
    with torch.no_grad():
        for place, parameter in enumerate(stack.parameters()):
            draws = random.normal(random.run_keys([7 + place]), parameter.numel())[0]
            parameter += 0.1 * draws.view_as(parameter).float()
    torch_, fused = GRPOTrainer(specs, stack), preferred(GRPOTrainer(specs, stack), threads)
    assert isinstance(fused.replayed, FusedReplay)
    keys = random.run_keys([run.seed for run in specs], 3)
    for trainer in (torch_, fused):
        trainer.reward = lambda index, answers: (answers.float(), random.normal(keys, answers.shape[1]).float())
    return torch_, fused


def weights(trainer, run=0):
    return torch.cat([parameter[run].detach().flatten() for parameter in trainer.stack.parameters()])


@pytest.mark.parametrize(
    "run",
    [
        run_of(),
        run_of(Discrete(1.0), layers=1),
        run_of(Dirichlet(20.0), ratio="product", d_model=24),
        run_of(Gaussian(0.1), ratio="product"),
        run_of(kl=0.1, recipe=replace(RECIPE, batch=16), group=8),
        run_of(updates=2, ratio="per-draw"),
        run_of(task=Ragged(2)),
    ],
    ids=["mts", "discrete", "dirichlet", "gaussian", "divergence", "two updates", "ragged"],
)
def test_a_step_moves_every_parameter_as_torchs(run):
    torch_, fused = both(run)
    torch_.advance(1), fused.advance(1)
    assert torch.equal(torch_.losses, fused.losses), "the same rollouts"
    names = [name for name, _ in torch_.stack.named_parameters()]
    largest = max(gradient.abs().max() for gradient in torch_.gradients)
    assert largest > 1e-3
    for name, one, other in zip(names, torch_.gradients, fused.gradients):
        assert (one - other).abs().max() < 2e-5 * max(one.abs().max(), 0.01 * largest), name


def test_runs_side_by_side_on_threads_are_those_alone():
    specs = [run_of(seed=seed) for seed in (42, 43, 44)]
    _, together = both(*specs)
    _, threaded = both(*specs, threads=2)
    together.advance(6), threaded.advance(6)
    for place in range(3):
        assert torch.equal(weights(together, place), weights(threaded, place))
    assert not torch.allclose(weights(together, 0), weights(together, 1), atol=1e-3)
    assert together.engine == "torch, fused replay"


def test_one_sided_dropout_and_other_objectives_stay_torchs():
    dropping = run_of(recipe=replace(RECIPE, dropout=0.1))
    masked = run_of(Base(), mask=0.1)
    for run in (dropping, masked):
        made = run.trainer([run], lambda starts: build_stack(starts), torch.device("cpu"), False)
        assert preferred(made, 1) is made and made.engine == "torch"
        assert not isinstance(made.replayed, FusedReplay)
