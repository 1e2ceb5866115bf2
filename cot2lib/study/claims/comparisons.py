"""Kinds of claims that compare: directions, no gain, what is reached, and claims of several such parts."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from cot2lib.metrics import mean_interval, paired
from cot2lib.study import judge as rules
from cot2lib.study.claims.kinds import Drawn, OfRuns, measured, noted, scale, span
from cot2lib.study.claims.queries import Read
from cot2lib.study.frame import NAMES
from cot2lib.study.judge import PERCENTS, POINTS, Unit
from cot2lib.study.sweeps import STEPS

# What tells the sides and cells of a comparison apart, by column, in a reader's words.
SAID: dict[str, Callable[[object], str]] = {
    "task": str,
    "method": str,
    "layers": NAMES["layers"],
    "d_model": NAMES["d_model"],
    "budget": NAMES["budget"],
    "tokens": lambda count: f"{NAMES['tokens'](count)} scored",
    "fed": NAMES["fed"],
    "sampler": str,
    "k": NAMES["tries"],
    "K": NAMES["k"],
    "gamma": NAMES["gamma"],
    "temperature": NAMES["temperature"],
    "ratio": "{} ratio".format,
    "feed": "fed the {}".format,
    "lr": "learning rate {:g}".format,
    "embedding": "{} embeddings".format,
}
COLUMNS = {
    "last": "last epoch", "best": "best evaluation", "before": "what it starts from",
    "curve_mean": "mean over training", "gain": "gained by reward",
    "lost": "lost since the best epoch", "base_lost": "lost since the best epoch by base decoding",
    "base_best": "best epoch by base decoding", "base_before": "before reward",
    "base_split_half": "best epoch by base decoding", "pass_at_k": "Pass@k", "maj_at_k": "Maj@k",
    "entropy": "mean over tokens", **{f"entropy_{step}": f"token {step}" for step in STEPS},
}  # fmt: skip
IMPLIED = ("budget", "tokens", "fed")  # columns that task and method mostly imply


class Cell(NamedTuple):
    """One comparison: a column of a query's rows against one of another's."""

    above: str
    column: str
    below: str
    beside: str

    def rows(self, profile: str, read: Read) -> tuple[pd.DataFrame, pd.DataFrame]:
        return read(self.above, profile), read(self.below, profile)

    def differences(self, profile: str, read: Read) -> pd.Series:
        """How far one side is above the other in the claim's unit, for the seeds that both have."""
        above, below = self.rows(profile, read)
        if above.empty or below.empty:  # and has no columns
            return pd.Series(dtype=float)
        return scale(self.column).factor * paired(above[self.column], below[self.beside].dropna())


@dataclass(frozen=True)
class Compared(OfRuns):
    """A claim on the differences between the two sides of some cells."""

    cells: Sequence[Cell]

    @property
    def unit(self) -> Unit:
        return scale(self.cells[0].column).unit

    def judged(self, gaps: Sequence[pd.Series], names: Callable[[], list[str]]) -> tuple[str, pd.Series]:
        """The verdict on all cells, and the differences in the one that decides, which the row shows."""
        raise NotImplementedError

    def found(self, claim: str, profile: str, read: Read) -> dict:
        """The fewest seeds of all cells, the gap of the cell that decides, and the verdict on all."""
        if not (gaps := self._gaps(profile, read)):
            return {}
        verdict, decides = self.judged(gaps, lambda: [line.label for line in self.drawn(claim, profile, read)])
        return {"seeds": min(map(len, gaps)), **span(decides), "verdict": verdict}

    def drawn(self, claim: str, profile: str, read: Read) -> list[Drawn]:
        """The differences of each cell, by seed; none if a cell has no seed."""
        if not (gaps := self._gaps(profile, read)):
            return []
        tables = [cell.rows(profile, read) for cell in self.cells]
        lines = zip(labels(self.cells, tables), gaps, tables)
        return [Drawn(label, gap, 0.0, self.unit, runs) for label, gap, runs in lines]

    def ours(self, row) -> str:
        return f"gap {measured(row, self.unit)} {self.unit.name}"

    def _gaps(self, profile: str, read: Read) -> list[pd.Series]:
        gaps = [cell.differences(profile, read) for cell in self.cells]
        return [] if any(gap.empty for gap in gaps) else gaps


@dataclass(frozen=True)
class Direction(Compared):
    """A claim that one thing is above another in each of its cells, if read as `given` says; the interval that ends
    lowest decides."""

    given: str = ""

    def judged(self, gaps: Sequence[pd.Series], names: Callable[[], list[str]]) -> tuple[str, pd.Series]:
        """The verdict, which names cells that alone are significant, and those with an interval below zero."""
        verdict = rules.direction_verdict(gaps, self.unit)
        sure = rules.significant(gaps) if verdict == rules.PART else [False] * len(gaps)
        turned = [mean_interval(gap).high < 0 for gap in gaps]
        known = names() if any(sure) or any(turned) else []
        named = lambda chosen: " and for ".join(label for label, one in zip(known, chosen) if one)
        below = "and the interval is below zero for "
        notes = {"significant for ": named(sure), below: named(turned), "if ": self.given}
        said = ", ".join(word + note for word, note in notes.items() if note)
        return noted(verdict, said), min(gaps, key=lambda gap: mean_interval(gap).low)


