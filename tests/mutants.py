"""Break the package in 400 places, one at a time, and list which breaks the tests notice.

    python tests/mutants.py                  # go on with what tests/golden/mutants.csv has not tried
    python tests/mutants.py --only killed    # try again what the tests noticed, and print what they now miss

The file has a row for each break: the function, the line before and after, and the test that failed. A row is found
again where its function has moved to another file. A break is tried in a copy of the repository, by a child of one
process that has imported torch and pytest: first on tests that stand by the module's name, in its room, or import it,
then on the others but for book, notebooks and repository, each time on those that take a minute together.
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
import time
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "tests" / "golden" / "mutants.csv"
COPY = Path(os.environ.get("COT2_MUTANTS", "/tmp/mutants")) / "copy"
SECONDS = COPY.with_name("seconds.json")  # of each test that passed
COLUMNS = ["file", "function", "before", "after", "operator", "status", "by", "note"]
PLACES = [
    "study/judge.py", "study/kinds.py", "study/comparisons.py", "supervision.py", "losses.py", "metrics.py",
    "oracles.py", "decode.py", "thoughts", "targets", "model", "training", "runs", "specs", "theory", "tasks", "fast",
]  # fmt: skip
ELSEWHERE = ("book", "notebooks", "repository", "golden", "cli")  # they read texts and pages
COUNT, ENOUGH, WALL = 400, 45, 900  # mutants; seconds of a trial: of the processor after which it ends, and at most
IMPORTED = [
    "scipy.stats", "scipy.optimize", "torch.func", "matplotlib.pyplot", "seaborn", "networkx", "numba",
    "hypothesis.extra.numpy", "beartype", "jaxtyping", "nbformat",
]  # fmt: skip

PAIRS = {
    "boundary": [(ast.Lt, ast.LtE), (ast.Gt, ast.GtE)],
    "equality": [(ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot)],
    "sum": [(ast.Add, ast.Sub)],
    "product": [(ast.Mult, ast.Div), (ast.FloorDiv, ast.Mult), (ast.Mod, ast.Mult), (ast.Pow, ast.Mult)],
    "logic": [(ast.And, ast.Or), (ast.BitAnd, ast.BitOr)],
}
OTHER = {a: (kind, b) for kind, pairs in PAIRS.items() for pair in pairs[::-1] for a, b in (pair[::-1], pair)}


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST, str]]:
    """Operators that apply here: the name, which node is replaced, and by what."""
    match node:
        case ast.Compare(ops=[op]) | ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in OTHER:
            kind, other = OTHER[type(op)]
            key = "ops" if isinstance(node, ast.Compare) else "op"
            fields = dict(ast.iter_fields(node)) | {key: [other()] if key == "ops" else other()}
            yield kind, node, f"({ast.unparse(type(node)(**fields))})"
        case ast.UnaryOp(op=ast.USub()):
            yield "sum", node, ast.unparse(node.operand)
        case ast.Constant(value=bool() | int() | float()):
            new = not node.value if isinstance(node.value, bool) else node.value + 1
            yield "constant", node, repr(2 * node.value if isinstance(node.value, float) and node.value else new)
        case ast.If() | ast.IfExp() | ast.While():
            yield "condition", node.test, f"(not ({ast.unparse(node.test)}))"
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield "drop", node, "pass"
        case ast.Assign(targets=[target]) if re.search(
            rf"\b{re.escape(ast.unparse(target))}\b", ast.unparse(node.value)
        ):
            yield "drop", node, "pass"
        case ast.Return(value=ast.Call(args=[first, *_])):
            yield "first", node, f"return {ast.unparse(first)}"
    match node:
        case ast.Call(args=[a, b]) if not any(isinstance(one, ast.Starred) for one in (a, b)):
            yield "swap", node, ast.unparse(ast.Call(node.func, [b, a], node.keywords))


def scopes(node: ast.AST, name: str = "") -> Iterator[tuple[str, ast.AST]]:
    """The module, and each class and function under its qualified name."""
    yield name, node
    for child in ast.iter_child_nodes(node):
        named = isinstance(child, ast.FunctionDef | ast.ClassDef)
        yield from scopes(child, f"{name}.{child.name}".strip(".")) if named else ()


def inside(scope: ast.AST) -> Iterator[ast.AST]:
    """What a scope itself runs: no names of types, no messages, no scope of its own."""
    for field, value in ast.iter_fields(scope):
        for child in value if isinstance(value, list) else [value]:
            skipped = field in ("annotation", "returns", "decorator_list") or not isinstance(child, ast.AST)
            if not skipped and not isinstance(child, ast.Raise | ast.JoinedStr | ast.FunctionDef | ast.ClassDef):
                yield child
                yield from inside(child)


def lines_of(scope: ast.AST, source: str) -> list[str]:
    lines = source.splitlines()
    return lines if isinstance(scope, ast.Module) else lines[scope.lineno - 1 : scope.end_lineno]


def mutants(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """Function, line before and after, and operator of all that can be changed within one line of a file."""
    source = path.read_text()
    for name, scope in scopes(ast.parse(source)):
        stripped = [line.strip() for line in lines_of(scope, source)]
        for node in inside(scope):
            for kind, old, new in changes(node):
                line = source.splitlines()[old.lineno - 1].encode()
                after = (line[: old.col_offset] + new.encode() + line[old.end_col_offset :]).decode().strip()
                if old.lineno == old.end_lineno and stripped.count(before := line.decode().strip()) == 1:
                    yield name, before, after, kind


def draw(seed: int = 1) -> pd.DataFrame:
    """Draw a file by its lines, an operator, then a place. The engine counts a third, as it compiles anew."""
    files = [ROOT / "cot2.py"]
    for place in PLACES:
        here = ROOT / "cot2lib" / place
        files += sorted(here.glob("*.py")) if here.is_dir() else [here]
    found = {file: sorted(set(mutants(file))) for file in files}
    weights = [len(file.read_text().splitlines()) / (3 if file.parent.name == "fast" else 1) for file in files]
    rows, rng = {}, random.Random(seed)
    while len(rows) < COUNT:
        (file,) = rng.choices(files, weights)
        if kinds := sorted({kind for *_, kind in found[file]}):
            kind = rng.choice(kinds)
            row = rng.choice([row for row in found[file] if row[-1] == kind])
            rows[str(file.relative_to(ROOT)), *row] = None
    return pd.DataFrame(list(rows), columns=COLUMNS[:5]).reindex(columns=COLUMNS, fill_value="")


def mutated(row: dict[str, str]) -> tuple[Path, str] | None:
    """The file that has a row's line today, and its text after the change."""
    first = COPY / row["file"]
    for path in [first, *sorted({COPY / "cot2.py", *(COPY / "cot2lib").rglob("*.py")} - {first})]:
        source = path.read_text() if path.exists() else ""
        for name, scope in scopes(ast.parse(source)):
            lines = lines_of(scope, source)
            here = [n for n, line in enumerate(lines) if line.strip() == row["before"]]
            if name == row["function"] and len(here) == 1:
                place = here[0] + getattr(scope, "lineno", 1) - 1
                whole = source.splitlines(keepends=True)
                whole[place] = whole[place].replace(row["before"], row["after"])
                return path, "".join(whole)
    return None


