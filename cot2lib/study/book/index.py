"""The paper from end to end: what of it is rebuilt, where, with which verdicts, and by which command.

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
from cot2lib.study import report
from cot2lib.study.book import all_runs
from cot2lib.study.book.ledger import KINDS, SERIES, short, verdicts
from cot2lib.study.judge import AGREES, GROUPS, group
from cot2lib.study.kinds import SETTLED, Fact
from cot2lib.study.printed import claims, paper_value, sources
from cot2lib.study.samples import hours

PARTS = {"mnns": "signed sums (MNNS)", "pro": "graphs (ProsQA, ProntoQA)", "gsm8k": "word problems (GSM8K)"}
THEORY, LATER, MIXED = "theory", "not rebuilt yet", "mixed"
RESERVED = "agrees on a condition"


@dataclass(frozen=True)
class Finding:
    """A claim of the paper in one sentence, and the figure or table of ours that speaks to it."""

    claim: str
    sentence: str
    seen: str

    def text(self, rows: pd.DataFrame) -> str:
        """The sentence, the verdict and our number, as MyST."""
        verdict, ours = self.found(rows)
        shown = f" Ours: {ours}." if ours else ""
        seen = f"{{numref}}`{self.seen}`, {{ref}}`card <claim-{self.claim}>`"
        return f"{self.sentence} **{verdict[0].upper()}{verdict[1:]}.**{shown} {seen}"

    def found(self, rows: pd.DataFrame) -> tuple[str, str]:
        """The verdict, and our number with its seeds; "" where there is none."""
        row = next(rows[(rows["id"] == self.claim) & (rows["profile"] == SETTLED)].itertuples())
        return row.verdict, "" if pd.isna(row.last) else f"{KINDS[self.claim].ours(row)}, {row.seeds} seeds"


FINDINGS = (
    Finding(
        "convergence-2l2h",
        "On sums, continuous thoughts of 24 dimensions or more end above discrete ones and learn faster.",
        "fig-curves",
    ),
    Finding(
        "small-cot2-beats-large-discrete", "One layer with continuous thoughts beats two with discrete ones.",
        "fig-one-layer",
    ),
    Finding("budget-d16", "The smallest model does best with eight of the sixteen trajectories.", "fig-budget"),
    Finding("passk-mnns", "Discrete thoughts need more tries than continuous ones to be right as often.", "fig-passk"),
    Finding("grpo-improves", "Reward improves a discrete model, however many tokens its thoughts sample.", "fig-grpo"),
    Finding("construction", "One layer with trigonometric embeddings solves the task exactly.", "tab-variants"),
)  # fmt: skip


# What the abstract says, and the claims that this rests on, in short words. A pattern stands for printed entries.
# Their verdicts are on levels, so the row says how many of them rise in the paper's table.
ABSTRACT: dict[str, dict[str, str]] = {
    "One continuous trace follows many discrete ones at once.": {
        "assumption-1": "one mixture serves for many traces", "consistency": "answers alike on average",
    },
    "How many it can follow is bounded, and this saves samples.": {
        "packing": "traces in d numbers", "sample-complexity-ratio": "error beside K traces",
        "sample-complexity-rate": "samples needed", "passk-mnns": "tries needed on sums",
    },
    "One layer solves the task, if the dimension suffices.": {"construction": "the construction"},
    "Sampling K tokens at each step controls how many are followed.": {
        "k-infinity": "very many tokens", "k-saturates": "beyond some K", "grpo-k-moderate": "the best K on sums",
    },
    "The dimension decides how many traces are best.": {
        "budget-d16": "d = 16", "budget-d24": "d = 24", "budget-d32": "d = 32",
    },
    "Training on distributions of traces can be better than other methods.": {
        "convergence-2l2h": "sums", "convergence-prosqa": "ProsQA", "convergence-prontoqa": "ProntoQA",
        "csft-above-coconut": "COCONUT, all tasks",
    },
    "Reward goes beyond discrete supervision.": {
        "grpo-improves": "sums", "rl-consistent": "every entry on graphs rises", "grpo-pro*-discrete-k*": "graphs",
    },
    "Reward goes beyond continuous supervision.": {"dirichlet-improves": "sums", "grpo-pro*-cot2-k*": "graphs"},
}  # fmt: skip


def abstract(rows: pd.DataFrame) -> pd.DataFrame:
    """Sentences of the abstract, and the verdict on each claim that they rest on, which leads to its card."""
    settled = rows[rows["profile"] == SETTLED].set_index("id")["verdict"]
    said = ["; ".join(_supports(settled, *one) for one in part.items()) for part in ABSTRACT.values()]
    return pd.DataFrame({"the abstract says": ABSTRACT.keys(), "verdicts": said})


def _supports(settled: pd.Series, named: str, words: str) -> str:
    """Words on a claim that the abstract rests on, with its verdict; of a pattern, how many claims have which."""
    if named in settled.index:
        kind = KINDS[named]
        why = f" ({against})" if isinstance(kind, Fact) and (against := kind.against()) else ""
        return f"{words}: {{ref}}`{short(settled[named])} <claim-{named}>`{why}"
    found = settled[[claim for claim in settled.index if fits(claim, named)]]
    rise = sum(paper_value(claim) > paper_value(re.sub(r"k\d+$", "sft", claim)) for claim in found.index)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in found.map(short).value_counts().items())
    at = label(sources()[found.index[0]])
    return f"{words}, where {rise} of the paper's {len(found)} entries rise; our runs: {{ref}}`{counts} <{at}>`"


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
    settled = verdicts(rows).map(told)
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
    settled, found = verdicts(rows).map(told), {}
    for shown in exhibits():
        here = settled[settled.index.isin(shown.claims)]
        if len(here):
            groups = here.unique()
            alone = len(here) == 1 and not in_series(here.index[0])
            at = f"claim-{here.index[0]}" if alone else label(shown.source)
            group = groups[0] if len(groups) == 1 else MIXED
            found.setdefault(shown.name, []).append(Badge(group, f"{shown.printed}: {counted(here)}", at))
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


def told(verdict: str) -> str:
    """A verdict's group; of one that agrees under a condition or with a reservation so much besides."""
    kind, said = group(verdict), short(verdict)
    return RESERVED if kind == AGREES and said.endswith("...") else kind


