"""Sphinx extension: pages fetch nothing from elsewhere. MathJax's browser bundle and fonts come from the site itself.

Pages also know about how wide each formula will be, so that lines break in the same places before it is set and after.
"""

import html
import re
import shutil
from importlib.metadata import distribution
from pathlib import Path

from sphinx.application import Sphinx

PARTS = ("tex-chtml.js", "output/chtml/fonts/woff-v2")
FORMULA = re.compile(r'(<span class="math notranslate nohighlight")(>\\\((.*?)\\\)</span>)', re.DOTALL)
UNSEEN = re.compile(r"\\(?:,|(?:left|right|math\w+|text|tfrac|operatorname)\b)")
SIGN = re.compile(r"\\[A-Za-z]+|[^\s{}^_\\]")
RELATION = re.compile(r"[=<>+-]|\\(?:ge|le|in|approx|to|pm|times|cdot|log|sum)\b")  # with room around it
WIDTH, ROOM = 0.66, 0.65  # em: of a sign, and around a relation, fitted to 900 formulas of the book


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", reserve)
    app.connect("html-page-context", drop_thebe, priority=900)
    app.connect("build-finished", copy_mathjax)
    return {"version": "1", "parallel_read_safe": True}


def drop_thebe(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Drop Thebe's scripts: Jupyter Book adds them to every page though Thebe is off, and twice, which is an error."""
    named = lambda script: f"{getattr(script, 'filename', script)} {getattr(script, 'attributes', '')}".lower()
    context["script_files"] = [one for one in context.get("script_files", []) if "thebe" not in named(one)]


def reserve(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Write each formula's width within a line to its element."""
    sized = lambda found: f'{found[1]} style="--wide: {width(html.unescape(found[3])):.1f}em"{found[2]}'
    if "body" in context:
        context["body"] = FORMULA.sub(sized, context["body"])


def width(tex: str) -> float:
    """About how wide a formula is when it is set, in em of the text around it."""
    tex = UNSEEN.sub("", tex)
    return WIDTH * len(SIGN.findall(tex)) + ROOM * len(RELATION.findall(tex))


def copy_mathjax(app: Sphinx, error: Exception | None) -> None:
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
