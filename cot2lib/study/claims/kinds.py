"""Kinds of claims. Each makes its row of the ledger, and gives its verdict by one of the `rules`.

`row(claim, profile, read)` gives the columns that the kind fills: seeds, values in the claim's unit, verdict, command.
`ours(row)` says its value as a reader wants it. A kind without a measurement has no seeds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from cot2lib.metrics import Values, mean_interval, prediction_interval
from cot2lib.study.claims import rules
from cot2lib.study.claims.printed import paper_value
from cot2lib.study.claims.rules import WIDEST
from cot2lib.study.claims.samples import Sample
from cot2lib.study.report import PERCENT, describe
from cot2lib.theory.verdict import Verdict

SETTLED = "paper"  # the profile whose records settle a claim
Read = Callable[[Sample, str], pd.DataFrame]  # a sample's rows under a profile, for the seeds of the ledger


@runtime_checkable
class Kind(Protocol):
    """What the ledger asks of a claim."""

    def row(self, claim: str, profile: str, read: Read) -> dict: ...

    def ours(self, row) -> str: ...


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
class Number:
    """A number of the paper.

    Attributes:
        chapter: whose runs measure it.
        sample: rows by seed.
        paper_runs: of how many runs the paper's number is a mean.
        last, best, split_half: which columns hold the value at the last epoch, at the best one, and at the best one by
            halves; None where no epoch is chosen.
        judged: "last" or "best": which of them the paper prints.
        scale: our value times this is in the claim's unit.
        top: largest possible value, in the claim's unit.
        widest: half-width of our prediction interval from which there is no verdict.
        undecided: why there can be no verdict, if so.
        digits: decimals that a reader is shown.
    """

    chapter: str
    sample: Sample
    paper_runs: int
    last: str = "last"
    best: str | None = None
    split_half: str | None = None
    judged: str = "last"
    scale: float = PERCENT
    top: float = 100.0
    widest: float = WIDEST
    undecided: str = ""
    digits: int = 1

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """Means over seeds, the interval of the last epoch, and the prediction interval of what is judged."""
        rows = read(self.sample, profile)
        if rows.empty:
            return unmeasured(profile) | command(self.chapter, profile)
        columns = {"last": self.last, "best": self.best, "split_half": self.split_half}
        values = {name: self.scale * rows[column] for name, column in columns.items() if column}
        verdict = self._verdict(values[self.judged], paper_value(claim))
        return {
            "seeds": len(rows),
            **span(values["last"], 0.0, self.top),
            **{name: chosen.mean() for name, chosen in values.items()},
            "verdict": verdict if profile == SETTLED else "quick only",
            **command(self.chapter, profile),
            **self._judged(values[self.judged]),
        }

    def _verdict(self, values: Values, stated: float) -> str:
        if self.undecided:
            return f"undecided: {self.undecided}"
        return rules.number_verdict(values, stated, self.paper_runs, self.widest)

    def _judged(self, values: Values) -> dict:
        """What the verdict is about: which column, the interval of its mean, and the one that the rule asks."""
        mean = mean_interval(values, 0.0, self.top)
        further = prediction_interval(values, self.paper_runs)
        ends = {"judged_low": mean.low, "judged_high": mean.high}
        return {"judged": self.judged, **ends, "predicted_low": further.low, "predicted_high": further.high}

    def ours(self, row) -> str:
        """The mean of the last epoch with its interval."""
        return describe(row.last, row.last_low, row.last_high, self.digits)


@dataclass(frozen=True)
class OfStart:
    """A number of the models that policy gradients start from, at the evaluation before any step.

    The profile `paper` trained them, whatever profile goes on from them. Records of `quick` hold that evaluation.
    """

    number: Number

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """Under `paper` the number as quick records hold it; the profile `quick` trains no such start."""
        if profile != SETTLED:
            return {"seeds": 0, "verdict": f"not run: the {SETTLED} profile trains these starts"}
        held = lambda sample, _: read(sample, "quick")
        return self.number.row(claim, SETTLED, held) | command(self.number.chapter, "quick")

    def ours(self, row) -> str:
        """As of the number."""
        return self.number.ours(row)


@dataclass(frozen=True)
class Direction:
    """A claim that one thing is above another, in each of its cells.

    Attributes:
        chapter: whose runs measure it.
        cells: what is compared.
        scale, widest, digits: as of a `Number`.
        waiting: tasks of the claim that have no runs yet; it can then hold partly at most.
        given: under which reading the verdict is meant, where the claim leaves it open.
        but: gives what a reader has to know beside the verdict, or "".
    """

    chapter: str
    cells: Sequence[Cell]
    scale: float = PERCENT
    widest: float = WIDEST
    waiting: str = ""
    given: str = ""
    but: Callable[[], str] = str
    digits: int = 1

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """The smallest gap of the cells, and the verdict on all."""
        sides = paired(self.cells, profile, read, self.scale)
        if sides is None:
            return unmeasured(profile) | command(self.chapter, profile)
        smallest = min(sides, key=gap)
        verdict = under(profile, self._verdict(sides))
        return compared(sides, smallest) | {"verdict": verdict} | command(self.chapter, profile)

    def _verdict(self, sides: Sequence[rules.Sides]) -> str:
        verdict = rules.direction_verdict(sides, self.widest)
        if verdict == rules.REPRODUCED and self.waiting:
            return f"{rules.PARTLY}: {self.waiting} not run yet"
        notes = {"": reversed_in(sides) if verdict == rules.NOT else "", "if ": self.given, "but ": self.but()}
        said = ", ".join(word + note for word, note in notes.items() if note)
        return f"{verdict}: {said}" if said else verdict

    def ours(self, row) -> str:
        """The smallest gap."""
        return f"gap {describe(row.last, row.last_low, row.last_high, self.digits)}"


@dataclass(frozen=True)
class NoGain:
    """A claim that one thing does not better another: cells as of a `Direction`, the one without gain first."""

    chapter: str
    cells: Sequence[Cell]
    scale: float = PERCENT
    widest: float = WIDEST

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """The largest gain of the cells, and the verdict on all."""
        sides = paired(self.cells, profile, read, self.scale)
        if sides is None:
            return unmeasured(profile) | command(self.chapter, profile)
        verdict = under(profile, rules.no_gain_verdict(sides, self.widest))
        return compared(sides, max(sides, key=gap)) | {"verdict": verdict} | command(self.chapter, profile)

    def ours(self, row) -> str:
        """The largest gain."""
        return f"gap {describe(row.last, row.last_low, row.last_high)}"


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
        return describe(row.last, row.last_low, row.last_high)


@dataclass(frozen=True)
class Fact:
    """A claim that counting settles, about the data or about the paper's own tables.

    Attributes:
        value: in the claim's unit.
        holds: whether the claim holds, by its value.
        by: what settles it, where that is not the data.
    """

    value: Callable[[], float]
    holds: Callable[[float], bool]
    by: str = ""

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """The value, the same under every profile."""
        value = self.value()
        verdict = "holds" if self.holds(value) else "refuted"
        return {"seeds": 0, "last": value, "verdict": f"{verdict}: by {self.by}" if self.by else verdict}

    def ours(self, row) -> str:
        """The value."""
        return describe(row.last, np.nan, np.nan)


@dataclass(frozen=True)
class Statement:
    """A statement of the paper that computation settles.

    Attributes:
        check: decides it as printed and as corrected.
        test: the file whose tests fail if the verdict is wrong.
        vacuous: says why a statement that holds says nothing, or "".
    """

    check: Callable[[], Verdict]
    test: str
    vacuous: Callable[[], str] = str

    @cached_property
    def verdict(self) -> str:
        """`holds`, `holds vacuously: ...`, `holds if ...` or `refuted`."""
        found, empty = self.check().text, self.vacuous()
        return f"holds vacuously: {empty}" if found == "holds" and empty else found

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """The verdict, the same under every profile, and the test that would fail were it wrong."""
        return {"seeds": 0, "verdict": self.verdict, "command": f"pytest {self.test}"}

    def ours(self, row) -> str:
        """No value."""
        return ""


@dataclass(frozen=True)
class NotMeasured:
    """A row of `claims.csv` that nothing of ours stands beside."""

    verdict: str

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """The reason."""
        return {"seeds": 0, "verdict": self.verdict}

    def ours(self, row) -> str:
        """No value."""
        return ""


SETTING = NotMeasured("no claim: a setting")
LATER = NotMeasured("not run: its chapter is not written yet")


# What kinds share


def unmeasured(profile: str) -> dict:
    """The row of a claim without records under a profile."""
    return {"seeds": 0, "verdict": f"not run: no {profile} records yet"}


def command(chapter: str, profile: str) -> dict:
    """What makes the records of a chapter under a profile."""
    which = f"{chapter} --profile {profile}"
    return {"command": f"cot2 run {which} && cot2 collect {which}"}


def under(profile: str, verdict: str) -> str:
    """A verdict as the ledger gives it; what the quick profile finds is said, but settles nothing."""
    return verdict if profile == SETTLED else f"quick only: there {verdict.replace(': ', ', ')}"


def span(values: Values, low: float = -np.inf, high: float = np.inf) -> dict:
    """Mean of some values and its interval within low..high."""
    interval = mean_interval(values, low, high)
    return {"last": interval.mean, "last_low": interval.low, "last_high": interval.high}


def compared(sides: Sequence[rules.Sides], shown: rules.Sides) -> dict:
    """The fewest seeds of all cells, and the gap of the one that is shown."""
    above, below = (np.asarray(side, dtype=float) for side in shown)
    return {"seeds": min(len(one) for one, _ in sides), **span(above - below)}


def reversed_in(sides: Sequence[rules.Sides]) -> str:
    """In how many cells the whole interval says the opposite of the claim, in words."""
    count = rules.reversed_cells(sides)
    return f"the other way round in {count} of {len(sides)} cells" if count else ""


def gap(sides: rules.Sides) -> float:
    """Mean difference of a cell."""
    return float(np.mean(np.asarray(sides[0], dtype=float) - np.asarray(sides[1], dtype=float)))


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
