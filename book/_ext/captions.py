"""Sphinx extension: captions say which claims a figure or table speaks to, and findings stand above their figures.

A badge gives the verdicts and leads to the claims' cards. A caption that does not speak of the paper says that it has
no counterpart there. A table of many rows or columns is folded below the first sentence of its caption, unless its
cell is tagged `open`, since it carries its chapter. What opens a fold names the tables in it by number. Headings say
that they head columns, and first columns name their rows. Links below a figure are called by its number.
"""

import re
from functools import cache

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx_design.dropdown import dropdown_main

from cot2lib.study.book import index
from cot2lib.study.book.ledger import of_records

MOST_ROWS, MOST_COLUMNS = 20, 6
ALONE = "No counterpart in the paper"
HEAD, STUB = '<th class="head', '<th class="stub'
TOLD = re.compile(r"<figcaption>.*?</figcaption>", re.DOTALL)
NUMBER = re.compile(r'class="caption-number">(.*?)</span>')
CSV, AGAIN = '<a class="table-csv" download ', '<a class="table-csv" href="#remake'
Caption = nodes.caption | nodes.title


@cache
def badges() -> dict[str, list[index.Badge]]:
    """Badges by the name of a figure or table."""
    return index.badges(of_records())


def complete(app: Sphinx, doctree: nodes.document) -> None:
    """Complete the figures and tables of a page that has been read."""
    for shown in list(doctree.findall(lambda node: isinstance(node, nodes.figure | nodes.table))):
        caption = next((part for part in shown.children if isinstance(part, Caption)), None)
        name = next((name for name in shown["names"] if name.startswith(("fig-", "tab-"))), "")
        made, is_figure = badges().get(name, []), isinstance(shown, nodes.figure)
        if is_figure:
            raise_finding(shown, caption)
        if caption:
            add_badges(app, caption, made)
        if is_figure and caption and name and not made and "paper" not in caption.astext():
            caption += [nodes.Text(" "), nodes.inline("", ALONE, classes=["verdict"])]
        if not is_figure:
            name_rows(shown)
            if is_large(shown) and not stays(shown):
                fold(shown, caption)


def add_badges(app: Sphinx, caption: Caption, made: list[index.Badge]) -> None:
    """Links to cards at the end of a caption."""
    for badge in made:
        link = addnodes.pending_xref("", refdomain="std", reftype="ref", reftarget=badge.label, refexplicit=True)
        link["refdoc"], link["refwarn"] = app.env.docname, True
        link += nodes.inline("", badge.words)
        marked = nodes.inline("", "", link, classes=["verdict", f"verdict-{badge.group.replace(' ', '-')}"])
        caption += [nodes.Text(" "), marked]


def raise_finding(figure: nodes.figure, caption: Caption | None) -> None:
    """Put the finding that opens a caption above the figure."""
    first = next((part for part in caption or () if part.astext()), None)
    if isinstance(first, nodes.strong):
        caption.remove(first)
        figure.insert(0, nodes.paragraph("", "", *first.children, classes=["figure-title"]))


def name_rows(table: nodes.table) -> None:
    """Let the first column of a table of several name the rows, unless an entry of it is empty."""
    columns = list(table.findall(nodes.colspec))
    firsts = [row.children[0].astext() for body in table.findall(nodes.tbody) for row in body.findall(nodes.row)]
    if len(columns) > 1 and all(firsts):
        columns[0]["stub"] = 1


def is_large(table: nodes.table) -> bool:
    """Whether a table has more rows or columns than a reader takes in."""
    rows = [row for body in table.findall(nodes.tbody) for row in body.findall(nodes.row)]
    columns = max((len(row.children) for row in table.findall(nodes.row)), default=0)
    return len(rows) > MOST_ROWS or columns > MOST_COLUMNS


def stays(table: nodes.table) -> bool:
    """Whether a large table stays as it is: in a dropdown, in a cell whose output is hidden, or tagged `open`."""
    above, marks = table.parent, {"tag_hide-cell", "tag_hide-output", "tag_open", "dropdown", "sd-dropdown"}
    while above is not None:
        if marks & {*above.get("classes", []), above.get("type", "")}:
            return True
        above = above.parent
    return False


