"""Every check of a chapter can fail: it is denied of records with other values, and of none at all.

A chapter's statements are run up to its checks. Figures and tables at the end of a cell are left out, and so are cells
that nbval compares, and those tagged "live", which train or measure time. What reads records, and what builds on it,
is then run again on perturbed records. Chapters that compute much besides are tried by `make thorough` alone.
"""

import ast
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cot2lib import runs
from cot2lib.runs import records
from cot2lib.study import check

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
SPEAKING = [path for path in sorted(NOTEBOOKS.glob("*.ipynb")) if f'begin(\\"{path.stem}' in path.read_text()]
COMPUTING = ("capacity", "policy_ratio", "sample_complexity", "sampling")
CHAPTERS = [  # the ledger's checks are of its form, with or without runs; the method trains all that it speaks of
    pytest.param(path, id=path.stem, marks=[pytest.mark.thorough] * (path.stem in COMPUTING))
    for path in SPEAKING
    if path.stem not in ("ledger", "method")
]
RESULTS = {"last", "best", "accuracy"}
MOST = 12  # values of a temperature or a learning rate
Perturb = Callable[[pd.DataFrame], pd.DataFrame]


def statements(path: Path) -> Iterator[ast.stmt]:
    """The statements that checks may rest on, in order."""
    for cell in json.loads(path.read_text())["cells"]:
        tags = cell["metadata"].get("tags", [])
        if cell["cell_type"] == "code" and not {"remove-cell", "live", "nbval-check-output"} & {*tags}:
            body = ast.parse("".join(cell["source"])).body
            for place, statement in enumerate(body):
                last = place == len(body) - 1 and isinstance(statement, ast.Expr)
                if not last or "check" in named(statement, ast.Load):
                    yield statement


def named(statement: ast.AST, context: type) -> set[str]:
    """Names that a statement uses (`ast.Load`) or gives (`ast.Store`), but for those of its comprehensions alone.

    What it changes in place it gives too.
    """
    names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
    own = {name.id for node in ast.walk(statement) if isinstance(node, ast.comprehension) for name in stored(node)}
    found = {name.id for name in names if isinstance(name.ctx, context)} - own
    if context is ast.Store:
        found |= {node.name for node in ast.walk(statement) if isinstance(node, ast.FunctionDef)}
        parts = [n for n in ast.walk(statement) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
        found |= {node.value.id for node in parts if isinstance(node.value, ast.Name)}
        calls = [n.func for n in ast.walk(statement) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
        changed = [call.value for call in calls if call.attr in ("append", "extend", "update")]
        found |= {node.id for node in changed if isinstance(node, ast.Name)}
    return found


def stored(comprehension: ast.comprehension) -> list[ast.Name]:
    """The names that a comprehension gives to what it goes through."""
    return [node for node in ast.walk(comprehension.target) if isinstance(node, ast.Name)]


class Chapter:
    """A chapter whose records may be perturbed.

    Attributes:
        said: sentences, and whether they held when they were last decided.
        sentences: those that rest on records.
        rest: statements that rest on records, and all that give a name which several give.
    """

    def __init__(self, path: Path, patch: pytest.MonkeyPatch):
        self.perturb: Perturb = lambda table: table
        self.said: dict[str, bool] = {}
        self.reading, self.known = False, {}
        by_profile, shipped, load = runs.by_profile, records.shipped_table, runs.load_stack
        patch.setattr(runs, "by_profile", lambda *given: self.read(by_profile, *given))
        patch.setattr(records, "shipped_table", lambda *given: self.read(shipped, *given))
        for reader in (runs.recorded, runs.curves):
            perturbed = lambda specs, retrain=False, reader=reader: self.read(reader, specs, retrain)
            patch.setattr(runs, reader.__name__, perturbed)
        patch.setattr(runs, "load_stack", lambda *given, **options: self.apart(load, *given, **options))
        patch.setattr(check.Check, "__call__", lambda _, sentence, holds: self.hear(sentence, holds))
        self.space, self.rest, tainted = {"__name__": path.stem}, [], set()
        every = [*statements(path)]
        given = Counter(name for statement in every for name in named(statement, ast.Store))
        for statement in every:
            before, self.reading = dict(self.said), False
            self.run(statement)
            resting = self.reading or bool(named(statement, ast.Load) & tainted)
            if resting or any(given[name] > 1 for name in named(statement, ast.Store)):
                self.rest.append(statement)
            if resting:
                tainted |= named(statement, ast.Store)
            else:
                self.said = before
        self.sentences = {*self.said}

    def read(self, function: Callable, *given):
        """What a reader gives, perturbed; each is asked once."""
        self.reading = True
        key = function, repr(given)
        if key not in self.known:
            self.known[key] = function(*given)
        found = self.known[key]
        if isinstance(found, tuple):
            return tuple(map(self.perturb, found))
        return None if found is None else self.perturb(found)

    def apart(self, load: Callable, *given, **options):
        """Weights, which no perturbed table changes."""
        before = self.reading
        found = load(*given, **options)
        self.reading = before
        return found

    def hear(self, sentence: str, holds: check.Holds) -> None:
        self.said[sentence] = check.decided(holds)[0]

    def run(self, statement: ast.stmt) -> None:
        exec(compile(ast.Module([statement], []), "<chapter>", "exec"), self.space)

    def again(self, perturb: Perturb) -> dict[str, bool]:
        """What is said of perturbed records. A statement that cannot be run gives nothing."""
        self.perturb, self.said, whole = perturb, {}, dict(self.space)
        for statement in self.rest:
            for name in named(statement, ast.Store) - named(statement, ast.Load):
                self.space.pop(name, None)
            try:
                self.run(statement)
            except Exception:  # whatever a chapter raises ends it
                continue
        self.space.clear()
        self.space.update(whole)
        return {sentence: held for sentence, held in self.said.items() if sentence in self.sentences}


def measured(table: pd.DataFrame) -> list[str]:
    """Columns of results, and of more than a few numbers."""
    return [name for name in table.select_dtypes("float") if name in RESULTS or table[name].nunique() > MOST]


def shuffled(table: pd.DataFrame) -> pd.DataFrame:
    """Measured values of other runs."""
    generator = np.random.default_rng(0)
    return table.assign(**{name: generator.permutation(table[name].to_numpy()) for name in measured(table)})


def best(table: pd.DataFrame) -> pd.DataFrame:
    """Every measured value the largest of any."""
    names = measured(table)
    return table.assign(**dict.fromkeys(names, table[names].max().max()))


def worst(table: pd.DataFrame) -> pd.DataFrame:
    """Every measured value nothing."""
    return table.assign(**dict.fromkeys(measured(table), 0.0))


@pytest.mark.parametrize("path", CHAPTERS)
def test_every_check_on_records_can_fail(path, monkeypatch):
    chapter = Chapter(path, monkeypatch)
    left = set(chapter.said)
    assert all(chapter.said.values()), "as shipped they hold"
    without = {sentence for sentence, held in chapter.again(lambda table: table.iloc[:0]).items() if held}
    assert not without, "what holds of no runs can never fail"
    for perturb in (shuffled, best, worst, lambda table: table.iloc[:1]):
        if left:
            left -= {sentence for sentence, held in chapter.again(perturb).items() if not held}
    assert not left, f"nothing makes these fail: {left}"