def counted(found: pd.Series) -> str:
    """How many claims each group of `told` has, in words; a single claim's group alone, "no claim" for a setting."""
    order = [AGREES, RESERVED, *(name for name in GROUPS if name != AGREES), ""]
    counts = found.value_counts().reindex(order).dropna().astype(int).rename({"": "no claim"})
    return counts.index[0] if len(found) == 1 else ", ".join(f"{name} {count}" for name, count in counts.items())


def rebuilt(rows: pd.DataFrame) -> pd.DataFrame:
    """How many claims of each part of the paper are judged, have records of the quick recipe alone, or have none."""
    settled = rows[rows["profile"] == SETTLED].set_index("id")
    states = settled["verdict"].map(_state)
    parts = claims()["task"].map(_part)
    table = pd.crosstab(parts[states.index], states).reindex([*PARTS.values(), THEORY])
    return table.reindex(columns=["judged", "quick recipe only", "not run"], fill_value=0).reset_index(names="part")


def _state(verdict: str) -> str:
    return {"quick only": "quick recipe only", "not run": "not run"}.get(short(verdict), "judged")


def _part(task: str) -> str:
    return next((name for start, name in PARTS.items() if task.startswith(start)), THEORY)


def commands() -> pd.DataFrame:
    """Commands that train each chapter's runs by either recipe, how many are recorded, and their core-hours."""
    asked = {
        (chapter, profile): all_runs.sweep(chapter, profile)
        for chapter in all_runs.SWEEPS
        for profile in report.RECIPES
        if all_runs.sweep(chapter, profile)
    }
    rows = []
    for (chapter, profile), specs in asked.items():
        spent = runs.recorded(specs)
        row = {"command": f"`cot2 run {chapter} --profile {profile}`", "recipe": report.RECIPES[profile]}
        rows.append(row | {"runs": len(specs), "recorded": len(spent), "core-hours": hours(spent).sum()})
    return pd.DataFrame(rows)