def nearness(row: dict[str, str], test: Path) -> int:
    """How near a test file stands: it has the module's name, imports it from its room, is in its room, imports it."""
    path = Path(row["file"]).with_suffix("")
    room = path.parent.name if path.parent.name != "cot2lib" else "training"
    within, module = ".".join(path.parent.parts), re.escape(path.name)
    imports = rf"^\s*(from|import) ({re.escape(within)}\.{module}\b|{re.escape(within)} import .*\b{module}\b)"
    imported = bool(re.search(imports, test.read_text(), re.MULTILINE))
    if test.stem == f"test_{path.name}" and (imported or test.parent.name == room):
        return 0
    return {(True, True): 1, (True, False): 2, (False, True): 3}.get((test.parent.name == room, imported), 4)


class Listener:
    """Orders the tests, ends after enough seconds, and keeps what passed or failed first."""

    def __init__(self, places: dict[str, int], known: dict[str, float], enough: float):
        self.places, self.known, self.enough = places, known, enough
        self.seconds: dict[str, float] = {}
        self.failed = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if self.known.get(item.nodeid, 0) >= 0]
        place = {item: self.places[item.nodeid.split("::")[0]] for item in items}
        slow = {item: self.known.get(item.nodeid, 1) // 8 for item in items}
        items.sort(key=lambda item: (slow[item], place[item]))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        before = sum(os.times()[:4])
        result = yield
        self.seconds[item.nodeid] = round(sum(os.times()[:4]) - before, 2)
        if sum(os.times()[:4]) > self.enough:
            item.session.shouldstop = "enough"
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.nodeid * report.failed

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.failed = self.failed or f"import of {report.nodeid}" * report.failed


def trial(places: dict[str, int], known: dict[str, float], enough: float, only: list[str] | None = None) -> dict:
    """What a child that runs these files reports: which test failed, if any, and the seconds of what passed."""
    answer = COPY.with_name("answer.json")
    answer.unlink(missing_ok=True)
    if not (child := os.fork()):
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (int(2 * enough + 40), int(2 * enough + 50)))
        log = os.open(COPY.with_name("log.txt"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1), os.dup2(log, 2)
        phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
        hypothesis.settings.register_profile("trial", derandomize=True, database=None, deadline=None, phases=phases)
        hypothesis.settings.load_profile("trial")
        listener = Listener(places, known, enough + sum(os.times()[:4]))
        sys.path.insert(0, str(COPY))
        flags = [
            "-xq",
            "-pno:cacheprovider",
            "-pno:xdist",
            "-pno:nbval",
            "-Wignore::pytest.PytestAssertRewriteWarning",
            f"--basetemp={COPY.parent / 'tmp'}",
        ]
        pytest.main([*flags, *(only or places)], plugins=[listener])
        passed = {test: listener.seconds[test] for test in listener.seconds if test != listener.failed}
        answer.write_text(json.dumps({"failed": listener.failed, "passed": passed}))
        os._exit(0)
    deadline = time.monotonic() + WALL
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.05)
    if os.WIFSIGNALED(ended[1]):
        return {"failed": "timeout", "passed": {}}
    return json.loads(answer.read_text())


