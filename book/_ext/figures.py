"""Sphinx extension: figures in the page's own colours, of a size known before they load.

A figure of vectors has a second file with a palette for dark pages; one of pixels is inverted by the style sheet.
"""

import colorsys
import re
from functools import cache
from pathlib import Path

from PIL import Image
from sphinx.application import Sphinx

GROUND, INK = (0x12, 0x12, 0x12), (0xE6, 0xE6, 0xE6)  # of dark pages
POINT = 4 / 3  # pixels
GREY = 24  # least difference of the channels of what is a colour and no grey
LIGHTEST, PUREST = 0.6, 0.75  # the least lightness and the most saturation of a colour in the dark
HEX = re.compile(r"#[0-9a-fA-F]{6}\b")
WIDE = 650  # pixels beyond which a phone scrolls a picture instead of shrinking it
PICTURE = re.compile(
    r'(?:<a [^>]*image-reference[^>]*>\s*)?(<img [^>]*src="(\.\./_images/([^"]+\.(svg|png)))"[^>]*>)(?:\s*</a>)?'
)
SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)pt" height="([\d.]+)pt"')
ID = re.compile(r'( id="|url\(#|href="#)')


def in_the_dark(colour: str) -> str:
    """A colour for dark pages: greys between ground and ink, others light enough for a dark ground."""
    channels = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    if max(channels) - min(channels) < GREY:
        white = sum(channels) / 3 / 255
        channels = [ink + (ground - ink) * white for ground, ink in zip(GROUND, INK)]
    else:
        hue, lightness, saturation = colorsys.rgb_to_hls(*(channel / 255 for channel in channels))
        lifted = colorsys.hls_to_rgb(hue, max(lightness, LIGHTEST), min(saturation, PUREST))
        channels = [255 * channel for channel in lifted]
    return "#" + "".join(f"{round(channel):02x}" for channel in channels)


def darkened(svg: str) -> str:
    """A figure of vectors with the palette for dark pages; what names no colour is ink. Its ids are others."""
    inked = svg.replace("<svg ", '<svg fill="#000000" ', 1)
    coloured = HEX.sub(lambda found: in_the_dark(found[0]), inked)
    return ID.sub(r"\1dark-", coloured)


def dark_name(name: str) -> str:
    """The file of a figure for dark pages."""
    return f"{Path(name).stem}.dark.svg"


@cache
def size_of(path: Path) -> tuple[int, int]:
    """Width and height of a picture in pixels of the page; vectors give theirs in points."""
    if path.suffix == ".svg":
        width, height = SIZE.search(path.read_text(encoding="utf-8")).groups()
        return round(float(width) * POINT), round(float(height) * POINT)
    with Image.open(path) as picture:
        return picture.size


def show_twice(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Give every picture of a page its size and a link to its file, and one of vectors a counterpart for dark pages.

    A phone scrolls a wide one in a box of its own, so that its caption stays in sight.
    """
    files = {name: Path(app.srcdir) / source for source, name in app.builder.images.items()}

    def whole(found: re.Match) -> str:
        tag, link, name, kind = found.groups()
        if name not in files:
            return found[0]
        width, height = size_of(files[name])
        sized = tag.replace("<img ", f'<img width="{width}" height="{height}" ', 1)
        linked = f'<a class="reference internal image-reference" href="{link}">{_both(sized, link, name, kind)}</a>'
        return f'<div class="wide-picture">{linked}</div>' if width > WIDE else linked

    if "body" in context:
        context["body"] = PICTURE.sub(whole, context["body"])


def _both(tag: str, link: str, name: str, kind: str) -> str:
    """A picture; one of vectors for light pages and for dark ones."""
    if kind == "png":
        return tag
    dark = tag.replace(link, link.replace(name, dark_name(name)))
    return "".join(_of_class(one, mode) for one, mode in ((tag, "only-light"), (dark, "only-dark")))


def _of_class(tag: str, name: str) -> str:
    """A tag with one class more."""
    classes = ' class="'
    return (
        tag.replace(classes, f"{classes}{name} ", 1)
        if classes in tag
        else tag.replace("<img ", f'<img class="{name}" ')
    )


def write(app: Sphinx, error: Exception | None) -> None:
    """The files for dark pages."""
    if error or app.builder.format != "html":
        return
    for path in (Path(app.outdir) / "_images").glob("*.svg"):
        if not path.name.endswith(".dark.svg"):
            path.with_name(dark_name(path.name)).write_text(
                darkened(path.read_text(encoding="utf-8")), encoding="utf-8"
            )


def setup(app: Sphinx) -> dict:
    """Register with Sphinx."""
    app.connect("html-page-context", show_twice, priority=400)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True}
