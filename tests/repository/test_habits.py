"""What contributors are told: one version, one lint, and commands and paths that exist."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import cot2lib
from cot2lib.cli import _parser
from cot2lib.errors import SpecError

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
PATH = re.compile(r"(?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:cff|md|toml|txt|yml|yaml)|Makefile")


def spans(text: str) -> list[str]:
    """Code in single backticks, and the lines of indented code without their comments."""
    indented = [line.partition("#")[0].strip() for line in re.findall(r"^ {4}.*", text, re.MULTILINE)]
    return [*re.findall(r"`([^`]+)`", text), *indented]


def paths(text: str) -> set[str]:
    """Paths that a text names in code; those with a placeholder in <>, made ones and hidden ones are none."""
    words = {word for span in spans(text) for word in span.split()}
    return {word for word in words if PATH.fullmatch(word) and not word.startswith((".", "build/"))}


def commands(text: str) -> set[str]:
    """`cot2` commands with their options, an example for each placeholder."""
    said = (span.replace("<chapter>", "csft") for span in spans(text) if span.startswith("cot2 "))
    return {span for span in said if len(span.split()) > 2 or span in ("cot2 ledger", "cot2 list")}


def targets(text: str) -> set[str]:
    return {name for span in spans(text) for name in re.findall(r"^make ([a-z]+)", span)}


@pytest.mark.parametrize("path", sorted(paths(GUIDE)))
def test_paths_exist(path):
    assert (ROOT / path).exists()


@pytest.mark.parametrize("command", sorted(commands(GUIDE)))
def test_commands_parse(command):
    _parser().parse_args(command.split()[1:])


def test_commands_exist():
    known = _parser()._subparsers._group_actions[0].choices
    assert {span.split()[1] for span in spans(GUIDE) if span.startswith("cot2 ")} <= set(known)


def test_targets_exist():
    assert {"lint", "test", "thorough", "gpu"} <= targets(GUIDE)
    assert targets(GUIDE) <= set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))


def test_guide_is_read_whole():
    assert {"tests/specs/test_pins.py", "cot2lib/errors.py", "CHANGELOG.md"} <= paths(GUIDE)
    assert "cot2 run csft --profile paper --workers 2" in commands(GUIDE)


def test_names_that_are_not_there_are_seen():
    text = (
        "`cot2lib/nowhere.py`, `cot2lib/study/<chapter>/draw.py`, `make havoc`\n\n    cot2 run <chapter> --wheer x\n"
    )
    assert paths(text) == {"cot2lib/nowhere.py"} and targets(text) == {"havoc"}
    with pytest.raises(SpecError, match="--wheer"):
        _parser().parse_args(commands(text).pop().split()[1:])


def test_lint_is_that_of_the_hooks():
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)[1]
    made = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe.splitlines()]
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert [hook["entry"] for hook in hooks] == made and any("mypy" in line for line in made)


def test_one_version():
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in pyproject["project"] and "version" in pyproject["project"]["dynamic"]
    assert pyproject["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "cot2lib.__version__"}
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == cot2lib.__version__
    assert cot2lib.__version__ in (ROOT / "CHANGELOG.md").read_text()


def test_types_ship():
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["cot2lib"]
    assert "py.typed" in data and (ROOT / "cot2lib" / "py.typed").exists()
