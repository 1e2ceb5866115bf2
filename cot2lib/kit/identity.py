"""Plain data of frozen dataclasses, and the ids made of it.

An id is a hash of the JSON of the fields that differ from their defaults, and of `NUMERICS`. Adding a field
with a default therefore changes no id. Changing a default or the meaning of results does; it needs NUMERICS
raised.

A class that the package does not define, such as a reader's thought rule, is named by its module and its
source as well: when the source changes, the id does. Functions that the class calls are not looked at.
"""

import dataclasses
import hashlib
import inspect
import json
import textwrap
from functools import cache

from cot2lib.errors import SpecError

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
    text = json.dumps([NUMERICS, to_data(data)], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def to_data(spec) -> dict:
    """Plain data: the kind and the fields that differ from their defaults.

    Raises:
        SpecError: for a class outside the package whose source cannot be read.
    """
    kind = type(spec)
    data = {"kind": kind.__name__}
    if is_outside(kind):
        data |= {"module": kind.__module__, "source": source_hash(kind)}
        OUTSIDE[data["module"], data["kind"], data["source"]] = kind
    for entry in dataclasses.fields(spec):
        value = getattr(spec, entry.name)
        if value != entry.default:
            data[entry.name] = to_data(value) if dataclasses.is_dataclass(value) else value
    return data


def from_data(data: dict):
    """What `to_data` described.

    Raises:
        UndefinedError: for a class outside the package that this process has not defined alike.
        SpecError: for a kind or field that this version does not know, or a field without a default that is missing.
    """
    if not isinstance(data, dict):
        raise SpecError(f"{str(data)[:60]!r} describes no spec; give a kind and its fields.")
    fields = dict(data)
    name, module, source = (fields.pop(key, None) for key in ("kind", "module", "source"))
    kind = KINDS.get(name) if source is None else OUTSIDE.get((module, name, source))
    if kind is None and source is not None:
        raise UndefinedError(f"{name} of module {module} is not defined here, or differs; run its definition first.")
    if kind is None:
        raise SpecError(f"spec of kind {name!r}: this version of cot2lib knows {', '.join(KINDS)}.")
    unknown = set(fields) - {entry.name for entry in dataclasses.fields(kind)}
    if unknown:
        raise SpecError(f"{kind.__name__} has no field {', '.join(sorted(unknown))} in this version of cot2lib.")
    required = {e.name for e in dataclasses.fields(kind) if e.default is e.default_factory is dataclasses.MISSING}
    if missing := required - set(fields):
        raise SpecError(f"{kind.__name__} needs {', '.join(sorted(missing))}, which is missing.")
    return kind(**{name: from_data(value) if isinstance(value, dict) else value for name, value in fields.items()})


def is_outside(kind: type) -> bool:
    """Whether a class is defined outside the package."""
    return kind.__module__.split(".")[0] != PACKAGE


def outsiders(spec) -> list[type]:
    """Classes outside the package that frozen data is made of."""
    parts = [getattr(spec, entry.name) for entry in dataclasses.fields(spec)]
    inner = [kind for part in parts if dataclasses.is_dataclass(part) for kind in outsiders(part)]
    return [type(spec)] * is_outside(type(spec)) + inner


@cache
def source_hash(kind: type) -> str:
    """Hash of the source of a class and of its bases outside the package.

    Raises:
        SpecError: if a source cannot be read, as of a class typed at a plain Python prompt.
    """
    sources = "\n".join(_source(base) for base in kind.__mro__ if _has_source(base))
    return hashlib.sha256(sources.encode()).hexdigest()[:16]


def _has_source(kind: type) -> bool:
    return is_outside(kind) and kind.__module__ not in ("builtins", "abc", "typing")


def _source(kind: type) -> str:
    try:
        return textwrap.dedent(inspect.getsource(kind))
    except (OSError, TypeError) as error:
        raise SpecError(
            f"the source of class {kind.__name__} cannot be read, and the id of a run needs it; "
            "define the class in a file or in a notebook cell."
        ) from error
