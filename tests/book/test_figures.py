"""Figures in the book: a palette for dark pages, and sizes."""

import re
from types import SimpleNamespace

import pandas as pd
import pytest
from bs4 import BeautifulSoup
from component import extension

from cot2lib.study import look
from cot2lib.study.check import Check


@pytest.fixture(scope="module")
def figures():
    return extension("figures")


@pytest.fixture(scope="module")
def shown():
    """Two methods with three seeds at two dimensions."""
    rows = [
        {"recipe": "quick recipe", "method": method, "d_model": d, "seed": seed, "last": 10.0 * place + d + seed / 7}
        for place, method in enumerate(("CoT2", "discrete CoT"))
        for d in (16, 24)
        for seed in (42, 43, 44)
    ]
    return look.ends(pd.DataFrame(rows))


def luminance(colour):
    return sum(int(colour[at : at + 2], 16) * weight for at, weight in ((1, 0.21), (3, 0.72), (5, 0.07)))


def test_colours_are_legible_on_the_ground_that_they_stand_on(figures):
    """Greys turn round, in order; colours of the book's series are lighter than the ground by far."""
    greys = [luminance(figures.in_the_dark(grey)) for grey in ("#000000", "#7a7a7a", "#e4e4e4", "#ffffff")]
    assert greys == sorted(greys, reverse=True) and figures.in_the_dark("#ffffff") == "#121212"
    for colour in ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#B08D00", "#332288", "#882255"):
        assert luminance(figures.in_the_dark(colour)) > 90 > luminance("#121212"), colour


def test_a_dark_figure_has_no_white_and_ids_of_its_own(figures, shown):
    light = shown.svg()
    dark = figures.darkened(light)
    assert "#ffffff" in light and "#ffffff" not in dark and '<svg fill="#e6e6e6"' in dark
    ids = [set(re.findall(r' id="([^"]+)"', svg)) for svg in (light, dark)]
    assert ids[0] and ids[0].isdisjoint(ids[1])
    assert set(re.findall(r"url\(#([^)]+)\)", dark)) <= ids[1]


@pytest.mark.parametrize("points, wide", [(480, False), (495, True)])
@pytest.mark.parametrize("linked", [False, True])
def test_a_wide_picture_has_a_box_of_its_own_and_every_one_a_link(figures, tmp_path, points, wide, linked):
    (tmp_path / "a.svg").write_text(f'<svg version="1" width="{points}pt" height="99pt"></svg>')
    app = SimpleNamespace(srcdir=tmp_path, builder=SimpleNamespace(images={"a.svg": "b.svg"}))
    picture = '<img alt="It." src="../_images/b.svg" />'
    given = f'<a class="reference internal image-reference" href="x">{picture}\n</a>' if linked else picture
    context = {"body": f"<figure>{given}<figcaption>Told.</figcaption></figure>"}
    figures.show_twice(app, "a", "page.html", context, None)
    figure = BeautifulSoup(context["body"], "html.parser").figure
    links = figure.select("div.wide-picture > a" if wide else "figure > a")
    assert [link["href"] for link in links] == ["../_images/b.svg"] and len(figure.select("a")) == 1
    assert [one["src"] for one in links[0].select("img")] == ["../_images/b.svg", "../_images/b.dark.svg"]
    assert {one["width"] for one in links[0].select("img")} == {str(round(points * 4 / 3))}
    assert figure.figcaption.parent is figure, "beside the box, not in it"


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


def test_sentences_of_checks_are_told_from_columns(capsys):
    def tags(*texts):
        cell = {"metadata": {}, "outputs": [{"output_type": "stream", "text": [text]} for text in texts]}
        extension("executed").mark_checks(cell)
        return cell["metadata"].get("tags")

    said = Check(shipped=False)
    said("it rises", True), said("it falls", False), said("it stays", lambda: {}["gone"])
    assert tags(capsys.readouterr().out) == tags("holds: a\n", "holds: b\n") == ["checks"]
    assert tags("holds: a\n", "  method  last\n") is None and tags() is None
