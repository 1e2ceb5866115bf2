"""Kinds of claims that compare: directions, no gain, values, what is reached, and claims of several such parts."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from cot2lib.metrics import Values, by_seed, mean_interval, paired_interval
from cot2lib.study import judge as rules
from cot2lib.study.judge import POINTS, Unit
from cot2lib.study.kinds import (
    SETTLED,
    Drawn,
    Kind,
    Read,
    command,
    measured,
    noted,
    of_profile,
    span,
    under,
    unmeasured,
)
from cot2lib.study.report import PERCENT
from cot2lib.study.samples import Sample

# What tells the sides and cells of a comparison apart, by column, in a reader's words.
SAID: dict[str, Callable[[object], str]] = {
    "task": str,
    "method": str,
    "layers": lambda count: f"{count} layers" if count > 1 else "1 layer",
    "d_model": lambda width: f"d = {width}",
    "budget": lambda budget: f"B = {budget}",
    "tokens": lambda count: f"{count} {'tokens' if count > 1 else 'token'} scored",
    "fed": lambda feeder: f"fed by {feeder}",
    "sampler": str,
    "k": lambda samples: f"k = {samples}",
    "K": "K = {}".format,
    "gamma": lambda scale: f"\N{GREEK SMALL LETTER GAMMA} = {scale:g}",
    "temperature": lambda temperature: f"T = {temperature:g}",
    "ratio": lambda kind: f"{kind} ratio",
    "feed": lambda what: f"fed the {what}",
    "lr": lambda rate: f"rate {rate:g}",
    "embedding": lambda kind: f"{kind} embeddings",
    "scaled": lambda scaled: "scaled" if scaled else "not scaled",
}


COLUMNS = {
    "last": "last epoch", "best": "best epoch", "before": "what it starts from",
    "curve_mean": "mean over training", "gain": "gained by reward",
    "lost": "lost since the best epoch", "base_lost": "lost since the best epoch by base decoding",
    "base_last": "last epoch by base decoding", "base_best": "best epoch by base decoding",
    "base_before": "before reward", "base_split_half": "best epoch by base decoding",
}  # fmt: skip


class Cell(NamedTuple):
    """One comparison of a direction: a sample's column against another's."""

    above: Sample
    column: str
    below: Sample
    beside: str


def against(above: Sample, below: Sample, column: str = "last") -> Cell:
    """The cell that compares two samples in one column."""
    return Cell(above, column, below, column)


@dataclass(frozen=True)
class Compared(Kind):
    """A claim on the differences between the two sides of some cells.

    Attributes:
        chapter: whose runs measure it; several with spaces between.
        cells: what is compared.
        scale, unit: as of a `Number`.
    """

    chapter: str
    cells: Sequence[Cell]
    scale: float = PERCENT
    unit: Unit = POINTS

    @abstractmethod
    def judged(self, sides: Sequence[rules.Sides], profile: str, read: Read) -> tuple[str, rules.Sides]:
        """The verdict on all cells, and the sides of the one that decides."""

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """The gap of the cell that decides, and the verdict on all."""
        sides = paired(self.cells, profile, read, self.scale)
        if sides is None:
            return unmeasured(profile) | command(self.chapter, profile)
        verdict, decides = self.judged(sides, profile, read)
        return compared(sides, decides) | {"verdict": under(profile, verdict)} | command(self.chapter, profile)

    def drawn(self, claim: str, profile: str, read: Read) -> list[Drawn]:
        """The differences of each cell."""
        return differing(self.cells, profile, read, self.scale, self.unit)

    def ours(self, row) -> str:
        """The gap of the cell that decides."""
        return f"gap {measured(row, self.unit)}"


@dataclass(frozen=True)
class Direction(Compared):
    """A claim that one thing is above another, in each of its cells; the interval that ends lowest decides.

    Attributes:
        given: under which reading the verdict is meant, where the claim leaves it open.
        but: gives what a reader has to know beside the verdict, or "".
    """

    given: str = ""
    but: Callable[[], str] = str

    def judged(self, sides: Sequence[rules.Sides], profile: str, read: Read) -> tuple[str, rules.Sides]:
        """The verdict with its notes, and the cell whose interval ends lowest."""
        gaps, verdict = [paired_interval(*pair) for pair in sides], rules.direction_verdict(sides, self.unit)
        sure = rules.significant(sides) if verdict == rules.PART else [False] * len(sides)
        turned = [gap.high < 0 for gap in gaps]
        lines = self.drawn("", profile, read) if any(sure) or any(turned) else []
        named = lambda chosen: "; ".join(line.label for line, one in zip(lines, chosen) if one)
        notes = {"": named(sure), "the other way round in ": named(turned), "but ": self.but(), "if ": self.given}
        said = ", ".join(word + note for word, note in notes.items() if note)
        lowest = min(range(len(sides)), key=lambda place: gaps[place].low)
        return noted(verdict, said), sides[lowest]


@dataclass(frozen=True)
class NoGain(Compared):
    """A claim that one thing does not better another: of each cell the one without gain first."""

    def judged(self, sides: Sequence[rules.Sides], profile: str, read: Read) -> tuple[str, rules.Sides]:
        """The verdict, and the cell whose interval ends highest."""
        return rules.no_gain_verdict(sides, self.unit), max(sides, key=lambda pair: paired_interval(*pair).high)


@dataclass(frozen=True)
class Parts(Kind):
    """A claim of several directions, each with its unit. The row shows the numbers of the first."""

    parts: Mapping[str, Direction]

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """The first part's row, and the verdict on all parts."""
        rows = {name: part.row(claim, SETTLED, of_profile(read, profile)) for name, part in self.named}
        first = self.first.row(claim, profile, read)
        if not all(row["seeds"] for row in rows.values()):
            return unmeasured(profile) | command(self.first.chapter, profile)
        verdict = rules.parts_verdict({name: row["verdict"] for name, row in rows.items()})
        return first | {"verdict": under(profile, verdict)}

    def drawn(self, claim: str, profile: str, read: Read) -> list[Drawn]:
        """The lines of all parts."""
        lines = [(name, line) for name, part in self.named for line in part.drawn(claim, profile, read)]
        return [line._replace(label=f"{name}: {line.label}") for name, line in lines]

    @property
    def named(self) -> Sequence[tuple[str, Direction]]:
        """Parts with their names."""
        return tuple(self.parts.items())

    @property
    def first(self) -> Direction:
        """The part whose numbers are shown."""
        return self.named[0][1]

    def ours(self, row) -> str:
        """The numbers of the first part."""
        return self.first.ours(row)


