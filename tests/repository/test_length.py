"""Chapters are short: few words before the first figure, and few on the whole page."""

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted((ROOT / "notebooks").glob("*.ipynb"))
BEFORE, WHOLE = 200, 4500  # words before the first figure, and of a page without its tables, folds and outputs
FOLDED = {"hide-input", "hide-cell", "remove-cell", "remove-input"}
DROPDOWN = re.compile(r"^(:{3,})\{dropdown\}.*?^\1$|^(:{3,})\{\w+\}[^\n]*\n:class: dropdown\n.*?^\2$", re.M | re.S)
LISTING = re.compile(r"```\{literalinclude\} \.\./(\S+)\n[^`]*?:pyobject: (\S+)\n[^`]*```")


def figure(cell: dict) -> dict | None:
    """Name and caption of the figure that a cell draws."""
    return cell["metadata"].get("mystnb", {}).get("figure")


@cache
def listed(path: str, name: str) -> str:
    """The source of a function or method that a page shows."""
    source = (ROOT / path).read_text()
    found: ast.AST = ast.parse(source)
    for part in name.split("."):
        found = next(node for node in ast.walk(found) if getattr(node, "name", None) == part)
    return ast.get_source_segment(source, found) or ""


def shown(cell: dict) -> str:
    """Everything of a cell that a page shows unfolded, its output aside: text with listings, code, a caption."""
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return LISTING.sub(lambda listing: listed(listing[1], listing[2]), DROPDOWN.sub("", text))
    folded = FOLDED & set(cell["metadata"].get("tags", []))
    return f"{'' if folded else text}\n{(figure(cell) or {}).get('caption', '')}"


def words(cells: list[dict]) -> int:
    return sum(len(shown(cell).split()) for cell in cells)


def before_the_first_figure(cells: list[dict]) -> int:
    """Words of text before the first figure; none are counted where there is no figure."""
    drawn = [place for place, cell in enumerate(cells) if figure(cell)]
    return words([cell for cell in cells[: drawn[0]] if cell["cell_type"] == "markdown"]) if drawn else 0


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_chapters_are_short(path):
    cells = json.loads(path.read_text())["cells"]
    assert before_the_first_figure(cells) <= BEFORE, "move the main figure up, or say less before it"
    assert words(cells) <= WHOLE, "say less, or fold what repeats a table"


def cell(source: str, kind: str = "markdown", **metadata) -> dict:
    return {"cell_type": kind, "source": source.splitlines(keepends=True), "metadata": metadata}


def drawing(caption: str) -> dict:
    return cell("draw()", "code", tags=["hide-input"], mystnb={"figure": {"caption": caption}})


@pytest.mark.parametrize(
    "text, count",
    [
        ("one two three", 3),
        ("one\n:::{dropdown} Folded\ntwo\n:::\nthree", 2),
        ("one\n\n::::{solution} ex-one\n:class: dropdown\n\ntwo\n::::\nthree", 2),
        (":::{prf:proof}\n\none\n:::", 3),
        ("```{literalinclude} ../tests/repository/test_length.py\n:language: python\n:pyobject: words\n```", 11),
    ],
)
def test_folds_are_not_counted_and_listings_are(text, count):
    assert words([cell(text)]) == count


def test_bounds_can_be_broken():
    long, figured = cell("word " * (BEFORE + 1)), drawing("a caption")
    assert before_the_first_figure([long, figured]) > BEFORE >= before_the_first_figure([figured, long])
    assert before_the_first_figure([cell("x = 1", "code"), figured, long]) == 0 == before_the_first_figure([long])
    assert words([figured, cell("x = 1", "code"), cell("x = 1", "code", tags=["hide-cell"])]) == 5
    assert words([cell("word " * (WHOLE + 1))]) > WHOLE
