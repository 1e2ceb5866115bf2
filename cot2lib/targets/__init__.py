"""Targets of supervised runs other than CSFT's: what is scored, and what is fed.

| file | holds |
| --- | --- |
| `rule` | the base `Targets`; what a rule sees (`Visits`) and gives (`Shown`); `Shares`, and `Apart` to join two |
| `shares` | the distributions of this book's controls |
"""

from cot2lib.targets.rule import Apart, Shares, Shown, Targets, Visits

from cot2lib.targets.shares import (  # isort: skip
    Arrow, DrawnState, FreshPath, Frontier, Geometric, Renamed, Rotated, Shuffled, Smoothed, Uniform, WrongStates,
)  # fmt: skip

__all__ = [
    "Apart", "Arrow", "DrawnState", "FreshPath", "Frontier", "Geometric", "Renamed", "Rotated", "Shares",
    "Shown", "Shuffled", "Smoothed", "Targets", "Uniform", "Visits", "WrongStates",
]  # fmt: skip
