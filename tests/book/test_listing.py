"""The ledger as a page shows it: one row a claim, and each verdict leads to its card."""

import re

import pandas as pd
import pytest

from cot2lib.study.book import index, ledger
from cot2lib.study.book.index import is_series
from cot2lib.study.printed import value_text


def test_claims_table_says_the_numbers_and_the_verdict_of_each_row(rows):
    """Of the authors' recipe, and else of the quick one; gaps of entropies in thousandths."""
    table, known = ledger.claims_table(rows), rows.set_index(["id", "profile"])
    for claim, shown in zip(rows["id"].unique(), table.itertuples(index=False), strict=True):
        row = known.loc[claim, "quick" if "quick recipe" in shown.ours else "paper"]
        group = known.loc[claim, "paper"].group or "no claim"
        linked = group if index.in_series(claim) else f"{{ref}}`{group} <claim-{claim}>`"
        assert (shown[1], shown.verdict) == (value_text(claim), linked), claim
        assert (0 if pd.isna(shown.seeds) else shown.seeds) == row.seeds, claim
        numbers = re.findall(r"-?\d+(?:\.\d+)?", shown.ours.partition("(")[0])[:3] if row.seeds else []
        for number, value in zip(numbers, [row["last"], row.last_low, row.last_high]):
            decimals = len(number.partition(".")[2])
            assert float(number) == pytest.approx(value, abs=0.51 * 0.1**decimals), claim
            assert decimals == 3 or claim != "entropy-uniform", "a gap of entropies has thousandths"


def test_folds_count_the_verdicts_of_their_rows(rows):
    """A series counts as one claim of its place."""
    first = rows[is_series(rows) & (rows["profile"] == "paper") & rows["id"].str.endswith("-k1")]
    folds = dict([*ledger.folds(rows).folds.items()][:-1])
    for title, table in folds.items():
        counts = re.search(r"\(([^()]*)\)$", title)[1]
        numbers = [int(number) for number in re.findall(r"\d+", counts)]
        apart = len(first) if "the series of the last table" in title else 0
        assert (sum(numbers) or 1) == len(table.data) + apart, title
    assert sum("the series of the last table" in title for title in folds) == 1
    shown = ledger.folds(rows)._repr_mimebundle_()
    assert shown["text/html"].count("<details>") == shown["text/markdown"].count("::::{dropdown}") == len(folds) + 1
    assert "{ref}" not in shown["text/html"]
