"""The rules that give verdicts.

A verdict may end in a note after a colon. `tight` is 5 points, or .05 nat for an entropy; `loose` is three times that.
A mean is close to a number if they are less than `tight` apart, and entropies less than half the stated one too. All
intervals are 95 % Student-t intervals, and none is cut to the metric's range.

| kind      | measured by       | reproduced            | near, partly         | not reproduced     | open            |
|-----------|-------------------|-----------------------|----------------------|--------------------|-----------------|
| number    | mean; prediction  | close, and half-width | near: close, and     | not close, and the | else            |
|           | interval for the  | below `tight`         | half-width below     | interval lacks the |                 |
|           | paper's runs      |                       | `loose`              | number             |                 |
| direction | gap paired by     | interval above 0 in   | partly: above 0 in a | else               | one has 0, and  |
|           | seed, one a cell  | every cell            | cell, by Holm's test |                    | is not `tight`  |
| no gain   | gain paired by    | interval ends below a | -                    | above 0 in some    | else            |
|           | seed, one a cell  | fifth of `tight`      |                      | cell               |                 |
| value     | difference from   | as of a number, in    | near: as of a number | not close, and     | else            |
|           | the claimed value | every case            |                      | lacks 0 in a case  |                 |
| reaches   | every run         | every run reaches it, | -                    | else               | -               |
|           |                   | in one reading        |                      |                    |                 |
| parts     | each part         | every part is         | partly: some part is | every part is not  | else            |
|           |                   |                       | at least so          | reproduced         |                 |

A number whose runs have all stayed at chance `did not learn`; it is reproduced if the paper's is at chance too.
Nothing is decided below three seeds. An open verdict says what would close it. What counting or proof settles
`holds`, `holds if` something is added, or is `refuted`. Verdicts on runs need shipped records of the profile `paper`;
with records of `quick` alone a row says `quick only` and what the same rule finds there.

Readers meet four groups (`group`): what agrees, what differs, what cannot be told, and what was not run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from cot2lib.metrics import (
    LEVEL,
    Interval,
    Values,
    at_widest_gap,
    by_seed,
    holm,
    mean_interval,
    paired_interval,
    prediction_interval,
    seeds_for,
)
from cot2lib.study.report import ends

LOOSE = 3.0  # times `tight`
FEWEST_SEEDS = 3
GAIN = 0.2  # share of `tight` that still counts as no gain
REPRODUCED, NEAR, PARTLY, NOT, OPEN = "reproduced", "near", "partly", "not reproduced", "open"
UNLEARNT, AT_CHANCE = "did not learn", "neither leaves chance"
TOO_FEW = f"{OPEN}: fewer than {FEWEST_SEEDS} seeds"
AGREES, DIFFERS, UNTOLD, UNRUN = "agrees", "differs", "cannot be told", "not run"
GROUPS = {  # of verdicts, in the order of pages
    AGREES: (REPRODUCED, NEAR, "holds", "holds vacuously"),
    DIFFERS: (NOT, UNLEARNT, "refuted"),
    UNTOLD: (OPEN, PARTLY),
    UNRUN: ("quick only", "not run"),
}

Sides = tuple[pd.Series, pd.Series]  # of one cell, by seed: said to be above, said to be below


@dataclass(frozen=True)
class Unit:
    """The unit that a claim is measured in.

    Attributes:
        name: the word.
        tight: half-width of an interval from which it is wide, and what a mean that is close lies within.
        digits: decimals that a reader is shown.
        share: of a stated value that a mean which is close lies within too.
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
        """An amount in words."""
        return f"{amount:.{self.digits}f} {self.name}"

    def close(self, miss: float, stated: float = np.inf) -> bool:
        """Whether a mean that misses a stated value by so much is close to it."""
        return abs(miss) < min(self.tight, self.share * abs(stated))


POINTS, NAT = Unit("points", 5.0, 1), Unit("nat", 0.05, 3, share=0.5)
PERCENTS = Unit("%", POINTS.tight, POINTS.digits)  # points of a value, where it is shown and not a difference


