"""The reproducibility summary, and the counts of runs on cards."""

import re
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cot2lib.runs import records
from cot2lib.study.book import all_runs, cards, index, summary
from cot2lib.study.book.ledger import of_records, verdict_counts
from cot2lib.study.judge import POINTS
from cot2lib.study.kinds import Drawn
from cot2lib.study.printed import claims

ROOT = Path(__file__).parents[2]


def line(seeds, asked, used):
    """A line of a card: runs of some seeds, how many from 42 on were asked for, and those that its values are of."""
    ids = " ".join(f"run{seed}" for seed in range(42, 42 + asked))
    rows = pd.DataFrame({"id": [f"run{seed}" for seed in seeds], "asked": ids}, index=seeds)
    return Drawn("", pd.Series(1.0, index=used), 0.0, POINTS, (rows,))


@pytest.mark.parametrize(
    "lines, told",
    [
        ([line([42, 43], 2, [42, 43])], "2 planned; 0 failed or not made, 0 diverged, 0 left out"),
        ([line([42, 43], 5, [42, 43])], "4 planned; 2 failed or not made, 0 diverged, 0 left out"),
        ([line([42, 43, 44], 3, [42, 43])], "3 planned; 0 failed or not made, 1 diverged, 1 left out"),
        (
            [line([42, 43], 3, [42]), line([43, 42], 3, [43])],
            "3 planned; 1 failed or not made, 0 diverged, 0 left out",
        ),
    ],
)
def test_a_card_counts_what_it_does_not_show(monkeypatch, lines, told):
    monkeypatch.setattr(cards, "diverged", lambda: frozenset({"run44"}))
    monkeypatch.setattr(cards, "planned", lambda: frozenset(f"run{seed}" for seed in range(42, 46)))  # 46 is not
    assert cards.counted(lines) == f"**Runs:** {told}."


def test_a_card_of_no_runs_counts_none():
    bare = Drawn("", pd.Series([1.0]), 0.0, POINTS, (pd.DataFrame({"accuracy": [1.0]}),))
    assert cards.counted([]) == cards.counted([bare]) == ""


def test_a_run_diverges_where_a_loss_is_no_number(monkeypatch):
    points = pd.DataFrame({"id": list("aabbcc"), "step": [0, 9] * 3, "loss": [np.nan, 1, 1, np.nan, 1, np.inf]})
    monkeypatch.setattr(records, "shipped", lambda: (None, points))
    assert cards.diverged.__wrapped__() == {"b", "c"}


@pytest.fixture(scope="module")
def page():
    """The card of one claim."""
    from cot2lib.study.book.ledger import reading_records

    rows = of_records()
    return cards.card("main-mnns-cot2", list(rows[rows["id"] == "main-mnns-cot2"].itertuples()), reading_records())


def test_the_card_of_a_number_counts_its_twenty_seeds(page):
    assert "**Runs:** 20 planned; 0 failed or not made, 0 diverged, 0 left out." in page


def test_counts_are_those_of_the_sweeps():
    table = summary.counts()
    assert (table["planned"] == table["recorded"] + table["failed or not made"]).all()
    first = table.iloc[0]
    assert first["planned"] == len(all_runs.sweep("csft", "paper")) and set(table["chapter"]) == set(all_runs.SWEEPS)


def test_the_page_has_the_sections_of_a_report_and_numbers_of_the_records():
    text = (ROOT / "book" / "summary.md").read_text()
    titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert titles[:5] == ["Scope of reproducibility", "Methodology", "Results", "What was easy", "What was difficult"]
    asked = set(re.findall(r"```\{(.*)\}", text))
    assert asked == {*summary.TEXTS, "summary-counts"}
    assert asked <= set(runpy.run_path(str(ROOT / "book" / "_ext" / "front_page.py"))["LINES"])
    assert f"The paper states {len(claims())} numbers and claims" in summary.scope()
    assert all(finding.sentence in summary.scope() for finding in index.FINDINGS)
    agree = verdict_counts(of_records()).groupby("group", observed=True)["claims"].sum()["agrees"]
    assert f"{agree} agree with our runs" in summary.results()
    assert re.search(r"takes \d+\.\d core-minutes", summary.easy()) and "nan" not in summary.difficult()
