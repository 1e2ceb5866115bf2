"""The rules that give verdicts.

A verdict may end in a note after a colon. `widest` is 5 points, or .05 nat for an entropy. An interval is wide if its
half-width reaches that. All intervals are 95 % Student-t intervals, and none is cut to the metric's range.

| kind      | interval            | reproduced              | partly       | not reproduced     | undecided         |
|-----------|---------------------|-------------------------|--------------|--------------------|-------------------|
| number    | prediction, for the | holds the number, and   | -            | does not hold it,  | holds it, and is  |
|           | paper's count of    | is not wide             |              | however wide it is | wide              |
|           | runs                |                         |              |                    |                   |
| direction | gap paired by seed, | above 0 in every cell   | above 0 in   | else               | above 0 in none,  |
|           | one per cell        |                         | some cells   |                    | a wide one has 0  |
| no gain   | gain paired by      | ends below a fifth of   | -            | above 0 in some    | else              |
|           | seed, one per cell  | `widest` in every cell  |              | cell               |                   |
| reaches   | none                | every run reaches the   | -            | else               | -                 |
|           |                     | value, in one reading   |              |                    |                   |
| parts     | each part's         | every part is           | some part is | every part is not  | else              |
|           |                     |                         | at least so  | reproduced         |                   |

Every kind is undecided below three seeds. What counting or proof settles `holds`, `holds if` something is added, or
is `refuted`. Verdicts on runs need shipped records of the profile `paper`; with records of `quick` alone a row says
`quick only` and what the same rule finds there.
"""

from collections.abc import Sequence

import numpy as np

from cot2lib.metrics import Interval, Values, paired_interval, prediction_interval

WIDEST = 5.0  # points
WIDEST_ENTROPY = 0.05  # nat
FEWEST_SEEDS = 3
GAIN = 0.2  # share of `widest` that still counts as no gain
REPRODUCED, PARTLY, NOT = "reproduced", "partly", "not reproduced"
TOO_WIDE = "undecided: interval too wide"
TOO_FEW = f"undecided: fewer than {FEWEST_SEEDS} seeds"

Sides = tuple[Values, Values]  # of one cell, paired by seed: said to be above, said to be below


def number_verdict(values: Values, stated: float, paper_runs: int, widest: float = WIDEST) -> str:
    """Verdict on a number, from our values in the same unit."""
    if len(values) < FEWEST_SEEDS:
        return f"undecided: {len(values)} of at least {FEWEST_SEEDS} seeds"
    interval = prediction_interval(values, paper_runs)
    if not interval.low <= stated <= interval.high:
        return NOT
    return TOO_WIDE if interval.half_width >= widest else REPRODUCED


def direction_verdict(cells: Sequence[Sides], widest: float = WIDEST) -> str:
    """Verdict on a direction, from the sides of its cells."""
    if too_few(cells):
        return TOO_FEW
    gaps = intervals(cells)
    holds = [gap.low > 0 for gap in gaps]
    if any(holds):
        return REPRODUCED if all(holds) else PARTLY
    wide = any(gap.low <= 0 <= gap.high and gap.half_width >= widest for gap in gaps)
    return TOO_WIDE if wide else NOT


def no_gain_verdict(cells: Sequence[Sides], widest: float = WIDEST) -> str:
    """Verdict on a claim of no gain, from cells of (said not to gain, other)."""
    if too_few(cells):
        return TOO_FEW
    gaps = intervals(cells)
    if any(gap.low > 0 for gap in gaps):
        return NOT
    return REPRODUCED if all(gap.high < GAIN * widest for gap in gaps) else TOO_WIDE


def reaches_verdict(readings: Sequence[Values], value: float) -> str:
    """Verdict on a claim that something reaches a value, from the values of every run, one sequence per reading."""
    enough = [values for values in readings if len(values) >= FEWEST_SEEDS]
    if not enough:
        return TOO_FEW
    return REPRODUCED if any(np.min(values) >= value for values in enough) else NOT


def parts_verdict(verdicts: dict[str, str]) -> str:
    """Verdict on a claim of several parts, from the verdict on each: theirs if they agree, else each by name."""
    kinds = {verdict.partition(":")[0] for verdict in verdicts.values()}
    if len(kinds) == 1:
        return kinds.pop()
    said = ", ".join(f"{part} {verdict.partition(':')[0]}" for part, verdict in verdicts.items())
    some = PARTLY if kinds & {REPRODUCED, PARTLY} else "undecided"
    return f"{some}: {said}"


def too_few(cells: Sequence[Sides]) -> bool:
    """Whether some cell has too few seeds for a verdict."""
    return min(len(above) for above, _ in cells) < FEWEST_SEEDS


def intervals(cells: Sequence[Sides]) -> list[Interval]:
    """The interval of each cell's gap."""
    return [paired_interval(above, below) for above, below in cells]


def reversed_cells(cells: Sequence[Sides]) -> int:
    """How many cells lie the other way round by their whole interval."""
    return sum(gap.high < 0 for gap in intervals(cells))
