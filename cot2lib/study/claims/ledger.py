"""The paper's numbers and claims, what of ours stands beside each, and one rule for the verdict.

`data/claims.csv` holds one row per number or claim; `cot2lib.study.claims.supervised` says what measures it. A number
is `reproduced` if it lies in our 95 % prediction interval for a mean of as many runs as the paper
took, and that interval, not cut to the metric's range, is narrower than five points (.05 nat for an
entropy) either way; if wider, `undecided`. A direction is `reproduced` if the interval of the
difference, paired by seed, excludes zero the stated way in every cell, `partly` in some; where it does
so in none, `undecided` if some cell's interval includes zero and is that wide, else `not reproduced`.
That something brings no gain is `reproduced` if every cell's interval of the gain ends below a fifth
of that width, `not reproduced` if one begins above zero, else `undecided`. That something reaches a value is
`reproduced` if in one way of reading the claim every run reaches it, else `not reproduced`. What counting or proof
settles `holds`, `holds if` something is added, or is `refuted`; a mere setting is `no claim`. Verdicts on runs need
at least three seeds of the `paper` profile and rest on shipped records alone.
"""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from cot2lib.errors import SpecError
from cot2lib.kit.fields import distinct
from cot2lib.metrics import Interval, Values, mean_interval, paired_interval, prediction_interval
from cot2lib.specs import profiles
from cot2lib.specs.profiles import SEEDS
from cot2lib.study.claims.policies import REWARDED
from cot2lib.study.claims.statements import STATEMENTS
from cot2lib.study.claims.supervised import SUPERVISED, WIDEST, Cell, Direction, Fact, NoGain, Number, Reaches, Sample

MEASURED = SUPERVISED | REWARDED

COLUMNS = (
    "id", "paper_value", "profile", "seeds", "last", "last_low", "last_high", "best", "split_half", "verdict",
    "command",
)  # fmt: skip
PROFILES = ("paper", "quick")
FEWEST_SEEDS = 3
GAIN = 0.2  # share of the widest interval that still counts as no gain
TOO_WIDE = "undecided: interval too wide"

Read = Callable[[Sample, str], pd.DataFrame]  # a sample's rows under a profile, for the seeds of the ledger


@cache
def claims() -> pd.DataFrame:
    """The paper's numbers and claims by id; columns source, task, setting, metric, paper_value, unit."""
    return pd.read_csv(Path(__file__).with_name("claims.csv"), dtype=str).set_index("id")


def paper_value(claim: str) -> float:
    """The paper's number, in the claim's unit."""
    return float(claims().loc[claim, "paper_value"])


# Verdicts


def number_verdict(values: Values, stated: float, paper_runs: int, widest: float = WIDEST) -> str:
    """Verdict on a number, from our values in the same unit."""
    if len(values) < FEWEST_SEEDS:
        return f"undecided: {len(values)} of at least {FEWEST_SEEDS} seeds"
    interval = prediction_interval(values, paper_runs)
    if interval.half_width >= widest:
        return TOO_WIDE
    return "reproduced" if interval.low <= stated <= interval.high else "not reproduced"


def direction_verdict(cells: Sequence[tuple[Values, Values]], widest: float = WIDEST) -> str:
    """Verdict on a direction, from (above, below) values paired by seed, one pair per cell."""
    if (gaps := _gaps(cells)) is None:
        return f"undecided: fewer than {FEWEST_SEEDS} seeds"
    holds = [gap.low > 0 for gap in gaps]
    if any(holds):
        return "reproduced" if all(holds) else "partly"
    wide = any(gap.low <= 0 <= gap.high and gap.half_width >= widest for gap in gaps)
    return TOO_WIDE if wide else "not reproduced"


def no_gain_verdict(cells: Sequence[tuple[Values, Values]], widest: float = WIDEST) -> str:
    """Verdict on a claim of no gain, from (said not to gain, other) values paired by seed, one pair per cell."""
    if (gaps := _gaps(cells)) is None:
        return f"undecided: fewer than {FEWEST_SEEDS} seeds"
    if any(gap.low > 0 for gap in gaps):
        return "not reproduced"
    return "reproduced" if all(gap.high < GAIN * widest for gap in gaps) else TOO_WIDE


def reaches_verdict(readings: Sequence[Values], value: float) -> str:
    """Verdict on a claim that something reaches a value, from the values of every run, one sequence per reading."""
    enough = [values for values in readings if len(values) >= FEWEST_SEEDS]
    if not enough:
        return f"undecided: fewer than {FEWEST_SEEDS} seeds"
    return "reproduced" if any(np.min(values) >= value for values in enough) else "not reproduced"


def _gaps(cells: Sequence[tuple[Values, Values]]) -> list[Interval] | None:
    if min(len(one) for one, _ in cells) < FEWEST_SEEDS:
        return None
    return [paired_interval(one, other) for one, other in cells]


