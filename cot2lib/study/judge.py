"""The rules that give verdicts.

A verdict is a label, which may end in a condition (`holds if ...`) and in a note after a colon. `tight` is 5 points,
or .05 nat for an entropy; `loose` is three times that. A mean is close to a number if they are less than `tight`
apart, and entropies less than half the stated one too. Intervals of means are 95 % Student-t intervals, and none is
cut to the metric's range.

A number is judged by the first line that fits:

1. Fewer than three runs, or a named reservation: `open`.
2. Our mean is close: `reproduced` if the prediction interval for the paper's runs has a half-width below `tight`,
   `near` if below `loose`.
3. The paper's number is one run and ours are 19 or more: `not reproduced` if our mean is not close, no run of ours is,
   and the number lies farther from its nearest run of ours than each of ours from its nearest other. If the paper's
   run is one more of ours, this happens with probability 1 / (n + 1) at most, whatever the distribution (conformal).
4. Otherwise, with fewer runs or a mean of several: `not reproduced` if our mean is not close, and the prediction
   interval lacks the number.
5. At least one run of ours is close, or 1 % of the means of as many as the paper took: `depends on the run`.
6. `open`: too few runs, or as many of ours stand as much alone.

| kind      | measured by       | reproduced            | near, in part        | not reproduced     | open            |
|-----------|-------------------|-----------------------|----------------------|--------------------|-----------------|
| direction | gap paired by     | interval above 0 in   | in part: above 0 in  | else               | one has 0, and  |
|           | seed, one a cell  | every cell            | a cell, by Holm      |                    | is not `tight`  |
| no gain   | gain paired by    | interval ends below a | -                    | above 0 in some    | else            |
|           | seed, one a cell  | fifth of `tight`      |                      | cell               |                 |
| value     | difference from   | close in every case,  | near: half-width     | not close, and     | else            |
|           | the claimed value | half-width < `tight`  | below `loose`        | lacks 0 in a case  |                 |
| reaches   | every run         | every run reaches it, | -                    | else               | -               |
|           |                   | in one reading        |                      |                    |                 |
| parts     | each part         | every part is         | -                    | every part is not  | else            |
|           |                   |                       |                      | reproduced         |                 |

A number whose runs have all stayed at chance `did not learn`; it is reproduced if the paper's is at chance too. What
counting or proof settles `holds`, `holds if` something is added, or is `refuted`. Verdicts on runs need shipped
records of the profile `paper`; with records of `quick` alone a row says `quick only` and what the same rule finds
there. Of a number whose recipe the paper states in half a row says `not tested`.

Readers meet five words (`in_words`): a claim agrees, differs, depends on the run, is undecided, or was not tested.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from cot2lib.metrics import LEVEL, Values, holm, mean_interval, prediction_interval, seeds_for
from cot2lib.study.report import describe, ends

LOOSE = 3.0  # times `tight`
FEWEST_SEEDS = 3
FEWEST_ALONE = 19  # runs from which one that stands alone is rarer than 5 %
SHARE = 0.01  # of means of our runs that have to be close where the paper's number is a mean
GAIN = 0.2  # share of `tight` that still counts as no gain
REPRODUCED, NEAR, PART, NOT, OPEN = "reproduced", "near", "in part", "not reproduced", "open"
UNLEARNT, AT_CHANCE, HOLDS, REFUTED = "did not learn", "neither leaves chance", "holds", "refuted"
NONE_SURE = "no comparison is significant in the claim's favour (Holm's correction)"
TOO_FEW = f"{OPEN}: fewer than {FEWEST_SEEDS} seeds"
AGREES, DIFFERS, DEPENDS, UNDECIDED, UNTESTED = "agrees", "differs", "depends on the run", "undecided", "not tested"
GROUPS = {  # of labels, in the order of pages
    AGREES: (REPRODUCED, NEAR, HOLDS, "holds vacuously"),
    DIFFERS: (NOT, UNLEARNT, REFUTED),
    DEPENDS: (DEPENDS,),
    UNDECIDED: (OPEN, PART),
    UNTESTED: (UNTESTED, "quick only", "not run"),
}
SAID = {  # what a reader is told of a label besides its group; the rest is said by the note alone
    NEAR: "but the prediction interval is wide", REFUTED: "refuted", PART: "in part",
    "holds vacuously": "vacuously, because", "quick only": "quick recipe alone",
}  # fmt: skip


@dataclass(frozen=True)
class Unit:
    """The unit that a claim is measured in, with the decimals that a reader is shown.

    From the half-width `tight` on an interval is wide. A mean that is close to a stated value lies within `tight`, and
    within `share` of that value.
    """

    name: str
    tight: float
    digits: int
    share: float = np.inf

    @property
    def loose(self) -> float:
        """Half-width of an interval from which it is very wide."""
        return LOOSE * self.tight

    def text(self, amount: float) -> str:
        return f"{amount:.{self.digits}f} {self.name}"

    def margin(self, stated: float = np.inf) -> float:
        """How far from a stated value a mean that is close to it may lie."""
        return min(self.tight, self.share * abs(stated))

    def close(self, miss: float, stated: float = np.inf) -> bool:
        """Whether a mean that misses a stated value by so much is close to it."""
        return abs(miss) < self.margin(stated)


POINTS, NAT = Unit("points", 5.0, 1), Unit("nat", 0.05, 3, share=0.5)
PERCENTS = Unit("%", POINTS.tight, POINTS.digits)  # points of a value, where it is shown and not a difference


class Words(NamedTuple):
    """A verdict as readers meet it: one of `GROUPS` ("" for a setting), why, and under which condition."""

    group: str
    why: str
    condition: str


def joined(word: str, why: str) -> str:
    """A verdict's word and its reason, after a colon; a reservation is no reason."""
    return word + (", " if why.startswith("but ") else ": ") * bool(why) + why


