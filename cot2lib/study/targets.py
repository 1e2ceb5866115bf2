"""Facts about targets and answers before any training."""

from functools import cache

import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import MNNS, Task


@cache
def input_entropies(task: Task, budget: int | None = None, ties: str = "minus-first") -> Float[Tensor, "input step"]:
    """Exact entropy (nat) of the targets of every input, the same for all seeds."""
    return torch.special.entr(hindsight_targets(task, budget, ties)).sum(-1)


def baselines(task: MNNS) -> pd.DataFrame:
    """Accuracy (%) of the best guesses that look at nothing, and at the parity of the digits' sum alone."""
    parity = task.digits.sum(1) % 2
    rules = {"always the commonest answer": torch.zeros_like(parity), "commonest answer of the sum's parity": parity}
    rows = []
    for name, group in rules.items():
        right = sum(int(torch.bincount(task.answers[group == g]).max()) for g in group.unique())
        rows.append({"rule": name, "all inputs (%)": 100 * right / len(parity)})
    return pd.DataFrame(rows)


def simple_optimum(task: MNNS) -> float:
    """Share (%) of the inputs whose answer is the sum of the smaller half of the digits (one more of an odd
    number) minus that of the larger: for five digits the three smallest minus the two largest."""
    ordered = task.digits.sort(dim=1).values
    split = task.length - task.length // 2
    guess = ordered[:, :split].sum(1) - ordered[:, split:].sum(1)
    return float(100 * (guess == task.answers).double().mean())
