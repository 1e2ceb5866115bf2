"""The paper's numbers and claims, what of ours stands beside each, and one rule for the verdict.

`data/claims.csv` holds one row per number or claim. `MEASURED` says which runs measure it. A number
is `reproduced` if it lies in our 95 % prediction interval for a mean of as many runs as the paper
took, and that interval, not cut to the metric's range, is narrower than five points either way; if
wider, `undecided`. A direction is `reproduced` if the interval of the difference, paired by seed,
excludes zero the stated way in every cell, `partly` in some; where it does so in none, `undecided` if
some cell's interval includes zero and is five points or wider either way, else `not reproduced`.
Verdicts need at least three seeds of the `paper` profile and rest on shipped records alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pandas as pd

from cot2lib import paths, profiles, runs
from cot2lib.errors import SpecError
from cot2lib.metrics import Values, mean_interval, paired_interval, prediction_interval
from cot2lib.profiles import SEEDS, spec
from cot2lib.specs import RunSpec

COLUMNS = (
    "id", "paper_value", "profile", "seeds", "last", "last_low", "last_high", "best", "split_half", "verdict",
    "command",
)  # fmt: skip
PROFILES = ("paper", "quick")
FEWEST_SEEDS = 3
WIDEST = 5.0
PERCENT = 100.0

Sweep = Callable[..., RunSpec]


@dataclass(frozen=True)
class Number:
    """A number of the paper: the spec that measures it (given profile and seed), and of how many runs it is a mean."""

    chapter: str
    spec: Sweep
    paper_runs: int
    scale: float = PERCENT
    top: float = 100.0


@dataclass(frozen=True)
class Direction:
    """A claim that one kind of run is above another: pairs of specs, and the columns they are compared in."""

    chapter: str
    cells: Sequence[tuple[Sweep, Sweep]]
    columns: Sequence[str]


def _csft(method: str, d_model: int) -> Sweep:
    return partial(spec, method, d_model=d_model)


def _budget(budget: int, d_model: int) -> Sweep:
    return _csft("discrete", d_model) if budget == 1 else partial(spec, "cot2", d_model=d_model, budget=budget)


MEASURED: dict[str, Number | Direction] = {
    "main-mnns-cot2": Number("csft", _csft("cot2", 32), 5),
    "main-mnns-discrete": Number("csft", _csft("discrete", 32), 5),
    "main-mnns-nocot": Number("csft", _csft("no-cot", 32), 5),
    **{f"budget-b{b}-d{d}": Number("csft", _budget(b, d), 5) for b in (1, 16) for d in (16, 24, 32)},
    "convergence-2l2h": Direction(
        "csft", [(_csft("cot2", d), _csft("discrete", d)) for d in (24, 32)], ("last", "curve_mean")
    ),
}


@cache
def claims() -> pd.DataFrame:
    """The paper's numbers and claims by id; columns source, task, setting, metric, paper_value, unit."""
    return pd.read_csv(paths.PACKAGE / "data" / "claims.csv", dtype=str).set_index("id")


def paper_value(claim: str) -> float:
    """The paper's number, in the claim's unit."""
    return float(claims().loc[claim, "paper_value"])


def recorded(make: Sweep, profile: str, seeds: Sequence[int] = SEEDS) -> pd.DataFrame:
    """Recorded rows of one cell, by seed; empty if there are none."""
    rows = runs.recorded([make(profile_name=profile, seed=seed) for seed in seeds])
    return rows.set_index("seed") if len(rows) else rows


# Verdicts


def number_verdict(values: Values, stated: float, paper_runs: int) -> str:
    """Verdict on a number, from our values in the same unit (percentage points)."""
    if len(values) < FEWEST_SEEDS:
        return f"undecided: {len(values)} of at least {FEWEST_SEEDS} seeds"
    interval = prediction_interval(values, paper_runs)
    if interval.half_width >= WIDEST:
        return "undecided: interval too wide"
    return "reproduced" if interval.low <= stated <= interval.high else "not reproduced"


def direction_verdict(cells: Sequence[tuple[Values, Values]]) -> str:
    """Verdict on a direction, from (above, below) values in per cent paired by seed, one pair per cell."""
    if min(len(above) for above, _ in cells) < FEWEST_SEEDS:
        return f"undecided: fewer than {FEWEST_SEEDS} seeds"
    gaps = [paired_interval(above, below) for above, below in cells]
    holds = [gap.low > 0 for gap in gaps]
    if any(holds):
        return "reproduced" if all(holds) else "partly"
    wide = any(gap.low <= 0 <= gap.high and gap.half_width >= WIDEST for gap in gaps)
    return "undecided: interval too wide" if wide else "not reproduced"


# The ledger