@dataclass(frozen=True)
class NoGain(Compared):
    """A claim that one thing does not better another: of each cell the one without gain first; the interval that ends
    highest decides. Read as `given` says."""

    given: str = ""

    def judged(self, gaps: Sequence[pd.Series], names: Callable[[], list[str]]) -> tuple[str, pd.Series]:
        verdict = noted(rules.no_gain_verdict(gaps, self.unit), self.given and f"if {self.given}")
        return verdict, max(gaps, key=lambda gap: mean_interval(gap).high)

    def ours(self, row) -> str:
        return super().ours(row).replace("gap", "gain")


@dataclass(frozen=True)
class Parts(OfRuns):
    """A claim of several directions, each with its unit. The row shows the numbers of the first."""

    parts: Mapping[str, Direction]

    def found(self, claim: str, profile: str, read: Read) -> dict:
        """The first part's row, and the verdict on all parts."""
        rows = {name: part.found(claim, profile, read) for name, part in self.parts.items()}
        if not all(rows.values()):
            return {}
        verdict = rules.parts_verdict({name: row["verdict"] for name, row in rows.items()})
        return next(iter(rows.values())) | {"verdict": verdict}

    def drawn(self, claim: str, profile: str, read: Read) -> list[Drawn]:
        lines = [(name, line) for name, part in self.parts.items() for line in part.drawn(claim, profile, read)]
        return [line._replace(label=f"{name}: {line.label}") for name, line in lines]

    def ours(self, row) -> str:
        return next(iter(self.parts.values())).ours(row)


@dataclass(frozen=True)
class Reaches(OfRuns):
    """A claim that something is always right: every run reaches 100 %, in one of its readings."""

    queries: Sequence[str]

    def found(self, claim: str, profile: str, read: Read) -> dict:
        """The reading with the highest mean, and the verdict on all."""
        readings = [line.values for line in self.drawn(claim, profile, read)]
        if not readings:
            return {}
        verdict = rules.reaches_verdict(readings, scale("last").top)
        shown = span(max(readings, key=np.mean), 0.0, scale("last").top)
        return {"seeds": min(map(len, readings)), **shown, "verdict": verdict}

    def drawn(self, claim: str, profile: str, read: Read) -> list[Drawn]:
        (_, factor, top), tables = scale("last"), [read(query, profile) for query in self.queries]
        tables = [rows for rows in tables if not rows.empty]
        lines = zip(map(", ".join, told(tables)), tables)
        return [Drawn(label, factor * rows["last"], top, PERCENTS, (rows,), (0.0, top)) for label, rows in lines]

    def ours(self, row) -> str:
        return f"best setting {measured(row, POINTS)} %"


# Labels


def labels(cells: Sequence[Cell], tables: Sequence[tuple[pd.DataFrame, pd.DataFrame]]) -> list[str]:
    """Labels of cells: first the words that tell a cell from the others, then one side minus the other.

    `tables` holds the rows of both sides of each cell.
    """
    columns = [*(cell.column for cell in cells), *(cell.beside for cell in cells)]
    words = told([*(above for above, _ in tables), *(below for _, below in tables)])
    if set(columns) != {"last"}:
        words = [[*some, COLUMNS.get(column, column.replace("_", " "))] for some, column in zip(words, columns)]
    return [_label(one, other) for one, other in zip(words[: len(cells)], words[len(cells) :])]


def told(tables: Sequence[pd.DataFrame]) -> list[list[str]]:
    """The words that tell tables apart: what all have is left out, and what is implied; tasks have short names."""
    words = [_words(rows) for rows in tables]
    kinds = lambda some: len({tuple(each.values()) for each in some})
    short = [each | {"task": re.split("[ ,]", each["task"])[0]} if "task" in each else each for each in words]
    words = short if kinds(short) == kinds(words) else words
    for column in IMPLIED:
        without = [{name: word for name, word in each.items() if name != column} for each in words]
        words = without if kinds(without) == kinds(words) else words
    return apart([[*each.values()] for each in words])


def apart(lists: Sequence[Sequence[str]]) -> list[list[str]]:
    """Each list of words without those that stand in all of them."""
    alike = set.intersection(*map(set, lists)) if lists else set()
    return [[word for word in words if word not in alike] for words in lists]


def _label(above: Sequence[str], below: Sequence[str]) -> str:
    shared = [word for word in above if word in below]
    sides = [[word for word in side if word not in shared] for side in (above, below)]
    named = [", ".join(side) or "the other" for side in sides]
    named = [f"({name})" if re.search(r", | \+ ", name) else name for name in named]
    difference = " minus ".join(named) if any(sides) else ""
    return ": ".join(filter(None, [", ".join(shared), difference]))


def _words(rows: pd.DataFrame) -> dict[str, str]:
    """Words for columns that are the same in all rows; K is the tokens of a sampled thought, and only CoT2 has a B."""
    rows = rows.rename(columns={"k": "K"}) if "sampler" in rows else rows
    if "method" in rows and not rows["method"].astype(str).str.startswith("CoT2").any():
        rows = rows.drop(columns="budget", errors="ignore")
    same = {name: says for name, says in SAID.items() if name in rows and rows[name].nunique(dropna=False) == 1}
    return {name: says(rows[name].iloc[0]) for name, says in same.items() if rows[name].notna().all()}
