"""Which engine trains: the fused one where it applies, on a CPU, and torch everywhere else."""

import sys
from functools import cache

import torch

from cot2lib.errors import brief
from cot2lib.training.fused import FusedTrainer
from cot2lib.training.grpo import GRPOTrainer
from cot2lib.training.replays import FusedReplay
from cot2lib.training.settings import Run
from cot2lib.training.supervised import SupervisedTrainer
from cot2lib.training.trainer import StackTrainer

WIDTH, HEAD_WIDTH = 8, 4  # what d and d / h are multiples of


def preferred(trainer: StackTrainer, threads: int | None = None) -> StackTrainer:
    """The trainer of the same runs that uses the fused engine, on a CPU where there is one; else `trainer` itself.

    Teacher-forced runs are the engine's altogether. Of policy gradients it replays the rollouts. Where the engine
    should take over but cannot, a line on stderr says why.

    Args:
        trainer: the torch trainer, not begun.
        threads: how many runs are computed at a time; None for as many as torch has threads, of replays one.
    """
    forced = type(trainer) is SupervisedTrainer and trainer.spec.supervision.feeding == "teacher"
    policy = type(trainer) is GRPOTrainer and not trainer.recipe.dropout
    if not (forced or policy) or trainer.device.type != "cpu":
        return trainer
    if reason := unfit(trainer.spec):
        _say(f"torch trains here: {reason}")
        return trainer
    if forced:
        return FusedTrainer(trainer.specs, trainer.stack, trainer.data, threads or torch.get_num_threads())
    trainer.engine, trainer.replayed = "torch, fused replay", FusedReplay(trainer, threads or 1)
    return trainer


@cache
def _say(line: str) -> None:
    """Once a process."""
    print(line, file=sys.stderr)


def unfit(spec: Run) -> str | None:
    """Why the engine cannot train models of a run's shape, or nothing at all here; None if it can."""
    width, heads = spec.model.d_model, spec.model.heads
    if width % WIDTH or width // heads % HEAD_WIDTH:
        return f"the fused engine needs d in eights and heads in fours, not d={width} with {heads} heads."
    try:
        from cot2lib.fast import forward, step  # noqa: F401
    except ImportError as error:
        return f"the fused engine needs Numba ({error}); pip install 'cot2lib[fast]'."
    except Exception as error:  # say a cache that cannot be written
        return f"the fused engine does not work here ({brief(error)})."
