"""The rules that give verdicts.

A verdict may end in a note after a colon. `tight` is 5 points, or .05 nat for an entropy; `loose` is three times that.
An interval is tight if its half-width is below `tight`, wide if it is not, very wide if it reaches `loose`. All
intervals are 95 % Student-t intervals, and none is cut to the metric's range.

| kind      | interval          | reproduced           | compatible, partly    | not reproduced   | not decided      |
|-----------|-------------------|----------------------|-----------------------|------------------|------------------|
| number    | prediction, for   | holds the number,    | compatible: holds it, | does not hold    | holds it, and is |
|           | the paper's count | and is tight         | and is wide           | it, however wide | very wide        |
|           | of runs           |                      |                       |                  |                  |
| direction | gap paired by     | above 0 in every     | partly: above 0 in a  | else             | a wide one has 0 |
|           | seed, one a cell  | cell                 | cell, by Holm's test  |                  |                  |
| no gain   | gain paired by    | ends below a fifth   | -                     | above 0 in some  | else             |
|           | seed, one a cell  | of `tight` in all    |                       | cell             |                  |
| value     | difference from   | holds 0 in every     | compatible: as of a   | lacks 0 in some  | as of a number   |
|           | the claimed value | case, and is tight   | number                | case             |                  |
| reaches   | none              | every run reaches    | -                     | else             | -                |
|           |                   | it, in one reading   |                       |                  |                  |
| parts     | each part's       | every part is        | partly: some part is  | every part is    | else             |
|           |                   |                      | at least so           | not reproduced   |                  |

Nothing is decided below three seeds. What counting or proof settles `holds`, `holds if` something is added, or is
`refuted`. Verdicts on runs need shipped records of the profile `paper`; with records of `quick` alone a row says
`quick only` and what the same rule finds there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cot2lib.metrics import (
    Interval,
    Values,
    by_seed,
    holm,
    mean_interval,
    paired_interval,
    prediction_interval,
    seeds_for,
)

LOOSE = 3.0  # times `tight`
FEWEST_SEEDS = 3
GAIN = 0.2  # share of `tight` that still counts as no gain
REPRODUCED, COMPATIBLE, PARTLY, NOT, OPEN = "reproduced", "compatible", "partly", "not reproduced", "not decided"
SPREAD = f"{OPEN}: spread"
TOO_FEW = f"{OPEN}: fewer than {FEWEST_SEEDS} seeds"

Sides = tuple[pd.Series, pd.Series]  # of one cell, by seed: said to be above, said to be below


@dataclass(frozen=True)
class Unit:
    """What a claim is measured in.

    Attributes:
        name: the word.
        tight: half-width of an interval from which it is wide.
        digits: decimals that a reader is shown.
    """

    name: str
    tight: float
    digits: int

    def text(self, amount: float) -> str:
        """An amount in words."""
        return f"{amount:.{self.digits}f} {self.name}"


POINTS, NAT = Unit("points", 5.0, 1), Unit("nat", 0.05, 3)
PERCENTS = Unit("%", POINTS.tight, POINTS.digits)  # points of a value, where it is shown and not a difference


def number_verdict(values: Values, stated: float, paper_runs: int, unit: Unit = POINTS) -> str:
    """Verdict on a number, from our values in the same unit."""
    if len(values) < FEWEST_SEEDS:
        return f"{OPEN}: {len(values)} of at least {FEWEST_SEEDS} seeds"
    interval = prediction_interval(values, paper_runs)
    if not interval.low <= stated <= interval.high:
        miss = interval.mean - stated
        return f"{NOT}: ours is {unit.text(abs(miss))} {'higher' if miss > 0 else 'lower'}"
    if interval.half_width < unit.tight:
        return REPRODUCED
    return COMPATIBLE if interval.half_width < LOOSE * unit.tight else f"{SPREAD}, {fallen(values, unit)}"


def fallen(values: Values, unit: Unit) -> str:
    """How many runs lie a very wide half-width below the median run, in words."""
    far = LOOSE * unit.tight
    count = int((np.median(values) - np.asarray(values, dtype=float) >= far).sum())
    return f"{count} of {len(values)} runs at least {far:g} {unit.name} below their median"


def enough(values: Values, paper_runs: int, unit: Unit = POINTS) -> str:
    """How many seeds would make a number's interval tight; "none" if the paper's count of runs spreads as much."""
    count = seeds_for(values, paper_runs, unit.tight)
    return "none" if count is None else str(count)


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
    return SPREAD if any(gap.low <= 0 <= gap.high and gap.half_width >= unit.tight for gap in gaps) else NOT


def no_gain_verdict(cells: Sequence[Sides], unit: Unit = POINTS) -> str:
    """Verdict on a claim of no gain, from cells of (said not to gain, other)."""
    if too_few(cells):
        return TOO_FEW
    gaps = intervals(cells)
    if any(gap.low > 0 for gap in gaps):
        return NOT
    return REPRODUCED if all(gap.high < GAIN * unit.tight for gap in gaps) else SPREAD


def value_verdict(differences: Sequence[Values], unit: Unit = POINTS) -> str:
    """Verdict on a claim that something has a value, from the differences from it, one sequence per cell."""
    if min(map(len, differences)) < FEWEST_SEEDS:
        return TOO_FEW
    gaps = [mean_interval(values) for values in differences]
    if any(outside(gap) for gap in gaps):
        return NOT
    widest = max(gap.half_width for gap in gaps)
    return REPRODUCED if widest < unit.tight else COMPATIBLE if widest < LOOSE * unit.tight else SPREAD


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


def reversed_cells(cells: Sequence[Sides]) -> int:
    """How many cells lie the other way round by their whole interval."""
    return sum(gap.high < 0 for gap in intervals(cells))
