"""Checked fields for the frozen data that specs are made of, and checked arguments.

An id is a hash of the fields, so a value has one type: a whole number given for a float becomes
one, a NumPy integer becomes an int, a list given for a tuple becomes one, and anything else of another type is an
error. A field is an int, a float, a bool, a str, a Literal or a tuple of such, or a frozen dataclass; each of them may
be optional.
"""

import dataclasses
import difflib
import math
import numbers
import operator
import types
import typing
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache

from cot2lib.errors import SpecError, brief
from cot2lib.kit.identity import is_outside

WANTED = {int: "a whole number", float: "a finite number", bool: "True or False", str: "a string"}
FIELDS = "a field may be int, float, bool, str, a Literal or tuple of such, or a frozen dataclass"
LARGEST = 2**63 - 1  # tensors hold integers of 64 bits


def typed(data) -> None:
    """Give every field of a frozen dataclass its declared type."""
    for name, hint in _hints(type(data)).items():  # type: ignore[arg-type]  # mypy doubts that a class can be hashed
        object.__setattr__(data, name, _as(name, hint, getattr(data, name)))


def label(data) -> str:
    """The class of a frozen dataclass and its fields that differ from their defaults, as tables show it."""
    values = {entry: getattr(data, entry.name) for entry in dataclasses.fields(data)}
    shown = [
        f"{entry.name}={label(value) if dataclasses.is_dataclass(value) else value}"
        for entry, value in values.items()
        if value != entry.default
    ]
    return f"{type(data).__name__}({', '.join(shown)})" if shown else type(data).__name__


def refuse_unknown(caller: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise SpecError for a keyword argument that a function does not know, and name the nearest one that it does."""
    known = list(known)
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
            raise SpecError(f"{caller} takes no {name}; did you mean {near}? It takes {', '.join(known)}.")


def whole(name: str, value) -> int:
    """A whole number of at most 64 bits as an int."""
    try:
        number = operator.index(value) if not isinstance(value, bool) else None
    except TypeError:  # arrays and tensors have an index if they hold one integer
        number = None
    if number is None:
        raise SpecError(f"{name}={' '.join(repr(value).split()):.200}: give {WANTED[int]}.")
    if abs(number) > LARGEST:
        raise SpecError(f"{name} has {number.bit_length()} bits: give a whole number between -2^63 and 2^63.")
    return number


def positive(**values) -> None:
    """Raise SpecError for an argument that is no whole number of at least 1."""
    at_least(1, **{name: whole(name, value) for name, value in values.items()})


def at_least(least: int, **values) -> None:
    """Raise SpecError for a number below its least value; None is none."""
    for name, value in values.items():
        if value is not None and value < least:
            raise SpecError(f"{name}={value}: must be at least {least}.")


def above_zero(**values) -> None:
    """Raise SpecError for a number that is not above 0."""
    for name, value in values.items():
        if not value > 0:
            raise SpecError(f"{name}={value}: must be above 0.")


def distinct(name: str, values: Sequence) -> None:
    """Raise SpecError if a value stands twice in a list: what is counted twice looks surer than it is."""
    twice = next((value for place, value in enumerate(values) if value in values[:place]), None)
    if twice is not None:
        raise SpecError(f"{name}={list(values)!r} names {twice!r} twice; give each value once.")


@cache
def _hints(kind: type) -> dict[str, typing.Any]:
    try:
        hints = typing.get_type_hints(kind)
    except (NameError, TypeError, SyntaxError) as error:
        raise SpecError(f"class {kind.__name__}: the type of a field cannot be read ({brief(error)}).") from error
    return {entry.name: hints[entry.name] for entry in dataclasses.fields(kind)}


@cache
def _kinds(hint) -> tuple[tuple, tuple[type, ...]]:
    """The types that a declared type allows besides None, and those of them that are dataclasses."""
    kinds = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    kinds = tuple(kind for kind in kinds if kind is not type(None))
    return kinds, tuple(kind for kind in kinds if isinstance(kind, type) and dataclasses.is_dataclass(kind))


def _as(name: str, hint, value):
    """A value as its declared type; of several the first that it fits."""
    if value is None and type(None) in typing.get_args(hint):
        return None
    kinds, parts = _kinds(hint)
    if parts and (parts == kinds or isinstance(value, parts)):
        return part(name, value, *parts)
    for kind in kinds[:-1]:
        with suppress(SpecError):
            return _one(name, kind, value)
    return _one(name, kinds[-1], value)


def part(name: str, value, *kinds: type):
    """A frozen dataclass of a wanted kind."""
    if not isinstance(value, kinds):
        known = ", ".join(kind.__name__ for kind in kinds)
        raise SpecError(f"{name}={value!r:.200}: give one of {known}.")
    kind = type(value)
    if "__dataclass_params__" not in vars(kind):
        raise SpecError(f"{name}: class {kind.__name__} is no dataclass; write @dataclass(frozen=True) above it.")
    if is_outside(kind):
        typed(value)  # our own classes do so themselves
    return value


def _one(name: str, kind, value):
    if kind is int:
        return whole(name, value)
    if kind is float and isinstance(value, numbers.Real) and not isinstance(value, bool):
        with suppress(OverflowError):  # of 10^400, which is none as a float
            if math.isfinite(value):
                return float(value)
    if kind in (bool, str) and isinstance(value, kind):
        return value
    if kind in WANTED:
        raise SpecError(f"{name}={value!r:.60}: give {WANTED[kind]}.")
    given = typing.get_args(kind)
    if typing.get_origin(kind) is typing.Literal:
        chosen = [choice for choice in given if type(choice) is type(value) and choice == value]
        if not chosen:
            raise SpecError(f"{name}={value!r:.60}: choose one of {', '.join(map(str, given))}.")
        return chosen[0]
    if typing.get_origin(kind) is tuple and given:
        return _several(name, given, value)
    raise SpecError(f"{name}: {FIELDS}, not {getattr(kind, '__name__', kind)}.")


def _several(name: str, kinds: tuple, value) -> tuple:
    """A tuple, whose entries are all of one kind if the second of two is an ellipsis."""
    if not isinstance(value, tuple | list):
        raise SpecError(f"{name}={value!r:.60}: give a tuple.")
    if kinds[1:] == (...,):
        kinds = kinds[:1] * len(value)
    if len(kinds) != len(value):
        raise SpecError(f"{name}={value!r:.60}: give a tuple of {len(kinds)}.")
    return tuple(_as(f"{name}[{place}]", kind, entry) for place, (kind, entry) in enumerate(zip(kinds, value)))
