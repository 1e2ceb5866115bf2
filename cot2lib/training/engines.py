"""Which engine trains: the fused one where it applies, on a CPU, and torch everywhere else."""

import sys
from functools import cache

import torch

from cot2lib.errors import brief
from cot2lib.training.fused import FusedTrainer
from cot2lib.training.settings import Run
from cot2lib.training.supervised import SupervisedTrainer
from cot2lib.training.trainer import StackTrainer

WIDTH, HEAD_WIDTH = 8, 2  # d and d / h are multiples of these


def preferred(trainer: StackTrainer, threads: int | None = None) -> StackTrainer:
    """The fused trainer of teacher-forced runs on a CPU; else `trainer` itself.

    Where the engine should take over but cannot, a line on stderr says why. Policy gradients stay torch's.

    Args:
        trainer: the torch trainer, not begun.
        threads: how many runs are computed at a time; None for as many as torch has threads.
    """
    forced = type(trainer) is SupervisedTrainer and trainer.spec.supervision.feeding == "teacher"
    if not forced or trainer.device.type != "cpu":
        return trainer
    if reason := unfit(trainer.spec):
        _say(f"torch trains here: {reason}")
        return trainer
    return FusedTrainer(trainer.asked, trainer.stack, trainer.data, threads or torch.get_num_threads())


@cache
def _say(line: str) -> None:
    """Once a process."""
    print(line, file=sys.stderr)


def unfit(spec: Run) -> str | None:
    """Why the engine cannot train models of a run's shape, or nothing at all here; None if it can."""
    width, heads = spec.model.d_model, spec.model.heads
    if width % WIDTH or width // heads % HEAD_WIDTH:
        return f"the fused engine needs d in eights and heads of even width, not d={width} with {heads} heads."
    try:
        from cot2lib.fast import forward, step  # noqa: F401
    except ImportError as error:
        return f"the fused engine needs Numba ({error}); pip install 'cot2lib[fast]'."
    except Exception as error:  # say a cache that cannot be written
        return f"the fused engine does not work here ({brief(error)})."
    return None
