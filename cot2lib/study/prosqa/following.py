"""Accuracy along training, and how often a model follows a moved edge.

A model may become right more often and yet follow the graph less, if it learns what the graphs of training have in
common. So a run is trained once more, and asked on its way: the same unseen questions, as they are, and with one edge
moved so that the other option becomes the target (`cot2lib.study.prosqa.rewritten`).
"""

import pandas as pd
import torch

from cot2lib.errors import SpecError
from cot2lib.runs import How, make_trainer, records
from cot2lib.specs import RunSpec
from cot2lib.specs.profiles import SEEDS
from cot2lib.study.graph_runs import BOTH
from cot2lib.study.graph_tests import Test, measured
from cot2lib.study.prosqa import questions, runs

QUESTIONS = 500  # that are asked at every point
EVALUATIONS = 2  # of the recipe's own, from one point to the next
COLUMNS = ["method", "seed", "step", "test", "inputs", "strict", "pair"]


def measure(profile: str) -> pd.DataFrame:
    """The rows of CoT2 and of discrete chain of thought, each by its best trial; it takes a training of each.

    Raises:
        SpecError: for the paper profile: the whole task has the quick recipe alone.
    """
    if profile != "quick":
        raise SpecError(f"following under {profile!r}: models are asked along the quick recipe; choose 'quick'.")
    return pd.concat([along(run) for run in runs.chosen(SEEDS[:1], BOTH)], ignore_index=True)


def along(run: RunSpec) -> pd.DataFrame:
    """Train a run on the CPU and ask it: a row for each point and test (`BEFORE`, `MOVED`), shares of 1."""
    unseen = questions.generated(run.task)
    rows, moved, _ = questions.moves(unseen)
    rows = questions.evenly(rows, QUESTIONS)
    tests = [Test(questions.BEFORE, unseen, rows), Test(questions.MOVED, moved, rows)]
    trainer, points = make_trainer([run], How(torch.device("cpu"))), []
    every = EVALUATIONS * run.recipe.evaluate_every

    def ask(steps: int) -> None:
        step = trainer.progress.step
        if step % every == 0 or step == run.recipe.steps:
            points.extend(measured(trainer.stack, [run], test).assign(step=step) for test in tests)

    trainer.train(ask)
    return pd.concat(points, ignore_index=True).assign(method=run.method, seed=run.seed)[COLUMNS]


def shipped() -> pd.DataFrame:
    """The table that `cot2 collect following` has shipped; empty where there is none."""
    return records.shipped_rows("following.quick.along", COLUMNS)
