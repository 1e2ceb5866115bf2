"""The ledger: one row per claim and profile, and the tables that its page shows.

The rules are in `cot2lib.study.judge`, what each kind of claim makes of its measurement in `cot2lib.study.claims`.
"""

from collections.abc import Sequence
from functools import cache

import pandas as pd

from cot2lib.errors import SpecError
from cot2lib.kit.frozen import distinct
from cot2lib.metrics import LEVEL, paired_interval
from cot2lib.runs import records
from cot2lib.specs import profiles
from cot2lib.specs.profiles import TWENTY
from cot2lib.study import report
from cot2lib.study.book.index import counted, in_series, is_series, sections, slug, verdicts
from cot2lib.study.claims.kinds import SETTLED, HalfStated, Number, Statement
from cot2lib.study.claims.queries import Read, reading
from cot2lib.study.claims.rows import KINDS
from cot2lib.study.judge import DIFFERS, FEWEST_SEEDS, NOT, Words, group, in_words, number_verdict
from cot2lib.study.printed import claims, plain, readable, sources, value_text
from cot2lib.study.report import PERCENT, RECIPES, describe

COLUMNS = (
    "id", "paper_value", "profile", "seeds", "last", "last_low", "last_high", "best", "split_half", "verdict",
    "command", "judged", "judged_low", "judged_high", "predicted_low", "predicted_high", "difference", "reached",
    *Words._fields,
)  # fmt: skip
PROFILES = (SETTLED, "quick")
OF_SERIES = "tab-series"
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


def is_measured(rows: pd.DataFrame) -> pd.Series:
    """Whether a row of the ledger rests on runs, on counting or on proof."""
    return (rows["seeds"] > 0) | rows["verdict"].str.match("holds|refuted")


def ours(row: tuple) -> str:
    """Our value of a row, as its kind says it; "" where there is none."""
    return "" if pd.isna(row.last) else KINDS[row.id].ours(row)


def profile_of(row: tuple) -> str:
    """The profile that trained a row's models; what reward on graphs starts from is of `quick` under both profiles."""
    return getattr(KINDS[row.id], "trained", "") or row.profile


# Claim by claim


def folds(rows: pd.DataFrame) -> report.Folds:
    """A row a claim, in a folded table for each place of the paper; a long series has a table of its own."""
    series, shown, settled = rows[is_series(rows)], {}, verdicts(rows).map(group)
    there = set(sources()[series["id"]])
    for title, source, part in sections(rows[~is_series(rows)]):
        here = settled.index.isin(part["id"]) | (sources()[settled.index] == source)
        counts = counted(settled[here]) + (", counting the series of the last table" if source in there else "")
        caption = f"The paper's {title.partition(': ')[0]}." if source else f"{title}."
        table = report.table(claims_table(part), f"tab-ledger-{slug(source)}", caption)
        shown[f"{title} ({counts})"] = table
    points = claims_table(series)
    parts = points["claim"].str.partition(", T = ")
    points["claim"] = "T = " + parts[2]
    models = "; ".join(parts[0].unique())
    title = f"The paper's Pass@k series point by point ({models}), with the values of the public plotting script"
    return report.Folds(shown | {title: report.table(points, OF_SERIES, f"{title}.")})


