"""Break the package again in each place where a test noticed it once, and print what becomes of it.

    python tests/mutants.py
    python tests/mutants.py --of cot2lib/runs cot2.py

A row of tests/golden/mutants.csv is a break: the line of a function before and after, and the test that failed. It is
found again where its function has moved to another file. It is tried in a copy of the repository, by a child of one
process that has imported torch and pytest: on tests with the module's name, then of its room or that import it, then
on the others but for book, notebooks and repository; each time until they took 45 seconds of the processor. "Survived"
means these.
"""

import argparse
import ast
import importlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "tests" / "golden" / "mutants.csv"
COPY = Path(os.environ.get("COT2_MUTANTS") or Path(tempfile.gettempdir()) / "mutants") / "copy"
SECONDS = COPY.with_name("seconds.json")  # of each test that passed
ELSEWHERE = ("book", "notebooks", "repository", "cli")  # texts and pages
CONTRACTED = ("model", "specs", "targets", "tasks", "thoughts", "training")  # rooms of `test_contracts.py`
ENOUGH, WALL = 45, 900  # seconds of a trial: of the processor after which it ends, and at most
IMPORTED = [
    "scipy.stats", "scipy.optimize", "torch.func", "matplotlib.pyplot", "seaborn", "networkx",
    "hypothesis.extra.numpy", "beartype", "jaxtyping", "nbformat",
]  # fmt: skip
FLAGS = [
    "-xq", "-pno:cacheprovider", "-pno:xdist", "-pno:nbval", "-Wignore::pytest.PytestAssertRewriteWarning",
    f"--basetemp={COPY.parent / 'tmp'}",
]  # fmt: skip


def scopes(
    node: ast.AST, name: str = "", first: int = 0, last: int | None = None
) -> Iterator[tuple[str, ast.AST, slice]]:
    """The module, and each class and function: qualified name, node, and which lines."""
    yield name, node, slice(first, last)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield from scopes(child, f"{name}.{child.name}".strip("."), child.lineno - 1, child.end_lineno)


def mutated(row: dict[str, str]) -> tuple[Path, str] | None:
    """The file that has a row's line today, and its text after the change."""
    first = COPY / row["file"]
    for path in [first, *sorted({COPY / "cot2.py", *(COPY / "cot2lib").rglob("*.py")} - {first})]:
        source = path.read_text() if path.exists() else ""
        for name, _, part in scopes(ast.parse(source)):
            lines = source.splitlines(keepends=True)
            here = [n for n in range(len(lines))[part] if lines[n].strip() == row["before"]]
            if name == row["function"] and len(here) == 1:
                lines[here[0]] = lines[here[0]].replace(row["before"], row["after"])
                return path, "".join(lines)
    return None


def tiers(row: dict[str, str], known: dict[str, float]) -> list[list[str]]:
    """Test files by nearness, quick ones first: with the module's name; of its room or that import it; the others."""
    path = Path(row["file"]).with_suffix("")
    room = path.parent.name if path.parent.name != "cot2lib" else "training"
    package, module = re.escape(".".join(path.parent.parts)), re.escape(path.name)
    dotted = re.escape(".".join(path.parts))
    imports = re.compile(rf"^\s*((from|import) {dotted}\b|from {package} import .*\b{module}\b)", re.MULTILINE)
    near: list[list[tuple[bool, float, str]]] = [[], [], []]
    for test in sorted((COPY / "tests").rglob("test_*.py")):
        name, of_room, imported = (
            str(test.relative_to(COPY)),
            test.parent.name == room or (test.stem == "test_contracts" and room in CONTRACTED),
            imports.search(test.read_text()),
        )
        place = 0 if test.stem == f"test_{path.name}" and (imported or of_room) else 1 if imported or of_room else 2
        if not (test.parent.name in ELSEWHERE and (place == 2 or room != "study")):
            seconds = sum(seconds for one, seconds in known.items() if one.startswith(name)) or 10.0
            near[place].append((not imported, seconds, name))
    return [[name for *_, name in sorted(tier)] for tier in near]


