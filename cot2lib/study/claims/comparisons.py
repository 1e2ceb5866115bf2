"""Kinds of claims that compare: directions, no gain, values, what is reached, and claims of several such parts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cot2lib.metrics import Values, mean_interval
from cot2lib.study.claims import rules
from cot2lib.study.claims.kinds import SETTLED, Read, command, measured, span, under, unmeasured
from cot2lib.study.claims.rules import POINTS, Unit
from cot2lib.study.claims.samples import Sample
from cot2lib.study.report import PERCENT


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
class Direction:
    """A claim that one thing is above another, in each of its cells.

    Attributes:
        chapter: whose runs measure it.
        cells: what is compared.
        scale, unit: as of a `Number`.
        waiting: tasks of the claim that have no runs yet; it can then hold partly at most.
        given: under which reading the verdict is meant, where the claim leaves it open.
        but: gives what a reader has to know beside the verdict, or "".
    """

    chapter: str
    cells: Sequence[Cell]
    scale: float = PERCENT
    unit: Unit = POINTS
    waiting: str = ""
    given: str = ""
    but: Callable[[], str] = str

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """The smallest gap of the cells, and the verdict on all."""
        sides = paired(self.cells, profile, read, self.scale)
        if sides is None:
            return unmeasured(profile) | command(self.chapter, profile)
        smallest = min(sides, key=gap)
        verdict = under(profile, self._verdict(sides))
        return compared(sides, smallest) | {"verdict": verdict} | command(self.chapter, profile)

    def _verdict(self, sides: Sequence[rules.Sides]) -> str:
        verdict = rules.direction_verdict(sides, self.unit)
        if verdict == rules.REPRODUCED and self.waiting:
            return f"{rules.PARTLY}: {self.waiting} not run yet"
        notes = {"": reversed_in(sides), "if ": self.given, "but ": self.but()}
        said = ", ".join(word + note for word, note in notes.items() if note)
        return f"{verdict}{', ' if ':' in verdict else ': '}{said}" if said else verdict

    def ours(self, row) -> str:
        """The smallest gap."""
        return f"gap {measured(row, self.unit)}"


@dataclass(frozen=True)
class NoGain:
    """A claim that one thing does not better another: cells as of a `Direction`, the one without gain first."""

    chapter: str
    cells: Sequence[Cell]
    scale: float = PERCENT
    unit: Unit = POINTS

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """The largest gain of the cells, and the verdict on all."""
        sides = paired(self.cells, profile, read, self.scale)
        if sides is None:
            return unmeasured(profile) | command(self.chapter, profile)
        verdict = under(profile, rules.no_gain_verdict(sides, self.unit))
        return compared(sides, max(sides, key=gap)) | {"verdict": verdict} | command(self.chapter, profile)

    def ours(self, row) -> str:
        """The largest gain."""
        return f"gap {measured(row, self.unit)}"


@dataclass(frozen=True)
class Parts:
    """A claim of several directions, each with its unit. The row shows the numbers of the first."""

    parts: Mapping[str, Direction]

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """The first part's row, and the verdict on all parts."""
        rows = {name: part.row(claim, SETTLED, lambda sample, _: read(sample, profile)) for name, part in self.named}
        first = self.first.row(claim, profile, read)
        if not all(row["seeds"] for row in rows.values()):
            return unmeasured(profile) | command(self.first.chapter, profile)
        verdict = rules.parts_verdict({name: row["verdict"] for name, row in rows.items()})
        return first | {"verdict": under(profile, verdict)}

    @property
    def named(self) -> Sequence[tuple[str, Direction]]:
        """Parts with their names."""
        return tuple(self.parts.items())

    @property
    def first(self) -> Direction:
        """The part whose numbers are shown."""
        return self.named[0][1]

    def ours(self, row) -> str:
        """As of the first part."""
        return self.first.ours(row)


class Beside(NamedTuple):
    """One case of a claimed value: rows whose column `claimed` is ours minus it, and `other` ours minus another."""

    name: str
    sample: Sample


@dataclass(frozen=True)
class Value:
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
        verdict = f"{rules.value_verdict(list(claimed.values()), self.unit)}: {'; '.join(notes)}"
        shown = {"seeds": min(map(len, tables.values())), **span(claimed[worst])}
        return shown | {"verdict": under(profile, verdict)} | command(self.chapter, profile)

    def ours(self, row) -> str:
        """The difference."""
        return f"difference {measured(row, self.unit)}"


@dataclass(frozen=True)
class Reaches:
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

    def ours(self, row) -> str:
        """The mean of the best reading."""
        return measured(row, POINTS)


# What they share


def _miss(differences: Values) -> float:
    return rules.outside(mean_interval(differences))


def compared(sides: Sequence[rules.Sides], shown: rules.Sides) -> dict:
    """The fewest seeds of all cells, and the gap of the one that is shown."""
    return {"seeds": min(len(one) for one, _ in sides), **span(rules.differences(shown))}


def reversed_in(sides: Sequence[rules.Sides]) -> str:
    """In how many cells the whole interval says the opposite of the claim, in words."""
    count = rules.reversed_cells(sides)
    return f"the other way round in {count} of {len(sides)} cells" if count else ""


def gap(sides: rules.Sides) -> float:
    """Mean difference of a cell."""
    return float(rules.differences(sides).mean())


def paired(cells: Sequence[Cell], profile: str, read: Read, scale: float) -> list[rules.Sides] | None:
    """Both sides of every cell, in the claim's unit, for the seeds that both have; None if a cell has no seed."""
    sides = []
    for cell in cells:
        above, below = read(cell.above, profile), read(cell.below, profile)
        shared = above.index.intersection(below.index) if len(above) and len(below) else []
        if not len(shared):
            return None
        sides.append((scale * above.loc[shared, cell.column], scale * below.loc[shared, cell.beside]))
    return sides
