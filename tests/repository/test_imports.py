"""Imports go down the levels of the package, and all are declared: for the library, and for a chapter on Colab."""

import ast
import json
import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from installs import asked
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "cot2lib"
# Lowest level first; a package imports only from levels below its own. The core ends below `study`.
LEVELS = [
    {"errors"},
    {"kit"},
    {"tasks", "thoughts", "metrics", "losses", "fast"},
    {"supervision", "model", "locality"},
    {"decode", "theory", "targets"},
    {"testing"},
    {"specs"},  # a run loads its trainer, which knows runs, when it is asked for it
    {"training", "policy_gradient"},
    {"runs", "passk", "interventions"},
    {"llm"},
    {"study"},
    {"cli"},
]
# Inside the study: a chapter is a file or a folder named as its notebook, or some files `<chapter>_...`; what several
# share is a file below them; those of `ABOVE` know all.
STUDY, ABOVE = LIBRARY / "study", {"claims", "book"}


@cache
def parsed(path):
    return ast.parse(path.read_text())


def library():
    return sorted(LIBRARY.rglob("*.py"))


def imported(nodes):
    """Dotted names that some nodes import; of `from a import b` both `a` and `a.b`, since `b` may be a module."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def ours(path, nodes=ast.walk):
    """What a file imports of our package, in parts below `cot2lib`."""
    names = {tuple(name.split(".")) for name in imported(nodes(parsed(path)))}
    return {parts[1:] for parts in names if parts[0] == "cot2lib" and len(parts) > 1}


def test_imports_go_down():
    place = {name: level for level, names in enumerate(LEVELS) for name in names}
    upward = {}
    for path in library():
        own = path.relative_to(LIBRARY).with_suffix("").parts[0]
        if not own.startswith("__"):
            rooms = {up[0] for up in ours(path, at_once if own == "specs" else ast.walk)}
            upward[str(path)] = {up for up in rooms - {own} if place.get(up, -1) >= place[own]}
    assert {path: names for path, names in upward.items() if names} == {}


def test_a_chapter_imports_no_other_and_what_chapters_share_has_no_circle():
    chapters = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    rooms = {path.parent.name for path in STUDY.glob("*/__init__.py")} | chapters
    inside = lambda path: {parts[1] for parts in ours(path) if parts[0] == "study" and len(parts) > 1}
    named = {path.relative_to(STUDY): inside(path) for path in STUDY.rglob("*.py")}
    own = lambda path: path.parts[0].removesuffix(".py")
    above = {path: names & rooms - {own(path)} for path, names in named.items() if own(path) not in ABOVE}
    assert {str(path): names for path, names in above.items() if names and path.name != "__init__.py"} == {}
    shared = {path.stem for path in STUDY.glob("*.py")} - {"__init__"}  # the door asks the book
    files = {path.stem: names & shared - {path.stem} for path, names in named.items() if path.stem in shared}
    tuple(TopologicalSorter(files).static_order())


# What is declared


def extras():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def declared(*chosen):
    """Names, as imported, of the required packages and of those of extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = [text for group in [project["dependencies"], *map(extras().get, chosen)] for text in group]
    return {Requirement(text).name.replace("-", "_") for text in texts}


@cache
def face():
    """Modules of the names that `cot2lib` itself has."""
    stub = parsed(LIBRARY / "__init__.pyi").body
    return {node.names[0].name: f"cot2lib.{node.module}" for node in stub if isinstance(node, ast.ImportFrom)}


def at_once(tree):
    """Nodes that run when a module is imported: not those of functions."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            yield from at_once(node)


def others(names):
    """The packages among them that are neither Python's nor ours."""
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"cot2", "cot2lib"}


def loaded(names, seen):
    """Packages that importing some names loads, through modules of ours."""
    found = others(names)
    for name in (name for name in names if name.partition(".")[0] == "cot2lib"):
        package, _, last = name.rpartition(".")
        if package == "cot2lib" and last in face():
            name = face()[last]
        for module in (".".join(name.split(".")[:depth]) for depth in range(1, name.count(".") + 2)):
            path = ROOT / module.replace(".", "/")
            path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            if module not in seen and path.exists():
                seen.add(module)
                found |= loaded(list(imported(at_once(parsed(path)))), seen)
    return found


def test_imports_are_declared():
    """Anywhere in the library. What loads with a module is required."""
    wrong = {}
    for path in library():
        wrong[path] = others(imported(ast.walk(parsed(path)))) - declared(*extras())
        wrong[path] |= others(imported(at_once(parsed(path)))) - declared()
    assert {path: names for path, names in wrong.items() if names} == {}


@cache
def used():
    """By chapter: extras that its first cell installs, and dotted names that it imports."""
    found = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
        names = [name for cell in cells for name in imported(ast.walk(ast.parse("".join(cell["source"]))))]
        found[path.stem] = [extra for extra in asked(path).split(",") if extra], names
    return found


def test_colab_installs_what_a_chapter_imports():
    lacking = {chapter: loaded(names, set()) - declared(*chosen) for chapter, (chosen, names) in used().items()}
    assert {chapter: names for chapter, names in lacking.items() if names} == {}
    assert all("torch" in loaded(names, set()) for _, names in used().values()), "our modules are followed"