def ledger(seeds: Sequence[int] = SEEDS) -> pd.DataFrame:
    """One row per claim and profile (`COLUMNS`); values in the claim's unit, missing where not measured.

    Raises:
        SpecError: without seeds.
        RecordError: if a shipped record is unreadable.
    """
    if not seeds:
        raise SpecError("the ledger counts no seed; give at least one.")
    rows = [_row(claim, profile, seeds) for claim in claims().index for profile in PROFILES]
    return pd.DataFrame(rows, columns=COLUMNS).astype({"seeds": "Int64"})


def _row(claim: str, profile: str, seeds: Sequence[int]) -> dict:
    row = {"id": claim, "paper_value": claims().loc[claim, "paper_value"], "profile": profile}
    measure = MEASURED.get(claim)
    if measure is None:
        return row | {"seeds": 0, "verdict": "not run: its chapter is not written yet"}
    row["command"] = f"cot2 run {measure.chapter} --profile {profile}"
    fill = _number_row if isinstance(measure, Number) else _direction_row
    return row | fill(claim, measure, profile, seeds)


def _number_row(claim: str, measure: Number, profile: str, seeds: Sequence[int]) -> dict:
    rows = recorded(measure.spec, profile, seeds)
    if rows.empty:
        return _unmeasured(profile, bool(len(recorded(measure.spec, "quick", seeds))))
    values = rows["last"] * measure.scale
    interval = mean_interval(values, 0.0, measure.top)
    stated = number_verdict(values, paper_value(claim), measure.paper_runs)
    return {
        "seeds": len(rows),
        "last": interval.mean,
        "last_low": interval.low,
        "last_high": interval.high,
        "best": rows["best"].mean() * measure.scale,
        "split_half": rows["split_half"].mean() * measure.scale,
        "verdict": stated if profile == "paper" else "quick only",
    }


def _direction_row(claim: str, measure: Direction, profile: str, seeds: Sequence[int]) -> dict:
    cells = [_paired(above, below, profile, seeds) for above, below in measure.cells]
    if not all(len(above) for above, _ in cells):
        quick = [_paired(above, below, "quick", seeds) for above, below in measure.cells]
        return _unmeasured(profile, all(len(above) for above, _ in quick))
    compared = [(PERCENT * a[column], PERCENT * b[column]) for a, b in cells for column in measure.columns]
    verdict = direction_verdict(compared) if profile == "paper" else "quick only"
    return {"seeds": min(len(above) for above, _ in cells), "verdict": verdict}


def _paired(above: Sweep, below: Sweep, profile: str, seeds: Sequence[int]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Recorded rows of both sides for the seeds that both have."""
    sides = recorded(above, profile, seeds), recorded(below, profile, seeds)
    seeds = sides[0].index.intersection(sides[1].index)
    return sides[0].loc[seeds], sides[1].loc[seeds]


def _unmeasured(profile: str, quick: bool) -> dict:
    if profile == "paper" and quick:
        return {"seeds": 0, "verdict": "quick only"}
    return {"seeds": 0, "verdict": f"not run: no {profile} records yet"}


def describe(value: float, low: float, high: float) -> str:
    """`mean [low, high]` with one decimal, unbreakable; the mean alone where there is no interval."""
    text = f"{value:.1f}" if np.isnan(low) else f"{value:.1f} [{low:.1f}, {high:.1f}]"
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def verdict_counts(rows: pd.DataFrame) -> pd.DataFrame:
    """How many claims have which verdict; the paper profile's verdict speaks for a claim."""
    verdicts = rows[rows["profile"] == "paper"]["verdict"].str.partition(":")[0]
    return verdicts.value_counts().rename_axis("verdict").reset_index(name="claims")


def measured_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Measured rows as a reader wants them: what, the paper's value, ours, verdict."""
    known = rows[rows["seeds"] > 0].join(claims()[["task", "setting", "metric"]], on="id")
    ours = ["" if pd.isna(r.last) else describe(r.last, r.last_low, r.last_high) for r in known.itertuples()]
    return pd.DataFrame(
        {
            "claim": [f"`{claim}`" for claim in known["id"]],
            "setting": known["task"] + ", " + known["setting"],
            "paper": known["paper_value"],
            "profile": known["profile"],
            "seeds": known["seeds"],
            "ours": ours,
            "best": known["best"],
            "split half": known["split_half"],
            "verdict": known["verdict"],
        }
    )


def open_table(rows: pd.DataFrame, profile: str) -> pd.DataFrame:
    """Claims without a record under a profile, counted by task and reason; raises SpecError for an unknown profile."""
    profiles.profile(profile)
    waiting = rows[(rows["profile"] == profile) & (rows["seeds"] == 0)].join(claims()["task"], on="id")
    return waiting.groupby(["task", "verdict"], sort=False).size().reset_index(name="claims")