def in_words(verdict: str) -> Words:
    """A verdict as readers meet it. What is found, or holds, only if something is added agrees on that condition."""
    head, _, note = verdict.partition(": ")
    label, _, repair = head.partition(" if ")
    word = next((name for name, labels in GROUPS.items() if label in labels), "")
    if repair:
        return Words(word, "", f"{repair}: {note}" if note else repair)
    if label == "quick only" and note:
        there = in_words(note.removeprefix("there ").replace(", ", ": ", 1))
        return Words(word, ": ".join(filter(None, [SAID[label], there.group, there.why])), there.condition)
    note, *conditions = re.split(r"(?:^|, )if ", note, maxsplit=1)
    return Words(word, " ".join(filter(None, [SAID.get(label, ""), note])), "".join(conditions))


def group(verdict: str) -> str:
    """Which of `GROUPS` a verdict belongs to; "" for none, as of a setting."""
    return in_words(verdict).group


def number_verdict(values: Values, stated: float, paper_runs: int, unit: Unit = POINTS) -> str:
    """Verdict on a number, from our values in the same unit."""
    runs = len(values)
    if runs < FEWEST_SEEDS:
        return f"{OPEN}: {runs} runs, fewer than {FEWEST_SEEDS}"
    interval = prediction_interval(values, paper_runs)
    miss = interval.mean - stated
    close = unit.close(miss, stated)
    if close and interval.half_width < unit.loose:
        return REPRODUCED if interval.half_width < unit.tight else NEAR
    near = close_runs(values, stated, paper_runs, unit)
    chance = loneliness(values, stated) if paper_runs == 1 and runs >= FEWEST_ALONE else None
    outside = not interval.low <= stated <= interval.high
    if not close and (outside if chance is None else not near.any() and chance * (runs + 1) <= 1):
        return f"{NOT}: ours {unit.text(abs(miss))} {'higher' if miss > 0 else 'lower'}"
    within = f"within {unit.text(unit.margin(stated))} of the number"
    if near.any() and (paper_runs == 1 or near.mean() >= SHARE):
        return f"{DEPENDS}: {_close(near, paper_runs)} {within}"
    if close:
        return f"{OPEN}: our mean lies {within}, and none of our {runs} runs does"
    if chance is None:
        few = f"less than {100 * SHARE:.0f} %" if near.any() else "none"
        few += " of our runs" if paper_runs == 1 else f" of the means of {paper_runs} of our runs"
        return f"{OPEN}: {few} lies {within}, and the prediction interval of {runs} runs includes it"
    alike = round(chance * (runs + 1)) - 1
    lie = "lies at least as far from its nearest neighbour"
    lie = lie if alike == 1 else "lie at least as far from their nearest neighbours"
    return f"{OPEN}: {alike} of {runs} runs {lie} as the paper's number does (p = {chance:.2f})"


