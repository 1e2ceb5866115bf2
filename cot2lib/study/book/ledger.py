"""The ledger: one row per claim and profile, how many claims have which verdict, and tables for readers.

The rules are in `cot2lib.study.judge`, what each kind of claim makes of its measurement in `cot2lib.study.claims`.
"""

from collections.abc import Sequence
from functools import cache

import pandas as pd

from cot2lib.errors import SpecError
from cot2lib.kit.frozen import distinct
from cot2lib.metrics import LEVEL
from cot2lib.specs import profiles
from cot2lib.specs.profiles import TWENTY
from cot2lib.study.claims.kinds import SETTLED, Drawn, HalfStated, Statement
from cot2lib.study.claims.queries import Read, reading
from cot2lib.study.claims.rows import KINDS
from cot2lib.study.judge import (
    DEPENDS,
    DIFFERS,
    FEWEST_SEEDS,
    NEAR,
    NOT,
    OPEN,
    REPRODUCED,
    Words,
    group,
    in_words,
    number_verdict,
)
from cot2lib.study.printed import claims, readable

COLUMNS = (
    "id", "paper_value", "profile", "seeds", "last", "last_low", "last_high", "best", "split_half", "verdict",
    "command", "judged", "judged_low", "judged_high", "predicted_low", "predicted_high", "difference", "reached",
    *Words._fields,
)  # fmt: skip
PROFILES = (SETTLED, "quick")
WORST_FIRST = ("not run", "quick only", NOT, OPEN, DEPENDS, NEAR, REPRODUCED)  # of the points of a series
SERIES = "pass_at_k"  # the metric of a long printed series
HALVES = [claim for claim, kind in KINDS.items() if isinstance(kind, HalfStated)]
STATEMENTS = {claim: kind for claim, kind in KINDS.items() if isinstance(kind, Statement)}


def ledger(seeds: Sequence[int] = TWENTY) -> pd.DataFrame:
    """One row per claim and profile (`COLUMNS`); values in the claim's unit, missing where not measured.

    `last` and its interval are of the last epoch. A direction has no number: there they are the paired difference of
    the cell that decides. Of a value to be reached they are those of the reading with the highest mean. `judged` says
    whether the verdict on a number is about the last or the best epoch, as the paper prints it, or about the gain
    since a series began. The columns after it hold its interval, the prediction interval of the rule, and ours minus
    the paper's. Where the paper states half of a recipe the verdict is about that half, and `reached` says whether our
    best recipe comes up to it. `group`, `why` and `condition` are the verdict as readers meet it.

    Raises:
        SpecError: without seeds, or with one that stands twice.
        RecordError: if a shipped record is unreadable.
    """
    if not seeds:
        raise SpecError("the ledger counts no seed; give at least one.")
    distinct("seeds", seeds)
    return _ledger(reading(seeds))


def _ledger(read: Read) -> pd.DataFrame:
    rows = [row for claim in claims().index for row in rows_of(claim, read)]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"seeds": "Int64"})


@cache
def reading_records() -> Read:
    """Read queries for all seeds; what it has read is kept for the process."""
    return reading(TWENTY)


@cache
def of_records() -> pd.DataFrame:
    """The ledger of the shipped records for all seeds, made once a process; do not change it."""
    return _ledger(reading_records())


def rows_of(claim: str, read: Read) -> list[dict]:
    """A claim's row of each profile, from the rows that `read` gives."""
    kind, stated = KINDS[claim], claims().loc[claim, "paper_value"]
    rows = {profile: kind.row(claim, profile, read) for profile in PROFILES}
    if rows["quick"]["seeds"] and not rows[SETTLED]["seeds"]:
        rows[SETTLED]["verdict"] = "quick only"
    named = lambda profile: {"id": claim, "paper_value": stated, "profile": profile}
    return [named(profile) | row | in_words(row["verdict"])._asdict() for profile, row in rows.items()]


# Counts and tables


def verdicts(rows: pd.DataFrame) -> pd.Series:
    """The verdict on each claim by the paper profile; a series comes from one model, and is one claim.

    It stands under its first point's id. Its verdict is the least of its points'.
    """
    rows = rows[rows["profile"] == SETTLED]
    first = rows["id"].mask(is_series(rows), rows["id"].str.replace(r"-k\d+$", "-k1", regex=True))
    return rows.groupby(first, sort=False)["verdict"].agg(_least)


