"""The tables of speed that ship: `cot2 collect speed` measures one; the other was measured once, on a GPU."""

import pandas as pd

from cot2lib.errors import RecordError, SpecError
from cot2lib.kit.timing import threads
from cot2lib.runs import records
from cot2lib.study.speed import reward, training
from cot2lib.study.speed.variants import QUICK_ROUNDS, ROUNDS

STEPS, OWN, GROWS, REWARD = "a training step", "a step on own thoughts", "what grows", "a step of reward"  # `what`
COLUMNS = ["what", "variant", "rate", "times", "share", "minutes", "sgemm"]


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
    if reasons := training.left_out(training.PEERS):
        raise SpecError(" ".join(["the record of speed holds every way to train.", *reasons]))
    with threads(1):
        parts = {STEPS: training.steps(ROUNDS, compiled=True)}
        sgemm = parts[STEPS]["sgemm"].iloc[0]
        parts[OWN] = training.own_steps(ROUNDS, compiled=True)
        parts[GROWS] = training.growth(QUICK_ROUNDS, list(training.GROWTH), sgemm)
        parts[REWARD] = reward.prompts(ROUNDS, compiled=True)
    return pd.concat(parts, names=["what"]).reset_index("what").assign(sgemm=sgemm)[COLUMNS].reset_index(drop=True)


def shipped() -> pd.DataFrame:
    """The table that `cot2 collect speed` has shipped, with `way`.

    Raises:
        RecordError: where there is none.
    """
    return with_way(records.shipped_table("speed.quick.measured"))


def rehearsals() -> pd.DataFrame:
    """The rows that were measured on a GPU, with `way` and `on`: the kind of device.

    Raises:
        RecordError: where there are none.
    """
    return with_way(records.shipped_table("rehearsal.gpu.measured")).dropna(subset="what").assign(on="GPU")


def with_way(rows: pd.DataFrame | None) -> pd.DataFrame:
    """The rows with a column `way`: the engine, the stack, or one of the others."""
    if rows is None:
        raise RecordError("no speed is recorded; `cot2 collect speed` measures it.")
    return rows.assign(way=rows["variant"].str.extract(r"^(fused|stack)", expand=False).fillna("others"))
