"""Figures, tables and checks of the chapter `budget`: how much of the search a model is shown."""

from collections.abc import Sequence
from itertools import pairwise

import pandas as pd
import torch
from matplotlib.figure import Figure

from cot2lib import paper
from cot2lib.figures import curves as drawn
from cot2lib.figures.csft_numbers import describe_mean, gain
from cot2lib.tasks import MNNS


def budget_name(budget: int) -> str:
    """How figures and tables call a budget."""
    return f"B = {budget}"


def tokens_name(tokens: int) -> str:
    """How figures and tables call the number of path tokens shown."""
    return f"{tokens} tokens" if tokens > 1 else "1 token"


def with_series(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows or curves with the columns `shown` (the budget's name) and `path` (the tokens' name)."""
    ordered = rows.sort_values(["budget", "tokens"], ascending=[True, False], kind="stable")
    return ordered.assign(shown=ordered["budget"].map(budget_name), path=ordered["tokens"].map(tokens_name))


def paper_accuracy(shown: str, d_model: int) -> float | None:
    """The paper's accuracy (%) of a budget and dimension, where it gives one."""
    claim = f"budget-b{shown.removeprefix('B = ')}-d{d_model}"
    return paper.paper_value(claim) if claim in paper.claims().index else None


def accuracies(rows: pd.DataFrame) -> Figure:
    """Last-epoch accuracy by dimension and budget, a panel per profile."""
    return drawn.final_accuracies(with_series(rows), "shown", "d_model", "d = {}", paper_accuracy)


def accuracy_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracies (%) by budget and dimension: the paper's, and ours per profile."""
    rows, table = with_series(rows), []
    for d_model in sorted(drawn.unique(rows["d_model"])):
        for shown in drawn.unique(rows["shown"]):
            entry = {"d": d_model, "budget": shown, "paper": paper_accuracy(shown, d_model)}
            for profile in drawn.unique(rows["profile"]):
                cell = (rows["profile"] == profile) & (rows["d_model"] == d_model) & (rows["shown"] == shown)
                entry[f"ours, {profile}"] = describe_mean(rows.loc[cell, "last"])
            table.append(entry)
    return pd.DataFrame(table)


def steps_up(rows: pd.DataFrame) -> pd.DataFrame:
    """What each larger budget adds to the next smaller one (points, paired by seed, 95 % interval)."""
    budgets, table = sorted(drawn.unique(rows["budget"])), []
    for profile in drawn.unique(rows["profile"]):
        for d_model in sorted(drawn.unique(rows["d_model"])):
            sides = {b: _shares(rows, profile, d_model, b) for b in budgets}
            gains = {f"B = {low} to {high}": gain(sides[high], sides[low]) for low, high in pairwise(budgets)}
            table.append({"profile": profile, "d": d_model, **gains})
    return pd.DataFrame(table)


def _shares(rows: pd.DataFrame, profile: str, d_model: int, budget: int) -> pd.Series:
    """Last-epoch accuracies (shares) of one cell, by seed."""
    cell = (rows["profile"] == profile) & (rows["d_model"] == d_model) & (rows["budget"] == budget)
    return rows[cell].set_index("seed")["last"]


def findings(rows: pd.DataFrame) -> list[str]:
    """One sentence per profile and dimension: the best budget, and what the whole tree adds to one path."""
    budgets, sentences = sorted(drawn.unique(rows["budget"])), []
    for profile in drawn.unique(rows["profile"]):
        for d_model in sorted(drawn.unique(rows["d_model"])):
            sides = {b: _shares(rows, profile, d_model, b) for b in budgets}
            means = pd.Series({b: 100 * side.mean() for b, side in sides.items() if len(side)})
            if means.empty:
                continue
            low, high = means.index[0], means.index[-1]
            versus = f"; B = {high} is {gain(sides[high], sides[low])} points above B = {low}" if high > low else ""
            best = f"the best mean is that of B = {means.idxmax()} ({means.max():.1f} %)"
            sentences.append(f"**{profile}, d = {d_model}**: {best}{versus}.")
    return sentences


def path_learning(curves: pd.DataFrame) -> Figure:
    """Learning curves of discrete CoT shown all, some or one token of the path, a column per digit range."""
    return drawn.learning_curves(with_series(curves), "path", "task", "{}")


def path_findings(rows: pd.DataFrame) -> list[str]:
    """One sentence per profile and digit range: which number of tokens is best, and by how much over the others."""
    rows, sentences = with_series(rows), []
    for (profile, task), chosen in rows.groupby(["profile", "task"], sort=False):
        means = chosen.groupby("path")["last"].mean().sort_values(ascending=False)
        sides = {name: side.set_index("seed")["last"] for name, side in chosen.groupby("path")}
        gaps = [f"{gain(sides[means.index[0]], sides[name])} points over {name}" for name in means.index[1:]]
        best = f"{means.index[0]} ({100 * means.iloc[0]:.1f} %)"
        sentences.append(f"**{profile}, {task}**: best is {best}" + (f", by {' and '.join(gaps)}." if gaps else "."))
    return sentences


def path_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracies (%) by digit range and tokens shown, per profile."""
    rows, table = with_series(rows), []
    for task in drawn.unique(rows["task"]):
        for path in drawn.unique(rows["path"]):
            entry = {"task": task, "shown": path}
            for profile in drawn.unique(rows["profile"]):
                cell = (rows["profile"] == profile) & (rows["task"] == task) & (rows["path"] == path)
                entry[f"ours, {profile}"] = describe_mean(rows.loc[cell, "last"])
            table.append(entry)
    return pd.DataFrame(table)


def simple_optimum(task: MNNS) -> float:
    """Share (%) of the inputs whose answer is the sum of the smaller half of the digits (one more of an odd
    number) minus that of the larger: for five digits the three smallest minus the two largest."""
    ordered = task.digits.sort(dim=1).values
    larger = task.length // 2
    split = task.length - larger
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
                "digits": f"{length} x {low}-{high}",
                "smallest minus largest (%)": simple_optimum(task),
                "commonest answer (%)": commonest,
            }
        )
    return pd.DataFrame(table)


def checks(rows: pd.DataFrame, path_rows: pd.DataFrame, optimum: pd.DataFrame) -> dict[str, bool]:
    """The chapter's claims about the shipped records of the quick profile."""
    mean = lambda d_model, budget: _shares(rows, "quick", d_model, budget).mean()
    best = lambda d_model: max((1, 2, 4, 8, 16), key=lambda budget: mean(d_model, budget))
    paths = with_series(path_rows[path_rows["profile"] == "quick"]).groupby(["task", "path"])["last"].mean()
    share = optimum.set_index("digits")["smallest minus largest (%)"]
    return {
        "every budget above 1 is better than discrete CoT (quick, d = 24, 32)": all(
            mean(d_model, budget) > mean(d_model, 1) for d_model in (24, 32) for budget in (2, 4, 8, 16)
        ),
        "the whole tree is best at d = 24, a smaller budget at d = 16 (quick)": (
            best(24) == 16 and best(16) in (2, 4, 8)
        ),
        "of 11-19 nearly all optima are the three smallest minus the two largest": share["5 x 11-19"] > 95,
        "and the answer alone teaches 11-19 better than it does 5-13 (quick)": (
            paths["MNNS 5 x 11-19", "1 token"] > paths["MNNS 5 x 5-13", "1 token"]
        ),
    }
