"""Kinds of claims. Each makes its row of the ledger, and gives its verdict by one of the `rules`.

`row(claim, profile, read)` gives the columns that the kind fills: seeds, values in the claim's unit, verdict, command.
`ours(row)` says its value as a reader wants it. `number()` gives the number of the paper that is judged, if the claim
is one. A kind without a measurement has no seeds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from cot2lib.metrics import Values, mean_interval, prediction_interval
from cot2lib.study import judge as rules
from cot2lib.study.judge import NAT, PERCENTS, POINTS, Unit
from cot2lib.study.printed import paper_value
from cot2lib.study.report import PERCENT, describe
from cot2lib.study.samples import Sample, held_out
from cot2lib.theory.verdict import Verdict

SETTLED = "paper"  # the profile whose records settle a claim
Read = Callable[[Sample, str], pd.DataFrame]  # a sample's rows under a profile, for the seeds of the ledger


@runtime_checkable
class Kind(Protocol):
    """The members that the ledger asks of a claim; the kinds inherit from it."""

    def row(self, claim: str, profile: str, read: Read) -> dict: ...

    def ours(self, row) -> str: ...

    def number(self) -> "Number | None":
        """None: most claims are no number."""
        return None


class Drawn(NamedTuple):
    """One line of a claim's card: runs, and what the claim compares them with.

    Attributes:
        label: what is measured, in words; empty where the claim itself says it.
        values: by seed, in the claim's unit.
        stated: the paper's number, or 0 for a difference.
        unit: of the values.
        runs: the rows that they come from, of one or two samples.
        within: the ends that the values can reach.
    """

    label: str
    values: pd.Series
    stated: float
    unit: Unit
    runs: tuple[pd.DataFrame, ...]
    within: tuple[float, float] = (-np.inf, np.inf)


@runtime_checkable
class OfRuns(Protocol):
    """A claim that runs speak to, so that its card draws them."""

    def drawn(self, claim: str, profile: str, read: Read) -> list[Drawn]: ...


@dataclass(frozen=True)
class Number(Kind):
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
        unit: the claim's unit.
        since: the claim that states what a series begins with, where gains since then are judged; the column `first`
            holds what each run's own begins with.
        chance: share of questions that a guess answers, where models may learn nothing.
        untested: why there can be no verdict, if so.
        given: under which reading the verdict is meant, where the paper leaves it open.
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
    unit: Unit = POINTS
    since: str | None = None
    chance: float | None = None
    untested: str = ""
    given: str = ""

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """Means over seeds, the interval of the last epoch, and the prediction interval of what is judged."""
        rows = read(self.sample, profile)
        if rows.empty:
            return unmeasured(profile) | command(self.chapter, profile)
        values = {name: self.scale * rows[column] for name, column in self._columns.items() if column}
        judged, stated = self._compared(claim, rows)
        verdict = self._verdict(judged, stated, rows)
        return {
            "seeds": len(rows),
            **span(values["last"], 0.0, self.top),
            **{name: chosen.mean() for name, chosen in values.items()},
            "verdict": verdict if profile == SETTLED else "quick only",
            **command(self.chapter, profile),
            **self._judged(judged, stated),
        }

    def drawn(self, claim: str, profile: str, read: Read) -> list[Drawn]:
        """The values that the verdict is about."""
        rows = read(self.sample, profile)
        if rows.empty:
            return []
        values, stated = self._compared(claim, rows)
        unit = PERCENTS if self.unit == POINTS else self.unit
        return [Drawn("", values, stated, unit, (rows,), (0.0, self.top))]

    def _compared(self, claim: str, rows: pd.DataFrame) -> tuple[pd.Series, float]:
        """The values that are judged, by seed, and the paper's number: both are gains where a series goes on."""
        values, stated = self.scale * rows[self._columns[self.judged]], paper_value(claim)
        if self.since is None:
            return values, stated
        return values - self.scale * rows["first"], stated - paper_value(self.since)

    @property
    def _columns(self) -> dict[str, str | None]:
        return {"last": self.last, "best": self.best, "split_half": self.split_half}

    def _verdict(self, values: Values, stated: float, rows: pd.DataFrame) -> str:
        if self.untested:
            return f"{rules.UNTESTED}: {self.untested}"
        verdict = self._unlearnt(rows, stated) or rules.number_verdict(values, stated, self.paper_runs, self.unit)
        return noted(verdict, f"if {self.given}" if self.given else "")

    def _unlearnt(self, rows: pd.DataFrame, stated: float) -> str:
        """The verdict where no run is right more often than by chance, else ""."""
        if self.chance is None:
            return ""
        asked = held_out(rows)
        if len(rows) < rules.FEWEST_SEEDS or rules.learnt(rows[self.last] * asked, asked, self.chance):
            return ""
        too = self.unit.close(stated - self.scale * self.chance)
        return f"{rules.REPRODUCED}: {rules.AT_CHANCE}" if too else f"{rules.UNLEARNT}: ours stay at chance"

    def _judged(self, values: Values, stated: float) -> dict:
        """The judged column, its interval, the interval of the rule, and ours less the paper's."""
        mean = mean_interval(values, -np.inf if self.since else 0.0, self.top)
        further = prediction_interval(values, self.paper_runs)
        ends = {"judged_low": mean.low, "judged_high": mean.high}
        ends |= {"predicted_low": further.low, "predicted_high": further.high}
        return {"judged": "gain" if self.since else self.judged, **ends, "difference": values.mean() - stated}

    def ours(self, row) -> str:
        """The mean of the last epoch with its interval."""
        return measured(row, self.unit)

    def number(self) -> "Number":
        """The claim itself."""
        return self