def group(verdict: str) -> str:
    """Which of `GROUPS` a verdict belongs to; "" for none, as of a setting.

    What holds, or is found, only if something is added agrees; the verdict says so.
    """
    plain = verdict.partition(":")[0].partition(" if ")[0]
    return next((name for name, verdicts in GROUPS.items() if plain in verdicts), "")


def number_verdict(values: Values, stated: float, paper_runs: int, unit: Unit = POINTS) -> str:
    """Verdict on a number, from our values in the same unit."""
    if len(values) < FEWEST_SEEDS:
        return f"{OPEN}: {len(values)} of at least {FEWEST_SEEDS} seeds"
    interval = prediction_interval(values, paper_runs)
    miss = interval.mean - stated
    if unit.close(miss, stated):
        if interval.half_width < unit.loose:
            return REPRODUCED if interval.half_width < unit.tight else NEAR
    elif not interval.low <= stated <= interval.high:
        return f"{NOT}: ours is {unit.text(abs(miss))} {'higher' if miss > 0 else 'lower'}"
    return f"{OPEN}: {closing(values, stated, paper_runs, unit)}"


def closing(values: Values, stated: float, paper_runs: int, unit: Unit) -> str:
    """The runs that would close an open number, in words."""
    count = enough(values, stated, paper_runs, unit)
    one = f"{paper_runs} runs spread" if paper_runs > 1 else "one run spreads"
    none = f"no count of runs decides, for the paper's {one} as much"
    says = none if count == "none" else f"about {count} runs that spread as these would decide"
    told = outcomes(values, stated, unit)
    return f"{told}; {says}" if told else says


def enough(values: Values, stated: float, paper_runs: int, unit: Unit = POINTS) -> str:
    """How many runs spread as ours would make a number that is near reproduced, or close an open one; or "none"."""
    interval = prediction_interval(values, paper_runs)
    miss = interval.mean - stated
    near = interval.half_width < unit.loose
    width = (unit.tight if near else unit.loose) if unit.close(miss, stated) else abs(miss)
    count = seeds_for(values, width, paper_runs)
    return "none" if count is None else str(count)


def outcomes(values: Values, stated: float, unit: Unit) -> str:
    """The two groups that runs end in and which one a number belongs to, in words; "" where they end in one.

    Groups lie `loose` apart, and each is narrower than the gap between them.
    """
    low, high = at_widest_gap(values)
    if high.min() - low.max() < max(unit.loose, np.ptp(low), np.ptp(high)):
        return ""
    belongs = [name for name, some in (("lower", low), ("higher", high)) if _within(stated, some, unit.tight)]
    paper = f"the paper's number is of the {belongs[0]}" if belongs else "the paper's number is of neither"
    told = [f"{len(some)} at {ends(some, unit.digits)}" for some in (high, low)]
    return f"of {len(values)} runs {told[0]} and {told[1]}, {paper}"


def _within(stated: float, values: np.ndarray, margin: float) -> bool:
    return bool(values.min() - margin <= stated <= values.max() + margin)


def learnt(right: Values, asked: Values, chance: float) -> bool:
    """Whether some run is right more often than chance alone makes one of them in 5 % of cases.

    Args:
        right: how many questions each run answers.
        asked: of how many.
        chance: share that a guess answers.
    """
    by_luck = stats.binom.sf(np.round(np.asarray(right)) - 1, np.asarray(asked), chance)
    return bool((by_luck < (1 - LEVEL) / len(by_luck)).any())


