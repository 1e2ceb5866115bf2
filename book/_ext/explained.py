"""Sphinx extension: where a chapter first uses a term of the glossary on the page `book/notation`, its meaning opens.

A button around the term opens a popover, by tap or key; `explained.js` puts it in place and opens it for a mouse.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx

GLOSSARY = "book/notation"
USES = {  # how text and formulas use each term
    "d": re.compile(r"(?<=dimension )d\b|\bd ?= ?\d"),  # in a proof d is a digit
    "B": re.compile(r"\bB\b"),
    "K": re.compile(r"\bK\b"),
    "hop": re.compile(r"\bhops?\b"),
}
TOLD_IN = nodes.section | nodes.list_item  # and not in captions, tables and folds
BEFORE = '<span class="explained"><button type="button" popovertarget="{id}" popovertargetaction="show" '
BEFORE += 'aria-describedby="{id}">'
AFTER = ' <a href="{page}#{id}">Notation</a></span></span>'


def explain(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Explain the first use of each term in a chapter's paragraphs and lists."""
    if not docname.startswith("notebooks/"):
        return
    page = app.builder.get_relative_uri(docname, GLOSSARY)
    terms = {term.astext(): term for term in app.env.get_doctree(GLOSSARY).findall(nodes.term)}
    paragraphs = [one for one in doctree.findall(nodes.paragraph) if isinstance(one.parent, TOLD_IN)]
    for name, use in USES.items():
        meaning = terms[name].parent[-1][0].deepcopy().children
        given = {"id": terms[name]["ids"][0], "page": page}
        about = [raw('</button><span popover id="{id}">', given), *meaning, raw(AFTER, given)]
        any(put(paragraph, use, raw(BEFORE, given), about) for paragraph in paragraphs)  # the first that uses it


def put(paragraph: nodes.paragraph, use: re.Pattern, before: nodes.raw, after: list[nodes.Node]) -> bool:
    """Put nodes around the first use of a term in a paragraph, if it has one."""
    text, start = paragraph.astext(), 0
    for child in paragraph.children:
        if isinstance(child, nodes.math) and use.match(text, start):
            paragraph.replace(child, [before, child, *after])
            return True
        if isinstance(child, nodes.Text) and (found := use.search(child)):
            parts = [nodes.Text(part) for part in (child[: found.start()], found[0], child[found.end() :])]
            paragraph.replace(child, [parts[0], before, parts[1], *after, parts[2]])
            return True
        start += len(child.astext())
    return False


def raw(text: str, given: dict[str, str]) -> nodes.raw:
    """HTML as it stands."""
    return nodes.raw("", text.format(**given), format="html")


def setup(app: Sphinx) -> dict:
    """Register with Sphinx."""
    app.connect("doctree-resolved", explain)
    return {"version": "1", "parallel_read_safe": True}
