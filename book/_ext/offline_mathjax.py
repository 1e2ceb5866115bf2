"""Sphinx extension: serve MathJax's browser bundle and fonts from the site itself, not from a CDN."""

import shutil
from importlib.metadata import distribution
from pathlib import Path

from sphinx.application import Sphinx

PARTS = ("tex-chtml.js", "output/chtml/fonts/woff-v2")


def setup(app: Sphinx) -> dict:
    """Register with Sphinx."""
    app.connect("build-finished", copy_mathjax)
    return {"version": "1", "parallel_read_safe": True}


def copy_mathjax(app: Sphinx, error: Exception | None) -> None:
    """Copy what the pages ask for into `_static/mathjax`."""
    if error or app.builder.format != "html":
        return
    bundle = Path(distribution("sphinx-mathjax-offline").locate_file("sphinx-mathjax-offline/static/mathjax"))
    for part in PARTS:
        source, target = bundle / part, Path(app.outdir) / "_static" / "mathjax" / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copyfile(source, target)
