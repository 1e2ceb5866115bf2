"""The repository's own promises: floors, sizes, environments, names that must agree."""

import ast
import re
import runpy
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SOURCES = sorted((ROOT / "cot2lib").rglob("*.py"))

# Lowest level first; a package imports only from levels below its own. The core ends below `study`.
LEVELS = [
    {"errors"},
    {"kit"},
    {"tasks", "thoughts", "metrics", "losses", "fast"},
    {"supervision", "model"},
    {"decode", "theory", "targets"},
    {"training"},
    {"specs", "llm"},
    {"runs"},
    {"study"},
    {"cli"},
]
# Inside the study: what several chapters share is a file of its own, below their folders; `book` is above them.
STUDY = ROOT / "cot2lib" / "study"
ROOMS = {path.parent.name for path in STUDY.glob("*/__init__.py")}


def imported(path):
    """Dotted names of cot2lib's modules that a file imports, and of what it takes from them."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "cot2lib":
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.startswith("cot2lib.") and name != "cot2lib.__version__"}


def upward(path, levels, depth):
    """What a file imports, `depth` names below `cot2lib`, from its own level or above."""
    place = {name: level for level, names in enumerate(levels) for name in names}
    own = path.relative_to(ROOT / "cot2lib").with_suffix("").parts
    within = own[: depth - 1]
    if len(own) <= depth - 1 or own[depth - 1] in ("__init__", "__main__"):
        return set()
    assert own[depth - 1] in place, f"give {own[depth - 1]} a level"
    named = [name.split(".")[1:] for name in imported(path)]
    others = {parts[depth - 1] for parts in named if tuple(parts[: depth - 1]) == within and len(parts) >= depth}
    return {name for name in others - {own[depth - 1]} if place.get(name, -1) >= place[own[depth - 1]]}


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down(path):
    assert len(LEVELS) <= 10
    assert not upward(path, LEVELS, 1)


def study_imports(path):
    """Files and folders of the study that one of its files imports, by name."""
    inside = [name.split(".")[2] for name in imported(path) if name.startswith("cot2lib.study.")]
    return {name for name in inside if name in ROOMS or (STUDY / f"{name}.py").exists()}


@pytest.mark.parametrize("path", sorted(STUDY.rglob("*.py")), ids=lambda p: str(p.relative_to(STUDY)))
def test_a_chapter_imports_no_other(path):
    own = path.relative_to(STUDY).parts[0]
    above = set() if own in ("book", "__init__.py") else ROOMS - {own}  # the door asks the book
    assert not study_imports(path) & above


def test_what_chapters_share_has_no_circle():
    files = {path.stem: study_imports(path) - {path.stem} for path in STUDY.glob("*.py") if path.stem != "__init__"}
    tuple(TopologicalSorter(files).static_order())


def test_the_direction_test_sees_a_wrong_import(tmp_path, monkeypatch):
    """A core module that imports the study, and a file that imports a chapter, are found."""
    path = tmp_path / "cot2lib/runs/bad.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("from cot2lib.study import sweeps")
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    assert upward(path, LEVELS, 1) == {"study"}
    path.write_text("from cot2lib.study.budget import draw\nfrom cot2lib.study import show")
    assert study_imports(path) == {"budget", "show"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_stay_short(path):
    assert len(path.read_text().splitlines()) <= 400


def conda(path):
    data = yaml.safe_load((ROOT / path).read_text())
    plain = [d for d in data["dependencies"] if isinstance(d, str)]
    return plain, next(d["pip"] for d in data["dependencies"] if isinstance(d, dict))


@pytest.mark.parametrize("path", ["environment.yml", ".binder/environment.yml"])
def test_conda_python_suits_the_project(path):
    python = next(d for d in conda(path)[0] if d.startswith("python="))
    assert Version(python.split("=")[1]) in SpecifierSet(PROJECT["requires-python"])


def test_root_environment_installs_the_project_with_its_extras():
    editable = next(line for line in conda("environment.yml")[1] if line.startswith("-e"))
    extras = set(re.search(r"\[(.*)\]", editable)[1].split(","))
    assert extras == set(PROJECT["optional-dependencies"]) - {"peers"}, "what one benchmark is held against is large"


def test_binder_covers_the_projects_requirements():
    lines = conda(".binder/environment.yml")[1]
    assert any("download.pytorch.org/whl/cpu" in line for line in lines), "Binder has no GPU and little memory"
    there = {Requirement(line).name: Requirement(line) for line in lines if not line.startswith("-")}
    for text in PROJECT["dependencies"]:
        wanted = Requirement(text)
        assert str(there[wanted.name].specifier) == str(wanted.specifier), wanted.name
    book = {Requirement(text).name: Requirement(text) for text in PROJECT["optional-dependencies"]["book"]}
    for name in ("papermill", "ipykernel"):
        assert str(there[name].specifier) == str(book[name].specifier)


def test_lock_satisfies_the_project():
    locked = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            requirement = Requirement(line)
            locked[requirement.name.lower().replace("_", "-")] = str(requirement.specifier).removeprefix("==")
    assert locked["torch"] == "2.13.0"
    extras = [text for group in PROJECT["optional-dependencies"].values() for text in group]
    for text in PROJECT["dependencies"] + extras:
        wanted = Requirement(text)
        assert Version(locked[wanted.name.lower().replace("_", "-")]) in wanted.specifier, wanted.name


def test_what_workflows_make_is_a_target():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in [*ROOT.glob(".github/workflows/*.yml"), ROOT / ".ci/run"]:
        for line in re.findall(r"^(?:\s*- run: )?make (.*)$", path.read_text(), re.MULTILINE):
            asked = {word for word in line.split() if "=" not in word and re.fullmatch("[a-z]+", word)}
            assert asked <= targets, (path.name, asked - targets)
    jobs = yaml.safe_load((ROOT / ".github/workflows/weekly.yml").read_text())["jobs"]
    shards, chapters = (jobs["shard"]["strategy"]["matrix"][name] for name in ("shard", "chapter"))
    said = [step.get("run", "") for job in ("shard", "collect") for step in jobs[job]["steps"]]
    assert shards == list(range(1, len(shards) + 1)) and any(f"}}}}/{len(shards)}" in line for line in said)
    assert any(f'CHAPTERS="{" ".join(chapters)}"' in line for line in said)


def test_one_repository_address():
    url = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["url"]
    assert url in (ROOT / "README.md").read_text() and url in (ROOT / "CITATION.cff").read_text()
    texts = [p.read_text() for p in [ROOT / "README.md", ROOT / "CITATION.cff", *ROOT.glob("notebooks/*.ipynb")]]
    assert {found for text in texts for found in re.findall(r"https://github\.com/[\w-]+/[\w-]+", text)} == {url}


def test_another_address_is_put_everywhere(tmp_path):
    for pattern in ("_config.yml", "README.md", "CITATION.cff", "notebooks/csft.ipynb"):
        (tmp_path / pattern).parent.mkdir(exist_ok=True)
        (tmp_path / pattern).write_text((ROOT / pattern).read_text())
    put = runpy.run_path(str(ROOT / "book" / "address.py"))["put"]
    assert put(tmp_path) == [], "the address stands everywhere as it is in _config.yml"
    config = tmp_path / "_config.yml"
    url = yaml.safe_load(config.read_text())["repository"]["url"]
    config.write_text(config.read_text().replace(url, "https://github.com/you/yours").replace("main", "next"))
    names = {"README.md", "CITATION.cff", "csft.ipynb"}
    assert {path.name for path in put(tmp_path)} == names
    assert "git+https://github.com/you/yours@next" in (tmp_path / "notebooks" / "csft.ipynb").read_text()
    assert url not in (tmp_path / "README.md").read_text() + (tmp_path / "CITATION.cff").read_text()


def test_prose_types_no_measured_number():
    """Measured percentages are read from the records, in the README and in the book."""
    pages = [ROOT / "README.md", *ROOT.glob("book/*.md"), *ROOT.glob("notebooks/*.ipynb")]
    typed = {page.name: re.findall(r"(?<![\w.`])\d{2}\.\d{1,2} ?%", page.read_text()) for page in pages}
    assert not any(typed.values()), typed


def test_readme_names_the_commands():
    text = (ROOT / "README.md").read_text()
    assert "make book" in text and "make test" in text
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_the_face_has_types(tmp_path):
    (tmp_path / "wrong.py").write_text("import cot2lib\ncot2lib.run(3, bogus=1)\ncot2lib.nonsense\n")
    command = [sys.executable, "-m", "mypy", tmp_path / "wrong.py"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
    assert 'Unexpected keyword argument "bogus" for "run"' in said and 'Module has no attribute "nonsense"' in said
