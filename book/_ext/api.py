"""Sphinx extension: the page of the package's face, from its docstrings by autodoc.

Docstrings here are Markdown with Google's sections. Napoleon knows the sections; code in single backticks becomes
that of reStructuredText. The page `book/api` holds a line `% face`, which the entries take the place of.
"""

import ast
import importlib
import inspect
import re
from pathlib import Path

from sphinx.application import Sphinx

import cot2lib

BARE = re.compile(r"[*|]")
PAGE, PLACE = "book/api", "% face"
TITLES = {
    "cot2lib.tasks": "Tasks", "cot2lib.thoughts": "Thought rules", "cot2lib.model": "Models",
    "cot2lib.supervision": "Targets", "cot2lib.targets": "Other targets", "cot2lib.specs": "Runs as data",
    "cot2lib.specs.profiles": "Recipes", "cot2lib.runs": "Train and look up",
}  # fmt: skip


def homes() -> dict[str, list[str]]:
    """Names of the face by module."""
    stub, found = ast.parse(Path(cot2lib.__file__).with_suffix(".pyi").read_text()), {}
    for node in stub.body:
        if isinstance(node, ast.ImportFrom):
            found.setdefault(f"cot2lib.{node.module}", []).extend(alias.name for alias in node.names)
    return found


def entries() -> str:
    """Every name of the face under its module, as MyST."""
    lines, names = [], homes()
    for module, title in TITLES.items():
        lines += [f"## {title}", "", "```{eval-rst}"]
        for name in names[module]:
            thing = getattr(importlib.import_module(module), name)
            kind = "autoclass" if inspect.isclass(thing) else "autofunction"
            lines += [f".. {kind}:: cot2lib.{name}", *(["   :members:"] if inspect.isclass(thing) else []), ""]
        lines += ["```", ""]
    return "\n".join(lines)


def fill(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the entries into their page."""
    if docname == PAGE:
        app.env.note_reread()
        source[0] = source[0].replace(PLACE, entries())


def as_code(app: Sphinx, what: str, name: str, thing: object, options: dict, lines: list[str]) -> None:
    """A docstring's code and bare signs for reStructuredText, which reads *x* and |x| as markup.

    Napoleon would take what is before a property's colon for its type.
    """
    if what in ("property", "attribute") and lines:
        lines[0] = lines[0].replace(": ", " \N{EN DASH} ", 1)
    parts = [re.split(r"(`[^`]+`)", line) for line in lines]
    lines[:] = [
        "".join(f"`{part}`" if part[:1] == "`" else BARE.sub(r"\\\g<0>", part) for part in line) for line in parts
    ]


def setup(app: Sphinx) -> dict:
    """Register with Sphinx."""
    app.setup_extension("sphinx.ext.autodoc")
    app.setup_extension("sphinx.ext.napoleon")
    app.connect("source-read", fill)
    app.connect("autodoc-process-docstring", as_code, priority=400)
    return {"version": "1", "parallel_read_safe": True}
