"""Sphinx extension: pages fetch nothing from elsewhere. MathJax's browser bundle and fonts come from the site itself.

Pages are also told how wide each formula will be. So lines break in the same places before it is set and after.
"""

import html
import re
import shutil
import string
from importlib.metadata import distribution
from pathlib import Path

from sphinx.application import Sphinx

PARTS = ("tex-chtml.js", "output/chtml/fonts/woff-v2")
FORMULA = re.compile(r'(<span class="math notranslate nohighlight")(>\\\((.*?)\\\)</span>)', re.DOTALL)
RAISED = re.compile(r"[_^](?:\{([^{}]*)\}|(\\[A-Za-z]+|[^\s{}]))")
SIGN = re.compile(r"\\[A-Za-z]+|\\.|\S")
SMALL = 0.7  # of a sign above or below the line
SET = 1.25  # size of formulas beside text
LETTER = 0.6  # em, as other signs that are not listed
UNSEEN = set("{}") | {r"\,", r"\mathrm", r"\text", r"\mathbb", r"\left", r"\right", r"\tfrac", r"\operatorname"}
BETWEEN = set("=<>+-") | {r"\ge", r"\le", r"\in", r"\approx", r"\to", r"\pm", r"\times", r"\cdot", r"\log", r"\sum"}
KINDS = {
    0.0: UNSEEN,
    0.3: set("()[]|.,/!'ijlt"),
    0.5: set("0123456789"),
    0.8: set(string.ascii_uppercase),
    1.3: BETWEEN,
}
WIDTHS = {sign: wide for wide, signs in KINDS.items() for sign in signs}


def setup(app: Sphinx) -> dict:
    """Register with Sphinx."""
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

    def told(found: re.Match) -> str:
        return f'{found[1]} style="--wide: {width(html.unescape(found[3])):.1f}em"{found[2]}'

    if "body" in context:
        context["body"] = FORMULA.sub(told, context["body"])


def width(tex: str) -> float:
    """About how wide a formula is when it is set, in em of the text around it."""
    raised = sum(_signs(found[1] or found[2]) for found in RAISED.finditer(tex))
    return SET * (_signs(RAISED.sub("", tex)) + SMALL * raised)


def _signs(tex: str) -> float:
    return sum(WIDTHS.get(sign, LETTER) for sign in SIGN.findall(tex))


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
