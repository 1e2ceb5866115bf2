"""Chapters with few seeds, single values of their lists, or the other profile run through, or refuse in a sentence.

A chapter's cells are executed as papermill executes them, but without a kernel; what a cell ends with is shown.
"""

import ast
import json
import linecache
import re
from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from cot2lib.errors import CoT2Error
from cot2lib.study import chapters

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
CHAPTERS = [path.stem for path in sorted(NOTEBOOKS.glob("*.ipynb"))]
SHORT = {  # what is trained or measured while a chapter runs, where it has such a parameter
    "live_epochs": 1, "live_high": 5, "live_length": 3, "live_steps": 120, "live_reward_steps": 4, "live_inputs": 300,
    "live_rounds": 1, "live_sizes": [1], "live_vocabularies": [50], "live_sums": 1, "live_thoughts": 1,
    "start_epochs": 1, "lanes": 16, "inputs": 10, "rollouts": 4, "drawn_samples": 50,
}  # fmt: skip
OTHER = {"quick": "paper", "paper": "quick"}

pytestmark = pytest.mark.usefixtures("store", "unchecked")


def settings(known: dict) -> Iterator[tuple[str, dict]]:
    """Parameters that differ from a chapter's defaults, under a name."""
    lists = {name: value for name, value in known.items() if isinstance(value, list)}
    seeds = [name for name in lists if name.endswith("seeds")]
    few = lambda first, last: {name: lists[name][first:last] or lists[name] for name in seeds}
    yield "one seed", few(0, 1)
    yield "two seeds, first values", {name: lists[name][:1] for name in lists} | few(0, 2)
    yield "three seeds, last values", {name: lists[name][-1:] for name in lists} | few(0, 3)
    yield "other profile, other seeds", {"profile": OTHER[known["profile"]]} | few(1, 3)


def through(chapter: str, changed: dict, but: str = "") -> list[str]:
    """What the cells of a chapter show in words.

    Args:
        chapter: its name.
        changed: its parameters, where they are not the defaults.
        but: the tag of cells that are left out.
    """
    space, shown = {"__name__": "__main__"}, []
    for cell in json.loads((NOTEBOOKS / f"{chapter}.ipynb").read_text())["cells"]:
        tags = cell["metadata"].get("tags", [])
        if cell["cell_type"] != "code" or cell["id"] == "bootstrap" or but in tags:
            continue
        name, source = f"<{chapter}, {cell['id']}>", "".join(cell["source"])
        linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name  # classes need their source
        tree = ast.parse(source)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), space)
        value = last and eval(compile(ast.Expression(last.value), name, "eval"), space)
        if "parameters" in tags:
            space |= changed
        bundle = value._repr_mimebundle_() if hasattr(value, "_repr_mimebundle_") else {"text/plain": repr(value)}
        shown.append(bundle["text/plain"])
        plt.close("all")
    return shown


def ends_well(chapter: str, changed: dict, but: str = "") -> None:
    """Whether a chapter shows what there is, and no number that is none, or refuses its parameters in a sentence."""
    try:
        shown = through(chapter, changed, but)
    except CoT2Error as refused:
        said = str(refused)
        assert said.endswith((".", "!")) and "\n" not in said, said
    else:
        wrong = [text for text in shown if re.search(r"\bnan\b", text)]
        assert not wrong, wrong


@pytest.mark.parametrize(
    "chapter, changed",
    [
        ("grpo_mts", {"seeds": [42, 43], "split_seeds": [42, 43]}),
        ("budget", {"seeds": [42], "d_models": [16]}),
        ("gsm8k", {"profile": "paper"}),  # of which there is no record
    ],
)
def test_a_chapter_runs_through_with_few_values(chapter, changed):
    ends_well(chapter, changed, but="live")


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
