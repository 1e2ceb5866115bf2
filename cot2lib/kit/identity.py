"""Plain data of frozen dataclasses, and the ids made of it.

An id is a hash of the JSON of the fields that differ from their defaults, and of `NUMERICS`. Adding a field
with a default therefore changes no id. Changing a default or the meaning of results does; it needs NUMERICS
raised. A field that does not count in comparisons, such as the path of a file, counts in no id.

A class that the package does not define, such as a reader's thought rule, is named by its module and its
source as well: when the code changes, the id does, and comments and layout do not count. Functions that the class
calls are not looked at.
"""

import ast
import dataclasses
import hashlib
import inspect
import json
import linecache
import textwrap
from functools import cache, lru_cache

from cot2lib.errors import SpecError, brief

NUMERICS = 1
DIGITS = 12  # hexadecimal ones of an id
PACKAGE = __name__.split(".")[0]

KINDS: dict[str, type] = {}  # classes of the package by name
OUTSIDE: dict[tuple[str, str, str], type] = {}  # classes of others, as this process has met them


class UndefinedError(SpecError):
    """Plain data of a class that is defined outside the package, and not in this process."""


def know(*kinds: type) -> None:
    """Let `from_data` make these classes."""
    KINDS.update({kind.__name__: kind for kind in kinds})


def identifier(data) -> str:
    """Twelve hexadecimal digits that name frozen data."""
    try:
        text = json.dumps([NUMERICS, to_data(data, compared=True)], sort_keys=True, separators=(",", ":"))
    except TypeError as error:
        raise SpecError(f"{type(data).__name__} has a field that is no plain data ({brief(error)}).") from error
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def to_data(spec, compared: bool = False) -> dict:
    """Plain data: the kind and the fields that differ from their defaults, or only those that count in comparisons."""
    kind = type(spec)
    data = {"kind": kind.__name__}
    if is_outside(kind):
        data |= {"module": kind.__module__, "source": source_hash(kind)}  # type: ignore[arg-type]  # as in `fields.typed`
        OUTSIDE[data["module"], data["kind"], data["source"]] = kind
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
    """The object that `to_data` described."""
    if not (
        isinstance(data, dict) and all(isinstance(data.get(key, ""), str) for key in ("kind", "module", "source"))
    ):
        raise SpecError(f"{str(data)[:60]!r} describes no spec; give a kind and its fields.")
    fields = dict(data)
    name, module, source = (fields.pop(key, None) for key in ("kind", "module", "source"))
    kind = KINDS.get(name) if source is None else OUTSIDE.get((module, name, source))
    if kind is None and source is not None:
        raise UndefinedError(f"{name} of module {module} is not defined here, or differs; run its definition first.")
    if kind is None:
        raise SpecError(f"spec of kind {name!r}: this version of cot2lib knows {', '.join(KINDS)}.")
    try:
        return kind(**{name: _whole(value) for name, value in fields.items()})
    except TypeError as error:
        raise SpecError(f"{kind.__name__} has other fields in this version of cot2lib ({brief(error)}).") from error


def _whole(value):
    """The reverse of `_plain`; JSON knows lists alone, and no field is one."""
    if isinstance(value, list):
        return tuple(_whole(entry) for entry in value)
    if not isinstance(value, dict):
        return value
    text = json.dumps(value)
    return from_data(value) if '"source"' in text else _shared(text)  # outside, a class may be defined anew


@lru_cache(maxsize=1024)
def _shared(text: str):
    """A part of a spec; thousands of runs share their tasks, models and recipes."""
    return from_data(json.loads(text))


def is_outside(kind: type) -> bool:
    """Whether a class is defined outside the package."""
    return kind.__module__.split(".")[0] != PACKAGE


def outsiders(spec) -> list[type]:
    """Classes outside the package that frozen data is made of."""
    if isinstance(spec, tuple):
        return [kind for entry in spec for kind in outsiders(entry)]
    if not dataclasses.is_dataclass(spec):
        return []
    inner = outsiders(tuple(getattr(spec, entry.name) for entry in dataclasses.fields(spec)))
    return [type(spec)] * is_outside(type(spec)) + inner


@cache
def source_hash(kind: type) -> str:
    """Hash of the code of a class and of its bases outside the package."""
    others = [
        base for base in kind.__mro__ if is_outside(base) and base.__module__ not in ("builtins", "abc", "typing")
    ]
    code = "\n".join(_code(_source(base)) for base in others)
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def _code(source: str) -> str:
    """A source without comments and layout; unchanged where its lines do not parse by themselves."""
    try:
        return ast.unparse(ast.parse(source))
    except SyntaxError:
        return source


def _source(kind: type) -> str:
    try:
        return textwrap.dedent(inspect.getsource(kind))
    except (OSError, TypeError) as error:
        if found := _cell_source(kind):
            return found
        raise SpecError(
            f"the source of class {kind.__name__} cannot be read, and the id of a run needs it; "
            "define the class in a file, or in a notebook cell with a method of its own."
        ) from error


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