def direction_verdict(cells: Sequence[Sides], unit: Unit = POINTS) -> str:
    """Verdict on a direction, from the sides of its cells."""
    if too_few(cells):
        return TOO_FEW
    gaps = intervals(cells)
    if all(gap.low > 0 for gap in gaps):
        return REPRODUCED
    surely = holm([differences(sides) for sides in cells])
    if any(sure and gap.mean > 0 for sure, gap in zip(surely, gaps)):
        return PARTLY
    wide = [sides for sides, gap in zip(cells, gaps) if gap.low <= 0 <= gap.high and gap.half_width >= unit.tight]
    widths = [max(abs(differences(sides).mean()), unit.tight) for sides in wide]
    return f"{OPEN}: {_seeds(widths, wide)}" if wide else NOT


def no_gain_verdict(cells: Sequence[Sides], unit: Unit = POINTS) -> str:
    """Verdict on a claim of no gain, from cells of (said not to gain, other)."""
    if too_few(cells):
        return TOO_FEW
    gaps, none = intervals(cells), GAIN * unit.tight
    if any(gap.low > 0 for gap in gaps):
        return NOT
    unsure = [sides for sides, gap in zip(cells, gaps) if gap.high >= none]
    means = [differences(sides).mean() for sides in unsure]
    return f"{OPEN}: {_seeds([max(mean, none - mean) for mean in means], unsure)}" if unsure else REPRODUCED


def _seeds(widths: Sequence[float], cells: Sequence[Sides]) -> str:
    """How many seeds bring the interval of every cell below a half-width, in words."""
    return _in_words([seeds_for(differences(sides), width) for width, sides in zip(widths, cells)])


def _in_words(counts: Sequence[int | None]) -> str:
    known = [count for count in counts if count]
    count = f"about {max(known)} seeds" if len(known) == len(counts) else "not even a thousand seeds"
    return f"{count} that spread as these would decide"


def value_verdict(differences: Sequence[Values], unit: Unit = POINTS) -> str:
    """Verdict on a claim that something has a value, from the differences from it, one sequence per cell."""
    if min(map(len, differences)) < FEWEST_SEEDS:
        return TOO_FEW
    gaps = [mean_interval(values) for values in differences]
    if any(outside(gap) and not unit.close(gap.mean) for gap in gaps):
        return NOT
    widest = max(gap.half_width for gap in gaps)
    if widest < unit.loose and all(unit.close(gap.mean) for gap in gaps):
        return REPRODUCED if widest < unit.tight else NEAR
    counts = [
        seeds_for(values, unit.loose if unit.close(gap.mean) else abs(gap.mean))
        for values, gap in zip(differences, gaps)
    ]
    return f"{OPEN}: {_in_words(counts)}"


def outside(difference: Interval) -> float:
    """How far 0 lies outside an interval of differences; 0 within it."""
    return max(difference.low, -difference.high, 0.0)


def reaches_verdict(readings: Sequence[Values], value: float) -> str:
    """Verdict on a claim that something reaches a value, from the values of every run, one sequence per reading."""
    enough_seeds = [values for values in readings if len(values) >= FEWEST_SEEDS]
    if not enough_seeds:
        return TOO_FEW
    return REPRODUCED if any(np.min(values) >= value for values in enough_seeds) else NOT


def parts_verdict(verdicts: dict[str, str]) -> str:
    """Verdict on a claim of several parts, from the verdict on each: theirs if they agree, else each by name."""
    kinds = {verdict.partition(":")[0] for verdict in verdicts.values()}
    if len(kinds) == 1:
        return kinds.pop()
    said = ", ".join(f"{part} {verdict.partition(':')[0]}" for part, verdict in verdicts.items())
    some = PARTLY if kinds & {REPRODUCED, PARTLY} else OPEN
    return f"{some}: {said}"


def too_few(cells: Sequence[Sides]) -> bool:
    """Whether some cell has too few seeds for a verdict."""
    return min(len(differences(sides)) for sides in cells) < FEWEST_SEEDS


def differences(sides: Sides) -> pd.Series:
    """How far one side is above the other, by seed."""
    above, below = by_seed(*sides)
    return above - below


def intervals(cells: Sequence[Sides]) -> list[Interval]:
    """The interval of each cell's gap."""
    return [paired_interval(above, below) for above, below in cells]
