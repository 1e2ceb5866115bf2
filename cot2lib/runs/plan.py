"""How a request is trained: which runs are stacked together, which shard has them, and about how long it takes."""

import time
from collections.abc import Sequence
from functools import cache

import torch

from cot2lib.runs import store
from cot2lib.specs import GRPOSpec, Run, RunSpec, by_shape
from cot2lib.training.engines import unfit
from cot2lib.training.settings import trained_once
from cot2lib.training.supervised import build_stack

RUNS_PER_STACK = {"cpu": 16, "cuda": 64}
SHARE_OF_SGEMM = {"cpu": 0.2, "cuda": 0.004}  # rough, for the forecast alone
SHARE_OF_FUSED = 0.5


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


def forecast(stacks: Sequence[Sequence[Run]], device: torch.device) -> float:
    """Roughly how many seconds training takes, from the model sizes and this machine's matrix product rate, which
    is measured once a process."""
    seconds, rate = 0.0, _rate_of_process(device)
    for specs in stacks:
        spec = specs[0]
        share = SHARE_OF_FUSED if trained_by(spec, device) == "fused" else SHARE_OF_SGEMM[device.type]
        seconds += operations(spec) * len(trained_once(specs)) / rate / share
    return seconds


def trained_by(spec: Run, device: torch.device) -> str:
    """The engine that trains a run on a device, "fused" or "torch"."""
    ours = isinstance(spec, RunSpec | GRPOSpec)
    return "fused" if device.type == "cpu" and ours and not unfit(spec) else "torch"


def operations(spec: Run) -> float:
    """Roughly the operations of a run's training: six for every weight at every position of every batch."""
    weights = 12 * spec.model.layers * spec.model.d_model**2 + spec.task.vocab_size * spec.model.d_model
    return 6.0 * weights * spec.positions * spec.recipe.batch * spec.recipe.steps


def parameters(run: Run) -> int:
    """Number of trained parameters of a run."""
    return _parameters(run.shape())


@cache
def _parameters(run: Run) -> int:
    return sum(parameter.numel() for parameter in build_stack([run]).parameters())


def sgemm_rate(device: torch.device, size: int = 1024) -> float:
    """Measured float32 matrix product rate in flop/s, the best of three after one that warms up."""
    a = torch.rand(size, size, device=device)
    rates = []
    for _ in range(4):
        began = time.perf_counter()
        (a @ a)[0, 0].item()
        rates.append(2 * size**3 / (time.perf_counter() - began))
    return max(rates[1:])


_rate_of_process = cache(sgemm_rate)


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