# The ledger


def ledger(seeds: Sequence[int] = SEEDS) -> pd.DataFrame:
    """One row per claim and profile (`COLUMNS`); values in the claim's unit, missing where not measured.

    A direction has no number; there `last` and its interval are the smallest paired difference of its cells (of a
    claim of no gain, the largest). Of a value to be reached they are those of the reading with the highest mean.

    Raises:
        SpecError: without seeds, or with one that stands twice.
        RecordError: if a shipped record is unreadable.
    """
    if not seeds:
        raise SpecError("the ledger counts no seed; give at least one.")
    distinct("seeds", seeds)
    read = cache(lambda sample, profile: sample(profile, seeds))  # many claims rest on the same runs
    rows = [row for claim in claims().index for row in _rows(claim, read)]
    return pd.DataFrame(rows, columns=COLUMNS).astype({"seeds": "Int64"})


def _rows(claim: str, read: Read) -> list[dict]:
    """A claim's row of each profile."""
    rows = {profile: _row(claim, profile, read) for profile in PROFILES}
    if rows["quick"]["seeds"] and not rows["paper"]["seeds"]:
        rows["paper"]["verdict"] = "quick only"
    return list(rows.values())


def _row(claim: str, profile: str, read: Read) -> dict:
    row = {"id": claim, "paper_value": claims().loc[claim, "paper_value"], "profile": profile}
    if claim in STATEMENTS:
        statement = STATEMENTS[claim]
        return row | {"seeds": 0, "verdict": statement.verdict, "command": f"pytest {statement.test}"}
    if row["paper_value"] == "setting only":
        return row | {"seeds": 0, "verdict": "no claim: a setting"}
    measure = MEASURED.get(claim)
    if measure is None:
        return row | {"seeds": 0, "verdict": "not run: its chapter is not written yet"}
    if isinstance(measure, Fact):
        value = measure.value()
        return row | {"seeds": 0, "last": value, "verdict": "holds" if measure.holds(value) else "refuted"}
    which = f"{measure.chapter} --profile {profile}"
    row["command"] = f"cot2 run {which} && cot2 collect {which}"
    fill = {Number: _number_row, Reaches: _reaches_row}.get(type(measure), _direction_row)
    return row | fill(claim, measure, profile, read)


def _number_row(claim: str, measure: Number, profile: str, read: Read) -> dict:
    rows = read(measure.sample, profile)
    if rows.empty:
        return _unmeasured(profile)
    values = rows[measure.column] * measure.scale
    interval = mean_interval(values, 0.0, measure.top)
    stated = number_verdict(values, paper_value(claim), measure.paper_runs, measure.widest)
    if measure.other_hardware:
        stated = "undecided: other hardware"
    staged = "fed" in rows and (rows["fed"] == "stages").all()  # there the best epoch is of another method's stage
    selected = ("best", "split_half") if measure.column == "last" and not staged else ()
    chosen = {name: rows[name].mean() * measure.scale for name in selected}
    return {
        "seeds": len(rows),
        "last": interval.mean,
        "last_low": interval.low,
        "last_high": interval.high,
        **chosen,
        "verdict": stated if profile == "paper" else "quick only",
    }


def _direction_row(claim: str, measure: Direction | NoGain, profile: str, read: Read) -> dict:
    cells = []
    for cell in measure.cells:
        cells.append(_paired(cell, profile, read, measure.scale))
        if not len(cells[-1][0]):
            return _unmeasured(profile)
    no_gain = isinstance(measure, NoGain)
    verdict = (no_gain_verdict if no_gain else direction_verdict)(cells, measure.widest)
    if verdict == "reproduced" and getattr(measure, "waiting", ""):
        verdict = f"partly: {measure.waiting} not run yet"
    if given := getattr(measure, "given", ""):
        verdict += f": if {given}"
    gaps = [paired_interval(one, other) for one, other in cells]
    tightest = (max if no_gain else min)(gaps, key=lambda gap: gap.mean)
    return {
        "seeds": min(len(one) for one, _ in cells),
        "last": tightest.mean,
        "last_low": tightest.low,
        "last_high": tightest.high,
        "verdict": _under(profile, verdict),
    }


def _reaches_row(claim: str, measure: Reaches, profile: str, read: Read) -> dict:
    tables = [read(sample, profile) for sample in measure.samples]
    readings = [measure.scale * rows["last"] for rows in tables if not rows.empty]
    if not readings:
        return _unmeasured(profile)
    interval = mean_interval(max(readings, key=np.mean), 0.0, measure.top)
    return {
        "seeds": min(map(len, readings)),
        "last": interval.mean,
        "last_low": interval.low,
        "last_high": interval.high,
        "verdict": _under(profile, reaches_verdict(readings, measure.value)),
    }


