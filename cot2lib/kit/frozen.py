"""Frozen data that specs are made of: its fields have their declared types, and its id is a hash of them.

A field is an int, a float, a bool, a str, a Literal or a tuple of such, or a frozen dataclass; each may be optional. A
value has one type, because ids hash it: a whole number given for a float becomes one, a NumPy integer an int, a list
a tuple, and anything else of another type is an error. `Annotated` with a `Bound` says which numbers fit.

An id hashes the JSON of the fields that differ from their defaults, and `NUMERICS`, which is raised when results
change their meaning. So a new field with a default changes no id. A field that does not count in comparisons, such as
the path of a file, counts in no id. A class outside the package, such as a reader's thought rule, is named by its
module and its source too: without comments and layout, with the functions and classes of its module that it uses.
"""

import ast
import dataclasses
import hashlib
import inspect
import json
import linecache
import math
import numbers
import operator
import sys
import textwrap
import types
import typing
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, cached_property
from typing import Annotated, ClassVar

from cot2lib.errors import SpecError, brief

NUMERICS = 1
DIGITS = 12  # hexadecimal ones of an id
PACKAGE = __name__.split(".")[0]
WANTED = {int: "a whole number", float: "a finite number", bool: "True or False", str: "a string"}
FIELDS = "a field may be int, float, bool, str, a Literal or tuple of such, or a frozen dataclass"
LARGEST = 2**63 - 1  # tensors hold integers of 64 bits

KINDS: dict[str, type] = {}  # classes of the package by their tag


@dataclasses.dataclass(frozen=True)
class Frozen:
    """The base of frozen data; raises SpecError for a field of another type.

    `tag` names the class in ids. A class that gets another name keeps its old one as its tag.
    """

    tag: ClassVar[str]

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if not is_outside(cls):
            other = KINDS.get(tag_of(cls), cls)
            assert other.__module__ == cls.__module__, f"{cls} and {other} have one tag; name them apart"
            KINDS[tag_of(cls)] = cls

    def __post_init__(self):
        for name, hint in _hints(type(self)).items():  # type: ignore[arg-type]  # mypy doubts that a class can be hashed
            object.__setattr__(self, name, _coerced(name, hint, getattr(self, name)))

    @cached_property
    def id(self) -> str:
        """Twelve hexadecimal digits."""
        text = json.dumps([NUMERICS, to_data(self, compared=True)], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]

    @property
    def label(self) -> str:
        """The class and its fields that differ from their defaults, as tables show it."""
        values = {entry: getattr(self, entry.name) for entry in dataclasses.fields(self)}
        changed = {entry.name: value for entry, value in values.items() if value != entry.default}
        shown = [f"{name}={getattr(value, 'label', value)}" for name, value in changed.items()]
        return f"{type(self).__name__}({', '.join(shown)})" if shown else type(self).__name__


# Types of fields


class Bound(typing.NamedTuple):
    """A bound of a number: `sign` is one of `SIGNS`."""

    sign: str
    limit: float

    def __repr__(self) -> str:
        return f"{self.sign.replace(' ', '_')}({self.limit})"


SIGNS = {"at least": operator.ge, "above": operator.gt, "at most": operator.le, "below": operator.lt}
Count = Annotated[int, Bound("at least", 1)]
Several = Annotated[int, Bound("at least", 2)]
Natural = Annotated[int, Bound("at least", 0)]
Positive = Annotated[float, Bound("above", 0)]
NonNegative = Annotated[float, Bound("at least", 0)]
Share = Annotated[float, Bound("at least", 0), Bound("below", 1)]


@cache
def _hints(kind: type) -> dict[str, typing.Any]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {entry.name: hints[entry.name] for entry in dataclasses.fields(kind)}


def _coerced(name: str, hint, value):
    """A value as its declared type."""
    origin, given = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        number = _coerced(name, given[0], value)
        for bound in given[1:]:
            if isinstance(bound, Bound) and not SIGNS[bound.sign](number, bound.limit):
                raise SpecError(f"{name}={number}: must be {bound.sign} {bound.limit}.")
        return number
    if origin in (typing.Union, types.UnionType):
        others = [kind for kind in given if kind is not type(None)]
        if value is None and len(others) < len(given):
            return None
        if len(others) == 1:
            return _coerced(name, others[0], value)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return as_instance(name, value, hint)
    if hint is int:
        return as_int(name, value)
    if hint is float and isinstance(value, numbers.Real) and not isinstance(value, bool):
        with suppress(OverflowError):  # of 10^400, which is none as a float
            if math.isfinite(value):
                return float(value)
    if hint in (bool, str) and isinstance(value, hint):
        return value
    if hint in WANTED:
        raise SpecError(f"{name}={value!r:.60}: give {WANTED[hint]}.")
    if origin is typing.Literal:
        chosen = [choice for choice in given if type(choice) is type(value) and choice == value]
        if not chosen:
            raise SpecError(f"{name}={value!r:.60}: choose one of {', '.join(map(str, given))}.")
        return chosen[0]
    if origin is tuple and given:
        if not isinstance(value, tuple | list):
            raise SpecError(f"{name}={value!r:.60}: give a tuple.")
        kinds = given[:1] * len(value) if given[1:] == (...,) else given
        if len(kinds) != len(value):
            raise SpecError(f"{name}={value!r:.60}: give a tuple of {len(kinds)}.")
        entries = enumerate(zip(kinds, value))
        return tuple(_coerced(f"{name}[{place}]", kind, entry) for place, (kind, entry) in entries)
    raise SpecError(f"{name}: {FIELDS}, not {getattr(hint, '__name__', hint)}.")


