"""Checked fields for the frozen data that specs are made of.

An id is a hash of the fields, so a value has one type: a whole number given for a float becomes
one, a NumPy integer becomes an int, and anything else of another type is an error.
"""

import dataclasses
import math
import operator
import types
import typing
from functools import cache

from cot2lib.errors import SpecError

WANTED = {int: "a whole number", float: "a finite number", bool: "True or False", str: "a string"}


def typed(data) -> None:
    """Give every int, float, bool and str field of a frozen dataclass its declared type.

    Raises:
        SpecError: naming a field whose value is of another type.
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


@cache
def _hints(kind: type) -> dict[str, tuple[type, ...]]:
    """Declared types of each field, alternatives apart."""
    apart = lambda hint: typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    hints = typing.get_type_hints(kind)
    return {entry.name: apart(hints[entry.name]) for entry in dataclasses.fields(kind)}


def _as(name: str, kind: type, value):
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    if kind is int and not isinstance(value, bool) and hasattr(value, "__index__"):
        return operator.index(value)
    if kind in (bool, str) and isinstance(value, kind):
        return value
    raise SpecError(f"{name}={value!r}: give {WANTED[kind]}.")