def _under(profile: str, verdict: str) -> str:
    """A verdict as the ledger gives it; what the quick profile finds is said, but settles nothing."""
    return verdict if profile == "paper" else f"quick only: there {verdict.replace(': ', ', ')}"


def _paired(cell: Cell, profile: str, read: Read, scale: float) -> tuple[Values, Values]:
    """Values of both sides, in the claim's unit, for the seeds that both have."""
    one, column, other, beside = cell
    sides = read(one, profile), read(other, profile)
    if any(side.empty for side in sides):
        return np.empty(0), np.empty(0)
    shared = sides[0].index.intersection(sides[1].index)
    return scale * sides[0].loc[shared, column], scale * sides[1].loc[shared, beside]


def _unmeasured(profile: str) -> dict:
    return {"seeds": 0, "verdict": f"not run: no {profile} records yet"}


def describe(value: float, low: float, high: float, digits: int = 1) -> str:
    """`mean [low, high]`, unbreakable; the mean alone where there is no interval."""
    shown = [f"{part:.{digits}f}" for part in (value, low, high)]
    text = shown[0] if np.isnan(low) else f"{shown[0]} [{shown[1]}, {shown[2]}]"
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def verdict_counts(rows: pd.DataFrame) -> pd.DataFrame:
    """How many claims have which verdict, by the paper profile; one number printed twice, or a long series, is one."""
    rows = rows[(rows["profile"] == "paper") & ~is_series(rows)].join(claims()[["task", "setting"]], on="id")
    apart = rows.drop_duplicates(["task", "setting", "paper_value"])
    verdicts = apart["verdict"].str.partition(":")[0].str.replace("holds if .*", "holds if ...", regex=True)
    return verdicts.value_counts().rename_axis("verdict").reset_index(name="claims")


def is_measured(rows: pd.DataFrame) -> pd.Series:
    """Whether a row of the ledger rests on runs, on counting or on proof."""
    return (rows["seeds"] > 0) | is_settled(rows)


def is_settled(rows: pd.DataFrame) -> pd.Series:
    """Whether counting or proof settles a row, so that it is the same under every profile."""
    return rows["verdict"].str.match("holds|refuted")


def is_series(rows: pd.DataFrame) -> pd.Series:
    """Whether a row is one point of a long printed series (Pass@k), which tables and figures set apart."""
    return rows["id"].map(claims()["metric"]) == "pass_at_k"


def measured_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Measured rows as a reader wants them: what, the paper's value, ours, verdict."""
    again = is_settled(rows) & (rows["profile"] != PROFILES[0])
    chosen = is_measured(rows) & ~again & ~rows["id"].isin(STATEMENTS)
    known = rows[chosen].join(claims()[["task", "setting", "unit"]], on="id")
    ours = [_ours(row) for row in known.itertuples()]
    return pd.DataFrame(
        {
            "claim": [f"`{r.id}` {r.task}, {r.setting}" for r in known.itertuples()],
            "paper": known["paper_value"],
            "profile": known["profile"].mask(is_settled(known), ""),
            "ours": ours,
            "verdict": known["verdict"],
            "seeds": known["seeds"],
            "best": known["best"],
            "split half": known["split_half"],
        }
    )


def statements_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The paper's theoretical statements: what it says, the verdict, and the tests that would fail were it wrong."""
    stated = rows[rows["id"].isin(STATEMENTS) & (rows["profile"] == PROFILES[0])].join(claims()["setting"], on="id")
    return pd.DataFrame(
        {
            "statement": [f"`{r.id}` {r.setting}" for r in stated.itertuples()],
            "the paper": stated["paper_value"],
            "verdict": stated["verdict"],
            "checked by": [f"`{Path(STATEMENTS[claim].test).stem}`" for claim in stated["id"]],
        }
    )


def _ours(row) -> str:
    """Our value of a row; of a direction the smallest (of no gain the largest) difference among its cells."""
    if pd.isna(row.last):
        return ""
    measure = MEASURED.get(row.id)
    in_points = measure.widest >= 1 if isinstance(measure, Direction | NoGain) else row.unit in ("%", "claim")
    shown = describe(row.last, row.last_low, row.last_high, 1 if in_points else 3)
    return f"gap {shown}" if isinstance(measure, Direction | NoGain) else shown


def open_table(rows: pd.DataFrame, profile: str) -> pd.DataFrame:
    """Claims without a record under a profile, counted by task and reason; raises SpecError for an unknown profile."""
    profiles.profile(profile)
    waiting = rows[(rows["profile"] == profile) & ~is_measured(rows)].join(claims()["task"], on="id")
    return waiting.groupby(["task", "verdict"], sort=False).size().reset_index(name="claims")
