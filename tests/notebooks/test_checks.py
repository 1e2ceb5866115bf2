"""Every check of a chapter can fail: it is denied of records with other values, and of none at all.

A chapter's statements are run up to its checks, without figures and tables at the end of a cell, cells that nbval
compares, and those tagged "live", which train or measure time; then again on perturbed records. Chapters that compute
much besides are tried by `make thorough` alone.
"""

import ast
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cot2lib import runs
from cot2lib.runs import records
from cot2lib.study import check

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
SPEAKING = [path for path in sorted(NOTEBOOKS.glob("*.ipynb")) if f'begin(\\"{path.stem}' in path.read_text()]
COMPUTING = ("capacity", "construction", "policy_ratio", "sample_complexity", "sampling", "tasks")
CHAPTERS = [  # the ledger's checks are of its form, with or without runs; the method trains all that it speaks of
    pytest.param(path, id=path.stem, marks=[pytest.mark.thorough] * (path.stem in COMPUTING))
    for path in SPEAKING
    if path.stem not in ("ledger", "method")
]
RESULTS = {"last", "best", "accuracy"}
MOST = 12  # values of a temperature or a learning rate


def statements(path: Path) -> Iterator[ast.stmt]:
    """The statements that checks may rest on, in order."""
    for cell in json.loads(path.read_text())["cells"]:
        tags = cell["metadata"].get("tags", [])
        if cell["cell_type"] == "code" and not {"remove-cell", "live", "nbval-check-output"} & {*tags}:
            body = ast.parse("".join(cell["source"])).body
            for statement in body:
                shows = statement is body[-1] and isinstance(statement, ast.Expr)
                if not shows or any(isinstance(node, ast.Name) and node.id == "check" for node in ast.walk(statement)):
                    yield statement


class Chapter:
    """A chapter whose records may be perturbed; each is read once."""

    def __init__(self, path: Path, patch: pytest.MonkeyPatch):
        self.statements, self.known, self.whole = [*statements(path)], {}, lambda table: table
        self.perturb, self.said = self.whole, {}
        for owner, name in ((runs, "by_profile"), (records, "shipped_table"), (runs, "recorded"), (runs, "curves")):
            patch.setattr(owner, name, partial(self.read, getattr(owner, name)))
        patch.setattr(runs, "load_stack", partial(self.unperturbed, runs.load_stack))
        patch.setattr(check.Check, "__call__", lambda _, *given: self.hear(*given))

    def hear(self, sentence: str, holds: check.Holds) -> None:
        self.said[sentence] = check.decided(holds)[0]

    def read(self, function: Callable, *given, **options):
        """What a reader gives, perturbed."""
        key = function, repr(given), repr(options)
        if key not in self.known:
            self.known[key] = function(*given, **options)
        found = self.known[key]
        if isinstance(found, tuple):
            return tuple(map(self.perturb, found))
        return None if found is None else self.perturb(found)

    def unperturbed(self, load: Callable, *given, **options):
        """Weights, which no perturbed table changes."""
        perturb, self.perturb = self.perturb, self.whole
        try:
            return load(*given, **options)
        finally:
            self.perturb = perturb

    def sentences(self, perturb: Callable | None = None) -> dict[str, bool]:
        """What is said of perturbed records, and whether it holds. A statement that cannot be run gives nothing."""
        self.perturb, self.said, space = perturb or self.whole, {}, {"__name__": "__main__"}
        for statement in self.statements:
            try:
                exec(compile(ast.Module([statement], []), "<chapter>", "exec"), space)
            except Exception:  # whatever perturbed records raise
                if not perturb:
                    raise
        return self.said


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


def unread(table: pd.DataFrame) -> pd.DataFrame:
    raise LookupError


@pytest.mark.parametrize("path", CHAPTERS)
def test_every_check_on_records_can_fail(path, monkeypatch):
    chapter = Chapter(path, monkeypatch)
    said = chapter.sentences()
    assert all(said.values()), "as shipped they hold"
    held = lambda perturb: {sentence for sentence, holds in chapter.sentences(perturb).items() if holds}
    left = {*said} - held(unread)  # those that rest on records
    assert not left or not left & held(lambda table: table.iloc[:0]), "what holds of no runs can never fail"
    for perturb in (shuffled, best, worst, lambda table: table.iloc[:1]):
        if left:
            found = chapter.sentences(perturb)
            left -= {sentence for sentence in found if not found[sentence]}
    assert not left, f"nothing makes these fail: {left}"