@dataclass(frozen=True)
class Fact(Kind):
    """A claim that counting settles, about the data or about the paper's own tables.

    Attributes:
        value: in the claim's unit.
        holds: whether the claim holds, by its value.
        by: what settles it, where that is not the data.
        against: says what contradicts the claim, or "".
    """

    value: Callable[[], float]
    holds: Callable[[float], bool]
    by: str = ""
    against: Callable[[], str] = str

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """The value, the same under every profile."""
        value = self.value()
        verdict = "holds" if self.holds(value) else "refuted"
        why = ", where ".join(filter(None, [f"by {self.by}" if self.by else "", self.against()]))
        return {"seeds": 0, "last": value, "verdict": noted(verdict, why)}

    def ours(self, row) -> str:
        """The value."""
        return describe(row.last, np.nan, np.nan)


@dataclass(frozen=True)
class Statement(Kind):
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
class NotMeasured(Kind):
    """A row of `claims.csv` that nothing of ours stands beside."""

    verdict: str

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """The reason."""
        return {"seeds": 0, "verdict": self.verdict}

    def ours(self, row) -> str:
        """No value."""
        return ""


SETTING = NotMeasured("no claim: a setting")


# Numbers that several chapters have

ENTROPY = dict(scale=1.0, top=np.inf, unit=NAT)  # options of a number that is an entropy


def accuracy(sample: Sample, paper_runs: int, chapter: str = "csft") -> Number:
    """A validation accuracy of which epochs can be chosen; the paper prints the last one's."""
    return Number(chapter, sample, paper_runs, best="best", split_half="split_half")


# What kinds share


def noted(verdict: str, note: str) -> str:
    """A verdict with a note."""
    return f"{verdict}{', ' if ':' in verdict else ': '}{note}" if note else verdict


def unmeasured(profile: str) -> dict:
    """The row of a claim without records under a profile."""
    return {"seeds": 0, "verdict": f"not run: no {profile} records yet"}


def of_profile(read: Read, profile: str) -> Read:
    """Reads the rows of one profile, whichever is asked for."""
    return lambda sample, _: read(sample, profile)


def command(chapters: str, profile: str) -> dict:
    """The command that makes the records of a chapter under a profile, or of several with spaces between."""
    train = lambda chapter: "llm train" if chapter == "gsm8k" else f"run {chapter}"
    steps = [step for chapter in chapters.split() for step in (train(chapter), f"collect {chapter}")]
    return {"command": " && ".join(f"cot2 {step} --profile {profile}" for step in steps)}


def under(profile: str, verdict: str) -> str:
    """A verdict as the ledger gives it; what the quick profile finds is said, but settles nothing."""
    return verdict if profile == SETTLED else f"quick only: there {verdict.replace(': ', ', ')}"


def measured(row, unit: Unit) -> str:
    """The mean of a row with its interval, in the decimals of its unit."""
    return describe(row.last, row.last_low, row.last_high, unit.digits)


def span(values: Values, low: float = -np.inf, high: float = np.inf) -> dict:
    """Mean of some values and its interval within low..high."""
    interval = mean_interval(values, low, high)
    return {"last": interval.mean, "last_low": interval.low, "last_high": interval.high}
