"""Accuracy of trained models that are fed other thoughts than in training: sharpened, pruned or sampled ones."""

from collections.abc import Sequence
from dataclasses import asdict

import pandas as pd

from cot2lib.decode import rules
from cot2lib.errors import SpecError
from cot2lib.model import GPT2Stack
from cot2lib.specs import RunSpec
from cot2lib.study.frame import tidy
from cot2lib.thoughts import Base, Rule
from cot2lib.training.data import stack_data
from cot2lib.training.evaluation import evaluate


def accuracies(models: Sequence[tuple[GPT2Stack, Sequence[RunSpec]]], thoughts: Sequence[Rule]) -> pd.DataFrame:
    """Validation accuracy (%) of every run under each of some thought rules, equal ones once.

    Columns: `layers`, `d_model` and `seed` of the run; `sampler` and the fields of the rule; `accuracy`.

    Raises:
        SpecError: without a rule.
    """
    if not thoughts:
        raise SpecError("no thought rules were given; give at least one temperature, threshold or K.")
    rows = []
    for stack, specs in models:
        data, seeds = stack_data(specs, stack.device), [spec.seed for spec in specs]
        held_out = data.held_out.real.sum(1).tolist()
        for thought in dict.fromkeys(thoughts):
            found = evaluate(stack, data, seeds, rules(thought, specs[0].outputs))
            named = {"sampler": type(thought).__name__, **asdict(thought)}
            for spec, a, b, inputs in zip(specs, found["correct_a"], found["correct_b"], held_out):
                of_run = {"layers": spec.model.layers, "d_model": spec.model.d_model, "seed": spec.seed}
                rows.append(of_run | named | {"accuracy": (a + b) / inputs})
    return tidy(pd.DataFrame(rows))


def varied(rows: pd.DataFrame, *fields: str) -> pd.DataFrame:
    """Rows of base thoughts in which these fields alone may differ from the default."""
    keep = rows["sampler"] == Base.__name__
    for name, value in asdict(Base()).items():
        keep &= (name in fields) | rows[name].eq(value)
    return rows[keep]


def sampled(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of thoughts of K sampled tokens."""
    return rows[rows["sampler"] == "MTS"].astype({"k": int})
