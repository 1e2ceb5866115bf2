"""The ledger as a page shows it: one row a claim, six columns, and each verdict leads to its card."""

import re

import pandas as pd
import pytest

from cot2lib.study.book import listing
from cot2lib.study.book.ledger import is_series, of_records
from cot2lib.study.judge import group


@pytest.fixture(scope="module")
def rows():
    return of_records()


def test_a_row_says_what_the_authors_recipe_gives_and_else_what_the_quick_one_does(rows, quick_alone):
    made = rows[rows["id"].isin(["main-mnns-cot2", "gsm8k-96-mts"])]
    table = listing.claims_table(pd.concat([made, quick_alone[1]]))
    settled, unrun, quick = table.itertuples(index=False)
    known = rows.set_index(["id", "profile"])
    assert settled.ours.startswith(f"{known.loc[('main-mnns-cot2', 'paper'), 'last']:.1f}") and settled.seeds == 20
    assert settled.verdict == "{ref}`agrees <claim-main-mnns-cot2>`" and settled[1] == "98.94 %"
    assert (
        quick.ours.endswith(" (quick recipe)") and "not tested" in quick.verdict and quick[5] == "quick recipe alone"
    )
    assert unrun.ours == "" and unrun[5].startswith("not run: needs")


def test_titles_count_verdicts_and_verdicts_are_short(rows):
    settled = rows[~is_series(rows) & (rows["profile"] == "paper")].set_index("id")["verdict"]
    series = rows[is_series(rows) & (rows["profile"] == "paper") & rows["id"].str.endswith("-k1")]
    folds = listing.folds(rows).folds[:-1]
    assert [fold.title[:9] for fold in folds if "its series below" in fold.title] == ["Figure 11"] and len(series) == 4
    for fold in folds:
        counts = re.search(r"\(([^()]*)\)$", fold.title)[1]
        numbers = [int(number) for number in re.findall(r"\d+", counts)]
        apart = len(series) if "its series below" in fold.title else 0
        assert (sum(numbers) or 1) == len(fold.table.data) + apart, fold.title
        for said in fold.table.data["verdict"]:
            claim = re.search("<claim-(.*)>", said)[1]
            assert said.startswith(f"{{ref}}`{group(settled[claim]) or 'no claim'} <")


def test_a_notebook_shows_the_folds(rows):
    shown = listing.folds(rows)._repr_mimebundle_()
    assert (
        shown["text/html"].count("<details>") == len(listing.folds(rows).folds) and "{ref}" not in shown["text/html"]
    )
    assert shown["text/markdown"].count("::::{dropdown}") == shown["text/html"].count("<details>")
