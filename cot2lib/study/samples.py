"""Samples: what was measured, by seed, for a profile. They read shipped records alone.

A sample is a function from a profile and seeds to rows by seed. Their columns hold what is measured, accuracies as
shares, and in `asked` the ids of all runs that were looked for. The functions of `cot2lib.study.sweeps`, which the
figures use too, say which runs it reads. Of a sweep's rows it keeps those whose columns have the values that it names.
"""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pandas as pd

from cot2lib import runs
from cot2lib.runs import finished, records
from cot2lib.specs import Run
from cot2lib.study import sweeps, targets
from cot2lib.study.frame import at
from cot2lib.study.sweeps import STEPS
from cot2lib.tasks import MNNS

SECONDS_AN_HOUR = 3600.0
ON_SPLIT = "csft one_split"  # chapters with the supervised runs on the paper's split, which is that of the first seed

Sample = Callable[[str, Sequence[int]], pd.DataFrame]
Sweep = Callable[[str, Sequence[int]], Sequence[Run]]


# From a sweep to rows by seed


def recorded(sweep: Sweep, **columns) -> Sample:
    """Rows of a sweep's recorded runs whose columns have these values; `hours` are those of one core or GPU."""
    return lambda profile, seeds: _rows(sweep(profile, seeds), columns)


def evaluated(sweep: Sweep, **columns) -> Sample:
    """`recorded`, with step entropies (nat) at the last evaluation, and at the first one as `entropy_t_before`.

    `entropy` is the mean over four steps, `lost` what the last evaluation lacks of the best.
    """

    def sample(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
        rows = _rows(sweep(profile, seeds), columns)
        return rows if rows.empty else _with_entropies(rows, _points(rows))

    return sample


def rewarded(sweep: Sweep) -> Sample:
    """`evaluated` runs of policy gradients, with `base_before`, `base_last`, `base_best`, `base_split_half` and
    `base_lost`: the same by base decoding, the first before any step."""

    def sample(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
        rows = evaluated(sweep)(profile, seeds)
        return rows if rows.empty else _with_base(rows, _points(rows))

    return sample


def tabled(table: pd.DataFrame, models: Sequence[Run], temperature: float, k: int) -> pd.DataFrame:
    """Rows by seed of some models in a table of `cot2lib.study.passk`, at one temperature and number of samples."""
    seeds = {run.id: run.seed for run in models}
    rows = table[table["k"] == k]
    rows = rows[np.isclose(rows["temperature"], temperature) & rows["id"].isin(seeds)]
    told = dict(seed=rows["id"].map(seeds), method=models[0].method, asked=" ".join(seeds))
    return rows.assign(**told).set_index("seed").sort_index()


def _rows(specs: Sequence[Run], columns: dict) -> pd.DataFrame:
    rows = runs.recorded(specs)
    if rows.empty:
        return rows
    asked = at(pd.DataFrame([spec.columns() | {"id": spec.id} for spec in dict.fromkeys(specs)]), **columns)
    return at(rows, **columns).assign(hours=hours, asked=" ".join(asked["id"])).set_index("seed")


def hours(rows: pd.DataFrame) -> pd.Series:
    """The time of each run in hours of one core or GPU; a run's share of its stack."""
    cores = rows["threads"].where(rows["device"].str.startswith("cpu"), 1)
    return rows["seconds"] * cores / SECONDS_AN_HOUR


def _points(rows: pd.DataFrame) -> pd.DataFrame:
    """Every evaluation of the runs in some rows, with their seed, in the order of steps."""
    points = records.shipped_curves(rows["id"])
    seeds = points["id"].map(dict(zip(rows["id"], rows.index)))
    return points.assign(seed=seeds).sort_values("step", kind="stable")


def _with_entropies(rows: pd.DataFrame, points: pd.DataFrame) -> pd.DataFrame:
    names, by_run = [f"entropy_{step}" for step in STEPS], points.groupby("seed")
    before, after = by_run.first()[names].add_suffix("_before"), by_run.last()[names]
    rows = rows.join(after).join(before)
    return rows.assign(entropy=after.mean(axis=1), lost=rows["best"] - rows["last"])


def held_out(rows: pd.DataFrame) -> pd.Series:
    """Inputs that each run is evaluated on."""
    return rows["inputs_a"] + rows["inputs_b"]


def _with_base(rows: pd.DataFrame, points: pd.DataFrame) -> pd.DataFrame:
    found = {}
    for seed, curve in points.groupby("seed"):
        a, b = curve["base_a"].to_numpy(), curve["base_b"].to_numpy()
        total = a + b
        found[seed] = dict(base_before=total[0], base_last=total[-1], base_best=total.max())
        found[seed]["base_split_half"] = finished.split_half(a, b)
    rows = rows.join(pd.DataFrame.from_dict(found, orient="index").div(held_out(rows), axis=0))
    return rows.assign(base_lost=rows["base_best"] - rows["base_last"])


# Supervised runs


@cache
def trained(method: str = "cot2", d_model: int = 32, layers: int = 2) -> Sample:
    """A method on four digits 1-9."""
    return recorded(lambda profile, seeds: sweeps.methods(profile, seeds, (d_model,), (method,), layers))


@cache
def single(method: str, d_model: int, layers: int = 1) -> Sample:
    """A model that the paper trained once: several initialisations on the split of that run."""
    return recorded(
        lambda profile, seeds: sweeps.on_split(sweeps.methods(profile, seeds, (d_model,), (method,), layers))
    )


@cache
def budget(b: int, d_model: int) -> Sample:
    """Budget B; B = 1 is discrete CoT."""
    return recorded(lambda profile, seeds: sweeps.budgets(profile, seeds, (d_model,), (b,)))


@cache
def fed(by: str, d_model: int) -> Sample:
    """CoT2 with four layers, fed in one of the ways of `sweeps.FEEDINGS`."""

    return recorded(sweeps.feeding, fed=by, d_model=d_model)


@cache
def shown(tokens: int, low: int, high: int) -> Sample:
    """Five digits, discrete CoT shown 5, 3 or 1 tokens of the path."""
    return recorded(sweeps.sparse, tokens=tokens, task=MNNS(low, high, 5).name)


@cache
def probe() -> Sample:
    """CoT2 with one layer, d = 32, whose step entropies the paper prints."""
    return evaluated(lambda profile, seeds: sweeps.methods(profile, seeds, (32,), ("cot2",), layers=1))


def entropy_less(step: int, **values: Callable[[int], float]) -> Sample:
    """The probe's step entropy less some values (nat) of each seed, in columns of their names."""

    def sample(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
        rows = probe()(profile, seeds)
        if rows.empty:
            return rows
        found = {name: [value(seed) for seed in rows.index] for name, value in values.items()}
        return rows.assign(**{name: rows[f"entropy_{step}"] - np.array(less) for name, less in found.items()})

    return sample


@cache
def target_entropy(step: int, seed: int) -> float:
    """Exact mean entropy (nat) of the full-budget targets of a step over the validation inputs of a seed."""
    return float(targets.input_entropies(MNNS())[~MNNS().split(seed), step - 1].mean())
