"""Captions, findings and large tables as pages have them."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from component import extension
from docutils import nodes
from docutils.core import publish_doctree

from cot2lib.study.book import index
from cot2lib.study.kinds import SETTLED
from cot2lib.study.printed import claims

BOOK = Path(__file__).parents[2] / "book"
ALONE = "No counterpart in the paper"


@pytest.fixture(scope="module")
def module():
    return extension("captions")


@pytest.fixture
def captions(module, monkeypatch):
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


FIGURE = ".. figure:: a.svg\n   :name: {}\n\n   {}\n\n"


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
    given = [
        "**As in the paper.** Bars.",
        "Dots. No counterpart in the paper.",
        "Lines. The paper's counterpart is its Figure 1.",
    ]
    page = read(captions, "".join(FIGURE.format(f"fig-{place}", text) for place, text in enumerate(given)))
    told = [caption.astext() for caption in page.findall(nodes.caption)]
    assert [one.strip() for one in told] == ["Bars. No counterpart in the paper", *given[1:]]


def written():
    """Captions and alternative texts of all figures as they are written, by name."""
    for path in sorted((BOOK.parent / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text())["cells"]:
            if "figure" in (shown := cell["metadata"].get("mystnb", {})):
                yield shown["figure"]["name"], shown["figure"]["caption"], shown["image"]["alt"]


def test_no_figure_with_a_verdict_says_that_it_has_no_counterpart():
    judged = index.badges(pd.DataFrame({"id": claims().index, "profile": SETTLED, "verdict": "near"}))
    both = {name for name, caption, _ in written() if ALONE in caption and name in judged}
    assert both == set() and any(name in judged for name, *_ in written())
    assert any(ALONE in caption for _, caption, _ in written())


def test_no_caption_names_a_colour_that_dark_pages_turn_round():
    front = extension("front_page")
    ours = [value for name, value in vars(front).items() if name.isupper() and isinstance(value, str)]
    told = [*ours, *(text for _, *texts in written() for text in texts)]
    assert len(told) > 150 and not [
        text for text in told if re.search(r"\b(black|white|brown)\b", text, re.IGNORECASE)
    ]


def table(rows, columns, name="tab-x"):
    line = lambda word: "   * - " + "\n     - ".join([word] * columns) + "\n"
    return (
        f".. list-table:: First. Second.\n   :header-rows: 1\n   :name: {name}\n\n"
        + line("h")
        + line("c") * rows
        + "\n"
    )


@pytest.mark.parametrize("rows, columns, large", [(20, 6, False), (21, 6, True), (2, 7, True)])
def test_large_tables_are_folded_below_their_first_sentence(captions, rows, columns, large):
    page = read(captions, table(rows, columns))
    boxes = [box for box in page.findall(nodes.container) if "folded" in box["classes"]]
    assert len(boxes) == large and len(list(page.findall(nodes.table))) == 1
    if large:
        assert boxes[0].children[1].astext() == "First" and isinstance(boxes[0].children[3], nodes.table)
        assert boxes[0].children[3]["ids"] == ["tab-x"] and not boxes[0]["ids"], "links lead into the fold"


def test_what_opens_a_fold_holds_no_link(captions):
    """Badges and links stand in the caption below it."""
    text = table(30, 2, "tab-two").replace("First. Second.", "First `of those <there.html>`_ alone.")
    page = read(captions, text)
    box = next(box for box in page.findall(nodes.container) if "folded" in box["classes"])
    said, within = box.children[1], box.children[3]
    assert said.astext().strip() == "First of those alone." and not list(said.findall(captions.is_link))
    assert len(list(within.findall(captions.is_link))) == 2


@pytest.mark.parametrize("around, boxes", [(["tag_hide-cell"], 0), (["tag_open"], 0), (["tag_hide-input"], 1)])
def test_what_is_folded_already_or_stays_open_is_not_folded(captions, around, boxes):
    page = read(captions, ".. container:: cell\n\n   " + table(30, 2).replace("\n", "\n   "), around)
    assert sum("folded" in box["classes"] for box in page.findall(nodes.container)) == boxes


def test_headings_head_columns_and_first_columns_name_rows(captions):
    cells = '<tr><th class="head stub"><p>a</p></th></tr><tr><th class="stub text-right"><p>b</p></th></tr>'
    context = {"body": cells}
    captions.complete_page(None, "a", "a", context, None)
    assert context["body"] == cells.replace('<th class="h', '<th scope="col" class="h').replace(
        '<th class="s', '<th scope="row" class="s'
    )


@pytest.mark.parametrize("columns, entry, named", [(3, "c", True), (3, "", False), (1, "c", False)])
def test_a_column_of_names_is_one_of_several_and_has_no_gap(captions, columns, entry, named):
    page = read(captions, table(2, columns).replace("   * - c", f"   * - {entry}"))
    stubs = [column.get("stub", 0) for column in page.findall(nodes.colspec)]
    assert stubs == [int(named), *[0] * (columns - 1)]


def test_links_below_a_figure_are_called_by_its_number(captions):
    link = '<a class="table-csv" {}</a>'
    below = link.format('download href="x.csv">CSV') + link.format('href="#remake-csft">Remake')
    number = '<span class="caption-number">Fig. 2.4 </span>'
    context = {"body": f"<figcaption>{number}{below}</figcaption><figcaption>{below}</figcaption>{below}"}
    captions.complete_page(None, "a", "a", context, None)
    assert re.findall('aria-label="(.*?)"', context["body"]) == ["The numbers of Fig. 2.4 as CSV", "Remake Fig. 2.4"]


def test_a_formula_is_told_how_wide_it_will_be():
    """Names of signs are one sign, what is raised is small, and what is not seen has no width."""
    mathjax = extension("offline_mathjax")
    assert mathjax.width(r"\alpha") == mathjax.width("d") < mathjax.width("d=24") < mathjax.width(r"d=\Omega(24)")
    assert mathjax.width("2^{n}") == mathjax.width("2^n") < mathjax.width("2n") and mathjax.width("{}") == 0
    context = {"body": '<span class="math notranslate nohighlight">\\(B &lt; 8\\)</span>'}
    mathjax.reserve(None, "a", "page.html", context, None)
    assert f'style="--wide: {mathjax.width("B < 8"):.1f}em">' in context["body"]