def close_runs(values: Values, stated: float, paper_runs: int, unit: Unit = POINTS) -> np.ndarray:
    """Which runs are close to a stated number; where that is a mean of several, which means of as many of ours."""
    some = np.asarray(values, dtype=float)
    if paper_runs > 1:
        some = np.array([*combinations(some, min(paper_runs, len(some)))]).mean(1)
    return np.abs(some - stated) < unit.margin(stated)


def _close(near: np.ndarray, paper_runs: int) -> str:
    """How many runs, or which share of means, are close, in words."""
    if paper_runs > 1:
        return f"{100 * near.mean():.0f} % of the means of {paper_runs} of our runs lie"
    verb = "lies" if near.sum() == 1 else "lie"
    return f"{near.sum()} of {len(near)} runs, {share(near.sum(), len(near))}, {verb}"


def share(count: int, of: int) -> str:
    """A share in percent with its 95 % interval, which holds at least that often (Clopper and Pearson)."""
    found = stats.binomtest(int(count), of).proportion_ci(LEVEL)
    return describe(100 * count / of, 100 * found.low, 100 * found.high, 0).replace(" [", " % [")


def loneliness(values: Values, stated: float) -> float:
    """Conformal p-value of a number as one more run: how rarely a run is as far from its nearest other."""
    some = np.asarray(values, dtype=float)
    apart = np.abs(np.subtract.outer(some, some)) + np.diag(np.full(len(some), np.inf))
    farther = (apart.min(0) >= np.abs(some - stated).min()).sum()
    return float((1 + farther) / (len(some) + 1))


def outcomes(values: Values, stated: float, unit: Unit) -> str:
    """The two groups that runs form, their shares, and where a number lies, in a sentence; "" where there is one.

    Groups lie `loose` apart, and each is narrower than the gap between them.
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    low, high = np.split(ordered, [np.diff(ordered).argmax() + 1])  # at the widest gap
    if high.min() - low.max() < max(unit.loose, np.ptp(low), np.ptp(high)):
        return ""
    few, many = sorted((low, high), key=len)
    groups = (("lower", low), ("higher", high))
    beyond = {name: max(some.min() - stated, stated - some.max(), 0.0) for name, some in groups}
    nearest = min(beyond, key=beyond.get)
    place = f"{'near' if beyond[nearest] else 'in'} the {nearest} group"
    place = place if beyond[nearest] <= unit.tight else "near neither"
    mean = describe(many.mean(), np.nan, np.nan, unit.digits)
    return (
        f"Runs form two groups: {len(many)} at {ends(many, unit.digits)} {unit.name} (mean {mean}), and {len(few)} "
        f"({share(len(few), len(values))}) at {ends(few, unit.digits)}. The paper's number is {place}."
    )


def learnt(right: Values, asked: Values, chance: float) -> bool:
    """Whether some run is `right` on more of the questions `asked` than chance makes one of them in 5 % of cases."""
    by_luck = stats.binom.sf(np.round(np.asarray(right)) - 1, np.asarray(asked), chance)
    return bool((by_luck < (1 - LEVEL) / len(by_luck)).any())


def direction_verdict(gaps: Sequence[pd.Series], unit: Unit = POINTS) -> str:
    """Verdict on a direction, from differences by seed, one series per cell."""
    if min(map(len, gaps)) < FEWEST_SEEDS:
        return TOO_FEW
    intervals = [mean_interval(gap) for gap in gaps]
    if all(interval.low > 0 for interval in intervals):
        return REPRODUCED
    if any(significant(gaps)):
        return PART
    wide = [
        gap
        for gap, interval in zip(gaps, intervals)
        if interval.low <= 0 <= interval.high and interval.half_width >= unit.tight
    ]
    widths = [max(abs(gap.mean()), unit.tight) for gap in wide]
    return f"{OPEN}: {_seeds(widths, wide)}" if wide else f"{NOT}: {NONE_SURE}"


def significant(gaps: Sequence[pd.Series]) -> list[bool]:
    """Which cells differ the stated way, with Holm's correction at 5 %."""
    return [sure and gap.mean() > 0 for sure, gap in zip(holm(gaps), gaps)]