def _least(points: pd.Series) -> str:
    if len(points) == 1:
        return points.item()
    return min(points.str.partition(":")[0], key=WORST_FIRST.index)


def judged(rows: pd.DataFrame) -> pd.Series:
    """The verdict on each claim: a number that the paper prints twice stands once, and settings claim nothing."""
    found = verdicts(rows)
    once = ~claims().loc[found.index].duplicated(["task", "setting", "paper_value"]).to_numpy()
    return found[once & (found.map(group) != "")]


def is_measured(rows: pd.DataFrame) -> pd.Series:
    """Whether a row of the ledger rests on runs, on counting or on proof."""
    return (rows["seeds"] > 0) | is_settled(rows)


def is_settled(rows: pd.DataFrame) -> pd.Series:
    """Whether counting or proof settles a row, so that it is the same under every profile."""
    return rows["verdict"].str.match("holds|refuted")


def is_series(rows: pd.DataFrame) -> pd.Series:
    """Whether a row is one point of a long printed series (Pass@k), which tables and figures set apart."""
    return rows["id"].map(claims()["metric"]) == SERIES


def ours(row: tuple) -> str:
    """Our value of a row, as its kind says it; "" where there is none."""
    return "" if pd.isna(row.last) else KINDS[row.id].ours(row)


def halves_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Numbers whose recipe the paper states in part: does that part give them, and does our best recipe reach them?"""
    asked = rows[rows["id"].isin(HALVES)]
    asked = asked.assign(ours=[ours(row) for row in asked.itertuples()])
    stated, best = (asked[asked["profile"] == name].set_index("id") for name in PROFILES)
    return pd.DataFrame(
        {
            "number": [readable(claim) for claim in stated.index],
            "paper": stated["paper_value"],
            "stated half": stated["ours"],
            "gives it?": stated["group"],
            "our recipe": best["ours"],
            "reaches it?": stated["reached"].fillna(""),
        }
    )


def misses_table(rows: pd.DataFrame, read: Read) -> pd.DataFrame:
    """Numbers of the paper that differ, by family: chapter, unit, whether a series; and our own runs by the same rule.

    Numbers of one family rest on the same few runs, so they differ together. Each of our own runs is judged by the
    others as if the paper had printed it.
    """
    numbers = rows[(rows["profile"] == SETTLED) & rows["predicted_low"].notna() & (rows["seeds"] >= FEWEST_SEEDS)]
    numbers = numbers[numbers["id"].map(lambda claim: not KINDS[claim].number().untested).astype(bool)]
    found = [KINDS[claim].number() for claim in numbers["id"]]
    names = [f"`{number.chapter}`, {number.unit.name}" for number in found]
    family = [f"{name}, series" if one else name for name, one in zip(names, is_series(numbers))]
    lines = [KINDS[claim].drawn(claim, SETTLED, read)[0] for claim in numbers["id"]]
    differing = [sum(_differs_from_others(line)) for line in lines]
    counts = {"numbers": 1, "differ": numbers["group"] == DIFFERS, "our runs": [len(line.values) for line in lines]}
    counted = pd.DataFrame(counts | {"our runs that differ": differing}).groupby(family, sort=False).sum()
    counted.insert(2, "by chance", (1 - LEVEL) * counted["numbers"])
    return counted.reset_index(names="family")


def _differs_from_others(line: Drawn) -> list[bool]:
    """Of each run whether the rule says that it differs from the others."""
    rest = [(line.values.drop(seed), value) for seed, value in line.values.items()]
    return [number_verdict(others, value, 1, line.unit).startswith(NOT) for others, value in rest]


def open_table(rows: pd.DataFrame, profile: str) -> pd.DataFrame:
    """Claims without a record under a profile, counted by task and reason; raises SpecError for an unknown profile."""
    profiles.profile(profile)
    claimed = (rows["profile"] == profile) & (rows["verdict"].map(group) != "")
    waiting = rows[claimed & ~is_measured(rows)].join(claims()["task"], on="id")
    return waiting.groupby(["task", "verdict"], sort=False).size().reset_index(name="claims")
