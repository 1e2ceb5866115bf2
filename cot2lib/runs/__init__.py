"""Runs: train what is missing, look up what is known, keep both.

`train` stacks, trains and loads, `lookup` reads rows and curves of the local store (`store`) and the shipped records
(`records`), `collect` moves them from one to the other; `taught` has targets that a trained run gives.
"""

from cot2lib.runs.lookup import by_profile, curves, recorded
from cot2lib.runs.taught import Taught
from cot2lib.runs.train import load, load_stack, make_trainer, run

__all__ = ["Taught", "by_profile", "curves", "load", "load_stack", "make_trainer", "recorded", "run"]