def no_gain_verdict(gaps: Sequence[pd.Series], unit: Unit = POINTS) -> str:
    """Verdict on a claim of no gain, from what is said not to gain less the other, one series per cell."""
    if min(map(len, gaps)) < FEWEST_SEEDS:
        return TOO_FEW
    intervals, none = [mean_interval(gap) for gap in gaps], GAIN * unit.tight
    if any(interval.low > 0 for interval in intervals):
        return f"{NOT}: a gain is significant"
    unsure = [gap for gap, interval in zip(gaps, intervals) if interval.high >= none]
    widths = [max(gap.mean(), none - gap.mean()) for gap in unsure]
    return f"{OPEN}: {_seeds(widths, unsure)}" if unsure else REPRODUCED


def _seeds(widths: Sequence[float], gaps: Sequence[Values]) -> str:
    """How many seeds bring the interval of every cell below a half-width, in words."""
    counts = [seeds_for(gap, width) for width, gap in zip(widths, gaps)]
    most = "not even a thousand" if None in counts else f"about {max(filter(None, counts))}"
    return f"{most} seeds with this spread would decide"


def value_verdict(differences: Sequence[Values], unit: Unit = POINTS) -> str:
    """Verdict on a claim that something has a value, from the differences from it, one sequence per cell."""
    if min(map(len, differences)) < FEWEST_SEEDS:
        return TOO_FEW
    gaps = [mean_interval(values) for values in differences]
    if any(not gap.low <= 0 <= gap.high and not unit.close(gap.mean) for gap in gaps):
        return NOT
    widest = max(gap.half_width for gap in gaps)
    if widest < unit.loose and all(unit.close(gap.mean) for gap in gaps):
        return REPRODUCED if widest < unit.tight else NEAR
    widths = [unit.loose if unit.close(gap.mean) else abs(gap.mean) for gap in gaps]
    return f"{OPEN}: {_seeds(widths, differences)}"


def reaches_verdict(readings: Sequence[Values], value: float) -> str:
    """Verdict on a claim that something reaches a value, from the values of every run, one sequence per reading."""
    enough_seeds = [values for values in readings if len(values) >= FEWEST_SEEDS]
    if not enough_seeds:
        return TOO_FEW
    reached = any(np.min(values) >= value for values in enough_seeds)
    return REPRODUCED if reached else f"{NOT}: in no setting is every run always right"


def statement_verdict(printed: bool, corrected: bool = False, condition: str = "", vacuous: str = "") -> str:
    """Verdict on a statement: does it hold as printed, or else as corrected under a `condition`?

    `vacuous` says why what holds says nothing, or "".
    """
    if printed:
        return f"holds vacuously: {vacuous}" if vacuous else HOLDS
    return f"holds if {condition}" if corrected else REFUTED


def parts_verdict(verdicts: dict[str, str]) -> str:
    """Verdict on a claim of several parts, from the verdict on each: theirs if all have one, else each by name."""
    kinds = {verdict.partition(":")[0] for verdict in verdicts.values()}
    if len(kinds) == 1:
        return kinds.pop()
    verb = {UNDECIDED: f"is {UNDECIDED}"}
    said = [f"{part} {verb.get(word := group(verdict), word)}" for part, verdict in verdicts.items()]
    return f"{OPEN}: {', '.join(said)}"
