"""What is imported is declared: by the library, and by what a chapter's first cell installs on Colab."""

import ast
import json
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml
from installs import FIRST, asked, floors, pip_part
from packaging.requirements import Requirement
from packaging.version import Version

from cot2lib.study import chapters

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CHAPTERS = sorted((ROOT / "notebooks").glob("*.ipynb"))
EXTRAS = PROJECT["optional-dependencies"]
STUB = ast.parse((ROOT / "cot2lib" / "__init__.pyi").read_text()).body
FACE = {node.names[0].name: f"cot2lib.{node.module}" for node in STUB if isinstance(node, ast.ImportFrom)}


def declared(*extras):
    """Names, as imported, of the required packages and of those of extras."""
    texts = [text for group in [PROJECT["dependencies"], *map(EXTRAS.get, extras)] for text in group]
    return {Requirement(text).name.replace("-", "_") for text in texts}


@cache
def parsed(path):
    return ast.parse(path.read_text())


def at_once(tree):
    """Nodes that run when a module is imported: not those of functions."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            yield from at_once(node)


def imported(nodes):
    """Dotted names that some nodes import; of `from a import b` both `a` and `a.b`, since `b` may be a module."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def others(names):
    """The packages among them that are neither Python's nor ours."""
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"cot2", "cot2lib"}


def undeclared(tree, *extras):
    return others(imported(ast.walk(tree))) - declared(*extras)


def loaded(names, seen):
    """Packages that importing some names loads, through modules of ours."""
    found, ours = others(names), [name for name in names if name.partition(".")[0] == "cot2lib"]
    for name in ours:
        package, _, last = name.rpartition(".")
        if package == "cot2lib" and last in FACE:
            name = FACE[last]
        for module in (".".join(name.split(".")[:depth]) for depth in range(1, name.count(".") + 2)):
            path = ROOT / module.replace(".", "/")
            path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            if module not in seen and path.exists():
                seen.add(module)
                found |= loaded(list(imported(at_once(parsed(path)))), seen)
    return found


def test_imports_are_declared():
    """Anywhere in the library. What loads with a module is required; the fused engine is an extra as a whole."""
    for path in sorted((ROOT / "cot2lib").rglob("*.py")):
        assert not undeclared(parsed(path), *EXTRAS), path
        extras = ["fast"] if path.is_relative_to(ROOT / "cot2lib" / "fast") else []
        assert not others(imported(at_once(parsed(path)))) - declared(*extras), path


def test_an_undeclared_import_is_seen():
    assert undeclared(ast.parse("def draw():\n    import plotly.express\n    from os import path")) == {"plotly"}
    assert others(imported(at_once(ast.parse("if True:\n    import jax\ndef later():\n    import numba")))) == {"jax"}
    assert {"torch", "pandas", "networkx"} <= loaded(["cot2lib.study.prosqa.draw"], set())
    assert "numba" in loaded(["cot2lib.fast"], set()) and "torch" in loaded(["cot2lib.run"], set())


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_colab_installs_what_a_chapter_imports(path):
    extras = [extra for extra in asked(path).split(",") if extra]
    assert set(extras) <= set(EXTRAS)
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    names = [name for cell in cells for name in imported(ast.walk(ast.parse("".join(cell["source"]))))]
    assert "cot2lib.study" in names
    assert not loaded(names, set()) - declared(*extras)


@pytest.mark.parametrize(
    "extra, use", [("llm", r"\.shown_model\("), ("graphs", r"\.published_file\("), ("fast", r"live_curves\(")]
)
def test_colab_installs_what_a_chapter_needs_later(extra, use):
    """What functions import is not followed above; `installs.py` finds it, and these uses stand for what it found.
    Without Numba the chapters that train live take minutes."""
    users = [path for path in CHAPTERS if re.search(use, path.read_text())]
    assert users, "renamed?"
    assert all(extra in asked(path).split(",") for path in users)


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_floors_are_those_of_the_project(version):
    lowest = {name: Version(number) for name, number in (pin.split("==") for pin in floors(version))}
    for text in PROJECT["dependencies"]:
        wanted = Requirement(text)
        assert lowest[wanted.name] in wanted.specifier
        above = FIRST.get(version, {}).get(wanted.name)
        assert lowest[wanted.name] == Version(above or str(wanted.specifier).removeprefix(">="))


def test_the_weekly_workflow_tries_them():
    """With what pip installs of an environment."""
    jobs = yaml.safe_load((ROOT / ".github/workflows/weekly.yml").read_text())["jobs"]
    matrix, environments = jobs["installs"]["strategy"]["matrix"], jobs["conda"]["strategy"]["matrix"]["file"]
    assert matrix["python"] == ["3.11", "3.12", "3.13"] and matrix["of"] == ["floors", "newest"]
    assert [entry["of"] for entry in matrix["include"]] == environments
    for name in environments:
        parts = yaml.safe_load((ROOT / name).read_text())["dependencies"]
        assert pip_part(ROOT / name) == next(part["pip"] for part in parts if isinstance(part, dict))
    commands = [step.get("run") for step in jobs["installs"]["steps"]]
    assert "python tests/repository/installs.py ${{ matrix.of }}" in commands


def test_chapters_say_that_papermill_is_missing(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "papermill", None)
    assert "pip install 'cot2lib[book]'" in chapters._execute(CHAPTERS[0], tmp_path / "out.ipynb", {})