def as_instance(name: str, value, kind: type):
    """The value, if it is a frozen dataclass of a wanted kind; else raises SpecError."""
    if not isinstance(value, kind):
        raise SpecError(f"{name}={value!r:.200}: give an instance of {kind.__name__}.")
    own = type(value)
    if "__dataclass_params__" not in vars(own):
        raise SpecError(f"{name}: class {own.__name__} is no dataclass; write @dataclass(frozen=True) above it.")
    if is_outside(own):
        Frozen.__post_init__(value)  # type: ignore[arg-type]  # a reader's own may not do so
    return value


# Arguments of functions


def as_int(name: str, value) -> int:
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
    for name, value in values.items():
        _coerced(name, Count, value)


def distinct(name: str, values: Sequence) -> None:
    """Raise SpecError if a value stands twice in a list: what is counted twice looks surer than it is."""
    twice = next((value for place, value in enumerate(values) if value in values[:place]), None)
    if twice is not None:
        raise SpecError(f"{name}={list(values)!r} names {twice!r} twice; give each value once.")


# Plain data


def tag_of(kind: type) -> str:
    return kind.__name__ if is_outside(kind) else vars(kind).get("tag", kind.__name__)


def to_data(spec, compared: bool = False) -> dict:
    """Plain data: the kind and the fields that differ from their defaults; with `compared`, none that `==` ignores."""
    kind = type(spec)
    data = {"kind": tag_of(kind)}
    if is_outside(kind):
        data |= {"module": kind.__module__, "source": source_hash(kind)}
    for entry in dataclasses.fields(spec):
        value = getattr(spec, entry.name)
        if value != entry.default and (entry.compare or not compared):
            data[entry.name] = _plain(value, compared)
    return data


def _plain(value, compared: bool):
    if isinstance(value, tuple):
        return [_plain(entry, compared) for entry in value]
    return to_data(value, compared) if dataclasses.is_dataclass(value) else value


def from_data(data: dict):
    """The object that `to_data` described, of classes of the package."""
    fields = dict(data)
    name = fields.pop("kind", None)
    kind = None if "source" in fields else KINDS.get(name)
    if kind is None:
        raise SpecError(f"spec of kind {name!r}: this version of cot2lib knows {', '.join(KINDS)}.")
    try:
        return kind(**{name: _restored(value) for name, value in fields.items()})
    except TypeError as error:
        raise SpecError(f"{kind.__name__} has other fields in this version of cot2lib ({brief(error)}).") from error


def _restored(value):
    """The reverse of `_plain`; JSON knows lists alone, and no field is one."""
    if isinstance(value, list):
        return tuple(_restored(entry) for entry in value)
    return from_data(value) if isinstance(value, dict) else value


# Classes outside the package


def is_outside(kind: type) -> bool:
    return kind.__module__.split(".")[0] != PACKAGE


def outsiders(spec) -> list[type]:
    """Classes outside the package that frozen data is made of."""
    if isinstance(spec, tuple):
        return [kind for entry in spec for kind in outsiders(entry)]
    if not dataclasses.is_dataclass(spec):
        return []
    inner = outsiders(tuple(getattr(spec, entry.name) for entry in dataclasses.fields(spec)))
    return [type(spec)] * is_outside(type(spec)) + inner


def source_hash(kind: type) -> str:
    """Hash of the code of a class, of its bases outside the package, and of what they use of its module."""
    library = ("builtins", "abc", "typing")
    used: list = [base for base in kind.__mro__ if is_outside(base) and base.__module__ not in library]
    module = getattr(sys.modules.get(kind.__module__), "__dict__", {})
    for thing in used:  # grows
        for other in map(module.get, _code(thing)[1]):
            own = inspect.isclass(other) or inspect.isfunction(other)
            if own and other.__module__ == kind.__module__ and other not in used:
                with suppress(SpecError):  # of one whose source cannot be read
                    _code(other)
                    used.append(other)
    return hashlib.sha256("\n".join(_code(thing)[0] for thing in used).encode()).hexdigest()[:16]


@cache
def _code(thing) -> tuple[str, tuple[str, ...]]:
    """The code of a class or function, and the names that it uses."""
    source: str | None
    try:
        source = textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError) as error:
        if (source := _cell_source(thing)) is None:
            raise SpecError(
                f"the source of class {thing.__name__} cannot be read, and the id of a run needs it; "
                "define the class in a file, or in a notebook cell with a method of its own."
            ) from error
    try:
        tree = ast.parse(source)
    except SyntaxError:  # lines that do not parse by themselves
        return source, ()
    return ast.unparse(tree), tuple(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def _cell_source(kind: type) -> str | None:
    """The source of a class of a notebook, which Python does not find: its methods know their cell."""
    for value in vars(kind).values():
        method = inspect.unwrap(getattr(value, "fget", None) or getattr(value, "func", value))
        if code := getattr(method, "__code__", None):
            lines = linecache.getlines(code.co_filename)
            for node in ast.walk(ast.parse("".join(lines))):
                if not isinstance(node, ast.ClassDef) or node.name != kind.__name__:
                    continue
                if node.lineno <= code.co_firstlineno <= (node.end_lineno or 0):
                    return textwrap.dedent("".join(lines[node.lineno - 1 : node.end_lineno]))
    return None
