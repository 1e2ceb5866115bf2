"""Sphinx extension: captions say which claims a figure or table speaks to, and findings stand above their figures.

A badge gives the verdicts and leads to the claims' cards. A caption that does not speak of the paper says that it has
no counterpart there. A table of many rows or columns is folded below its number and the first sentence of its caption,
unless its cell, or a container round it, is marked `open`, since it carries its page. A smaller one is folded if its
cell is tagged `folded`, since readers look it up. First columns name their rows.
"""

from functools import cache

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from cot2lib.study.book import index
from cot2lib.study.book.ledger import of_records
from cot2lib.study.book.overview import MARKS
from cot2lib.study.judge import DEPENDS

MOST_ROWS, MOST_COLUMNS = 20, 6
STAYS = "tag_open", "open", "dropdown", "sd-dropdown"  # where a large table stays as it is
ALONE = "No counterpart in the paper"
Caption = nodes.caption | nodes.title


@cache
def badges() -> dict[str, list[index.Badge]]:
    return index.badges(of_records())


def complete(app: Sphinx, doctree: nodes.document) -> None:
    for shown in list(doctree.findall(lambda node: isinstance(node, nodes.figure | nodes.table))):
        caption = next((part for part in shown.children if isinstance(part, Caption)), None)
        name = next((name for name in shown["names"] if name.startswith(("fig-", "tab-"))), "")
        made = badges().get(name, [])
        if isinstance(shown, nodes.table):
            complete_table(shown, caption)
        else:
            raise_finding(shown, caption)
            if caption and name and not made and "paper" not in caption.astext():
                caption += [nodes.Text(" "), nodes.inline("", ALONE, classes=["verdict"])]
        if caption:
            add_badges(app, caption, made)


def add_badges(app: Sphinx, caption: Caption, made: list[index.Badge]) -> None:
    for badge in made:
        link = addnodes.pending_xref("", refdomain="std", reftype="ref", reftarget=badge.label, refexplicit=True)
        link["refdoc"], link["refwarn"] = app.env.docname, True
        link += nodes.inline("", badge.words)
        mark = MARKS.get(badge.group, MARKS[DEPENDS])  # mixed verdicts have no mark of their own
        marked = nodes.inline("", "", nodes.Text(f"{mark}\N{NO-BREAK SPACE}"), link, classes=["verdict"])
        caption += [nodes.Text(" "), marked]


def raise_finding(figure: nodes.figure, caption: Caption | None) -> None:
    """Put the finding that opens a caption above the figure."""
    first = next((part for part in caption or () if part.astext()), None)
    if isinstance(first, nodes.strong):
        caption.remove(first)
        figure.insert(0, nodes.paragraph("", "", *first.children, classes=["figure-title"]))


def complete_table(table: nodes.table, caption: Caption | None) -> None:
    """Let the first of several columns name the rows, unless it has a gap; fold a large table."""
    rows = [row for body in table.findall(nodes.tbody) for row in body.findall(nodes.row)]
    columns = list(table.findall(nodes.colspec))
    if len(columns) > 1 and all(row.children[0].astext() for row in rows):
        columns[0]["stub"] = 1
    large = len(rows) > MOST_ROWS or len(columns) > MOST_COLUMNS
    if marked(table, "tag_folded") or (large and not marked(table, *STAYS)):
        said = nodes.inline("", "", *first_sentence(caption)) if caption else nodes.inline("", "The table")
        box = nodes.container(classes=["folded"])
        table.parent.replace(table, box)  # `replace_self` would give the box the table's id, too
        box += [raw("<details><summary>"), said, raw("</summary>"), table, raw("</details>")]


def marked(table: nodes.table, *marks: str) -> bool:
    """Whether a table stands in a node of one of these classes or types."""
    above = table.parent
    while above is not None:
        if {*marks} & {*above.get("classes", []), above.get("type", "")}:
            return True
        above = above.parent
    return False


def first_sentence(caption: Caption) -> list[nodes.Node]:
    """A caption's parts up to its first full stop. They open a fold, so links among them become text."""
    parts = []
    for part in caption.children:
        text, stop, _ = f"{part.astext()} ".partition(". ") if isinstance(part, nodes.Text) else ("", "", "")
        if stop:
            return [*parts, nodes.Text(text)]
        linked = next(part.findall(lambda node: isinstance(node, nodes.reference | addnodes.pending_xref)), None)
        parts.append(nodes.Text(part.astext()) if linked else part.deepcopy())
    return parts


def number_folds(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put a table's number, which is known when all pages have been read, before the words that open its fold."""
    numbers = app.env.toc_fignumbers.get(docname, {}).get("table", {})
    for box in doctree.findall(nodes.container):
        if "folded" in box["classes"] and (found := numbers.get(next(iter(box.children[3]["ids"]), ""))):
            number = app.config.numfig_format["table"] % ".".join(map(str, found))
            box.children[1].insert(0, nodes.Text(f"{number}: "))


def raw(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def setup(app: Sphinx) -> dict:
    app.connect("doctree-read", complete)
    app.connect("doctree-resolved", number_folds)
    return {"version": "1", "parallel_read_safe": True}