def claims_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each claim: what it is about, the paper's value, ours, our seeds, the verdict and why.

    Ours is by the authors' recipe; where it has no run, by the quick one, and the row says so. Verdicts lead to cards.
    """
    found = []
    for claim, both in rows.groupby("id", sort=False):
        settled, quick = (next(both[both["profile"] == profile].itertuples()) for profile in PROFILES)
        measured = dict(zip(both["profile"], is_measured(both)))
        row = quick if not measured[SETTLED] and measured["quick"] else settled
        value, word = ours(row), settled.group or "no claim"
        notes = [f"best evaluations {row.best:.1f}"] * (row.judged == "best")
        notes += ["quick recipe"] * bool(value and profile_of(row) != SETTLED and row.seeds)
        found.append(
            {
                "claim": plain(readable(claim)),
                "the paper": value_text(claim),
                "ours": f"{value} ({', '.join(notes)})" if value and notes else value,
                "seeds": row.seeds or None,
                "verdict": word if in_series(claim) else f"{{ref}}`{word} <claim-{claim}>`",
                "why, or on what condition": plain(because(settled.verdict)),
            }
        )
    return pd.DataFrame(found).astype({"seeds": "Int64"})


def because(verdict: str) -> str:
    """Why a verdict is what it is, and the condition that it is meant under."""
    words = in_words(verdict)
    return "; ".join(filter(None, [words.why, f"if {words.condition}" if words.condition else ""]))


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


def open_table(rows: pd.DataFrame, profile: str) -> pd.DataFrame:
    """Claims without a record under a profile, counted by task and reason; raises SpecError for an unknown profile."""
    profiles.profile(profile)
    claimed = (rows["profile"] == profile) & (rows["verdict"].map(group) != "")
    waiting = rows[claimed & ~is_measured(rows)].join(claims()["task"], on="id")
    return waiting.groupby(["task", "verdict"], sort=False).size().reset_index(name="claims")


# How much the rule and the records can be trusted


def misses_table(rows: pd.DataFrame, read: Read) -> pd.DataFrame:
    """Numbers of the paper that differ, by family: chapter, unit, whether a series; and our own runs by the same rule.

    Numbers of one family share seeds, and some share runs, so they may differ together. Each of our own runs is judged
    by the others as if the paper had printed it.
    """
    numbers = rows[(rows["profile"] == SETTLED) & rows["predicted_low"].notna() & (rows["seeds"] >= FEWEST_SEEDS)]
    found = []
    for row, series in zip(numbers.itertuples(), is_series(numbers)):
        number = KINDS[row.id]
        if not isinstance(number, Number) or number.untested:
            continue
        (line,) = number.drawn(row.id, SETTLED, read)
        others = [number_verdict(line.values.drop(seed), value, 1, line.unit) for seed, value in line.values.items()]
        family = f"`{number.chapter}`, {number.unit.name}{', series' * series}"
        differ = sum(verdict.startswith(NOT) for verdict in others)
        found.append((family, 1, row.group == DIFFERS, len(others), differ))
    columns = ["family", "numbers", "differ", "our values", "our values that differ"]  # also of no number
    table = pd.DataFrame(found, columns=columns).groupby("family", sort=False).sum().reset_index()
    table.insert(3, "by chance", (1 - LEVEL) * table["numbers"])
    return table


def drift_table() -> pd.DataFrame:
    """Runs that were trained once more, by kind and processor: who trained, and how far apart they end, paired.

    Random numbers are the same everywhere. Sums in another order round differently, which parts two supervised
    trainings after some thousand steps, and policy gradients as soon as one sampled token turns. So a record promises
    its first losses, and its results are one draw from a distribution.
    """
    found = []
    for profile, name in RECIPES.items():
        rows = records.shipped_table(f"drift.{profile}.again", ["kind", "device_again"])
        for (kind, _), part in rows.groupby(["kind", "device_again"], sort=False):
            ends, means = (
                paired_interval(PERCENT * part[f"{column}_again"], PERCENT * part[f"{column}_recorded"])
                for column in ("last", "curve_mean")
            )
            found.append(
                {
                    "runs": kind,
                    "seeds": len(part),
                    "recorded by": made_by(part, "recorded"),
                    "again by": made_by(part, "again"),
                    "last epoch": describe(ends.mean, ends.low, ends.high),
                    "over training": describe(means.mean, means.low, means.high, 2),
                    "farthest": float((PERCENT * (part["last_again"] - part["last_recorded"])).abs().max()),
                    "recipe": name,
                }
            )
    return pd.DataFrame(found)


def made_by(part: pd.DataFrame, when: str) -> str:
    """Engine, processor and runs in a stack, each named once."""
    cores = part[f"device_{when}"].str.removeprefix("cpu (").str.removesuffix(")").str.replace("(R)", "")
    engines, sizes = part[f"engine_{when}"], part[f"stacked_{when}"].astype(str)
    named = [", ".join(values.unique()) for values in (engines, cores, sizes)]
    return f"{named[0]} on {named[1]}, stack of {named[2]}"


def predicted() -> pd.DataFrame:
    """Outcomes of our own experiments on controls, next to what was predicted of them."""
    from cot2lib.study.controls import draw, outcomes
    from cot2lib.study.controls.runs import SEEDS

    return draw.verdicts(outcomes.outcomes(*outcomes.read(SEEDS)))
