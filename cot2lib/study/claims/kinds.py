"""Kinds of claims. Each makes its row of the ledger, and gives its verdict by one of the rules of `judge`.

`row(claim, profile, read)` gives the columns that the kind fills: seeds, values in the claim's unit, verdict, command.
`ours(row)` says its value as a reader wants it. A kind without a measurement has no seeds. Directions and other
comparisons are in `comparisons`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from cot2lib.metrics import Values, mean_interval, prediction_interval
from cot2lib.study import judge as rules
from cot2lib.study.claims.queries import Read
from cot2lib.study.frame import held_out
from cot2lib.study.judge import NAT, PERCENTS, POINTS, Unit
from cot2lib.study.printed import paper_value
from cot2lib.study.report import PERCENT, describe

SETTLED = "paper"  # the profile whose records settle a claim
YES, NO = "yes", "no"
HOURS, TOKENS = Unit("hours", np.inf, 3), Unit("tokens", 5.0, 1)
NEEDS = {"gsm8k": "needs a GPU"}  # what runs by the authors' recipe need, by chapter


class Scale(NamedTuple):
    """What a measured column times `factor` is in, and the largest possible value."""

    unit: Unit
    factor: float
    top: float


SCALES = {  # by how the name of a column begins; others are shares
    "entropy": Scale(NAT, 1.0, np.inf), "hours": Scale(HOURS, 1.0, np.inf), "length": Scale(TOKENS, 1.0, np.inf),
    "pass_at_k": Scale(POINTS, 1.0, 100.0), "maj_at_k": Scale(POINTS, 1.0, 100.0), "": Scale(POINTS, PERCENT, 100.0),
}  # fmt: skip


def scale(column: str) -> Scale:
    return next(found for name, found in SCALES.items() if column.startswith(name))


class Drawn(NamedTuple):
    """One line of a claim's card: runs, and what the claim compares them with.

    The `label` says what is measured; it is empty where the claim itself does. `values` by seed come from the rows
    `runs` of one or two queries, and can reach the ends `within`. `stated` is the paper's number, 0 for a difference.
    """

    label: str
    values: pd.Series
    stated: float
    unit: Unit
    runs: tuple[pd.DataFrame, ...]
    within: tuple[float, float] = (-np.inf, np.inf)


class Kind:
    """What the ledger asks of a claim; by itself the kind of a setting, which claims nothing."""

    def row(self, claim: str, profile: str, read: Read) -> dict:
        return {"seeds": 0, "verdict": "no claim: a setting"}

    def ours(self, row) -> str:
        return ""


@dataclass(frozen=True)
class OfRuns(Kind):
    """A claim that runs speak to, so that its card draws them; `chapter` says whose, several with spaces between."""

    chapter: str

    def found(self, claim: str, profile: str, read: Read) -> dict:
        """The row without its command, with the verdict by the rule; empty without records."""
        raise NotImplementedError

    def drawn(self, claim: str, profile: str, read: Read) -> list[Drawn]:
        raise NotImplementedError

    def row(self, claim: str, profile: str, read: Read) -> dict:
        found = self.found(claim, profile, read)
        if not found:
            return unmeasured(self.chapter, profile)
        return found | {"verdict": self.under(profile, found["verdict"])} | command(self.chapter, profile)

    def under(self, profile: str, verdict: str) -> str:
        """A verdict as the ledger gives it; the quick profile adds what it finds there, which settles nothing."""
        return verdict if profile == SETTLED else f"quick only: there {verdict.replace(': ', ', ')}"


@dataclass(frozen=True)
class Number(OfRuns):
    """A number of the paper, from the runs of a query; `rows` explains its fields, columns of `claims.csv`.

    `last` in a value's name is the last epoch. Where the paper chose epochs, `judged` is "last" or "best", as it
    prints. Where gains `since` the first claim of a series are judged, `start` is the query of that one. `chance` is
    the share of questions that a guess answers, where models may learn nothing. The row's command makes the runs
    anew under the profile `trained`, or under the row's own.
    """

    query: str
    value: str = "last"
    paper_runs: int = 1
    judged: str = ""
    since: str = ""
    start: str = ""
    chance: float | None = None
    untested: str = ""
    given: str = ""
    trained: str = ""

    def row(self, claim: str, profile: str, read: Read) -> dict:
        row = super().row(claim, profile, read)
        return row | command(self.chapter, self.trained) if self.trained else row

    @property
    def unit(self) -> Unit:
        return scale(self.value).unit

    @property
    def shown_in(self) -> Unit:
        return PERCENTS if self.unit == POINTS else self.unit

    @property
    def top(self) -> float:
        return scale(self.value).top

    def ours(self, row) -> str:
        return measured(row, self.unit) + f" {HOURS.name}" * (self.unit == HOURS)

    def under(self, profile: str, verdict: str) -> str:
        return verdict if profile == SETTLED else "quick only"

    def found(self, claim: str, profile: str, read: Read) -> dict:
        """Means over seeds, the interval of the last epoch, and the prediction interval of what is judged."""
        rows = read(self.query, profile)
        if rows.empty:
            return {}
        values, stated = self._compared(claim, profile, read)
        mean = mean_interval(values, -np.inf if self.since else 0.0, self.top)
        further = prediction_interval(values, self.paper_runs)
        epochs = ("best", "split_half") if self.judged else ()
        return {
            "seeds": len(rows),
            **span(self._at("last", rows), 0.0, self.top),
            **{epoch: self._at(epoch, rows).mean() for epoch in epochs},
            "verdict": self._verdict(values, stated, rows),
            "judged": "gain" if self.since else self.judged or "last",
            "judged_low": mean.low,
            "judged_high": mean.high,
            "predicted_low": further.low,
            "predicted_high": further.high,
            "difference": values.mean() - stated,
        }

    def drawn(self, claim: str, profile: str, read: Read) -> list[Drawn]:
        """The values that the verdict is about."""
        rows = read(self.query, profile)
        if rows.empty:
            return []
        return [Drawn("", *self._compared(claim, profile, read), self.shown_in, (rows,), (0.0, self.top))]

    def _at(self, epoch: str, rows: pd.DataFrame) -> pd.Series:
        return scale(self.value).factor * rows[self.value.replace("last", epoch)]

    def _compared(self, claim: str, profile: str, read: Read) -> tuple[pd.Series, float]:
        """The values that are judged, by seed, and the paper's number: both are gains where a series goes on."""
        epoch, stated = self.judged or "last", paper_value(claim)
        values = self._at(epoch, read(self.query, profile))
        if not self.since:
            return values, stated
        return values - self._at(epoch, read(self.start, profile)), stated - paper_value(self.since)

    def _verdict(self, values: Values, stated: float, rows: pd.DataFrame) -> str:
        if self.untested:
            return f"{rules.UNTESTED}: {self.untested}"
        if self.chance is not None and len(rows) >= rules.FEWEST_SEEDS:
            asked = held_out(rows)
            if not rules.learnt(rows[self.value] * asked, asked, self.chance):
                too = self.unit.close(stated - PERCENT * self.chance)  # the paper's number is at chance, too
                alike = rules.REPRODUCED, rules.AT_CHANCE
                verdict = ": ".join(alike if too else (rules.UNLEARNT, "our runs stay at chance"))
                return noted(verdict, self.given and f"if {self.given}")
        verdict = rules.number_verdict(values, stated, self.paper_runs, self.unit)
        return noted(verdict, self.given and f"if {self.given}")


