"""Figures, tables and sentences of the chapter `budget`: how much of the search a model is shown."""

from itertools import pairwise

import pandas as pd
from matplotlib.figure import Figure

from cot2lib.specs import RunSpec
from cot2lib.study.claims.printed import claims, paper_value
from cot2lib.study.figures.curves import accuracy_at_end, accuracy_over_epochs, unique
from cot2lib.study.figures.style import BUDGET, TOKENS
from cot2lib.study.figures.words import describe_mean, gain, versus
from cot2lib.study.report import recipe


def paper_accuracy(budget: int, d_model: int) -> float | None:
    """The paper's accuracy (%) of a budget and dimension, where it gives one."""
    claim = f"budget-b{budget}-d{d_model}"
    return paper_value(claim) if claim in claims().index else None


def run_name(run: RunSpec) -> str:
    """What sentences call a run of a budget, whatever its seed."""
    known = run.columns()
    return f"{BUDGET.named(known['budget'])}, d = {known['d_model']}"


def path_name(run: RunSpec) -> str:
    """What sentences call a run that is shown part of a path, whatever its seed."""
    known = run.columns()
    return f"{known['task']}, {TOKENS.named(known['tokens'])}"


def accuracies(rows: pd.DataFrame) -> Figure:
    """Last-epoch accuracy by dimension and budget, a panel per profile."""
    return accuracy_at_end(rows, BUDGET, "d_model", "d = {}", paper_accuracy)


def accuracy_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracies (%) by budget and dimension: the paper's, and ours per profile."""
    table = []
    for d_model in sorted(unique(rows["d_model"])):
        for budget in sorted(unique(rows["budget"])):
            entry = {"d": d_model, "budget": BUDGET.named(budget), "paper": paper_accuracy(budget, d_model)}
            for profile in unique(rows["profile"]):
                entry[f"ours, {recipe(profile)}"] = describe_mean(shares(rows, profile, d_model, budget))
            table.append(entry)
    return pd.DataFrame(table)


def steps_up(rows: pd.DataFrame) -> pd.DataFrame:
    """What each larger budget adds to the next smaller one (points, paired by seed, 95 % interval)."""
    budgets, table = sorted(unique(rows["budget"])), []
    for profile in unique(rows["profile"]):
        for d_model in sorted(unique(rows["d_model"])):
            sides = {b: shares(rows, profile, d_model, b) for b in budgets}
            gains = {f"B = {low} to {high}": gain(sides[high], sides[low]) for low, high in pairwise(budgets)}
            if any(gains.values()):
                table.append({"recipe": recipe(profile), "d": d_model, **gains})
    return pd.DataFrame(table)


def shares(rows: pd.DataFrame, profile: str, d_model: int, budget: int) -> pd.Series:
    """Last-epoch accuracies (shares) of one cell, by seed."""
    cell = (rows["profile"] == profile) & (rows["d_model"] == d_model) & (rows["budget"] == budget)
    return rows[cell].set_index("seed")["last"]


def findings(rows: pd.DataFrame) -> list[str]:
    """One sentence per profile and dimension: the best budget, and what the whole tree adds to one path."""
    budgets, sentences = sorted(unique(rows["budget"])), []
    for profile in unique(rows["profile"]):
        for d_model in sorted(unique(rows["d_model"])):
            sides = {b: shares(rows, profile, d_model, b) for b in budgets}
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
    return accuracy_over_epochs(curves, TOKENS, "task", "{}")


def path_findings(rows: pd.DataFrame) -> list[str]:
    """One sentence per profile and digit range: which number of tokens is best, and by how much over the others."""
    sentences = []
    for (profile, task), cell in rows.groupby(["profile", "task"], sort=False):
        sides = {tokens: side.set_index("seed")["last"] for tokens, side in cell.groupby("tokens")}
        first, *others = sorted(sides, key=lambda tokens: -sides[tokens].mean())
        gaps = [f"{gain(sides[first], sides[other])} points over {TOKENS.named(other)}" for other in others]
        best = f"{TOKENS.named(first)} ({100 * sides[first].mean():.1f} %)"
        sentences.append(
            f"**{recipe(profile)}, {task}**: best is {best}" + (f", by {' and '.join(gaps)}." if gaps else ".")
        )
    return sentences


def path_table(rows: pd.DataFrame, optimum: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracies (%) by digit range and tokens shown, per profile, above what the simple optimum alone gives."""
    table, profiles = [], unique(rows["profile"])
    rule = optimum.set_index("task")["smallest minus largest (%)"]
    for task in unique(rows["task"]):
        for tokens in TOKENS.looks(rows["tokens"]):
            entry = {"task": task, "shown": TOKENS.named(tokens)}
            for profile in profiles:
                cell = (rows["profile"] == profile) & (rows["task"] == task) & (rows["tokens"] == tokens)
                entry[f"ours, {recipe(profile)}"] = describe_mean(rows.loc[cell, "last"])
            table.append(entry)
        always = {f"ours, {recipe(profile)}": f"{rule[task]:.1f}" for profile in profiles}
        table.append({"task": task, "shown": "always the smallest minus the largest", **always})
    return pd.DataFrame(table)
