"""Costs of a step of reward for a language model, by how many of its weights are trained."""

import statistics
from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from cot2lib.errors import SpecError
from cot2lib.kit.provenance import resolve_device
from cot2lib.kit.timing import in_turns, ratio, threads
from cot2lib.llm import runs
from cot2lib.llm.settings import LanguageRun
from cot2lib.runs import records
from cot2lib.study.gsm8k.runs import pretrained

ROUNDS = 3
COLUMNS = ["trained", "weights", "seconds", "ratio"]


def measure(profile: str) -> pd.DataFrame:
    """`of_runs` for SmolLM2 as the chapter trains it, and with every weight.

    Raises:
        SpecError: for the paper profile, or if a package is missing.
    """
    if profile != "quick":
        raise SpecError(f"steps under {profile!r}: the paper trains another model; choose 'quick'.")
    last = pretrained()[0]
    return of_runs({f"the last {last.layers} layers": last, "every weight": replace(last, layers=0)}, ROUNDS)


def of_runs(asked: Mapping[str, LanguageRun], rounds: int) -> pd.DataFrame:
    """A row for each run: millions of weights that it trains, seconds of a step, and how many times the first's.

    Steps of the runs alternate, on one core; seconds and ratios are medians over `rounds`.
    """
    trainers = {name: runs.trainer_of(run, resolve_device("cpu")) for name, run in asked.items()}
    with threads(1):
        taken = in_turns({name: trainer.step for name, trainer in trainers.items()}, rounds)
    rows, first = [], next(iter(taken.values()))
    for name, seconds in taken.items():
        trained = [weight.numel() for weight in trainers[name].model.parameters() if weight.requires_grad]
        rows.append((name, sum(trained) / 1e6, statistics.median(seconds), ratio(seconds, first)))
    return pd.DataFrame(rows, columns=COLUMNS)


def shipped(profile: str) -> pd.DataFrame:
    """The table that `cot2 collect steps` has shipped; empty where there is none."""
    return records.shipped_rows(f"steps.{profile}.costs", COLUMNS)
