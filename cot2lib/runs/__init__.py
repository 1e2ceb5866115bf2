"""Runs: train what is missing, look up what is known, keep both.

`train` stacks, trains and loads, `lookup` reads rows and curves, `store` is the local store,
`finished` has its tables and `records` the shipped ones; `taught` has targets that a trained run gives.
"""

from cot2lib.runs.lookup import by_profile, curves, recorded
from cot2lib.runs.taught import Taught
from cot2lib.runs.train import How, load, load_stack, load_starts, make_trainer, plan, run

__all__ = [
    "How", "Taught", "by_profile", "curves", "load", "load_stack", "load_starts", "make_trainer", "plan", "recorded",
    "run",
]  # fmt: skip
