import numpy as np
import pandas as pd

from cot2lib.study import report

DATA = pd.DataFrame({"what": ["a|b", "<c>"], "value": [1.23456, np.nan], "n": [3, 4]})


def test_table_markdown_is_a_numbered_directive():
    lines = report.table(DATA, "tab-x", "A caption.").markdown().splitlines()
    assert lines[0] == ":::{table} A caption." and lines[1] == ":name: tab-x" and lines[-1] == ":::"
    assert lines[3:5] == ["| what | value | n |", "| :--- | ---: | ---: |"]
    assert lines[5:7] == ["| a\\|b | 1.23 | 3 |", "| \\<c> |  | 4 |"]


def test_table_markdown_takes_no_cell_for_html():
    """Math and code are left alone, and so is a sign that begins no tag."""
    said = {"<script>": "\\<script>", "$a<b$, <b>": "$a<b$, \\<b>", "`<b>`": "`<b>`", "3 < 4 & 5": "3 < 4 & 5",
            "&lt;": "\\&lt;", "</td>": "\\</td>", "<!-- x": "\\<!-- x"}  # fmt: skip
    table = report.table(pd.DataFrame({"<i>": said.keys()}), "tab-x", "A caption.")
    assert table.markdown().splitlines()[3:-1:2][0] == "| \\<i> |"
    assert table.markdown().splitlines()[5:-1] == [f"| {cell} |" for cell in said.values()]


def test_table_html_escapes_and_plain_text_is_there():
    bundle = report.table(DATA, "tab-x", "A < B", digits=3)._repr_mimebundle_()
    assert "A &lt; B" in bundle["text/html"] and "&lt;c&gt;" in bundle["text/html"]
    assert "1.235" in bundle["text/plain"] and set(bundle) == {"text/markdown", "text/html", "text/plain"}


def test_cell_describe_and_ends_have_no_negative_zero():
    assert report.cell(-0.001) == "0.00" and report.cell(-0.01) == "-0.01" and report.cell(pd.NA) == ""
    assert report.describe(-0.04, -0.06, 0.04) == "0.0 [-0.1,\N{NO-BREAK SPACE}0.0]"
    assert report.ends([-0.04, 0.0]) == "0.0"
