"""Chapters whose parameters a reader has changed: they draw what there is, and say in a sentence what there is not.

A chapter's cells are executed as papermill executes them, but without a kernel; what a cell ends with is shown.
"""

import ast
import json
import linecache
import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from cot2lib import passk
from cot2lib.errors import CoT2Error, RecordError
from cot2lib.specs import profiles
from cot2lib.study import chapters, check, measured, sweeps
from cot2lib.tasks import MNNS

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
CHAPTERS = [path.stem for path in sorted(NOTEBOOKS.glob("*.ipynb"))]
SHORT = {  # what is trained or measured while a chapter runs, where it has such a parameter
    "live_epochs": 1, "live_high": 5, "live_length": 3, "live_steps": 120, "live_reward_steps": 4, "live_inputs": 300,
    "live_sizes": [1], "live_vocabularies": [50], "live_sums": 1, "live_thoughts": 1,
    "start_epochs": 1, "lanes": 16, "inputs": 10, "rollouts": 4, "drawn_samples": 50,
}  # fmt: skip
OTHER = {"quick": "paper", "paper": "quick"}

pytestmark = pytest.mark.usefixtures("store")


def executed(chapter: str, changed: dict, only: Collection[str] = (), but: str = "") -> tuple[dict, dict]:
    """What the cells of a chapter show, by their ids, and its names.

    Args:
        chapter: its name.
        changed: its parameters, where they are not the defaults.
        only: the ids of cells to execute after the first two; all if there are none.
        but: the tag of cells that are left out.
    """
    space, shown = {"__name__": "__main__"}, {}
    for cell in json.loads((NOTEBOOKS / f"{chapter}.ipynb").read_text())["cells"]:
        tags = cell["metadata"].get("tags", [])
        skipped = only and cell["id"] not in ("parameters", "imports", *only)
        if cell["cell_type"] != "code" or cell["id"] == "bootstrap" or but in tags or skipped:
            continue
        name, source = f"<{chapter}, {cell['id']}>", "".join(cell["source"])
        linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name  # classes need their source
        tree = ast.parse(source)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), space)
        shown[cell["id"]] = last and eval(compile(ast.Expression(last.value), name, "eval"), space)
        if "parameters" in tags:
            assert set(changed) <= set(space), "a parameter that the chapter has"
            space |= changed
        text(shown[cell["id"]])  # draws it
        plt.close("all")
    return shown, space


def text(shown: object) -> str:
    """What something shows in words."""
    return shown._repr_mimebundle_()["text/plain"] if hasattr(shown, "_repr_mimebundle_") else repr(shown)


def ends_well(chapter: str, changed: dict, but: str = "") -> None:
    """Whether a chapter shows what there is, and no number that is none, or refuses its parameters in a sentence."""
    try:
        shown, _ = executed(chapter, changed, but=but)
    except CoT2Error as refused:
        said = str(refused)
        assert said.endswith((".", "!")) and "\n" not in said, said
    else:
        wrong = [said for said in map(text, shown.values()) if re.search(r"\bnan\b", said)]
        assert not wrong, wrong


# of word problems the paper's recipe has no record
@pytest.mark.parametrize(
    "chapter, changed", [("budget", {"seeds": [42], "d_models": [16]}), ("gsm8k", {"profile": "paper"})]
)
def test_a_chapter_runs_through_with_few_values(chapter, changed):
    ends_well(chapter, changed, but="live")


def settings(known: dict) -> Iterator[tuple[str, dict]]:
    """Parameters that differ from a chapter's defaults, under a name."""
    lists = {name: value for name, value in known.items() if isinstance(value, list)}
    seeds = [name for name in lists if name.endswith("seeds")]
    few = lambda first, last: {name: lists[name][first:last] or lists[name] for name in seeds}
    yield "one seed", few(0, 1)
    yield "two seeds, first values", {name: lists[name][:1] for name in lists} | few(0, 2)
    yield "three seeds, last values", {name: lists[name][-1:] for name in lists} | few(0, 3)
    yield "other profile, other seeds", {"profile": OTHER[known["profile"]]} | few(1, 3)


LONG = [
    pytest.param(chapter, changed, id=f"{chapter}, {name}")
    for chapter in CHAPTERS
    for name, changed in settings(chapters.EVERYWHERE | chapters.PARAMETERS[chapter])
]


@pytest.mark.thorough
@pytest.mark.parametrize("chapter, changed", LONG)
def test_every_chapter_runs_through_with_few_values_or_says_why_not(chapter, changed):
    known = chapters.EVERYWHERE | chapters.PARAMETERS[chapter]
    ends_well(chapter, {name: value for name, value in SHORT.items() if name in known} | changed)


@pytest.fixture
def short(monkeypatch):
    """The quick recipe with twenty steps; the ids of what was recorded by the usual one, by method."""
    usual = {run.method: run.id for run in sweeps.small("quick", (42,))}
    monkeypatch.setattr(sweeps, "_of_chapter", sweeps._of_chapter.__wrapped__)  # else later tests get short runs
    rows = profiles.rows_of(MNNS(), "quick")
    for method in profiles.METHODS:
        monkeypatch.setitem(rows, method, replace(rows[method], most_steps=20, evaluations=2))
    return usual


def test_other_budgets_draw_what_is_recorded_and_name_the_rest():
    cells = ("records", "accuracies", "accuracy-table", "check-budgets")
    shown, _ = executed("budget", {"budgets": [1, 2, 6], "d_models": [16]}, cells)
    said = text(shown["check-budgets"])
    assert '**Not drawn, quick recipe**: there is no record of B = 6, d = 16; set `profile = "quick"`' in said
    assert "and `retrain = True`" in said and "B = 1, d = 16" not in said.partition("quick recipe")[2]
    (legend,) = shown["accuracies"].figure.legends
    assert [entry.get_text() for entry in legend.get_texts()] == ["B = 1", "B = 2", "paper"]


def test_sampling_with_a_new_seed(short, monkeypatch):
    """Trained and measured here, with the probe; without training the error names the run and the remedy."""
    table = measured.read("sampling")  # of another run: to measure it takes a while
    rows = lambda specs: table[table["id"] == short[specs[0].method]].assign(id=specs[0].id)
    monkeypatch.setattr(passk, "measure", lambda stack, specs: rows(specs))
    with pytest.raises(RecordError, match=r"seed 7.*retrain=True"):
        executed("sampling", {"seeds": [7]}, ("records",))
    cells = ("records", "passk", "check-passk", "probe", "probe-table")
    shown, _ = executed("sampling", {"seeds": [7], "retrain": True}, cells)
    said = text(shown["check-passk"])
    assert "**Not drawn, authors' recipe**: its Pass@k was not measured for all of these seeds" in said
    assert "quick recipe**" not in said and len(shown["passk"].figure.axes) == len(passk.TEMPERATURES)
    assert "CoT2, quick recipe" in text(shown["probe-table"])


def test_a_check_without_runs_fails_at_the_defaults_and_is_told_elsewhere(monkeypatch, capsys):
    """A check for which nothing is found was left out once, and the cell passed."""
    sparse = sweeps.sparse
    monkeypatch.setattr(sweeps, "sparse", lambda name: [run for run in sparse(name) if run.columns()["tokens"] != 1])
    cells = ("records", "check-paths")
    with pytest.raises(AssertionError, match="the whole path has the best mean and the answer alone the worst"):
        executed("budget", {}, cells)
    capsys.readouterr()
    executed("budget", {"live_epochs": 1, "seeds": [42]}, cells)
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] in (check.OTHERWISE, check.OPEN) for line in said] == [True]
