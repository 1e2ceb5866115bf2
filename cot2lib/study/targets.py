"""Facts about targets and answers before any training, and a trained model's thoughts about one input."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from cot2lib.decode import decode, rules
from cot2lib.model import GPT2Stack
from cot2lib.specs import RunSpec
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import MNNS, Task


def target_entropies(spec: RunSpec) -> Float[np.ndarray, " step"]:
    """Exact mean entropy (nat) of the targets of each step over the run's validation inputs."""
    entropies = input_entropies(spec.task, spec.supervision.budget, spec.supervision.ties)
    return entropies[~spec.task.split(spec.split_seed)].mean(0).numpy()


@cache
def input_entropies(task: Task, budget: int | None = None, ties: str = "minus-first") -> Float[Tensor, "input step"]:
    """Exact entropy (nat) of the targets of every input, the same for all seeds."""
    return torch.special.entr(hindsight_targets(task, budget, ties)).sum(-1)


def mean_target_entropies(specs: Sequence[RunSpec]) -> Float[np.ndarray, " step"]:
    """`target_entropies`, mean over runs."""
    return np.mean([target_entropies(spec) for spec in specs], axis=0)


@torch.no_grad()
def made_and_wanted(
    stack: GPT2Stack, spec: RunSpec, row: int
) -> tuple[Float[Tensor, "step vocab"], Float[Tensor, "step vocab"]]:
    """Step distributions of one trained model on one input, fed its own thoughts, and the targets of that input."""
    task = spec.task
    prompt = task.prompt(spec.supervision.arrow)[None, row : row + 1]
    rollout = decode(stack, prompt, rules(spec.thought, task.steps))
    wanted = hindsight_targets(task, spec.supervision.budget, spec.supervision.ties, slice(row, row + 1))[0]
    return rollout.logits[0, 0].softmax(-1), wanted


def baselines(task: MNNS) -> pd.DataFrame:
    """Accuracy (%) of the best guesses that look at nothing, and at the parity of the digits' sum alone."""
    parity = task.digits.sum(1) % 2
    rules = {"always the commonest answer": torch.zeros_like(parity), "commonest answer of the sum's parity": parity}
    rows = []
    for name, group in rules.items():
        right = sum(int(torch.bincount(task.answers[group == g]).max()) for g in group.unique())
        rows.append({"rule": name, "all inputs (%)": 100 * right / len(parity)})
    return pd.DataFrame(rows)