class Beside(NamedTuple):
    """One case of a claimed value: rows whose column `claimed` is ours minus it, and `other` ours minus another."""

    name: str
    sample: Sample


@dataclass(frozen=True)
class Value(Kind):
    """A claim that something has a value in each of its cases. The row shows the difference that lies farthest out.

    Attributes:
        chapter, unit: as of a `Number`.
        cases: what is compared.
        other: what the other value is, in words.
        but: as of a `Direction`.
    """

    chapter: str
    cases: Sequence[Beside]
    other: str
    unit: Unit = POINTS
    but: Callable[[], str] = str

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """The difference of the case that lies farthest outside, and the verdict on all."""
        tables = {case.name: read(case.sample, profile) for case in self.cases}
        if any(rows.empty for rows in tables.values()):
            return unmeasured(profile) | command(self.chapter, profile)
        claimed, other = ({name: rows[column] for name, rows in tables.items()} for column in ("claimed", "other"))
        worst = max(claimed, key=lambda name: _miss(claimed[name]))
        said = lambda name: (
            f"at {name} our interval misses it by {self.unit.text(_miss(claimed[name]))}, "
            f"{self.other} by {self.unit.text(_miss(other[name]))}"
        )
        notes = [*filter(None, [self.but() and f"but {self.but()}"]), *map(said, tables)]
        verdict = noted(rules.value_verdict(list(claimed.values()), self.unit), "; ".join(notes))
        shown = {"seeds": min(map(len, tables.values())), **span(claimed[worst])}
        return shown | {"verdict": under(profile, verdict)} | command(self.chapter, profile)

    def drawn(self, claim: str, profile: str, read: Read) -> list[Drawn]:
        """The differences of each case."""
        tables = {case.name: read(case.sample, profile) for case in self.cases}
        some = {name: rows for name, rows in tables.items() if not rows.empty}
        return [Drawn(name, rows["claimed"], 0.0, self.unit, (rows,)) for name, rows in some.items()]

    def ours(self, row) -> str:
        """The difference."""
        return f"difference {measured(row, self.unit)}"


