"""What a stack of supervised runs trains on and is evaluated on, as tensors on the device.

Each run has its own split and targets; the prompts are shared. Targets are kept once per distinct
(budget, ties), so a sweep over budgets holds a handful of tables and not one per run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.specs import RunSpec
from cot2lib.supervision import hindsight_targets


@dataclass(frozen=True)
class HeldOut:
    """Validation inputs of every run, padded to one length.

    Attributes:
        index: rows of the task's inputs, (run, input); padding repeats row 0.
        real: which entries are not padding.
        half: which belong to the second half of the validation classes.
    """

    index: Int[Tensor, "run input"]
    real: Bool[Tensor, "run input"]
    half: Bool[Tensor, "run input"]

    @property
    def sizes(self) -> list[list[int]]:
        """Inputs of each run in the first and the second half."""
        return [[int((r & ~h).sum()), int((r & h).sum())] for r, h in zip(self.real, self.half)]


@dataclass(frozen=True)
class StackData:
    """Tensors of one stack.

    Attributes:
        prompts: token ids of every input.
        padding: tokens on the left of each prompt that are padding, or None if there are none.
        outputs: target distributions of every distinct supervision (variant) and input.
        variant: which supervision each run uses.
        answers: answer token of every input.
        train: rows of the task's inputs each run trains on.
        held_out: what each run is evaluated on.
    """

    prompts: Int[Tensor, "input token"]
    padding: Int[Tensor, " input"] | None
    outputs: Float[Tensor, "variant input step vocab"]
    variant: Int[Tensor, " run"]
    answers: Int[Tensor, " input"]
    train: list[Tensor]
    held_out: HeldOut

    def batch(self, index: Int[Tensor, "run batch"]) -> tuple[Tensor, Tensor, Tensor | None]:
        """Prompts (run, batch, token), targets (run, batch, step, vocab) and padding (run, batch) of the rows."""
        return self.prompts[index], self.outputs[self.variant[:, None], index], self.padding_of(index)

    def padding_of(self, index: Int[Tensor, "run batch"]) -> Int[Tensor, "run batch"] | None:
        """Padding of the given rows."""
        return None if self.padding is None else self.padding[index]

    def order(self, seeds: Sequence[int], start: int, steps: int, batch: int) -> Int[Tensor, "run step batch"]:
        """Rows of the batches of steps start..start+steps of every run's endless shuffled stream."""
        rows = [
            random.stream(random.run_keys([seed], Site.ORDER), items, start * batch, steps * batch)
            for seed, items in zip(seeds, self.train)
        ]
        return torch.stack(rows).view(len(rows), steps, batch).to(self.prompts.device)


def stack_data(specs: Sequence[RunSpec], device: torch.device | str) -> StackData:
    """The data of runs that share task, prompt format and output steps (only seed, budget and ties may differ).

    Raises:
        SpecError: if every position is to be scored and some are padding.
    """
    task, supervision = specs[0].task, specs[0].supervision
    variants = list(dict.fromkeys((spec.supervision.budget, spec.supervision.ties) for spec in specs))
    which = [variants.index((spec.supervision.budget, spec.supervision.ties)) for spec in specs]
    if task.padding is not None and supervision.loss_on == "sequence":
        raise SpecError(f"loss_on='sequence' needs prompts of one length; those of {task.name} are padded.")
    masks = [task.split(spec.seed) for spec in specs]
    return StackData(
        prompts=task.prompt(supervision.arrow, supervision.pauses).to(device),
        padding=None if task.padding is None else task.padding.to(device),
        outputs=torch.stack([_outputs(specs[which.index(v)]) for v in range(len(variants))]).to(device),
        variant=torch.tensor(which, device=device),
        answers=task.answer_ids.to(device),
        train=[mask.nonzero()[:, 0] for mask in masks],
        held_out=_held_out(task, masks, device),
    )


def _outputs(spec: RunSpec) -> Float[Tensor, "input step vocab"]:
    """Target distributions of the output tokens that exist, with the end token where the format has one."""
    task, supervision = spec.task, spec.supervision
    targets = hindsight_targets(task, supervision.budget, supervision.ties)
    targets = targets[:, supervision.output_steps(task.steps)]
    if supervision.eos:
        end = torch.zeros_like(targets[:, :1])
        end[..., task.eos_id] = 1.0
        targets = torch.cat([targets, end], dim=1)
    return targets.float()


def _held_out(task, masks: Sequence[Tensor], device) -> HeldOut:
    rows = [(~mask).nonzero()[:, 0] for mask in masks]
    halves = [_second_half(task.classes[r]) for r in rows]
    pad = lambda parts: torch.nn.utils.rnn.pad_sequence(parts, batch_first=True).to(device)
    return HeldOut(index=pad(rows), real=pad([torch.ones_like(r, dtype=torch.bool) for r in rows]), half=pad(halves))


def _second_half(classes: Int[Tensor, " input"]) -> Bool[Tensor, " input"]:
    """Every other class, in the order of their numbers."""
    return torch.unique(classes, return_inverse=True)[1] % 2 == 1
