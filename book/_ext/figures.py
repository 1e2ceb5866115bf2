"""Sphinx extension: figures have a size before they load, and a link to their file.

The style sheet inverts them on dark pages.
"""

import re
from functools import cache
from pathlib import Path

from PIL import Image
from sphinx.application import Sphinx

POINT = 4 / 3  # pixels
WIDE = 480  # pixels beyond which a phone scrolls a picture instead of shrinking it
PICTURE = re.compile(
    r'(?:<a [^>]*image-reference[^>]*>\s*)?(<img [^>]*src="(\.\./_images/([^"]+\.(?:svg|png)))"[^>]*>)(?:\s*</a>)?'
)
SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)pt" height="([\d.]+)pt"')


@cache
def size_of(path: Path) -> tuple[int, int]:
    """Width and height of a picture in pixels of the page; vectors give theirs in points."""
    if path.suffix == ".svg":
        width, height = SIZE.search(path.read_text(encoding="utf-8")).groups()
        return round(float(width) * POINT), round(float(height) * POINT)
    with Image.open(path) as picture:
        return picture.size


def size_and_link(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Give every picture of a page its size and a link to its file; it loads when it comes into sight.

    A phone scrolls a wide one in a box of its own, so that its caption stays in sight.
    """
    files = {name: Path(app.srcdir) / source for source, name in app.builder.images.items()}

    def whole(found: re.Match) -> str:
        tag, link, name = found.groups()
        if name not in files:
            return found[0]
        width, height = size_of(files[name])
        sized = tag.replace("<img ", f'<img loading="lazy" width="{width}" height="{height}" ', 1)
        linked = f'<a class="reference internal image-reference" href="{link}" style="--width: {width}px">{sized}</a>'
        return f'<div class="wide-picture">{linked}</div>' if width > WIDE else linked

    if "body" in context:
        context["body"] = PICTURE.sub(whole, context["body"])


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", size_and_link, priority=400)
    return {"version": "1", "parallel_read_safe": True}
