"""The arrow that ends a prompt: runs of each recipe with the prompt of the other, and what was predicted of them.

The authors' recipe gives CoT2 no arrow, as the public code; discrete chain of thought (B = 1) always has one.
"""

from collections.abc import Sequence

import pandas as pd

from cot2lib import runs
from cot2lib.specs import profiles
from cot2lib.specs.profiles import TEN
from cot2lib.study import frame, predicted, sweeps

WITH_ARROW = "authors' recipe, with the arrow"
SIDES = ["profile", "d_model", "budget", "arrow"]
EXPERIMENTS = {  # a cell of `SIDES`, and the one that is subtracted
    "full-16": (("paper", 16, 16, "yes"), ("paper", 16, 16, "no")),
    "eight-16": (("paper", 16, 8, "yes"), ("paper", 16, 8, "no")),
    "four-16": (("paper", 16, 4, "yes"), ("paper", 16, 4, "no")),
    "two-16": (("paper", 16, 2, "yes"), ("paper", 16, 2, "no")),
    "full-24": (("paper", 24, 16, "yes"), ("paper", 24, 16, "no")),
    "best-eight": (("paper", 16, 16, "yes"), ("paper", 16, 8, "yes")),
    "best-four": (("paper", 16, 16, "yes"), ("paper", 16, 4, "yes")),
    "dimension": (("paper", 32, 16, "yes"), ("paper", 16, 16, "yes")),
    "quick-16": (("quick", 16, 16, "yes"), ("quick", 16, 16, "no")),
    "quick-24": (("quick", 24, 16, "yes"), ("quick", 24, 16, "no")),
}


def read(seeds: Sequence[int] = TEN, retrained: str | None = None) -> pd.DataFrame:
    """Return final accuracies (%) of the runs of both recipes with the arrow and without it (`arrow`: yes, no)."""
    named = ("budgets", "other_prompt")
    asked = {name: sweeps.distinct(*(sweeps.sweep(each, name, seeds) for each in named)) for name in profiles.PROFILES}
    arrow = {run.id: run.supervision.arrow for some in asked.values() for run in some}
    rows = pd.concat(
        runs.recorded(some, retrain=name == retrained).assign(profile=name) for name, some in asked.items()
    )
    return frame.tidy(rows).assign(arrow=rows["id"].map(arrow).map({True: "yes", False: "no"}))


def panels(rows: pd.DataFrame, both: pd.DataFrame) -> pd.DataFrame:
    """Add to the runs by each recipe those of the authors' recipe with the arrow, as a third one."""
    added = both.query("profile == 'paper' and arrow == 'yes'").assign(recipe=WITH_ARROW)
    joined = pd.concat([rows.astype({"recipe": object}), added])
    return joined.assign(recipe=frame.ordered(joined["recipe"], frame.ORDER["recipe"]))


def outcomes(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the outcome of each experiment, judged by the predictions (`predicted.judged`)."""
    return predicted.of_pairs(rows.set_index([*SIDES, "seed"])["last"], EXPERIMENTS, predicted.ARROW)
