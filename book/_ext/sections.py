"""Sphinx extension: search finds sections and claim cards by their prose; code and formulas are left out.

Writes `_static/sections.js`, which the page of search results loads; `search-sections.js` looks into it.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

NO_PROSE = (nodes.literal_block, nodes.math, nodes.math_block, nodes.raw, nodes.comment, nodes.image, nodes.title)
BEGIN, END = "window.COT2_SECTIONS = ", ";\n"
FOUND: dict[str, list[dict]] = {}  # by page, of those that are written


def is_card(node: nodes.Node) -> bool:
    """Whether a claim's card begins here."""
    return isinstance(node, nodes.Element) and any(name.startswith("claim-") for name in node.get("ids", []))


def is_part(node: nodes.Node) -> bool:
    """Whether a reader finds this by itself: a section that has a title, or a card."""
    return is_card(node) or (isinstance(node, nodes.section) and isinstance(node.children[0], nodes.title))


def prose(part: nodes.Node) -> Iterator[str]:
    """Texts of a part that are neither its title nor code, nor of a part within it."""
    for child in part.children[1:] if is_card(part) else part.children:
        if isinstance(child, nodes.Text):
            yield child.astext()
        elif not (is_part(child) or isinstance(child, NO_PROSE)):
            yield from prose(child)


def parts(page: nodes.document) -> list[dict]:
    """Place, title and prose of the parts of a page."""
    return [
        {"at": part["ids"][0], "title": title(part), "text": _words(prose(part))} for part in page.findall(is_part)
    ]


def title(part: nodes.Element) -> str:
    """What a part is called, without the markup of icons."""
    texts = part.children[0].findall(nodes.Text)
    return _words(["".join(text.astext() for text in texts if not isinstance(text.parent, nodes.raw))])


def _words(texts: Iterable[str]) -> str:
    return " ".join(" ".join(texts).split())


def collect(app: Sphinx, page: nodes.document, name: str) -> None:
    """Keep the parts of a page whose references have their words."""
    mine = parts(page)
    FOUND[f"{name}.html"] = [part | {"page": f"{name}.html", "within": mine[0]["title"]} for part in mine]


def write(app: Sphinx, error: Exception | None) -> None:
    """All parts of all pages; of pages that did not change, those of the build before."""
    if error or app.builder.format != "html":
        return
    path = Path(app.outdir) / "_static" / "sections.js"
    before = json.loads(path.read_text("utf-8").removeprefix(BEGIN).removesuffix(END)) if path.exists() else []
    kept = [part for part in before if part["page"] not in FOUND]
    path.write_text(f"{BEGIN}{json.dumps([*kept, *chain(*FOUND.values())])}{END}", encoding="utf-8")


def setup(app: Sphinx) -> dict:
    """Register with Sphinx."""
    app.connect("doctree-resolved", collect)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True}
