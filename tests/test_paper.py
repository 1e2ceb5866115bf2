import numpy as np
import pandas as pd
import pytest

from cot2lib import paper
from cot2lib.metrics import prediction_interval
from cot2lib.paper import direction_verdict, number_verdict


def test_claims_are_unique_and_all_measured_ones_exist():
    claims = paper.claims()
    assert claims.index.is_unique and set(paper.MEASURED) <= set(claims.index)
    assert paper.paper_value("main-mnns-cot2") == 98.94


@pytest.mark.parametrize(
    "values, stated, verdict",
    [
        ([98.0, 99.0, 98.5, 99.2, 98.8], 98.94, "reproduced"),
        ([98.0, 99.0, 98.5, 99.2, 98.8], 92.0, "not reproduced"),
        ([60.0, 99.0, 80.0, 70.0, 95.0], 92.0, "undecided: interval too wide"),
        ([98.0, 99.0], 98.94, "undecided: 2 of at least 3 seeds"),
    ],
)
def test_number_verdicts(values, stated, verdict):
    assert number_verdict(values, stated, 5) == verdict


def test_number_verdict_turns_at_the_end_of_the_prediction_interval():
    values = [84.0, 86.0, 85.0, 87.0, 84.5]
    high = prediction_interval(values, 5).high
    assert number_verdict(values, high - 1e-6, 5) == "reproduced"
    assert number_verdict(values, high + 1e-6, 5) == "not reproduced"


def test_direction_verdicts():
    clear = ([90, 91, 92], [80, 80.5, 81])
    unclear = ([90, 91, 92], [80, 95, 91])
    against = ([80, 80.5, 81], [90, 91, 92])
    assert direction_verdict([clear, clear]) == "reproduced"
    assert direction_verdict([clear, unclear]) == "partly"
    assert direction_verdict([unclear, against]) == "not reproduced"
    assert direction_verdict([([90, 91], [80, 80])]) == "undecided: fewer than 3 seeds"


def test_ledger_without_records(nothing_shipped, store):
    ledger = paper.ledger()
    assert tuple(ledger.columns) == paper.COLUMNS and len(ledger) == 2 * len(paper.claims())
    assert (ledger["seeds"] == 0).all() and ledger["verdict"].str.startswith("not run: ").all()


def test_ledger_rows_come_from_the_runs(monkeypatch):
    shares = {"paper": [0.98, 0.99, 0.985, 0.992, 0.988], "quick": [0.97, 0.98]}

    def recorded(specs, retrain=False):
        profile = "paper" if specs[0].recipe.batch == 16 else "quick"
        if specs[0].method != "CoT2" or specs[0].model.d_model != 32:
            return pd.DataFrame()
        values = shares[profile]
        return pd.DataFrame(
            {"seed": range(42, 42 + len(values)), "last": values, "best": values, "split_half": values}
        )

    monkeypatch.setattr(paper.runs, "recorded", recorded)
    ledger = paper.ledger().set_index(["id", "profile"])
    row = ledger.loc[("main-mnns-cot2", "paper")]
    assert row["last"] == pytest.approx(100 * np.mean(shares["paper"])) and row["seeds"] == 5
    assert row["last_low"] < row["last"] < row["last_high"] <= 100
    assert row["verdict"] == "reproduced" and row["command"] == "cot2 run csft --profile paper"
    assert ledger.loc[("main-mnns-cot2", "quick"), "verdict"] == "quick only"
    assert ledger.loc[("main-mnns-discrete", "paper"), "verdict"] == "not run: no paper records yet"
    shares["paper"] = []
    assert paper.ledger().set_index(["id", "profile"]).loc[("main-mnns-cot2", "paper"), "verdict"] == "quick only"
