"""Checked fields for the frozen data that specs are made of, and checked arguments.

An id is a hash of the fields, so a value has one type: a whole number given for a float becomes
one, a NumPy integer becomes an int, and anything else of another type is an error.
"""

import dataclasses
import math
import operator
import types
import typing
from collections.abc import Sequence
from functools import cache

from cot2lib.errors import SpecError

WANTED = {int: "a whole number", float: "a finite number", bool: "True or False", str: "a string"}
LARGEST = 2**63 - 1  # tensors hold integers of 64 bits


def typed(data) -> None:
    """Give every int, float, bool and str field of a frozen dataclass its declared type.

    Raises:
        SpecError: naming a field whose value is of another type, or an integer of more than 64 bits.
    """
    hints = _hints(type(data))
    for entry in dataclasses.fields(data):
        value, kinds = getattr(data, entry.name), hints[entry.name]
        if any(dataclasses.is_dataclass(kind) for kind in kinds):
            _check_part(entry.name, value, kinds)
        elif not (value is None and type(None) in kinds):
            object.__setattr__(data, entry.name, _as(entry.name, kinds[0], value))


def _check_part(name: str, value, kinds: tuple[type, ...]) -> None:
    """Raise SpecError for a part that is of no wanted kind, or whose class is no frozen dataclass."""
    if not isinstance(value, kinds):
        known = ", ".join(kind.__name__ for kind in kinds)
        raise SpecError(f"{name}={value!r}: give one of {known}.")
    kind = type(value)
    if value is not None and "__dataclass_params__" not in vars(kind):
        raise SpecError(f"{name}: class {kind.__name__} is no dataclass; write @dataclass(frozen=True) above it.")


def whole(name: str, value) -> int:
    """A whole number of at most 64 bits as an int.

    Raises:
        SpecError: for anything else; `name` says which argument it is.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise SpecError(f"{name}={value!r}: give {WANTED[int]}.")
    number = operator.index(value)
    if abs(number) > LARGEST:
        raise SpecError(f"{name} has {number.bit_length()} bits: give a whole number between -2^63 and 2^63.")
    return number


def positive(**values) -> None:
    """Raise SpecError for an argument that is no whole number of at least 1."""
    for name, value in values.items():
        if whole(name, value) < 1:
            raise SpecError(f"{name}={value}: must be at least 1.")


def distinct(name: str, values: Sequence) -> None:
    """Raise SpecError if a value stands twice in a list: what is counted twice looks surer than it is."""
    twice = next((value for place, value in enumerate(values) if value in values[:place]), None)
    if twice is not None:
        raise SpecError(f"{name}={list(values)!r} names {twice!r} twice; give each value once.")


@cache
def _hints(kind: type) -> dict[str, tuple[type, ...]]:
    """Declared types of each field, alternatives apart."""
    apart = lambda hint: typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    hints = typing.get_type_hints(kind)
    return {entry.name: apart(hints[entry.name]) for entry in dataclasses.fields(kind)}


def _as(name: str, kind: type, value):
    if kind is int:
        return whole(name, value)
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool) and _finite(value):
        return float(value)
    if kind in (bool, str) and isinstance(value, kind):
        return value
    raise SpecError(f"{name}={value!r:.60}: give {WANTED[kind]}.")


def _finite(value: int | float) -> bool:
    """Whether a number is one as a float too; 10^400 is not."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
