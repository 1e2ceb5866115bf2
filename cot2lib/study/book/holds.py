"""Data by which a page judges a claim anew from some of its seeds: the lines of its card, the rule and what it asks.

`holds-rules.js` of the book applies the rules of `cot2lib.study.judge` to these.
"""

from collections.abc import Sequence
from functools import singledispatch

import numpy as np
import pandas as pd

from cot2lib.metrics import prediction_interval
from cot2lib.study.book.draw import picture
from cot2lib.study.book.index import in_series
from cot2lib.study.book.ledger import KINDS, PROFILES
from cot2lib.study.comparisons import Direction, NoGain, Parts, Reaches, Value
from cot2lib.study.judge import Unit
from cot2lib.study.kinds import SETTLED, Drawn, Kind, Number, OfRuns, Read, of_profile
from cot2lib.study.readings import HalfStated, OfStart
from cot2lib.study.report import RECIPES
from cot2lib.study.samples import held_out

Rule = dict[str, object]


def cases(read: Read) -> dict[str, dict]:
    """By claim and recipe, of all cards that show runs: lines, rule, and the picture of the lines as HTML."""
    shown = {claim: kind for claim, kind in KINDS.items() if isinstance(kind, OfRuns) and not in_series(claim)}
    found = {claim: _of_claim(claim, kind, read) for claim, kind in shown.items()}
    return {claim: recipes for claim, recipes in found.items() if recipes}


def _of_claim(claim: str, kind: Kind, read: Read) -> dict[str, dict]:
    recipes = {}
    for profile in PROFILES:
        if lines := kind.drawn(claim, profile, read):
            rule = asked(kind, claim, profile, read)
            recipes[RECIPES[profile]] = {
                "lines": [_line(line) for line in lines],
                "rule": rule,
                "picture": picture(lines, _judged_by(kind.number(), lines)).figure,
            }
    return recipes


def _judged_by(number: Number | None, lines: Sequence[Drawn]) -> tuple[float, float]:
    """The interval that the verdict on a number asks."""
    if number is None:
        return np.nan, np.nan
    found = prediction_interval(lines[0].values, number.paper_runs)
    return found.low, found.high


def _line(line: Drawn) -> dict:
    """A line of a card as data; an end that values cannot reach is missing where there is none."""
    within = [float(end) if np.isfinite(end) else None for end in line.within]
    values = [[int(seed), float(value)] for seed, value in line.values.items()]
    return {"label": line.label, "values": values, "stated": line.stated, "unit": _unit(line.unit), "within": within}


def _unit(unit: Unit) -> dict:
    """A unit as data; what is infinite is missing."""
    limits = {name: end if np.isfinite(end := getattr(unit, name)) else None for name in ("tight", "share")}
    return {"name": unit.name, "digits": unit.digits, **limits}


@singledispatch
def asked(kind: Kind, claim: str, profile: str, read: Read) -> Rule:
    """The name of the rule that judges a claim of some kind, and what it asks besides the lines."""
    raise TypeError(f"no rule of the pages judges a {type(kind).__name__}; give `asked` one.")


@asked.register
def _(kind: Number, claim: str, profile: str, read: Read) -> Rule:
    rule = {"name": "number", "runs": kind.paper_runs, "unit": _unit(kind.unit), "given": kind.given}
    chance = None if kind.chance is None else _chance(kind, claim, read(kind.sample, profile))
    return rule | {"undecided": kind.undecided, "chance": chance}


def _chance(kind: Number, claim: str, rows: pd.DataFrame) -> dict:
    """Right answers of each run, of how many questions, and whether the paper's number is at chance too."""
    told = held_out(rows)
    stated = kind.drawn(claim, SETTLED, lambda *_: rows)[0].stated
    right = {int(seed): float(count) for seed, count in (rows[kind.last] * told).items()}
    many = {int(seed): int(count) for seed, count in told.items()}
    too = kind.unit.close(stated - kind.scale * kind.chance)
    return {"share": kind.chance, "right": right, "asked": many, "too": too}


@asked.register
def _(kind: Direction, claim: str, profile: str, read: Read) -> Rule:
    return {"name": "direction", "unit": _unit(kind.unit), "given": kind.given, "but": kind.but()}


@asked.register
def _(kind: NoGain, claim: str, profile: str, read: Read) -> Rule:
    return {"name": "no gain", "unit": _unit(kind.unit)}


@asked.register
def _(kind: Value, claim: str, profile: str, read: Read) -> Rule:
    others = {case.name: read(case.sample, profile)["other"] for case in kind.cases}
    shown = {name: {int(seed): float(one) for seed, one in values.items()} for name, values in others.items()}
    return {"name": "value", "unit": _unit(kind.unit), "other": kind.other, "others": shown, "but": kind.but()}


@asked.register
def _(kind: Reaches, claim: str, profile: str, read: Read) -> Rule:
    return {"name": "reaches"}


@asked.register
def _(kind: Parts, claim: str, profile: str, read: Read) -> Rule:
    parts = [
        asked(part, claim, profile, read) | {"name": name, "lines": len(part.drawn(claim, profile, read))}
        for name, part in kind.named
    ]
    return {"name": "parts", "parts": parts}


@asked.register
def _(kind: OfStart, claim: str, profile: str, read: Read) -> Rule:
    if kind.refuted:
        return {"name": "fixed", "verdict": f"refuted: {kind.refuted}"}
    return asked(kind.held, claim, SETTLED, of_profile(read, "quick"))


@asked.register
def _(kind: HalfStated, claim: str, profile: str, read: Read) -> Rule:
    return asked(kind.stated if profile == SETTLED else kind.best, claim, profile, read)
