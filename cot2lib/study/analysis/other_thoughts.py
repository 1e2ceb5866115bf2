"""Accuracy of trained models that are fed other thoughts than in training: sharpened, pruned or sampled ones."""

from collections.abc import Sequence
from dataclasses import asdict

import pandas as pd

from cot2lib.decode import rules
from cot2lib.errors import SpecError
from cot2lib.study.analysis.passk import Stacks
from cot2lib.thoughts import Base, Rule
from cot2lib.training.data import stack_data
from cot2lib.training.evaluation import evaluate


def accuracies(models: Stacks, thoughts: Sequence[Rule]) -> pd.DataFrame:
    """Validation accuracy (share) of every run under each of some thought rules.

    Columns: `model`, what it is called; `sampler` and the fields of the rule; `seed`, `accuracy`.

    Raises:
        SpecError: without a rule.
    """
    if not thoughts:
        raise SpecError("no thought rules were given; give at least one temperature, threshold or K.")
    rows = []
    for model, (stack, specs) in models.items():
        data, seeds = stack_data(specs, stack.device), [spec.seed for spec in specs]
        held_out = data.held_out.real.sum(1).tolist()
        for thought in thoughts:
            found = evaluate(stack, data, seeds, rules(thought, specs[0].outputs))
            named = {"model": model, "sampler": type(thought).__name__, **asdict(thought)}
            for seed, a, b, inputs in zip(seeds, found["correct_a"], found["correct_b"], held_out):
                rows.append(named | {"seed": seed, "accuracy": (a + b) / inputs})
    return pd.DataFrame(rows)


def varied(table: pd.DataFrame, field: str) -> pd.DataFrame:
    """Rows of base thoughts in which `field` alone may differ from the default."""
    fixed = {name: value for name, value in asdict(Base()).items() if name != field}
    keep = table["sampler"] == Base.__name__
    for name, value in fixed.items():
        keep &= table[name] == value
    return table[keep]


def plain(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of base thoughts as they were trained."""
    found = table[table["sampler"] == Base.__name__]
    for name, value in asdict(Base()).items():
        found = found[found[name] == value]
    return found


def sampled(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of thoughts of K sampled tokens."""
    return table[table["sampler"] == "MTS"]
