"""Time every way on one idle core, and write what the chapter on speed draws: `python benchmarks/record.py [--quick]`.

The three tables of `train.py` and `grpo.py` become the record `speed.quick.measured`, in ten minutes. With `--quick`
they come from fewer rounds, without the compiled ways.
"""

from collections.abc import Callable
from functools import partial

import pandas as pd
import torch
from grpo import prompts
from shared import QUICK_ROUNDS, ROUNDS, options
from train import MAIN, OWN, steps

from cot2lib.kit.provenance import provenance
from cot2lib.kit.timing import threads
from cot2lib.runs import records
from cot2lib.study import speed

TABLES: dict[str, Callable[[int, bool], pd.DataFrame]] = {
    speed.STEPS: partial(steps, model=MAIN),
    speed.OWN: partial(steps, model=OWN),
    speed.REWARD: prompts,
}


def measured(rounds: int, compiled: bool) -> pd.DataFrame:
    """All tables, with `what` is timed, and where, by which versions and when."""
    parts = []
    for what, table in TABLES.items():
        torch._dynamo.reset()  # so that no table finds the limit of compilations reached
        parts.append(table(rounds, compiled).assign(what=what))
    return pd.concat(parts).assign(**provenance(torch.device("cpu")))


if __name__ == "__main__":
    quick = options(__doc__.partition(":")[0]).parse_args().quick
    with threads(1):
        table = measured(QUICK_ROUNDS if quick else ROUNDS, not quick)
    print(records.ship_table("speed.quick.measured", table))
