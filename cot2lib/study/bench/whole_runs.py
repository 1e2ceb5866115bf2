"""Whole runs by the fused engine beside the shipped rows, which the torch stack made.

Five seeds of CoT2 and of discrete CoT, d = 32. Both engines draw the same batches and dropout bits; sums in another
order part them after some thousand steps. What must agree is the distribution: the mean accuracy over training, paired
by seed.
"""

import time

import pandas as pd

from cot2lib import runs
from cot2lib.errors import SpecError
from cot2lib.metrics import paired_interval
from cot2lib.specs.profiles import spec
from cot2lib.study import sweeps
from cot2lib.study.analysis.drift import NAMES, own_store
from cot2lib.study.bench import machine
from cot2lib.training.engines import unfit

WITHIN = 1.0  # points that the interval of the mean difference may reach to


def engines(quick: bool = False) -> str:
    """The fifth benchmark as printed text: trains the runs anew by the fused engine, into a store of its own.

    `quick` takes the quick profile, else it is the authors' recipe.

    Raises:
        SpecError: where the engine does not work.
    """
    if reason := unfit(spec("cot2", "paper")):
        raise SpecError(reason)
    profile = "quick" if quick else "paper"
    specs = sweeps.methods(profile, d_models=(32,), names=NAMES)
    with own_store(profile):
        began = time.perf_counter()
        trained = runs.run(specs, retrain=True, device="cpu")
        spent = time.perf_counter() - began
    table = compared(runs.run(specs, missing="error"), trained)
    return (
        f"{len(specs)} whole runs under {profile}, d = 32, by the fused engine; {machine.named()}. "
        f"{spent / 60:.1f} min here now, {trained['seconds'].sum() / 60:.1f} min of training in all.\n"
        f"Mean accuracy over training, in points, fused minus shipped, paired by seed.\n\n"
        f"{table.round(2).to_string(index=False)}"
    )


def compared(shipped: pd.DataFrame, trained: pd.DataFrame) -> pd.DataFrame:
    """One row for each method: how far apart the engines are over training and at its end, with 95 % intervals."""
    both = trained.merge(shipped, on=["method", "seed"], suffixes=("_fused", "_torch"), validate="one_to_one")
    rows = []
    for method, group in both.groupby("method", sort=False):
        row = {"method": method, "seeds": len(group)}
        for name, column in (("training", "curve_mean"), ("last", "last")):
            apart = paired_interval(100 * group[f"{column}_fused"], 100 * group[f"{column}_torch"])
            row |= {name: apart.mean, f"{name}, low": apart.low, f"{name}, high": apart.high}
        within = max(abs(row["training, low"]), abs(row["training, high"])) <= WITHIN
        rows.append(row | {"within 1 point": within})
    return pd.DataFrame(rows)