@dataclass(frozen=True)
class Reaches(Kind):
    """A claim that something reaches a value: every run does, in one of the ways (`samples`) the claim can be read."""

    chapter: str
    samples: Sequence[Sample]
    value: float
    scale: float = PERCENT
    top: float = 100.0

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """The reading with the highest mean, and the verdict on all."""
        tables = [read(sample, profile) for sample in self.samples]
        readings = [self.scale * rows["last"] for rows in tables if not rows.empty]
        if not readings:
            return unmeasured(profile) | command(self.chapter, profile)
        verdict = under(profile, rules.reaches_verdict(readings, self.value))
        shown = span(max(readings, key=np.mean), 0.0, self.top)
        return {"seeds": min(map(len, readings)), **shown, "verdict": verdict} | command(self.chapter, profile)

    def drawn(self, claim: str, profile: str, read: Read) -> list[Drawn]:
        """The value of every run, by reading."""
        some = [rows for rows in (read(sample, profile) for sample in self.samples) if not rows.empty]
        lines = zip(apart([_words(rows) for rows in some]), some)
        beside = dict(stated=self.value, unit=POINTS, within=(0.0, self.top))
        return [Drawn(", ".join(s), self.scale * rows["last"], runs=(rows,), **beside) for s, rows in lines]

    def ours(self, row) -> str:
        """The mean of the best reading."""
        return measured(row, POINTS)


# What they share


def _miss(differences: Values) -> float:
    return rules.outside(mean_interval(differences))


def compared(sides: Sequence[rules.Sides], shown: rules.Sides) -> dict:
    """The fewest seeds of all cells, and the gap of the one that is shown."""
    return {"seeds": min(len(one) for one, _ in sides), **span(rules.differences(shown))}


def differing(cells: Sequence[Cell], profile: str, read: Read, scale: float, unit: Unit) -> list[Drawn]:
    """A line for each cell: one side minus the other, by seed; none if a cell has no seed."""
    sides = paired(cells, profile, read, scale)
    if sides is None:
        return []
    tables = [(read(cell.above, profile), read(cell.below, profile)) for cell in cells]
    lines = zip(labels(cells, tables), sides, tables)
    return [Drawn(label, above - below, 0.0, unit, runs) for label, (above, below), runs in lines]


def labels(cells: Sequence[Cell], tables: Sequence[tuple[pd.DataFrame, pd.DataFrame]]) -> list[str]:
    """Labels of cells: first the words that tell a cell from the others, then one side minus the other.

    `tables` holds the rows of both sides of each cell.
    """
    columns = [*(cell.column for cell in cells), *(cell.beside for cell in cells)]
    words = apart([_words(rows) for rows in (*(above for above, _ in tables), *(below for _, below in tables))])
    if set(columns) != {"last"}:
        words = [[*some, COLUMNS.get(column, column.replace("_", " "))] for some, column in zip(words, columns)]
    return [_label(one, other) for one, other in zip(words[: len(cells)], words[len(cells) :])]


def apart(lists: Sequence[Sequence[str]]) -> list[list[str]]:
    """Each list of words without those that stand in all of them."""
    alike = set.intersection(*map(set, lists)) if lists else set()
    return [[word for word in words if word not in alike] for words in lists]


def _label(above: Sequence[str], below: Sequence[str]) -> str:
    shared = [word for word in above if word in below]
    sides = [[word for word in side if word not in shared] for side in (above, below)]
    difference = " minus ".join(", ".join(side) or "the other" for side in sides) if any(sides) else ""
    return ": ".join(filter(None, [", ".join(shared), difference]))


def _words(rows: pd.DataFrame) -> list[str]:
    """Words for columns that are the same in all rows; K is the tokens of a sampled thought."""
    rows = rows.rename(columns={"k": "K"}) if "sampler" in rows else rows
    same = {name: says for name, says in SAID.items() if name in rows and rows[name].nunique(dropna=False) == 1}
    return [says(rows[name].iloc[0]) for name, says in same.items() if rows[name].notna().all()]


def paired(cells: Sequence[Cell], profile: str, read: Read, scale: float) -> list[rules.Sides] | None:
    """Both sides of every cell, in the claim's unit, for the seeds that both have; None if a cell has no seed."""
    sides = []
    for cell in cells:
        above, below = read(cell.above, profile), read(cell.below, profile)
        if above.index.intersection(below.index).empty:
            return None
        sides.append(by_seed(scale * above[cell.column], scale * below[cell.beside]))
    return sides
