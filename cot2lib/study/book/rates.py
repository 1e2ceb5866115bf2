"""Rates of training: hours of one core or GPU for a run, of recorded runs or measured on this machine.

A run is told at the median rate of recorded runs of its kind, of the same chapter if it has any, by the engine that
would train it. A rate is hours for an operation (`cot2lib.runs.plan.operations`).
"""

import statistics
from collections.abc import Sequence

import pandas as pd
import torch

from cot2lib import runs
from cot2lib.kit import timing
from cot2lib.runs.plan import operations, trained_by
from cot2lib.specs import Run
from cot2lib.study.book import all_runs
from cot2lib.study.report import RECIPES
from cot2lib.study.samples import SECONDS_AN_HOUR
from cot2lib.study.samples import hours as spent_hours
from cot2lib.training.engines import preferred
from cot2lib.training.settings import trained_once
from cot2lib.training.supervised import build_stack

CPU = torch.device("cpu")
ROUNDS, STEPS = 1, 10  # timed turns after one that warms up, and at most so many steps in one


def recorded(specs: Sequence[Run], device: torch.device = CPU) -> pd.DataFrame:
    """Kind, hours and rate of runs that were recorded on such a device by the engine that trains them there today.

    Where that engine has none of them yet, the rows are those of another one.
    """
    known, asked = runs.recorded(specs), {run.id: run for run in specs}
    rows = [
        {"kind": _kind(run), "engine": engine, "hours": spent, "rate": spent / operations(run)}
        | {"today": engine == trained_by(run, device)}
        for run, engine, name, spent in zip(
            known["id"].map(asked), known["engine"].fillna("torch"), known["device"], spent_hours(known)
        )
        if name.startswith("cpu") == (device.type == "cpu")
    ]
    table = pd.DataFrame(rows, columns=["kind", "engine", "hours", "rate", "today"])
    return (table[table["today"].astype(bool)] if table["today"].any() else table).drop(columns="today")


def of_chapters(device: torch.device = CPU) -> pd.DataFrame:
    """`recorded` of all chapters by either recipe, with a column `chapter`."""
    asked = [(chapter, profile) for chapter in all_runs.SWEEPS for profile in RECIPES]
    tables = [recorded(all_runs.sweep(*one), device).assign(chapter=one[0]) for one in asked]
    return pd.concat([table for table in tables if len(table)] or tables[:1])


def hours(run: Run, chapter: str, known: pd.DataFrame, device: torch.device = CPU) -> float:
    """Hours of one core or GPU for a run, at the rate of the runs most like it.

    Args:
        run: which.
        chapter: whose runs count before those of others.
        known: rows of `of_chapters`.
        device: where it would be trained.
    """
    known = known[known["engine"] == trained_by(run, device)]
    alike, here = known["kind"] == _kind(run), known["chapter"] == chapter
    nearest = next((rows for rows in (known[alike & here], known[alike], known[here]) if len(rows)), known)
    return float(nearest["rate"].median()) * operations(run)


def _kind(run: Run) -> str:
    return f"{run.method}, {run.columns()['fed']}"


def measured(stack: Sequence[Run], device: torch.device, engine: str = "auto") -> float:
    """Hours of one core or GPU for a run of a stack: steps in the middle of training and evaluations, timed here.

    Runs by reward are timed from models that nothing trained.
    """
    trainer = stack[0].trainer(stack, build_stack, device)
    trainer = trainer if engine == "torch" else preferred(trainer, 1)
    recipe, middle = trainer.recipe, trainer.recipe.steps // 2
    trainer.progress.step = middle
    steps = min(STEPS, trainer.ahead())

    def turn() -> None:
        trainer.progress.step = middle
        trainer.advance(steps)

    with timing.threads(1):
        taken = timing.in_turns({"steps": turn, "evaluation": trainer.evaluate}, ROUNDS)
    one = {name: statistics.median(each) for name, each in taken.items()}
    whole = one["steps"] * recipe.steps / steps + one["evaluation"] * recipe.steps / recipe.evaluate_every
    return whole / len(trained_once(stack)) / SECONDS_AN_HOUR
