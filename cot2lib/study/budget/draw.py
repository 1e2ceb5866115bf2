"""References beside the runs of the chapter `budget`: the paper's numbers, and a rule that does not search."""

from itertools import pairwise

import pandas as pd

from cot2lib.study import printed, show


def stated(budget: int, d_model: int) -> float | None:
    """The paper's accuracy (%) of a budget and dimension, where it gives one."""
    return printed.stated(f"budget-b{budget}-d{d_model}")


def steps_up(rows: pd.DataFrame) -> pd.DataFrame:
    """Points that each larger budget adds to the next smaller one, paired by seed, with 95 % intervals."""
    steps = [
        show.gaps(rows, ["recipe", "d_model"], "budget", high, low).assign(step=f"B = {low} to {high}")
        for low, high in pairwise(sorted(rows["budget"].unique()))
    ]
    if not steps:  # one budget alone
        return pd.DataFrame()
    found = pd.concat(steps)
    found["gain"] = [show.describe(*ends) for ends in zip(found["mean"], found["low"], found["high"])]
    table = found.pivot(index=["recipe", "d_model"], columns="step", values="gain")
    return show.headed(table[found["step"].unique()].fillna(""))


def best(rows: pd.DataFrame) -> pd.DataFrame:
    """The budget with the best mean of each recipe and dimension, and that mean, `most`."""
    by = ["recipe", "d_model"]
    means = show.groups(rows, [*by, "budget"])["last"].mean().rename("most")
    return means[means.groupby(by, observed=True).idxmax()].reset_index()


def path_table(rows: pd.DataFrame, optimum: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracies (%) by digits and tokens shown, most first, above what the simple optimum alone gives."""
    table = show.cells(rows, ["task", "tokens"]).iloc[::-1]
    recipes = [name for name in table if name not in ("task", "tokens")]
    rule = optimum.set_index("task")["smallest minus largest (%)"].reindex(table["task"].unique())
    always = pd.DataFrame({name: rule.map("{:.1f}".format) for name in recipes}).reset_index()
    always["tokens"] = "always the smallest minus the largest"
    both = pd.concat([table, always]).sort_values("task", kind="stable", key=lambda task: task.astype(str))
    return both.rename(columns={"tokens": "shown"} | {name: f"ours, {name}" for name in recipes})