def attempt(row: dict[str, str], wide: bool, known: dict[str, float]) -> tuple[str, str]:
    """Whether a row's change is noticed, and by which test: one that passes without it."""
    if (change := mutated(row)) is None:
        return "gone", ""
    path, text = change
    tests = [test for test in sorted((COPY / "tests").rglob("test_*.py"))]
    near = {test: nearness(row, test) for test in tests if str(test.relative_to(COPY)) not in known}
    chosen = [t for t, n in near.items() if (n == 4) == wide and not (wide and t.parent.name in ELSEWHERE)]
    names = {test: str(test.relative_to(COPY)) for test in chosen}
    mean = {test: sum(s for name, s in known.items() if name.startswith(names[test])) for test in chosen}
    places = {names[test]: n for n, test in enumerate(sorted(chosen, key=lambda test: (near[test], mean[test])))}
    engine = "fast" in path.parts
    original, when = path.read_text(), path.stat()
    while True:
        path.write_text(text)
        os.utime(path, (0, random.randrange(10**9)))  # no compiled file of another text is taken
        said = trial(places, known, 6 * ENOUGH if engine else ENOUGH)
        path.write_text(original)
        os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))
        known.update(said["passed"])
        if not (by := said["failed"]) or by == "timeout" or by.startswith("import") or by in known:
            return ("survived" if not by else "timeout" if by == "timeout" else "killed"), by
        if not (alone := trial({by.split("::")[0]: 0}, known, 3 * ENOUGH, [by]))["failed"]:
            known.update(alone["passed"])
            return "killed", by
        known[by] = -1.0  # it fails here in any case
        print("fails without a change:", by, flush=True)


def prepare() -> None:
    """A copy of what git tracks, with bytecode and the compiled engine; the imports that children share."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in listed.splitlines():
        old, new = ROOT / name, COPY / name
        if old.exists() and not (new.exists() and new.stat().st_mtime == old.stat().st_mtime):
            new.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(old, new)
    os.chdir(COPY)
    os.environ |= {"PYTHONPATH": str(COPY), "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    for name in IMPORTED:
        importlib.import_module(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="STATUS", help="try these again; the file stays as it is")
    only = parser.parse_args().only
    table = pd.read_csv(TABLE, dtype=str, keep_default_na=False) if TABLE.exists() else draw()
    file = COPY.with_name("again.csv") if only else TABLE
    if only:
        table = table[table.status == only].assign(status="").reset_index(drop=True)
    prepare()
    known = json.loads(SECONDS.read_text()) if SECONDS.exists() else {}
    for wide, todo, left in ((False, "", "near"), (True, "near", "survived")):
        rows = list(table.index[table.status == todo])
        for n in random.Random(1).sample(rows, len(rows)):
            status, by = attempt(dict(table.loc[n]), wide, known)
            table.loc[n, ["status", "by"]] = (left if status == "survived" else status), by
            table.sort_values(COLUMNS[:5]).to_csv(file, index=False)
            SECONDS.write_text(json.dumps(known))
            print(time.strftime("%H:%M:%S"), *table.loc[n, ["file", "operator", "status", "by"]], flush=True)
    print(table.status.value_counts().to_string())


if __name__ == "__main__":
    main()