@dataclass(frozen=True)
class OfStart(Number):
    """A number of the models that policy gradients start from, at the evaluation before any step.

    The profile `paper` trained them, whatever profile goes on from them. Records of `quick` hold that evaluation.
    `refuted` says how the paper's own table contradicts the number, or "".
    """

    refuted: Callable[[], str] = str

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """Under `paper` the number as quick records hold it; the profile `quick` trains no such start."""
        if profile != SETTLED:
            return {"seeds": 0, "verdict": f"not run: the {SETTLED} profile trains these starts"}
        row = (self.found(claim, "quick", read) or unmeasured(self.chapter, profile)) | command(self.chapter, "quick")
        return row | ({"verdict": f"{rules.REFUTED}: {why}"} if (why := self.refuted()) else {})

    def drawn(self, claim: str, profile: str, read: Read) -> list[Drawn]:
        lines = super().drawn(claim, "quick", read) if profile == SETTLED else []
        return [line._replace(runs=()) for line in lines]  # those are runs that go on from the starts


@dataclass(frozen=True)
class HalfStated(Number):
    """A number whose recipe the paper states in part: does that part give it, and can the method reach it?

    The query is of runs by what the paper states and nothing more; it gives the verdict. `best` is the query of runs
    by our recipe, the profile `quick`, which was found with CoT2 alone and is the same for every method.
    """

    best: str = ""

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """Under `paper` the answer to the first question, and in `reached` that to the second; `quick` has the best
        recipe's numbers."""
        best = self._best.found(claim, "quick", read)
        if profile == SETTLED:
            return super().row(claim, profile, read) | ({"reached": _reached(best)} if best else {})
        if not best:
            return unmeasured(self.chapter, profile)
        return best | {"verdict": OfRuns.under(self, profile, best["verdict"])} | command(self.chapter, profile)

    def drawn(self, claim: str, profile: str, read: Read) -> list[Drawn]:
        return super().drawn(claim, profile, read) if profile == SETTLED else self._best.drawn(claim, profile, read)

    @property
    def _best(self) -> Number:
        return Number(self.chapter, self.best, self.value, self.paper_runs, self.judged, chance=self.chance)


