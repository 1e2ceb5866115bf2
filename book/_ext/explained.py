"""Sphinx extension: where a chapter first uses a term of the glossary, a popover says its meaning (`explained.js`)."""

import re

from captions import raw
from docutils import nodes
from sphinx.application import Sphinx

GLOSSARY = "book/notation"
USES = {"d": r"(?<=dimension )d\b|\bd ?= ?\d+", "hop": r"\bhops?\b"}  # not as the term itself: d may be a digit
TOLD_IN = nodes.section | nodes.list_item  # and not in captions, tables and folds


def explain(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    if not docname.startswith("notebooks/"):
        return
    page = app.builder.get_relative_uri(docname, GLOSSARY)
    paragraphs = [one for one in doctree.findall(nodes.paragraph) if isinstance(one.parent, TOLD_IN)]
    for term in app.env.get_doctree(GLOSSARY).findall(nodes.term):
        name, at, meaning = term.astext(), term["ids"][0], term.parent[-1][0].deepcopy().children
        options = f'aria-label="{name}" aria-describedby="{at}" popovertarget="{at}" popovertargetaction="show"'
        before, between = raw(f'<span class="explained"><button {options}>'), raw(f'</button><span popover id="{at}">')
        after = [between, *meaning, raw(f' <a href="{page}#{at}">Notation</a></span></span>')]
        use = re.compile(USES.get(name, rf"\b{name}\b"))
        any(put(one, use, before, after) for one in paragraphs)  # until one uses it


def put(paragraph: nodes.paragraph, use: re.Pattern, before: nodes.raw, after: list[nodes.Node]) -> bool:
    """Put nodes around the first use of a term in a paragraph, if it has one."""
    text, start = paragraph.astext(), 0
    for child in paragraph.children:
        if isinstance(child, nodes.math) and use.match(text, start):
            paragraph.replace(child, [before, child, *after])
            return True
        if isinstance(child, nodes.Text) and (found := use.search(child)):
            first, used, last = (nodes.Text(part) for part in (child[: found.start()], found[0], child[found.end() :]))
            paragraph.replace(child, [first, before, used, *after, last])
            return True
        start += len(child.astext())
    return False


def setup(app: Sphinx) -> dict:
    app.connect("doctree-resolved", explain)
    return {"version": "1", "parallel_read_safe": True}
