"""Chapter `budget`: how much of the search to show, and a rule of one step that does not search."""

from collections.abc import Sequence

import pandas as pd
import torch

from cot2lib.study import show
from cot2lib.tasks import MNNS


def best(rows: pd.DataFrame) -> pd.DataFrame:
    """The budget with the best mean of each recipe and dimension, and that mean, `most`."""
    by = ["recipe", "d_model"]
    means = show.groups(rows, [*by, "budget"])["last"].mean().rename("most")
    return means[means.groupby(by, observed=True).idxmax()].reset_index()


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


def path_table(rows: pd.DataFrame, optimum: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracies (%) by digits and tokens shown, most first, above what the simple optimum alone gives."""
    table = show.cells(rows, ["task", "tokens"]).iloc[::-1]
    recipes = [name for name in table if name not in ("task", "tokens")]
    rule = optimum.set_index("task")["smallest minus largest (%)"].reindex(table["task"].unique())
    always = pd.DataFrame({name: rule.map("{:.1f}".format) for name in recipes}).reset_index()
    always["tokens"] = "always the smallest minus the largest"
    both = pd.concat([table, always]).sort_values("task", kind="stable", key=lambda task: task.astype(str))
    return both.rename(columns={"tokens": "shown"} | {name: f"ours, {name}" for name in recipes})
