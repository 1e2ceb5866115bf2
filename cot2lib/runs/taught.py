"""Targets that another run gives: its likeliest token at every step is the label, and is fed.

A student of a discrete model sees the teacher's path and answer where other runs see the true ones. The paper has no
such runs.
"""

from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Int
from torch import Tensor

from cot2lib.decode import PROMPTS_AT_ONCE, decode, rules
from cot2lib.errors import SpecError
from cot2lib.runs.train import load
from cot2lib.specs import RunSpec
from cot2lib.targets import Shown, Targets, Visits


@dataclass(frozen=True)
class Taught(Targets):
    """The outputs of a run on the student's task; it is trained first where its weights are not here."""

    teacher: RunSpec

    def __call__(self, visits: Visits) -> Shown:
        if visits.task != self.teacher.task or visits.task.lengths is not None:
            raise SpecError("a teacher needs the task of its student, whose inputs must all have equally many steps.")
        tokens = _outputs(self.teacher)[visits.rows]  # (visit, step)
        given = torch.nn.functional.one_hot(tokens, visits.task.vocab_size).double()
        return Shown(given, given)

    @property
    def label(self) -> str:
        return f"Taught({self.teacher.method}, seed={self.teacher.seed})"


@lru_cache(maxsize=16)
@torch.no_grad()
def _outputs(teacher: RunSpec) -> Int[Tensor, "input step"]:
    stack, steps = load(teacher), rules(teacher.thought, teacher.outputs)
    prompts, padding = teacher.task.prompt(teacher.supervision.arrow, teacher.supervision.pauses), teacher.task.padding
    parts = []
    for rows in torch.arange(len(prompts)).split(PROMPTS_AT_ONCE):
        left = None if padding is None else padding[rows][None]
        parts.append(decode(stack, prompts[rows][None], steps, padding=left).logits[0].argmax(-1))
    return torch.cat(parts)
