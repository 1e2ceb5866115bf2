"""How far a run moves when it is trained once more, by another engine or on another processor.

Random numbers are the same everywhere. Sums in another order round differently. Rounding parts two supervised
trainings after some thousand steps, and policy gradients as soon as one sampled token turns. So a record promises its
first losses. Its results are one draw from a distribution.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pandas as pd

from cot2lib import runs
from cot2lib.kit import paths
from cot2lib.metrics import paired_interval
from cot2lib.runs import records
from cot2lib.specs import GRPOSpec, Run
from cot2lib.study import sweeps
from cot2lib.study.report import PERCENT, RECIPES, describe

GAMMA = "\N{GREEK SMALL LETTER GAMMA}"

COLUMNS = ("last", "curve_mean", "engine", "device", "stacked")
NAMES = ("cot2", "discrete")
MTS_K = 3


def trained_again(profile: str) -> list[Run]:
    """Runs that are trained once more: methods, and under `quick` policy gradients, whose steps are few enough."""
    specs: list[Run] = sweeps.methods(profile, d_models=(32,), names=NAMES)
    if profile == "quick":
        specs += sweeps.sampled(profile, d_models=(24,), ks=(MTS_K,))
        specs += sweeps.dirichlet(profile, gammas=(sweeps.BEST_GAMMA,))
    return specs


def measure(profile: str) -> pd.DataFrame:
    """Every run of `trained_again` as it is recorded and as it comes out here: a row each, `COLUMNS` of both."""
    specs = trained_again(profile)
    with own_store(profile):
        again = runs.run(specs, retrain=True, device="cpu")
    return beside(specs, runs.recorded(specs), again)


@contextmanager
def own_store(profile: str) -> Iterator[None]:
    """Inside the block finished stacks go to a folder beside the usual store, so that they never count as results."""
    before = os.environ.get("COT2_STORE")
    os.environ["COT2_STORE"] = str(paths.store().parent / f"engines-{profile}")
    try:
        yield
    finally:
        if before is None:
            del os.environ["COT2_STORE"]
        else:
            os.environ["COT2_STORE"] = before


def beside(specs: Sequence[Run], recorded: pd.DataFrame, again: pd.DataFrame) -> pd.DataFrame:
    """Rows of the runs that both tables hold: what they are, and each column as `_recorded` and as `_again`."""
    kinds = pd.DataFrame([{"id": spec.id, "kind": kind(spec), "seed": spec.seed} for spec in specs])
    rows = [table.set_index("id")[list(COLUMNS)].fillna({"engine": "torch"}) for table in (recorded, again)]
    return kinds.merge(rows[0].add_suffix("_recorded").join(rows[1].add_suffix("_again"), how="inner"), on="id")


def kind(spec: Run) -> str:
    """What a run is, in words."""
    if not isinstance(spec, GRPOSpec):
        return spec.method
    rule = spec.thought
    return f"reward, K = {rule.k}" if hasattr(rule, "k") else f"reward, {GAMMA} = {rule.gamma:g}"


def shipped(profile: str) -> pd.DataFrame | None:
    """What was measured and shipped, or None."""
    return records.shipped_table(f"drift.{profile}.again")


def both() -> pd.DataFrame:
    """`drift_table` of every recipe that was measured."""
    tables = {name: shipped(profile) for profile, name in RECIPES.items()}
    parts = [drift_table(rows).assign(recipe=name) for name, rows in tables.items() if rows is not None]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame({"runs": []})


def drift_table(rows: pd.DataFrame) -> pd.DataFrame:
    """For each kind: who trained the records and who trained again, and how many points apart they end, paired."""
    found = []
    for name, part in rows.groupby("kind", sort=False):
        ends = paired_interval(PERCENT * part["last_again"], PERCENT * part["last_recorded"])
        means = paired_interval(PERCENT * part["curve_mean_again"], PERCENT * part["curve_mean_recorded"])
        found.append(
            {
                "runs": name.replace("$\\gamma$", GAMMA),  # as records of November 2026 have it
                "seeds": len(part),
                "recorded by": made_by(part, "recorded"),
                "again by": made_by(part, "again"),
                "last epoch": describe(ends.mean, ends.low, ends.high),
                "over training": describe(means.mean, means.low, means.high, 2),
                "farthest": float((PERCENT * (part["last_again"] - part["last_recorded"])).abs().max()),
            }
        )
    return pd.DataFrame(found)


def made_by(part: pd.DataFrame, when: str) -> str:
    """Engine, processor and runs in a stack, each named once."""
    cores = part[f"device_{when}"].str.removeprefix("cpu (").str.removesuffix(")").str.replace("(R)", "")
    engines, sizes = part[f"engine_{when}"], part[f"stacked_{when}"].astype(str)
    named = [", ".join(values.unique()) for values in (engines, cores, sizes)]
    return f"{named[0]} on {named[1]}, stack of {named[2]}"
