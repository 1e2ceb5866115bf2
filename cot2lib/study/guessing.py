"""Rules that do not search, and what they score on MNNS."""

from collections.abc import Sequence

import pandas as pd
import torch

from cot2lib.tasks import MNNS


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


def optimum_table(ranges: Sequence[tuple[int, int, int]]) -> pd.DataFrame:
    """`simple_optimum`, and the share of the commonest answer, for (low, high, length)."""
    table = []
    for low, high, length in ranges:
        task = MNNS(low, high, length)
        commonest = 100 * float(torch.bincount(task.answers).max()) / task.size
        table.append(
            {
                "task": task.name,
                "smallest minus largest (%)": simple_optimum(task),
                "commonest answer (%)": commonest,
            }
        )
    return pd.DataFrame(table)
