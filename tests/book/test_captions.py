"""Captions, findings and large tables as pages have them, and figures on dark pages."""

import json
from types import SimpleNamespace

import pandas as pd
import pytest
from component import BOOK, extension
from docutils import nodes
from docutils.core import publish_doctree

from cot2lib.study.book import index
from cot2lib.study.claims.kinds import SETTLED
from cot2lib.study.printed import claims

ALONE = "No counterpart in the paper"
FIGURE = ".. figure:: a.svg\n   :name: {}\n\n   {}\n\n"


@pytest.fixture
def captions(monkeypatch):
    module = extension("captions")
    made = {
        "fig-one": [index.Badge("agrees", "Figure 3: agrees", "claim-a")],
        "tab-two": [index.Badge("mixed", "x", "claims-b")],
    }
    monkeypatch.setattr(module, "badges", lambda: made)
    return module


def read(captions, text, around=()):
    """A page with names where MyST puts them, and with the classes of what is around."""
    page = publish_doctree(text, settings_overrides={"report_level": 5})
    for figure in page.findall(nodes.figure):
        figure["names"] = next(figure.findall(nodes.image))["names"]
    for box in page.findall(nodes.container):
        box["classes"] = list(around)
    captions.complete(SimpleNamespace(env=SimpleNamespace(docname="notebooks/csft")), page)
    return page


def folds(page):
    return [box for box in page.findall(nodes.container) if "folded" in box["classes"]]


def test_a_badge_ends_the_caption_and_the_finding_stands_above(captions):
    page = read(captions, FIGURE.format("fig-one", "**It rises.** Accuracy over epochs."))
    figure = next(page.findall(nodes.figure))
    title, caption = figure.children[0], next(figure.findall(nodes.caption))
    assert title["classes"] == ["figure-title"] and title.astext() == "It rises."
    badge = caption.children[-1]
    assert badge["classes"] == ["verdict", "verdict-agrees"] and badge.children[0]["reftarget"] == "claim-a"
    assert caption.astext().strip() == "Accuracy over epochs. Figure 3: agrees"


def test_a_figure_of_ours_alone_says_so_once(captions):
    """What its finding says of the paper does not count."""
    given = ["**As in the paper.** Bars.", "Dots. No counterpart in the paper.", "Lines. The paper's is its Figure 1."]
    page = read(captions, "".join(FIGURE.format(f"fig-{place}", text) for place, text in enumerate(given)))
    told = [caption.astext().strip() for caption in page.findall(nodes.caption)]
    assert told == ["Bars. No counterpart in the paper", *given[1:]]


def test_no_figure_with_a_verdict_says_that_it_has_no_counterpart():
    judged = index.badges(pd.DataFrame({"id": claims().index, "profile": SETTLED, "verdict": "near"}))
    for path in (BOOK.parent / "notebooks").glob("*.ipynb"):
        shown = [cell["metadata"].get("mystnb", {}).get("figure") for cell in json.loads(path.read_text())["cells"]]
        wrong = [figure["name"] for figure in shown if figure and ALONE in figure["caption"]]
        assert not set(wrong) & set(judged), path


def table(rows, columns, name="tab-x", entry="c"):
    line = lambda *words: "   * - " + "\n     - ".join(words) + "\n"
    head = f".. list-table:: First. Second.\n   :header-rows: 1\n   :name: {name}\n\n"
    rest = ["c"] * (columns - 1)
    return head + line(*["h"] * columns) + line(entry, *rest) * rows + "\n"


@pytest.mark.parametrize("rows, columns, large", [(20, 6, False), (21, 6, True), (2, 7, True)])
def test_large_tables_are_folded_below_their_first_sentence(captions, rows, columns, large):
    page = read(captions, table(rows, columns))
    boxes = folds(page)
    assert len(boxes) == large and len(list(page.findall(nodes.table))) == 1
    if large:
        assert boxes[0].children[1].astext() == "First" and isinstance(boxes[0].children[3], nodes.table)
        assert boxes[0].children[3]["ids"] == ["tab-x"] and not boxes[0]["ids"], "links lead into the fold"


def test_what_opens_a_fold_holds_its_number_and_no_link(captions):
    """Badges and links stand in the caption below it."""
    text = table(30, 2, "tab-two").replace("First. Second.", "First `of all <there.html>`_ alone.")
    page = read(captions, text)
    env = SimpleNamespace(toc_fignumbers={"a": {"table": {"tab-two": (2, 1)}}})
    captions.number_folds(
        SimpleNamespace(env=env, config=SimpleNamespace(numfig_format={"table": "Table %s"})), page, "a"
    )
    said, within = folds(page)[0].children[1], folds(page)[0].children[3]
    links = lambda part: [node for node in part.findall() if "ref" in type(node).__name__]
    assert said.astext().strip() == "Table 2.1: First of all alone." and len(links(said)) == 0 < len(links(within))


def test_what_is_folded_already_or_stays_open_is_not_folded(captions):
    text = ".. container:: cell\n\n   " + table(30, 2).replace("\n", "\n   ")
    boxes = {tag: len(folds(read(captions, text, [f"tag_{tag}"]))) for tag in ("hide-cell", "open", "hide-input")}
    assert boxes == {"hide-cell": 0, "open": 0, "hide-input": 1}


@pytest.mark.parametrize("columns, entry, named", [(3, "c", True), (3, "", False), (1, "c", False)])
def test_a_column_of_names_is_one_of_several_and_has_no_gap(captions, columns, entry, named):
    page = read(captions, table(2, columns, entry=entry))
    stubs = [column.get("stub", 0) for column in page.findall(nodes.colspec)]
    assert stubs == [int(named), *[0] * (columns - 1)]
