"""A rule of one step that answers most inputs of five large digits, and what it scores."""

from collections.abc import Sequence

import pandas as pd
import torch

from cot2lib.tasks import MNNS


def simple_optimum(task: MNNS) -> float:
    """Share (%) of the inputs whose answer is the sum of the smaller half of the digits (one more of an odd
    number) minus that of the larger: for five digits the three smallest minus the two largest."""
    ordered = task.digits.sort(dim=1).values
    split = task.length - task.length // 2
    guess = ordered[:, :split].sum(1) - ordered[:, split:].sum(1)
    return float(100 * (guess == task.answers).double().mean())


def optimum_table(ranges: Sequence[tuple[int, int, int]]) -> pd.DataFrame:
    """`simple_optimum`, and the share of the commonest answer, for (low, high, length)."""
    tasks = [MNNS(*given) for given in ranges]
    commonest = [100 * float(torch.bincount(task.answers).max()) / task.size for task in tasks]
    columns = {"smallest minus largest (%)": map(simple_optimum, tasks), "commonest answer (%)": commonest}
    return pd.DataFrame({"task": [task.name for task in tasks]} | {name: [*each] for name, each in columns.items()})
