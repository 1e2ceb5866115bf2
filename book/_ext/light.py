"""Sphinx extension: pages weigh less. Icons that no page shows are not sent, large pictures have 256 colours, and
pictures load when they come into sight. Only the page of results loads the theme's search scripts."""

import re
from pathlib import Path

from PIL import Image
from sphinx.application import Sphinx
from sphinx.util import logging

log = logging.getLogger(__name__)
ICONS = "_static/scripts/fontawesome.js"
ICON = re.compile(r'"?([\w-]+)"?:\[\d+,\d+,\[([^\]]*)\],"[0-9a-f]+",(?:"[^"]*"|\[[^\]]*\])\],?')
SHOWN = re.compile(r"\bfa-([\w-]+)")
BY_SCRIPT = {"xmark"}  # shown by the theme's own script
LEAST = 1000  # icons that the theme's file holds before it is lightened
LARGE = 100_000  # bytes of a picture
SEARCH = re.compile(r'\s*<script src="[^"]*(?:/searchtools|/language_data|searchindex)\.js[^"]*"></script>')


def setup(app: Sphinx) -> dict:
    """Register with Sphinx."""
    app.connect("html-page-context", load_in_sight)
    app.connect("build-finished", lighten)
    return {"version": "1", "parallel_read_safe": True}


def load_in_sight(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Mark the pictures of a page."""
    if "body" in context:
        context["body"] = context["body"].replace("<img ", '<img loading="lazy" ')


def lighten(app: Sphinx, error: Exception | None) -> None:
    """Rewrite what is built."""
    if error or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    shown = set(BY_SCRIPT)
    for page in folder.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        if page.name != "search.html":
            page.write_text(text := SEARCH.sub("", text), encoding="utf-8")
        shown.update(SHOWN.findall(text))
    drop_icons(folder / ICONS, shown)
    for path in [*folder.glob("_images/*.png"), *folder.glob("_static/*.png")]:
        if path.stat().st_size > LARGE:
            with Image.open(path) as picture:
                reduced = picture.convert("RGB").quantize(256)
            reduced.save(path, optimize=True)


def drop_icons(path: Path, shown: set[str]) -> None:
    """Keep those icons that have one of the names."""
    text, known = path.read_text(encoding="utf-8"), 0

    def kept(match: re.Match) -> str:
        nonlocal known
        known += 1
        names = {match[1], *re.findall(r'"([\w-]+)"', match[2])}
        return match[0] if names & shown else ""

    less = re.sub(r",(?=})", "", ICON.sub(kept, text))
    if known >= LEAST:
        path.write_text(less, encoding="utf-8")
    elif path.stat().st_size > LARGE:
        log.warning("%s has another form than known; all its icons are sent", path.name, type="light")
