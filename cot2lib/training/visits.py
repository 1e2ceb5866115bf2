"""Targets of training inputs as output tokens: CSFT's own, or a targets rule's labels and fed mixtures."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.supervision import hindsight_targets, steps_of
from cot2lib.targets import Visits
from cot2lib.tasks import Task
from cot2lib.training.settings import Run, Supervision

Outputs = Float[Tensor, "row output vocab"]


def answer_steps(task: Task, supervision: Supervision) -> Int[Tensor, " input"]:
    """Which of its outputs is each input's answer."""
    outputs = torch.tensor([0] + [len(supervision.output_steps(steps)) for steps in range(1, task.steps + 1)])
    return outputs[steps_of(task)] - 1


def formatted(
    task: Task, supervision: Supervision, targets: Float[Tensor, "row step vocab"], rows: Int[Tensor, " row"]
) -> Outputs:
    """Distributions of the output tokens that exist, with the end token where the format has one."""
    steps = len(supervision.output_steps(task.steps)) + supervision.eos
    outputs = torch.zeros(len(targets), steps, task.vocab_size)
    lengths = steps_of(task, rows)  # (row,)
    for length in lengths.unique().tolist():
        kept = supervision.output_steps(length)
        alike = slice(None) if task.lengths is None else lengths == length  # a mask would copy all
        outputs[alike, : len(kept)] = targets[alike][:, kept].float()
    if supervision.eos:
        last = answer_steps(task, supervision)[rows]  # (row,)
        outputs[torch.arange(len(outputs)), last + 1, task.eos_id] = 1.0
    return outputs


def hindsight_outputs(task: Task, supervision: Supervision) -> Outputs:
    """CSFT's targets of all inputs."""
    targets = hindsight_targets(task, supervision.budget, supervision.ties)
    return formatted(task, supervision, targets, torch.arange(task.size))


def shown_outputs(
    run: Run, rows: Int[Tensor, " row"], train: Int[Tensor, " train"], steps: Int[Tensor, " row"] | None = None
) -> tuple[Outputs, Outputs]:
    """A targets rule's labels and fed mixtures of the inputs that a run visits; one tensor where the rule has one.

    `train` are all inputs that the run trains on, `steps` the training steps of visits that draw anew.
    """
    task, supervision = run.task, run.supervision
    assert supervision.targets is not None
    visits = Visits(task, rows, train, random.run_keys([run.seed], Site.TARGETS), steps)
    scored, fed = supervision.targets(visits)
    outputs = formatted(task, supervision, scored, rows)
    return outputs, outputs if fed is scored else formatted(task, supervision, fed, rows)


def shown_tables(run: Run, train: Int[Tensor, " train"]) -> tuple[Outputs, Outputs]:
    """Fixed labels and fed mixtures of all inputs of the task; 0 for those that the run does not train on."""
    scored, fed = shown_outputs(run, train, train)
    table = _table(scored, run.task, train)
    return table, table if fed is scored else _table(fed, run.task, train)


def _table(outputs: Outputs, task: Task, rows: Int[Tensor, " row"]) -> Float[Tensor, "input output vocab"]:
    return outputs.new_zeros(task.size, *outputs.shape[1:]).index_copy_(0, rows, outputs)