def fold(table: nodes.table, caption: Caption | None) -> None:
    """Put a table into a fold that its caption's first sentence names."""
    said = nodes.inline("", "", *first_sentence(caption)) if caption else nodes.inline("", "The table")
    box = nodes.container(classes=["folded"])
    table.parent.replace(table, box)  # `replace_self` would give the box the table's id, too
    box += [raw("<details><summary>"), said, raw("</summary>"), table, raw("</details>")]


def name_tables(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Let what opens a fold name the tables in it by their numbers, which are known when all pages have been read."""
    numbers = app.env.toc_fignumbers.get(docname, {}).get("table", {})
    for table in doctree.findall(nodes.table):
        if (found := numbers.get(next(iter(table["ids"]), ""))) and (fold := around(table)):
            name_table(fold, app.config.numfig_format["table"] % ".".join(map(str, found)))


def around(table: nodes.table) -> nodes.Element | None:
    """The innermost fold around a table."""
    above = table.parent
    while above and not (isinstance(above, HideCodeCellNode | dropdown_main) or "folded" in above.get("classes", [])):
        above = above.parent
    return above


def name_table(fold: nodes.Element, number: str) -> None:
    """A table's number in what opens a fold: before the caption's words, after the words of other folds."""
    if isinstance(fold, HideCodeCellNode):
        for prompt in ("prompt_show", "prompt_hide"):
            fold[prompt] += f" ({number})"
    elif isinstance(fold, dropdown_main):  # those of the ledger name the paper's tables
        next(fold.findall(nodes.inline)).append(nodes.Text(f" (here {number})"))
    else:
        fold.children[1].insert(0, nodes.Text(f"{number}: "))


def free_proofs(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Take their ids from proofs and from what propositions hold: all on a page have the same, which no link uses."""
    for node in doctree.findall(lambda node: isinstance(node, nodes.Element)):
        if {"proof", "proof-content"} & {*node.get("ids", ())} and not node["names"]:
            node["ids"] = []


def first_sentence(caption: Caption) -> list[nodes.Node]:
    """A caption's parts up to its first full stop, without badges and with the text of links alone.

    These words open a fold, so a link among them could not be followed.
    """
    parts = []
    for part in caption.children:
        if isinstance(part, nodes.Element) and "verdict" in part["classes"]:
            continue
        if next(part.findall(is_link), None):
            part = nodes.Text(part.astext())
        text, stop, _ = part.astext().partition(". ") if isinstance(part, nodes.Text) else ("", "", "")
        if stop:
            return [*parts, nodes.Text(text)]
        parts.append(part.deepcopy())
    return parts


def is_link(node: nodes.Node) -> bool:
    """Whether a node is a link, or becomes one."""
    return isinstance(node, nodes.reference | addnodes.pending_xref)


def raw(text: str) -> nodes.raw:
    """HTML as it stands."""
    return nodes.raw("", text, format="html")


def complete_page(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Headings of tables say what they head; links below a figure say of which figure."""
    if "body" in context:
        scoped = context["body"].replace(HEAD, HEAD.replace("<th", '<th scope="col"'))
        scoped = scoped.replace(STUB, STUB.replace("<th", '<th scope="row"'))
        context["body"] = TOLD.sub(lambda found: name_links(found[0]), scoped)


def name_links(caption: str) -> str:
    """A figure's caption, with links that carry its number for those who hear them apart from it."""
    if not (number := NUMBER.search(caption)):
        return caption
    name = number[1].strip()
    called = caption.replace(CSV, f'{CSV}aria-label="The numbers of {name} as CSV" ')
    return called.replace(AGAIN, AGAIN.replace("href", f'aria-label="Remake {name}" href'))


def setup(app: Sphinx) -> dict:
    """Register with Sphinx."""
    app.connect("doctree-read", complete)
    app.connect("doctree-resolved", name_tables)
    app.connect("doctree-resolved", free_proofs, priority=900)  # other extensions look for the ids of sections
    app.connect("html-page-context", complete_page)
    return {"version": "1", "parallel_read_safe": True}
