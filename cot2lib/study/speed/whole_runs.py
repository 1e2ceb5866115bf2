"""Whole runs by the fused engine beside the shipped rows, which the torch stack made.

Five seeds of CoT2 and of discrete CoT, d = 32. Both engines draw the same batches and dropout bits; sums in another
order part them after some thousand steps. Their distributions must agree: the mean accuracy over training, paired by
seed.
"""

import numpy as np
import pandas as pd

from cot2lib import runs
from cot2lib.errors import SpecError
from cot2lib.kit import paths
from cot2lib.specs.profiles import spec
from cot2lib.study import show, sweeps
from cot2lib.training.engines import unfit

WITHIN = 1.0  # points that the interval of the mean difference may reach to


def both(profile: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The shipped rows, and those that the fused engine trains anew here, into a store of its own.

    Raises:
        SpecError: where the engine does not work.
    """
    if reason := unfit(spec("cot2", "paper")):
        raise SpecError(reason)
    specs = sweeps.methods(profile, d_models=(32,), names=("cot2", "discrete"))
    with paths.storing(paths.store().parent / f"engines-{profile}"):
        trained = runs.run(specs, retrain=True, device="cpu")
    return runs.run(specs, missing="error"), trained


def compared(shipped: pd.DataFrame, trained: pd.DataFrame) -> pd.DataFrame:
    """One row for each method: how far apart the engines are over training and at its end, with 95 % intervals."""
    rows = pd.concat([trained.assign(engine="fused"), shipped.assign(engine="torch")])
    rows = rows.assign(training=100 * rows["curve_mean"], last=100 * rows["last"])
    found = {"method": rows["method"].unique()}
    for name in ("training", "last"):
        apart = show.gaps(rows, ["method"], "engine", "fused", "torch", name).set_index("method").loc[found["method"]]
        found |= {name: apart["mean"], f"{name}, low": apart["low"], f"{name}, high": apart["high"]}
    within = np.maximum(-found["training, low"], found["training, high"]) <= WITHIN
    return pd.DataFrame(found | {"seeds": apart["n"], "within 1 point": within}).reset_index(drop=True)
