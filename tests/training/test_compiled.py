"""Compiled training is eager training, at the smallest size that shows it.

In a process of its own, since shape checks cannot be compiled. One for both objectives, since a compiler's start takes
seconds. `make test` captures and differentiates as compiled training does, without C++; `make thorough` makes that
too, of supervised training: it takes half a minute.
"""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
sys.path[:0] = ["tests", "tests/training"]
import torch
import builders
import test_supervised
from cot2lib.tasks import MNNS
from cot2lib.training.supervised import SupervisedTrainer, build_stack
torch.set_num_threads(1)
whole = torch.compile
captured = lambda function, **options: whole(function, backend="aot_eager", **options)

torch.compile = whole if "whole" in sys.argv else captured
small = dict(task=MNNS(1, 4, 2), d_model=8, layers=1, heads=1)
odd = dict(embedding="cosine, frozen", recipe=dict(batch=7))
specs = [test_supervised.short(seed=seed, **small, **odd) for seed in (42, 43)]
eager, compiled = SupervisedTrainer(specs), SupervisedTrainer(specs, compile=True)
eager.train(), compiled.train()
print("supervised", (builders.weights_of(eager, 0) - builders.weights_of(compiled, 0)).abs().max().item())

torch.compile = captured
specs = [builders.rewarded(seed) for seed in (42, 43)]
stack = build_stack([one.start for one in specs])
eager, compiled = (builders.reward_trainer(*specs, stack=stack, compile=compile) for compile in (False, True))
eager.advance(6), compiled.advance(6)
print("rewarded", (builders.weights_of(eager, 1) - builders.weights_of(compiled, 1)).abs().max().item())
print("losses", (eager.losses - compiled.losses).abs().max().item())
"""


@pytest.mark.parametrize("how", ["captured", pytest.param("whole", marks=pytest.mark.thorough)])
def test_compiled_training_equals_eager_training(how):
    """Supervised with dropout, a batch that fills no draw and frozen embeddings; by reward with own thoughts."""
    root = Path(__file__).parents[2]
    out = subprocess.run([sys.executable, "-c", SCRIPT, how], cwd=root, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    differences = {name: float(value) for name, value in map(str.split, out.stdout.splitlines())}
    assert set(differences) == {"supervised", "rewarded", "losses"} and max(differences.values()) < 1e-4
