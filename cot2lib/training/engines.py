"""Which engine trains: the fused one where it applies, on a CPU, and torch everywhere else."""

import sys
from functools import cache

import torch

from cot2lib import fast
from cot2lib.specs import Run
from cot2lib.thoughts import Base, Hidden, ZeroSlot
from cot2lib.training.flat import FlatTrainer
from cot2lib.training.fused import FusedTrainer
from cot2lib.training.fused_grpo import FusedGRPOTrainer, is_sampled
from cot2lib.training.grpo import GRPOTrainer, Terms
from cot2lib.training.supervised import SupervisedTrainer
from cot2lib.training.trainer import StackTrainer

WIDTH, HEAD_WIDTH = 8, 2  # d and d / h are multiples of these
KINDS: dict[type, type[FlatTrainer]] = {SupervisedTrainer: FusedTrainer, GRPOTrainer: FusedGRPOTrainer}
FED = (Base(), Hidden(), ZeroSlot())  # own thoughts that the engine trains on


def preferred(trainer: StackTrainer, threads: int | None = None) -> StackTrainer:
    """The fused trainer of runs on a CPU that the engine knows; else `trainer` itself.

    Where torch trains on a CPU, a line on stderr says why.

    Args:
        trainer: the torch trainer, not begun.
        threads: how many runs are computed at a time; None for as many as torch has threads.
    """
    if trainer.device.type != "cpu" or isinstance(trainer, FlatTrainer):
        return trainer
    kind = KINDS.get(type(trainer))
    reason = unfit(trainer.spec) if kind else f"the fused engine has no {type(trainer).__name__}."
    if kind is None or reason:
        _say(f"torch trains here: {reason}")
        return trainer
    return kind(trainer, threads or torch.get_num_threads())


@cache
def _say(line: str) -> None:
    print(line, file=sys.stderr)


def unfit(spec: Run) -> str | None:
    """Why the engine cannot train models of a run's shape, or nothing at all here; None if it can."""
    width, heads = spec.model.d_model, spec.model.heads
    if reason := unknown(spec):
        return f"the fused engine {reason}."
    if width % WIDTH or width // heads % HEAD_WIDTH:
        return f"the fused engine needs d in eights and heads of even width, not d={width} with {heads} heads."
    try:
        fast.library()
    except OSError as error:
        return f"the fused engine cannot be built here ({error})."
    return None


def unknown(spec: Run) -> str | None:
    """The part of a run's training that the engine does not do, or None."""
    if isinstance(spec, Terms):
        return None if is_sampled(spec.thought) else f"does not sample {spec.thought.label} in training"
    if spec.supervision.scoring != "shares":
        return "does not score sets"
    if spec.supervision.feeding != "teacher" and spec.thought not in FED:
        return f"does not feed {spec.thought.label} in training"
    return None
