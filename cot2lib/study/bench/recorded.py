"""The benchmarks as one table that ships: `cot2 collect speed` measures it, and the chapter `speed` shows it."""

import pandas as pd

from cot2lib.errors import SpecError
from cot2lib.kit.timing import threads
from cot2lib.runs import records
from cot2lib.study.bench import machine
from cot2lib.study.bench.policy_step import grpo_table
from cot2lib.study.bench.train_step import GROWTH, absent, growth_table, train_table

STEPS, GROWS, REWARD = "a training step", "what grows", "a step of reward"  # what is measured
NAMES = {  # columns of the record, by what the benchmarks call them
    "variant": "variant",
    "model": "variant",
    "run-steps/s": "rate",
    "fused": "rate",
    "prompts/s": "rate",
    "times the loop": "times",
    "times the stack": "times",
    "share of sgemm (%)": "share",
    "minutes per paper run": "minutes",
}
COLUMNS = ["what", *dict.fromkeys(NAMES.values()), "sgemm"]


def measure(profile: str) -> pd.DataFrame:
    """A row for each way of training and what is measured (`COLUMNS`), on one core.

    `rate` is steps of one run, or prompts, in a second. `times` is how many times the loop's, or the stack's where
    something grows, a median over rounds. `share` is that of the best measured matrix product `sgemm` (Gflop/s), in
    percent, of the operations that our stack needs. `minutes` are those of a run by the authors' recipe.

    Raises:
        SpecError: for the paper profile, as speed is measured once; or if a package is missing.
    """
    if profile != "quick":
        raise SpecError(f"speed under {profile!r}: it does not depend on the profile; choose 'quick'.")
    if reasons := absent():
        raise SpecError(" ".join(["the record of speed holds every way to train.", *reasons]))
    with threads(1):
        steps, _, sgemm = train_table(machine.ROUNDS, compiled=True)
        parts = {
            STEPS: steps,
            GROWS: growth_table(machine.QUICK_ROUNDS, list(GROWTH), sgemm),
            REWARD: grpo_table(machine.ROUNDS, compiled=True)[0],
        }
    named = [part.rename(columns=NAMES).assign(what=what, sgemm=sgemm / 1e9) for what, part in parts.items()]
    return pd.concat(named, ignore_index=True)[COLUMNS]


def shipped() -> pd.DataFrame:
    """The table that `cot2 collect speed` has shipped; empty where there is none."""
    return records.shipped_rows("speed.quick.measured", COLUMNS)
