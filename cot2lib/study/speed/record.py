"""The tables of speed that ship, timed on one core and on one GPU; `benchmarks/` times anew."""

import pandas as pd

from cot2lib.errors import RecordError
from cot2lib.runs import records

STEPS, OWN, REWARD = "a training step", "a step on own thoughts", "a step of reward"  # `what` on one core
BASELINE = "Hugging Face loop"


def shipped() -> pd.DataFrame:
    """A row for each way and `what`, on one core, with `way`.

    `rate` is steps of one run, or prompts, in a second. `times` is how many times the loop's, a median over rounds.
    `share` is that of the best measured matrix product `sgemm` (Gflop/s), in percent, of the operations that our stack
    needs. `minutes` are those of a run by the authors' recipe.
    """
    return with_way(records.shipped_table("speed.quick.measured"))


def on_gpu() -> pd.DataFrame:
    """The rows of a GPU, with `way`: the loop and stacks, and the `memory` (GiB) that a stack took."""
    return with_way(records.shipped_table("rehearsal.gpu.measured")).dropna(subset="what")


def with_way(rows: pd.DataFrame | None) -> pd.DataFrame:
    """The rows with a column `way`: the engine, the stack, or one of the others.

    Raises:
        RecordError: where there are none.
    """
    if rows is None:
        raise RecordError("no speed is recorded here; `python benchmarks/train.py` measures and prints it.")
    return rows.assign(way=rows["variant"].str.extract(r"^(fused|stack)", expand=False).fillna("others"))
