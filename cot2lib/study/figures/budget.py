"""Figures, tables and checks of the chapter `budget`: how much of the search a model is shown."""

from collections.abc import Sequence
from itertools import pairwise

import pandas as pd
import torch
from matplotlib.figure import Figure

from cot2lib.study.claims.budgets import simple_optimum
from cot2lib.study.claims.printed import claims, paper_value
from cot2lib.study.claims.rules import direction_verdict
from cot2lib.study.figures import curves as drawn
from cot2lib.study.figures.csft_numbers import describe_mean, gain, versus
from cot2lib.study.report import recipe
from cot2lib.tasks import MNNS


def budget_name(budget: int) -> str:
    """How figures and tables call a budget."""
    return f"B = {budget}"


def tokens_name(tokens: int) -> str:
    """How figures and tables call the number of path tokens shown."""
    return f"{tokens} tokens" if tokens > 1 else "1 token"


BUDGETS = (1, 2, 4, 8, 16)


def with_series(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows or curves with the columns `shown` (the budget's name) and `path` (the tokens' name)."""
    ordered = rows.sort_values(["budget", "tokens"], ascending=[True, False], kind="stable")
    return ordered.assign(shown=ordered["budget"].map(budget_name), path=ordered["tokens"].map(tokens_name))


def paper_accuracy(shown: str, d_model: int) -> float | None:
    """The paper's accuracy (%) of a budget and dimension, where it gives one."""
    claim = f"budget-b{shown.removeprefix('B = ')}-d{d_model}"
    return paper_value(claim) if claim in claims().index else None


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
                entry[f"ours, {recipe(profile)}"] = describe_mean(rows.loc[cell, "last"])
            table.append(entry)
    return pd.DataFrame(table)


def steps_up(rows: pd.DataFrame) -> pd.DataFrame:
    """What each larger budget adds to the next smaller one (points, paired by seed, 95 % interval)."""
    budgets, table = sorted(drawn.unique(rows["budget"])), []
    for profile in drawn.unique(rows["profile"]):
        for d_model in sorted(drawn.unique(rows["d_model"])):
            sides = {b: _shares(rows, profile, d_model, b) for b in budgets}
            gains = {f"B = {low} to {high}": gain(sides[high], sides[low]) for low, high in pairwise(budgets)}
            if any(gains.values()):
                table.append({"recipe": recipe(profile), "d": d_model, **gains})
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
            gap = versus(sides[high], sides[low], "{} points above", "{} points below")
            rest = f" B = {high} is {gap} B = {low}." if high > low else ""
            best = f"the best mean is that of B = {means.idxmax()} ({means.max():.1f} %)."
            sentences.append(f"**{recipe(profile)}, d = {d_model}**: {best}{rest}")
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
        sentences.append(
            f"**{recipe(profile)}, {task}**: best is {best}" + (f", by {' and '.join(gaps)}." if gaps else ".")
        )
    return sentences


def path_table(rows: pd.DataFrame, optimum: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracies (%) by digit range and tokens shown, per profile, above what the simple optimum alone gives."""
    rows, table = with_series(rows), []
    rule = optimum.set_index("digits")["smallest minus largest (%)"]
    for task in drawn.unique(rows["task"]):
        for path in drawn.unique(rows["path"]):
            entry = {"task": task, "shown": path}
            for profile in drawn.unique(rows["profile"]):
                cell = (rows["profile"] == profile) & (rows["task"] == task) & (rows["path"] == path)
                entry[f"ours, {recipe(profile)}"] = describe_mean(rows.loc[cell, "last"])
            table.append(entry)
        always = f"{rule[task.removeprefix('MNNS ')]:.1f}"
        profiles = {f"ours, {recipe(profile)}": always for profile in drawn.unique(rows["profile"])}
        table.append({"task": task, "shown": "always the smallest minus the largest", **profiles})
    return pd.DataFrame(table)


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
    """The chapter's claims about the shipped records of the quick profile, as far as the cells are there."""
    cells = {(d, b): 100 * _shares(rows, "quick", d, b) for d in (24, 32) for b in BUDGETS}
    claims = {}
    if all(len(cell) for cell in cells.values()):
        pairs = [(cells[d, b], cells[d, 1]) for d in (24, 32) for b in BUDGETS[1:]]
        claims["every budget above 1 is better than discrete CoT (quick, d = 24, 32)"] = _above(pairs)
    share = optimum.set_index("digits")["smallest minus largest (%)"]
    claims["of 11-19 nearly all optima are the three smallest minus the two largest"] = bool(share["5 x 11-19"] > 95)
    paths = with_series(path_rows[path_rows["profile"] == "quick"])
    shown = {key: 100 * part.set_index("seed")["last"] for key, part in paths.groupby(["task", "path"])}
    for task in drawn.unique(paths["task"]):
        sides = [shown.get((task, path)) for path in ("5 tokens", "3 tokens", "1 token")]
        if all(side is not None and len(side) for side in sides):
            means = [side.mean() for side in sides]
            claims[f"of {task} the whole path has the best mean, the answer alone the worst (quick)"] = (
                means == sorted(means, reverse=True)
            )
    return claims


def _above(pairs: Sequence[tuple[pd.Series, pd.Series]]) -> bool:
    """Whether the ledger's rule finds the first above the second in every pair."""
    return direction_verdict(pairs) == "reproduced"
