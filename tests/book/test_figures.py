"""Code and formulas in the book: cells that join, widths."""

from component import extension


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
