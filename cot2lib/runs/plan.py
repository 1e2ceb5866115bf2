"""How a request is trained: which runs are stacked together, and which shard has them."""

from collections.abc import Sequence
from functools import cache

import torch

from cot2lib.runs import store
from cot2lib.specs import Run, by_shape
from cot2lib.training.settings import trained_once
from cot2lib.training.supervised import build_stack

RUNS_PER_STACK = {"cpu": 16, "cuda": 64}


def plan(specs: Sequence[Run], device: torch.device, most: int | None = None) -> list[list[Run]]:
    """Stacks the request is trained in: trainings of one shape, learning rates together, at most so many each; with
    every training all its runs."""
    most = most or RUNS_PER_STACK[device.type]
    runs: dict[Run, list[Run]] = {}
    for spec in dict.fromkeys(specs):
        runs.setdefault(spec.training, []).append(spec)
    stacks = []
    for group in by_shape(trained_once(specs)):
        group = sorted(group, key=lambda spec: spec.recipe.lr)
        parts = -(-len(group) // most)
        size = -(-len(group) // parts)
        together = [group[first : first + size] for first in range(0, len(group), size)]
        stacks += [[run for spec in some for run in runs[spec.training]] for some in together]
    return stacks


@cache
def parameters(run: Run) -> int:
    return sum(parameter.numel() for parameter in build_stack([run]).parameters())


def stacks_of_shard(
    specs: Sequence[Run], absent: set[str], device: torch.device, shard: tuple[int, int], most: int | None = None
) -> list[list[Run]]:
    """This shard's stacks: those that a checkpoint has begun, as they are, then what else is absent.

    Who trains what follows from the request alone, however far other shards are: each run has an owner, and a
    checkpoint goes on with the owner of its first absent run.
    """
    planned = plan(specs, device, most)
    owner = {spec.id: place % shard[1] for place, stack in enumerate(planned) for spec in stack}
    begun = store.begun(absent)
    taken = {spec.id for stack in begun for spec in stack}
    first = lambda stack: next(spec.id for spec in stack if spec.id in absent)
    resumed = [stack for stack in begun if owner[first(stack)] == shard[0]]
    rest = [[spec for spec in stack if spec.id in absent - taken] for stack in planned[shard[0] :: shard[1]]]
    return resumed + [stack for stack in rest if stack]
