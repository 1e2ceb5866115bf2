"""How far a run moves when it is trained once more, by another engine or on another processor.

Random numbers are the same everywhere. Sums in another order round differently. Rounding parts two supervised
trainings after some thousand steps, and policy gradients as soon as one sampled token turns. So a record promises its
first losses. Its results are one draw from a distribution.
"""

from dataclasses import fields

import pandas as pd

from cot2lib.metrics import paired_interval
from cot2lib.runs import records
from cot2lib.specs import GRPOSpec, Run
from cot2lib.study import sweeps
from cot2lib.study.report import PERCENT, RECIPES, describe

SIGNS = {
    "k": "K",
    "gamma": "\N{GREEK SMALL LETTER GAMMA}",
    "sigma": "\N{GREEK SMALL LETTER SIGMA}",
    "temperature": "\N{GREEK SMALL LETTER TAU}",
}
NAMES = ("cot2", "discrete", "no-cot")
MTS_K = 3


def trained_again(profile: str) -> list[Run]:
    """Runs that are trained once more: methods, and under `quick` policy gradients, whose steps are few enough."""
    specs: list[Run] = sweeps.methods(profile, d_models=(32,), names=NAMES)
    if profile == "quick":
        specs += sweeps.sampled(profile, d_models=(24,), ks=(MTS_K,))
        specs += sweeps.dirichlet(profile, gammas=(sweeps.BEST_GAMMA,))
    return specs


def kind(spec: Run) -> str:
    """A run in words: its method, or by reward the rule of its thoughts with every field that is not the default."""
    if not isinstance(spec, GRPOSpec):
        return spec.method
    told = ["reward", type(spec.thought).__name__]
    for field in fields(spec.thought):
        value = getattr(spec.thought, field.name)
        if value != field.default:
            shown = f"{value:g}" if isinstance(value, float) else str(value)
            told.append(f"{SIGNS.get(field.name, field.name)} = {shown}")
    return ", ".join(told)


def shipped(profile: str) -> pd.DataFrame | None:
    """The shipped measurements, or None. Runs have the names of today, whatever the record calls them."""
    rows = records.shipped_table(f"drift.{profile}.again")
    named = {run.id: kind(run) for run in trained_again(profile)}
    return None if rows is None else rows.assign(kind=rows["id"].map(named).fillna(rows["kind"]))


def both() -> pd.DataFrame:
    """`drift_table` of every recipe that was measured."""
    tables = {name: shipped(profile) for profile, name in RECIPES.items()}
    parts = [drift_table(rows).assign(recipe=name) for name, rows in tables.items() if rows is not None]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame({"runs": []})


def drift_table(rows: pd.DataFrame) -> pd.DataFrame:
    """For each kind: who trained the records and who trained again, and how many points apart they end, paired."""
    found = []
    for (name, _), part in rows.groupby(["kind", "device_again"], sort=False):
        ends = paired_interval(PERCENT * part["last_again"], PERCENT * part["last_recorded"])
        means = paired_interval(PERCENT * part["curve_mean_again"], PERCENT * part["curve_mean_recorded"])
        found.append(
            {
                "runs": name,
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
