"""Figures, code and formulas in the book: colours on dark pages, cells that join, widths."""

import colorsys
import re

import numpy as np
from component import BOOK, extension

from cot2lib.study.judge import GROUPS
from cot2lib.study.series import BLUE, BROWN, GREEN, GREY, ORANGE, PINK, SKY, YELLOW

STYLE = BOOK / "_static" / "book.css"


def channels(colour):
    return np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])


def contrast(one, other):
    """Of two colours by their channels, as the WCAG measure it."""
    lights = []
    for colour in (one, other):
        linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
        lights.append(linear @ [0.2126, 0.7152, 0.0722] + 0.05)
    return max(lights) / min(lights)


def test_dark_pages_turn_figures_round_and_keep_hues():
    """Every colour of the palette keeps its hue within a twelfth of the circle, and a contrast of 3 to the ground."""
    amount = float(
        re.search(r"figure img[^{]*\{\s*filter: invert\(([\d.]+)\) hue-rotate\(180deg\);", STYLE.read_text())[1]
    )
    luma = np.array([0.213, 0.715, 0.072])

    def turned(colour):
        inverted = amount + (1 - 2 * amount) * channels(colour)
        return np.clip(2 * luma @ inverted - inverted, 0, 1)  # half a turn about grey of the same luma

    for colour in (BLUE, ORANGE, GREEN, YELLOW, SKY, PINK, BROWN, GREY):
        given, hue = (colorsys.rgb_to_hsv(*one)[0] for one in (channels(colour), turned(colour)))
        assert min(abs(given - hue), 1 - abs(given - hue)) < 1 / 12 or colour == GREY, colour
        assert contrast(turned(colour), turned("#ffffff")) > 3, colour
    assert contrast(turned("#000000"), turned("#ffffff")) > 12


def test_verdicts_can_be_read_in_both_themes():
    """A contrast of 4.5 of every verdict's colour to the page, and as the ground of a tile."""
    for name in GROUPS:
        pattern = rf"^\.is-{name.replace(' ', '-')} {{\n  --verdict: light-dark\((#\w{{6}}), (#\w{{6}})\);"
        (colours,) = re.findall(pattern, STYLE.read_text(), re.MULTILINE)
        for colour, ground in zip(colours, ("#ffffff", "#121212")):  # of the theme
            assert contrast(channels(colour), channels(ground)) >= 4.5, (name, ground)


def test_folded_code_that_shows_nothing_joins_the_next():
    """Parameters stay apart, text parts two cells, and a cell that shows something ends one."""
    joined = extension("executed").joined

    def cell(source, *tags, shows=False, kind="code"):
        return {"cell_type": kind, "metadata": {"tags": [*tags]}, "source": [source], "outputs": [1] * shows}

    hide = "hide-input"
    cells = [
        cell("p", "parameters", hide), cell("a", hide), cell("b", hide), cell("c", hide, shows=True),
        cell("d", hide), cell("text", kind="markdown"), cell("e", hide), cell("open"), cell("f", hide, shows=True),
    ]  # fmt: skip
    assert ["".join(one["source"]) for one in joined(cells)] == ["p", "a\n\nb\n\nc", "d", "text", "e", "open", "f"]


def test_a_formula_has_about_the_width_that_it_will_have():
    """Names of signs are one sign, and relations have room around them."""
    mathjax = extension("offline_mathjax")
    assert mathjax.width(r"\alpha") == mathjax.width("d") < mathjax.width("dd") < mathjax.width("d=")
    assert mathjax.width("2^{n}") == mathjax.width("2^n") and mathjax.width(r"\left(\mathrm{d}") == mathjax.width("(d")
    context = {"body": '<span class="math notranslate nohighlight">\\(B &lt; 8\\)</span>'}
    mathjax.reserve(None, "a", "page.html", context, None)
    assert f'style="--wide: {mathjax.width("B < 8"):.1f}em">' in context["body"]