class Listener:
    """Orders the tests, ends after enough seconds, and keeps what passed or failed first."""

    def __init__(self, files: list[str], known: dict[str, float], enough: float):
        self.files, self.known, self.enough = files, known, enough
        self.passed: dict[str, float] = {}
        self.failed = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if self.known.get(item.nodeid, 0) >= 0]
        place = {name: n for n, name in enumerate(self.files)}
        items.sort(key=lambda item: (self.known.get(item.nodeid, 1) // 8, place.get(item.nodeid.split("::")[0], 0)))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        before = sum(os.times()[:4])
        result = yield
        if item.nodeid != self.failed:
            self.passed[item.nodeid] = round(sum(os.times()[:4]) - before, 2)
        item.session.shouldstop = "enough" if sum(os.times()[:4]) > self.enough else False
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.nodeid * report.failed

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.failed = self.failed or f"import of {report.nodeid}" * report.failed


def trial(files: list[str], known: dict[str, float], enough: float = 3 * ENOUGH) -> str:
    """Which test of these files, or other part of them, fails first in a child, if any."""
    answer = COPY.with_name("answer.json")
    answer.unlink(missing_ok=True)
    if not (child := os.fork()):
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (int(2 * enough + 40), int(2 * enough + 50)))
        log = os.open(COPY.with_name("log.txt"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1), os.dup2(log, 2)
        sys.path.insert(0, str(COPY))
        phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
        hypothesis.settings.register_profile("trial", derandomize=True, database=None, deadline=None, phases=phases)
        hypothesis.settings.load_profile("trial")
        listener = Listener(files, known, enough)
        ended = pytest.main([*FLAGS, *files], plugins=[listener])
        broken = ended == pytest.ExitCode.USAGE_ERROR and all(map(os.path.exists, files))  # a conftest fails
        answer.write_text(json.dumps([listener.failed or "import of a conftest" * broken, listener.passed]))
        os._exit(0)
    deadline = time.monotonic() + WALL
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.05)
    failed, passed = ("timeout", {}) if os.WIFSIGNALED(ended[1]) else json.loads(answer.read_text())
    known.update(passed)
    return failed


def attempt(row: dict[str, str], groups: list[list[str]], known: dict[str, float]) -> tuple[str, str]:
    """What became of a change under groups of tests, and by which test: one that passes without it."""
    if (change := mutated(row)) is None:
        return "gone", ""
    path, text = change
    kept = shutil.copy2(path, COPY.with_name("kept.py"))
    for files in groups:
        while files:
            path.write_text(text)
            os.utime(path, (0, random.randrange(10**9)))  # no bytecode of another text is taken
            by = trial(files, known, ENOUGH)
            shutil.copy2(kept, path)
            if not by:
                break
            if by == "timeout" or by.startswith("import") or by in known or not trial([by], known):
                return "timeout" if by == "timeout" else "killed", by
            known[by] = -1.0  # it fails in any case
    return "survived", ""


def prepare() -> None:
    """A copy of what git tracks, with bytecode and the compiled engine; the imports that children share."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in listed.splitlines():
        old, new = ROOT / name, COPY / name
        if old.exists() and not (new.exists() and new.stat().st_mtime == old.stat().st_mtime):
            new.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(old, new)
    os.chdir(COPY)
    sys.dont_write_bytecode = False  # or each child compiles the package anew
    os.environ |= {"PYTHONPATH": str(COPY), "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg", "PYTHONDONTWRITEBYTECODE": ""}
    for name in IMPORTED:
        importlib.import_module(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--of", nargs="+", default=[""], metavar="PLACE", help="in these files and folders alone")
    parser.add_argument("--most", type=int, default=400, help="try so many, drawn at random")
    options = parser.parse_args()
    table = pd.read_csv(TABLE, dtype=str, keep_default_na=False)
    prepare()
    known = json.loads(SECONDS.read_text()) if SECONDS.exists() else {}
    rows = list(table.index[(table.status == "killed") & table.file.str.startswith(tuple(options.of))])
    for n in random.Random(1).sample(rows, min(len(rows), options.most)):
        row = dict(table.loc[n])
        status, by = attempt(row, [[row["by"]], *tiers(row, known)], known)
        print(time.strftime("%H:%M:%S"), status, *row.values(), by, flush=True)
        SECONDS.write_text(json.dumps(known))


if __name__ == "__main__":
    main()
