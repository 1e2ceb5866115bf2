"""The paper from end to end: what stands beside it, with which verdicts, and which commands train the runs.

`places.csv` lists the paper's figures, tables and propositions in its order: our words for each, the label that its
claims in `claims.csv` give as their source, and the figures and tables of the book beside it, if there are any yet.
One that speaks to some of these claims alone names them after a colon, by patterns between bars.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from cot2lib import runs
from cot2lib.study import frame, report, sweeps
from cot2lib.study.book.ledger import SERIES, verdicts
from cot2lib.study.judge import GROUPS, group
from cot2lib.study.printed import claims, sources

LATER, MIXED = "not rebuilt yet", "mixed"


@cache
def places() -> pd.DataFrame:
    """The paper's figures, tables and propositions in its order: columns printed, what, source, figures, tables."""
    return pd.read_csv(Path(__file__).with_name("places.csv"), dtype=str, keep_default_na=False)


class Exhibit(NamedTuple):
    """A figure or table of ours beside a place of the paper, and the claims made there that it speaks to."""

    name: str
    printed: str
    source: str
    claims: tuple[str, ...]


@cache
def exhibits() -> tuple[Exhibit, ...]:
    """Our figures and tables beside each place of the paper, in its order."""
    found, source = [], sources()
    for place in places().itertuples():
        made = source.index[source == place.source]
        for shown in f"{place.figures} {place.tables}".split():
            name, _, patterns = shown.partition(":")
            spoken = tuple(claim for claim in made if fits(claim, patterns or "*"))
            found.append(Exhibit(name, place.printed, place.source, spoken))
    return tuple(found)


def fits(claim: str, patterns: str) -> bool:
    """Whether a claim's id fits one of some patterns between bars."""
    return any(fnmatchcase(claim, pattern) for pattern in patterns.split("|"))


def paper_index(rows: pd.DataFrame) -> pd.DataFrame:
    """Our counterpart of each figure, table and proposition of the paper, and how many claims each group has."""
    settled = verdicts(rows).map(group)
    source = sources()[settled.index]
    return pd.DataFrame(
        [
            {
                "the paper": f"{place.printed}: {place.what}",
                "here": links([shown.name for shown in exhibits() if shown.printed == place.printed]) or LATER,
                "verdicts": _cards(counted(settled[source[source == place.source].index]), place.source),
            }
            for place in places().itertuples()
        ]
    )


@dataclass(frozen=True)
class Badge:
    """The verdict that a caption shows of the claims that its figure or table speaks to.

    Attributes:
        group: that of their verdicts; `MIXED` where they differ.
        words: the place in the paper, and how many claims each group has.
        label: of the only card, or of the section with all of them.
    """

    group: str
    words: str
    label: str


def badges(rows: pd.DataFrame) -> dict[str, list[Badge]]:
    """The badges of our figures and tables by name, one for each place of the paper with claims that they speak to."""
    settled, found = verdicts(rows).map(group), {}
    for shown in exhibits():
        here = settled[settled.index.isin(shown.claims)]
        if len(here):
            alone = len(here) == 1 and not in_series(here.index[0])
            at = f"claim-{here.index[0]}" if alone else label(shown.source)
            only = here.iloc[0] if here.nunique() == 1 else MIXED
            found.setdefault(shown.name, []).append(Badge(only, f"{shown.printed}: {counted(here)}", at))
    return found


def beside(claim: str) -> list[str]:
    """Our figures and tables that speak to a claim, by name, figures first."""
    here = dict.fromkeys(shown.name for shown in exhibits() if claim in shown.claims)
    return [name for kind in ("fig-", "tab-") for name in here if name.startswith(kind)]


def links(names: Sequence[str]) -> str:
    """References to figures and tables of the book."""
    return ", ".join(f"{{numref}}`{name}`" for name in names)


def _cards(said: str, source: str) -> str:
    """Words that lead to the cards of a figure, table or proposition."""
    return f"{{ref}}`{said} <{label(source)}>`" if said else ""


def label(source: str) -> str:
    """The label of the cards of a figure, table or proposition."""
    return f"claims-{slug(source)}"


def slug(source: str) -> str:
    """A label of the paper as part of one of ours."""
    return re.sub(r"[^\w-]", "-", source) or "text"


def in_series(claim: str) -> bool:
    """Whether a claim is one point of a long printed series, which has no card of its own."""
    return claims().loc[claim, "metric"] == SERIES


def counted(found: pd.Series) -> str:
    """How many claims each group has, in words; a single claim's group alone, "no claim" for a setting."""
    counts = found.value_counts().reindex([*GROUPS, ""]).dropna().astype(int).rename({"": "no claim"})
    return counts.index[0] if len(found) == 1 else ", ".join(f"{name} {count}" for name, count in counts.items())


def commands() -> pd.DataFrame:
    """Commands that train each chapter's runs by either recipe, how many are recorded, and their core-hours."""
    asked = {
        (chapter, profile): sweeps.of_chapter(chapter, profile)
        for chapter in sweeps.CHAPTERS
        for profile in report.RECIPES
        if sweeps.of_chapter(chapter, profile)
    }
    rows = []
    for (chapter, profile), specs in asked.items():
        spent = runs.recorded(specs)
        row = {"command": f"`cot2 run {chapter} --profile {profile}`", "recipe": report.RECIPES[profile]}
        rows.append(row | {"runs": len(specs), "recorded": len(spent), "core-hours": frame.hours(spent).sum()})
    return pd.DataFrame(rows)
