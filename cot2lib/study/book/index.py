"""The paper from end to end: its figures, tables and propositions, what stands next to each, with which verdicts.

`places.csv` lists them in the paper's order: our words for each, the label that its claims in `claims.csv` give as
their source, and the figures and tables of the book that show it, if there are any. One that speaks to some of these
claims alone names them after a colon, by patterns between bars.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from cot2lib.study.judge import AGREES, DEPENDS, DIFFERS, GROUPS, NEAR, NOT, OPEN, REPRODUCED, group, in_words
from cot2lib.study.printed import claims, sources

MIXED, ELSEWHERE = "mixed", "Elsewhere in the paper"
OF_MANY = {AGREES: "agree", DIFFERS: "differ", DEPENDS: "depend on the run"}  # a group, as several claims have it
WORST_FIRST = ("not run", "quick only", NOT, OPEN, DEPENDS, NEAR, REPRODUCED)  # of the points of a series
SERIES = "pass_at_k"  # the metric of a long printed series


@cache
def places() -> pd.DataFrame:
    """The paper's figures, tables and propositions in its order: columns printed, what, source, figures, tables."""
    return pd.read_csv(Path(__file__).with_name("places.csv"), dtype=str, keep_default_na=False)


class Exhibit(NamedTuple):
    """A figure or table of ours for a place of the paper, and the claims made there that it speaks to."""

    name: str
    printed: str
    source: str
    claims: tuple[str, ...]


@cache
def exhibits() -> tuple[Exhibit, ...]:
    """Our figures and tables for each place of the paper, in its order."""
    found, source = [], sources()
    for place in places().itertuples():
        made = source.index[source == place.source]
        for shown in f"{place.figures} {place.tables}".split():
            name, _, patterns = shown.partition(":")
            known = (patterns or "*").split("|")
            spoken = tuple(claim for claim in made if any(fnmatchcase(claim, pattern) for pattern in known))
            found.append(Exhibit(name, place.printed, place.source, spoken))
    return tuple(found)


def shown_with(claim: str) -> list[str]:
    """Our figures and tables that speak to a claim, by name, figures first."""
    here = dict.fromkeys(shown.name for shown in exhibits() if claim in shown.claims)
    return [name for kind in ("fig-", "tab-") for name in here if name.startswith(kind)]


def links(names: Sequence[str]) -> str:
    return ", ".join(f"{{numref}}`{name}`" for name in names)


def slug(source: str) -> str:
    """A label of the paper as part of one of ours."""
    return re.sub(r"[^\w-]", "-", source) or "text"


def label(source: str) -> str:
    return f"claims-{slug(source)}"


# Claims and their verdicts by place


def in_series(claim: str) -> bool:
    """Whether a claim is one point of a long printed series (Pass@k), which has no card of its own."""
    return claims().loc[claim, "metric"] == SERIES


def is_series(rows: pd.DataFrame) -> pd.Series:
    """Whether a row of the ledger is one point of a long printed series, which tables and figures set apart."""
    return rows["id"].map(claims()["metric"]) == SERIES


def verdicts(rows: pd.DataFrame) -> pd.Series:
    """The verdict on each claim by the paper profile; a series comes from one model, and is one claim.

    It stands under its first point's id. Its verdict is the least of its points'.
    """
    rows = rows[rows["profile"] == "paper"]
    first = rows["id"].mask(is_series(rows), rows["id"].str.replace(r"-k\d+$", "-k1", regex=True))
    least = lambda points: min(points.str.partition(":")[0], key=WORST_FIRST.index)
    return rows.groupby(first, sort=False)["verdict"].agg(
        lambda points: points.item() if len(points) == 1 else least(points)
    )


def judged(rows: pd.DataFrame) -> pd.Series:
    """The verdict on each claim: a number that the paper prints twice stands once, and settings claim nothing."""
    found = verdicts(rows)
    once = ~claims().loc[found.index].duplicated(["task", "setting", "paper_value"]).to_numpy()
    return found[once & (found.map(group) != "")]


def counted(found: pd.Series) -> str:
    """How many claims each group has, in words; a single claim's group alone, "no claim" for a setting."""
    counts = found.value_counts().reindex([*GROUPS, ""]).dropna().astype(int).rename({"": "no claim"})
    said = [f"{count} {name if count == 1 else OF_MANY.get(name, name)}" for name, count in counts.items()]
    return counts.index[0] if len(found) == 1 else ", ".join(said)


def sections(rows: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    """Title, source and rows of each place of the paper that claims something, in its order.

    Claims of the text alone come last. A figure or table whose claims stand at two places has them at the last one.
    """
    source, known = rows["id"].map(sources()), places().drop_duplicates("source", keep="last")
    found = [
        (f"{place.printed}: {place.what}", place.source, rows[source == place.source]) for place in known.itertuples()
    ]
    found.append((ELSEWHERE, "", rows[~source.isin(known["source"])]))
    return [section for section in found if len(section[-1])]


def paper_index(rows: pd.DataFrame) -> pd.DataFrame:
    """Our counterpart of each figure, table and proposition of the paper, and how many claims each group has."""
    settled = verdicts(rows).map(group)
    source, shown = sources()[settled.index], []
    for place in places().itertuples():
        said = counted(settled[source[source == place.source].index])
        shown.append(
            {
                "the paper": f"{place.printed}: {place.what}",
                "here": links([shown.name for shown in exhibits() if shown.printed == place.printed]),
                "verdicts": f"{{ref}}`{said} <{label(place.source)}>`" if said else "",
            }
        )
    return pd.DataFrame(shown)


class Badge(NamedTuple):
    """The verdict that a caption shows of its claims: their group, or `MIXED`; the place in the paper and how many
    claims each group has; and the label of the only card, or of the section with all of them."""

    group: str
    words: str
    label: str


def badges(rows: pd.DataFrame) -> dict[str, list[Badge]]:
    """The badges of our figures and tables by name, one for each place of the paper with claims that they speak to.

    A single claim that agrees says whether it does so on a condition, or vacuously.
    """
    labels = verdicts(rows)
    settled = labels.map(group)
    found: dict[str, list[Badge]] = {}
    for shown in exhibits():
        here = settled[settled.index.isin(shown.claims)]
        if len(here):
            alone = len(here) == 1 and not in_series(here.index[0])
            at = f"claim-{here.index[0]}" if alone else label(shown.source)
            only = here.iloc[0] if here.nunique() == 1 else MIXED
            words = in_words(labels[here.index[0]])
            how = " on a condition" * bool(words.condition) or " vacuously" * words.why.startswith("vacuously")
            said = counted(here) + how * (len(here) == 1 and only == AGREES)
            found.setdefault(shown.name, []).append(Badge(only, f"{shown.printed}: {said}", at))
    return found
