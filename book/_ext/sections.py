"""Sphinx extension: search finds sections and claim cards by their prose; code and formulas are left out.

Writes `_static/sections.js`, which the page of search results loads; `search-sections.js` looks into it.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

NO_PROSE = (nodes.literal_block, nodes.math, nodes.math_block, nodes.raw, nodes.comment, nodes.image)


def is_part(node: nodes.Node) -> bool:
    """Whether a reader finds this by itself: a section, or a claim's card."""
    card = isinstance(node, nodes.container) and any(name.startswith("claim-") for name in node.get("ids", []))
    return isinstance(node, nodes.section) or card


def prose(part: nodes.Node) -> Iterator[str]:
    """Texts of a part that are neither code nor of a part within it."""
    for child in part.children:
        if isinstance(child, nodes.Text):
            yield child.astext()
        elif not (is_part(child) or isinstance(child, NO_PROSE)):
            yield from prose(child)


def parts(page: nodes.document) -> list[dict]:
    """Place, title and prose of the parts of a page."""
    found = []
    for part in page.findall(is_part):
        title = next(iter(part.findall(lambda node: isinstance(node, nodes.title | nodes.rubric))), None)
        if title is not None:
            text = " ".join("".join(f"{piece} " for piece in prose(part)).split())
            found.append({"at": part["ids"][0], "title": title.astext(), "text": text.removeprefix(title.astext())})
    return found


def write(app: Sphinx, error: Exception | None) -> None:
    """All parts of all pages."""
    if error or app.builder.format != "html":
        return
    found = []
    for name in sorted(app.env.found_docs):
        mine = parts(app.env.get_doctree(name))
        found += [part | {"page": f"{name}.html", "within": mine[0]["title"]} for part in mine]
    text = f"window.COT2_SECTIONS = {json.dumps(found)};\n"
    (Path(app.outdir) / "_static" / "sections.js").write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict:
    """Register with Sphinx."""
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True}
