"""The repository's own promises: sizes, environments, and names that must agree."""

import ast
import pkgutil
import re
import runpy
import tomllib
from pathlib import Path

import pytest
import yaml
from installs import FIRST, PROJECT, floors, pip_part
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from cot2lib.cli import _parser

ROOT = Path(__file__).parents[2]


def makefile():
    return (ROOT / "Makefile").read_text()


def targets():
    return set(re.findall(r"^([a-z]+):", makefile(), re.MULTILINE))


def prose():
    return [ROOT / "README.md", *ROOT.glob("book/*.md"), *ROOT.glob("notebooks/*.ipynb")]


def library():
    return sorted((ROOT / "cot2lib").rglob("*.py"))


def test_files_and_functions_stay_short():
    lines = {}
    for path in library():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines[f"{path} {node.name}"] = node.end_lineno - node.lineno + 1
    assert {name: count for name, count in lines.items() if count > 60} == {}
    assert [path for path in library() if len(path.read_text().splitlines()) > 400] == []


def test_names_in_prose_exist():
    files = [*library(), *prose()]
    named = {name for path in files for name in re.findall(r"`(cot2lib(?:\.\w+)+)(?:\(\))?`", path.read_text())}
    assert named
    for name in sorted(named):
        pkgutil.resolve_name(name)


def test_prose_types_no_measured_number():
    """Measured percentages are read from the records: in the book and, by `make results`, in README and outputs."""
    made = re.compile(r'<!-- results.*/results -->|"outputs": \[.*?"source"', re.DOTALL)
    text = lambda page: made.sub("", page.read_text())
    typed = {page.name: re.findall(r"(?<![\w.`])\d{2}\.\d{1,2} ?%", text(page)) for page in prose()}
    assert {page: numbers for page, numbers in typed.items() if numbers} == {}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_commands_and_paths_that_prose_names_exist(page):
    text = (ROOT / page).read_text().replace("<chapter>", "grpo_mts")
    indented = [line.partition("#")[0].strip() for line in re.findall(r"^ {4}.*", text, re.MULTILINE)]
    spans = [*re.findall(r"`([^`\n]+)`", text), *indented]
    commands = [span for part in spans for span in re.split(r" && ", part) if re.match(r"cot2 \w+ \w", span)]
    assert commands
    for command in commands:
        _parser().parse_args(command.replace("stores/*", "a").split()[1:])
    made = {name for span in spans for name in re.findall(r"^make ([a-z]+)", span)}
    assert {"test"} <= made <= targets()
    paths = {word for span in spans for word in span.split() if re.fullmatch(r"(?:[\w.-]+/)+[\w.-]*|[\w-]+\.md", word)}
    paths = {path for path in paths if not path.startswith((".", "build/", "_build/", "stores/", "3/8"))}
    assert paths and [path for path in paths if not any((ROOT / top / path).exists() for top in ("", "cot2lib"))] == []


def weekly():
    return yaml.safe_load((ROOT / ".github/workflows/weekly.yml").read_text())["jobs"]


def test_what_workflows_and_hooks_run_is_there():
    for path in [*ROOT.glob(".github/workflows/*.yml"), ROOT / ".ci/run"]:
        for line in re.findall(r"^(?:\s*- run: )?make (.*)$", path.read_text(), re.MULTILINE):
            asked = {word for word in line.split() if "=" not in word and re.fullmatch("[a-z]+", word)}
            assert asked <= targets(), path.name
    jobs = weekly()
    shards, chapters = (jobs["shard"]["strategy"]["matrix"][name] for name in ("shard", "chapter"))
    said = " ".join(step.get("run", "") for job in ("shard", "collect") for step in jobs[job]["steps"])
    assert shards == list(range(1, len(shards) + 1)) and f"}}}}/{len(shards)}" in said
    assert f"chapters {' '.join(chapters)} -p" in said
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", makefile(), re.MULTILINE)[1]
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert [hook["entry"] for hook in hooks] == recipe.replace("$(BIN)", ".venv/bin").replace("\t", "").splitlines()


# Requirements and environments


def conda(path):
    data = yaml.safe_load((ROOT / path).read_text())
    plain = [d for d in data["dependencies"] if isinstance(d, str)]
    return plain, next(d["pip"] for d in data["dependencies"] if isinstance(d, dict))


def test_environments_have_a_python_and_what_the_project_requires():
    for path in ("environment.yml", ".binder/environment.yml"):
        python = next(d for d in conda(path)[0] if d.startswith("python="))
        assert Version(python.split("=")[1]) in SpecifierSet(PROJECT["requires-python"])
        assert pip_part(ROOT / path) == conda(path)[1]
    extras = PROJECT["optional-dependencies"]
    editable = next(line for line in conda("environment.yml")[1] if line.startswith("-e"))
    assert set(re.search(r"\[(.*)\]", editable)[1].split(",")) == set(extras) - {"peers"}, "one benchmark's are large"
    lines = conda(".binder/environment.yml")[1]
    assert any("download.pytorch.org/whl/cpu" in line for line in lines), "Binder has no GPU and little memory"
    there = {Requirement(line).name: Requirement(line) for line in lines if not line.startswith("-")}
    book = [text for text in extras["book"] if re.match("papermill|ipykernel", text)]
    for wanted in map(Requirement, [*PROJECT["dependencies"], *book]):
        assert str(there[wanted.name].specifier) == str(wanted.specifier), wanted.name


def test_lock_satisfies_the_project():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    name = lambda requirement: requirement.name.lower().replace("_", "-")
    locked = {name(one): str(one.specifier).removeprefix("==") for one in map(Requirement, lines)}
    extras = [text for group in PROJECT["optional-dependencies"].values() for text in group]
    for wanted in map(Requirement, PROJECT["dependencies"] + extras):
        assert Version(locked[name(wanted)]) in wanted.specifier, wanted.name


def test_floors_are_those_of_the_project():
    for python in weekly()["installs"]["strategy"]["matrix"]["python"]:
        lowest = {name: Version(number) for name, number in (pin.split("==") for pin in floors(python))}
        for wanted in map(Requirement, PROJECT["dependencies"]):
            above = FIRST.get(python, {}).get(wanted.name)
            assert lowest[wanted.name] in wanted.specifier
            assert lowest[wanted.name] == Version(above or str(wanted.specifier).removeprefix(">="))


def test_another_address_is_put_everywhere(tmp_path):
    for pattern in ("_config.yml", "README.md", "CITATION.cff", "notebooks/csft.ipynb"):
        (tmp_path / pattern).parent.mkdir(exist_ok=True)
        (tmp_path / pattern).write_text((ROOT / pattern).read_text())
    put = runpy.run_path(str(ROOT / "book" / "address.py"))["put"]
    assert put(tmp_path) == [], "the address stands everywhere as it is in _config.yml"
    config = tmp_path / "_config.yml"
    url = yaml.safe_load(config.read_text())["repository"]["url"]
    config.write_text(config.read_text().replace(url, "https://github.com/you/yours").replace("main", "next"))
    assert {path.name for path in put(tmp_path)} == {"README.md", "CITATION.cff", "csft.ipynb"}
    assert "git+https://github.com/you/yours@next" in (tmp_path / "notebooks" / "csft.ipynb").read_text()
    assert url not in (tmp_path / "README.md").read_text() + (tmp_path / "CITATION.cff").read_text()


def test_types_ship():
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["cot2lib"]
    assert "py.typed" in data and (ROOT / "cot2lib" / "py.typed").exists()