def _reached(row: dict) -> str:
    """Whether a number's runs come up to it, and how the rule says it: yes where they agree, or end above it."""
    verdict, higher = row["verdict"], row["difference"] > 0
    agrees = {rules.AGREES: YES, rules.DIFFERS: YES if higher else NO}.get(rules.group(verdict), rules.UNDECIDED)
    return rules.joined(agrees, rules.in_words(verdict).why)


# Claims without runs: their rows are the same under every profile


@dataclass(frozen=True)
class Fact(Kind):
    """A claim that counting settles, about the data or about the paper's own tables.

    It holds if a value, in the claim's unit, is above another. `note` says what settles or contradicts it, or "", and
    `said` what the value is.
    """

    value: Callable[[], float]
    above: float
    note: Callable[[], str] = str
    said: str = "{}"

    def row(self, claim: str, profile: str, read: Read) -> dict:
        value = self.value()
        verdict = rules.HOLDS if value > self.above else rules.REFUTED
        return {"seeds": 0, "last": value, "verdict": noted(verdict, self.note())}

    def ours(self, row) -> str:
        return self.said.format(describe(row.last, np.nan, np.nan))


@dataclass(frozen=True)
class Statement(Kind):
    """A statement of the paper that computation settles: `check` gives the verdict.

    `test` is the file whose tests fail if the verdict is wrong.
    """

    check: Callable[[], str]
    test: str

    @cached_property
    def verdict(self) -> str:
        return self.check()

    def row(self, claim: str, profile: str, read: Read) -> dict:
        return {"seeds": 0, "verdict": self.verdict, "command": f"pytest {self.test}"}


# What kinds share


def noted(verdict: str, note: str) -> str:
    return f"{verdict}{', ' if ':' in verdict else ': '}{note}" if note else verdict


def unmeasured(chapter: str, profile: str) -> dict:
    missing = NEEDS.get(chapter, f"no {profile} records yet")
    return {"seeds": 0, "verdict": f"not run: {missing}"} | command(chapter, SETTLED if chapter in NEEDS else profile)


def command(chapters: str, profile: str) -> dict:
    """The command that makes the records of a chapter under a profile anew, or of several with spaces between."""
    steps = []
    for chapter in chapters.split():
        if chapter == "gsm8k":  # whose records are always made anew
            steps += [f"cot2 llm train --profile {profile}", f"cot2 collect gsm8k --profile {profile}"]
        else:
            steps += [f"cot2 run {chapter} --profile {profile} --retrain"]
            steps += [f"cot2 collect {chapter} --profile {profile} --replace"]
    return {"command": " && ".join(steps)}


def measured(row, unit: Unit) -> str:
    return describe(row.last, row.last_low, row.last_high, unit.digits)


def span(values: Values, low: float = -np.inf, high: float = np.inf) -> dict:
    """Mean of some values and its interval within low..high."""
    interval = mean_interval(values, low, high)
    return {"last": interval.mean, "last_low": interval.low, "last_high": interval.high}
