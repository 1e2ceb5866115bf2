from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cot2lib.errors import SpecError
from cot2lib.metrics import paired_interval, prediction_interval
from cot2lib.runs import records
from cot2lib.specs.profiles import spec
from cot2lib.study.claims import ledger as paper
from cot2lib.study.claims import supervised as measured
from cot2lib.study.claims.ledger import MEASURED, direction_verdict, no_gain_verdict, number_verdict, reaches_verdict
from cot2lib.study.claims.statements import Statement
from cot2lib.study.claims.supervised import Direction, Fact, NoGain, Number, Reaches
from cot2lib.theory.verdict import Verdict

ROOT = Path(__file__).parent.parent


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
    assert direction_verdict([against]) == "not reproduced"
    assert direction_verdict([unclear]) == direction_verdict([unclear, against]) == "undecided: interval too wide"
    assert direction_verdict([([90, 91], [80, 80])]) == "undecided: fewer than 3 seeds"


def test_no_gain_verdicts():
    base = np.array([90.0, 91, 92])
    same, better, worse = base + [0.1, -0.1, 0.0], base + [3, 3.1, 2.9], base - [3, 3.1, 2.9]
    assert no_gain_verdict([(same, base), (worse, base)]) == "reproduced"
    assert no_gain_verdict([(same, base), (better, base)]) == "not reproduced"
    assert no_gain_verdict([(base + [2, -2, 0], base)]) == "undecided: interval too wide"
    assert no_gain_verdict([(base[:2], base[:2])]) == "undecided: fewer than 3 seeds"
    edge = base + [0.5, 0.6, 0.7]
    assert paired_interval(edge, base).low > 0 and no_gain_verdict([(edge, base)]) == "not reproduced"


def test_reaches_verdicts():
    """Every run of one reading has to be there; too few runs settle nothing."""
    perfect, nearly = np.array([100.0, 100, 100]), np.array([100.0, 99.9, 100])
    assert reaches_verdict([nearly, perfect], 100.0) == "reproduced"
    assert reaches_verdict([nearly, nearly], 100.0) == "not reproduced"
    assert reaches_verdict([nearly, perfect[:2]], 100.0) == "not reproduced"
    assert reaches_verdict([perfect[:2]], 100.0) == "undecided: fewer than 3 seeds"


def test_a_value_to_be_reached_in_the_ledger(monkeypatch):
    """The best reading is shown; what the paper profile lacks is no verdict."""
    sample = lambda shares: (
        lambda profile, seeds: pd.DataFrame(
            {"last": shares if profile == "quick" else []}, index=seeds if profile == "quick" else []
        )
    )
    claim = "construction-trained"
    monkeypatch.setitem(
        MEASURED, claim, Reaches("construction", [sample([0.9, 0.8, 0.9]), sample([1, 1, 0.97])], 100.0)
    )
    rows = paper.ledger((42, 43, 44)).set_index(["id", "profile"])
    quick, settled = rows.loc[(claim, "quick")], rows.loc[(claim, "paper")]
    assert quick["verdict"] == "quick only: there not reproduced" and quick["last"] == pytest.approx(99)
    assert quick["last_low"] < 99 < quick["last_high"] <= 100 and quick["seeds"] == 3
    assert settled["verdict"] == "quick only" and settled["seeds"] == 0
    shown = paper.measured_table(paper.ledger((42, 43, 44)))
    ours = shown[shown["claim"].str.startswith(f"`{claim}`")]["ours"].item()
    assert ours.startswith("99.0"), "a value, not a gap"
    monkeypatch.setitem(MEASURED, claim, Reaches("construction", [sample([0.9] * 3), sample([1.0] * 3)], 100.0))
    read = lambda one, profile: one(profile, (42, 43, 44))
    assert paper._row(claim, "quick", read)["verdict"] == "quick only: there reproduced"


def test_narrower_limits_for_entropies():
    values = [1.30, 1.35, 1.40]
    assert number_verdict(values, 1.35, 1) == "reproduced"
    assert number_verdict(values, 1.35, 1, widest=0.05) == "undecided: interval too wide"


def test_best_epochs_of_a_curriculum_are_not_shown(monkeypatch):
    """COCONUT's best epoch is of a stage that is mostly discrete chain of thought."""
    shares = {"last": [0.8] * 3, "best": [0.9] * 3, "split_half": [0.9] * 3, "seed": [42, 43, 44], "threads": 1,
              "seconds": 1.0, "device": "cpu"}  # fmt: skip
    fed = lambda specs, retrain=False: pd.DataFrame(shares | {"fed": specs[0].fed})
    monkeypatch.setattr(measured.runs, "recorded", fed)
    staged, plain = (
        paper._rows(claim, lambda one, profile: one(profile, [42, 43, 44]))[0]
        for claim in ("main-mnns-coconut", "main-mnns-cot2")
    )
    assert staged["last"] == pytest.approx(80) and "best" not in staged and "split_half" not in staged
    assert plain["best"] == pytest.approx(90)


def test_verdicts_count_a_number_once_and_leave_out_series():
    rows = paper.ledger().assign(verdict="reproduced")
    counted = int(paper.verdict_counts(rows)["claims"].sum())
    claims = paper.claims()
    assert counted == len(claims) - int((claims["metric"] == "pass_at_k").sum()) - _twice(claims)


def _twice(claims):
    alone = claims[claims["metric"] != "pass_at_k"]
    repeated = int(alone.duplicated(["task", "setting", "paper_value"]).sum())
    assert repeated >= 2, "main table and budget figure share two"
    return repeated


def test_every_supervised_claim_on_mnns_has_its_measurement():
    claims = paper.claims()
    later = ("grpo-", "dirichlet-", "third-token-", "gamma-", "k-", "rl-", "gm-", "logit-", "kl-", "construction",
             "assumption-", "threshold-")  # fmt: skip
    of_mnns = [c for c in claims.index if str(claims.loc[c, "task"]).startswith("mnns") and not c.startswith(later)]
    assert set(of_mnns) - set(MEASURED) == set()
    kinds = {type(MEASURED[claim]) for claim in of_mnns}
    assert kinds == {Number, Direction, NoGain, Fact}


def test_what_counting_settles():
    row = paper.ledger().set_index(["id", "profile"]).loc[("optimum-min3-max2", "quick")]
    assert row["verdict"] == "holds" and row["last"] == pytest.approx(97.9, abs=0.05) and row["seeds"] == 0


@pytest.mark.parametrize(
    "found, verdict",
    [
        (Verdict(True), "holds"),
        (Verdict(False, True, "m <= 2"), "holds if m <= 2"),
        (Verdict(False, False, "m <= 2"), "refuted"),
    ],
)
def test_what_computation_settles(found, verdict, monkeypatch):
    monkeypatch.setitem(paper.STATEMENTS, "consistency", Statement(lambda: found, "tests/test_x.py"))
    rows = paper.ledger()
    ours = rows[rows["id"] == "consistency"]
    assert ours["verdict"].tolist() == [verdict] * 2 and set(ours["command"]) == {"pytest tests/test_x.py"}
    assert paper.is_measured(ours).all() and "consistency" not in str(paper.measured_table(rows)["claim"].tolist())
    table = paper.statements_table(rows)
    assert table[table["statement"].str.contains("consistency")]["verdict"].tolist() == [verdict]


def test_gaps_of_entropies_are_shown_in_thousandths():
    table = paper.measured_table(paper.ledger())
    shown = table[table["claim"].str.contains("entropy-uniform|csft-above-coconut")]["ours"].str.replace("\xa0", " ")
    assert shown.str.fullmatch(r"gap -?\d+\.(\d{3}|\d) .*").all() and shown.str.contains(r"\.\d{3} ").any()


def test_the_papers_statements():
    """Which hold as printed, which need a condition, which are refuted; every one has a test file."""
    verdicts = {claim: statement.verdict for claim, statement in paper.STATEMENTS.items()}
    start = lambda text: {claim for claim, verdict in verdicts.items() if verdict.startswith(text)}
    conditional = {
        "construction", "read-off", "sample-complexity-ratio", "sample-complexity-rate", "assumption-1", "packing",
        "threshold-packing", "decode-overhead", "gamma-direction",
    }  # fmt: skip
    assert start("holds if ") == conditional and not start("refuted")
    assert start("holds") - conditional == {
        "attention-selects", "moe-routes", "partial-sums", "consistency", "k-infinity"
    }  # fmt: skip
    assert set(verdicts) <= set(paper.claims().index) and not set(verdicts) & set(MEASURED)
    assert all((ROOT / statement.test).is_file() for statement in paper.STATEMENTS.values())


PASSED = [("cot2", 1.0, 0, 90.0), ("discrete", 1.0, 50, 70.0), ("discrete", 1.0, 0, 71.0), ("discrete", 0.0, 0, 40.0)]


@pytest.fixture
def passk(nothing_shipped):
    """A shipped Pass@k table of three seeds, k = 1 and 2."""
    rows = [
        {"id": spec(method, "paper", d_model=24, layers=1, heads=1, seed=seed).id, "temperature": temperature,
         "top_k": top_k, "k": k, "pass_at_k": value + k + seed / 1000}
        for method, temperature, top_k, value in PASSED for seed in (42, 43, 44) for k in (1, 2)
    ]  # fmt: skip
    records.ship_table("sampling.paper.passk", pd.DataFrame(rows))


def test_pass_at_k_is_read_by_temperature_tokens_and_k(passk):
    value = lambda *which: measured.pass_sample(*which)("paper", [42, 44])["pass_at_k"].tolist()
    assert value("discrete", 1.0, 2, 50) == pytest.approx([72.042, 72.044])
    assert value("discrete", 1.0, 1, 0) == pytest.approx([72.042, 72.044])
    assert measured.pass_sample("discrete", 0.4, 1, 50)("paper", [42]).empty
    assert measured.pass_sample("discrete", 1.0, 1, 50)("quick", [42]).empty
    row = paper.ledger().set_index(["id", "profile"]).loc[("passk-discrete-t1.0-k2", "paper")]
    assert row["seeds"] == 3 and row["last"] == pytest.approx(72.043)
    assert row["verdict"] == "not reproduced" and pd.isna(row["best"])


def test_closeness_of_entropies(monkeypatch):
    """A model at the exact entropy is nearer to it than to t ln 2, at every seed."""
    exact = {42: measured.target_entropy(3, 42), 43: measured.target_entropy(3, 43)}
    assert 1.8 < exact[42] < 3 * np.log(2) and exact[42] != exact[43]
    rows = pd.DataFrame({"seed": [42, 43], "entropy_3": [exact[42] + 0.01, exact[43] - 0.01]}).set_index("seed")
    monkeypatch.setattr(measured, "entropy_sample", lambda **options: lambda profile, seeds: rows)
    to_exact = measured.nearness(3, lambda seed: measured.target_entropy(3, seed))("quick", [42, 43])
    assert to_exact["nearness"].tolist() == pytest.approx([-0.01, -0.01])
    to_uniform = measured.nearness(3, lambda seed: 3 * np.log(2))("quick", [42, 43])
    assert (to_uniform["nearness"] < to_exact["nearness"]).all()


def test_half_width_of_a_number_is_that_of_the_uncut_interval():
    """Between 92 and 100 the interval looks narrow; what it predicts is not."""
    values = [99.5, 92.0, 99.9, 99.8, 96.0]
    interval = prediction_interval(values, 5)
    assert interval.half_width > 5 > (100 - interval.low) / 2
    assert number_verdict(values, 98.94, 5) == "undecided: interval too wide"


@pytest.mark.parametrize("shift, verdict", [(4.9, "not reproduced"), (5.1, "undecided: interval too wide")])
def test_a_direction_is_undecided_from_five_points(shift, verdict):
    gaps = np.array([-1.0, 0.0, 1.0])
    gaps *= shift / paired_interval(gaps, [0, 0, 0]).half_width
    assert direction_verdict([(50 + gaps, [50, 50, 50])]) == verdict


def test_a_wide_interval_on_the_wrong_side_is_no_question():
    below = np.array([50.0, 60.0, 70.0])
    above = below - [20, 30, 40]
    gap = paired_interval(above, below)
    assert gap.half_width > 5 and gap.high < 0 and direction_verdict([(above, below)]) == "not reproduced"


def _convergence(monkeypatch, shares):
    """The ledger's row of the convergence claim, from accuracies by (method, dimension, column)."""

    def recorded(specs, retrain=False):
        key = specs[0].method, specs[0].model.d_model
        columns = {column: shares.get((*key, column), [0.5] * 3) for column in ("last", "curve_mean")}
        rows = pd.DataFrame({"seed": range(42, 45), **columns, "best": 0.5, "split_half": 0.5})
        rows = rows.assign(seconds=60.0, threads=1, device="cpu")
        wanted = specs[0].recipe.batch == 16 and specs[0].model.layers == 2 and specs[0].fed == "teacher"
        return rows if wanted else rows[:0]

    monkeypatch.setattr(measured.runs, "recorded", recorded)
    return paper.ledger().set_index(["id", "profile"]).loc[("convergence-2l2h", "paper")]


def test_convergence_needs_both_columns_at_both_dimensions(monkeypatch):
    ahead = {("CoT2", d, column): [0.70, 0.71, 0.705] for d in (24, 32) for column in ("last", "curve_mean")}
    row = _convergence(monkeypatch, ahead)
    assert row["verdict"] == "reproduced" and row["seeds"] == 3
    assert row["last"] == pytest.approx(20.5) and row["last_low"] < 20.5 < row["last_high"], "the smallest gap"
    for cell in ahead:
        row = _convergence(monkeypatch, ahead | {cell: [0.3, 0.301, 0.302]})
        assert row["verdict"] == "partly", cell
    wide = {("CoT2", 16, "last"): [0.1, 0.1, 0.1], ("CoT2", 24, "last"): [0.4, 0.6, 0.5]}
    assert _convergence(monkeypatch, wide)["verdict"] == "undecided: interval too wide", "in points, not shares"
    assert _convergence(monkeypatch, {})["verdict"] == "not reproduced"


def test_a_direction_says_what_the_quick_records_find():
    ledger = paper.ledger().set_index(["id", "profile"])["verdict"]
    said = ledger[ledger.index.get_level_values("profile") == "quick"]
    told = said[said.str.startswith("quick only: there ")]
    assert set(told.str.removeprefix("quick only: there ").str.partition(",")[0]) <= {
        "reproduced", "partly", "not reproduced", "undecided"
    }  # fmt: skip
    assert told["passk-mnns", "quick"].endswith(", if CoT2 may try as often")
    assert len(told) >= 10 and not told.str.count(":").gt(1).any()


def test_requests_for_nothing_are_named(monkeypatch):
    with pytest.raises(SpecError, match="the ledger counts no seed"):
        paper.ledger([])
    with pytest.raises(SpecError, match="profile 'slow' is unknown"):
        paper.open_table(paper.ledger(), "slow")


def test_ledger_reads_the_shipped_records_alone(store, nothing_shipped, monkeypatch):
    monkeypatch.setattr(measured.records, "stored", lambda: pytest.fail("the store was read"))
    assert (paper.ledger()["seeds"] == 0).all()


def test_ledger_without_records(nothing_shipped, store):
    ledger = paper.ledger()
    assert tuple(ledger.columns) == paper.COLUMNS and len(ledger) == 2 * len(paper.claims())
    counted = paper.is_settled(ledger)
    assert (ledger["seeds"] == 0).all() and not ledger.loc[~counted, "last"].notna().any() and counted.any()
    claimed = ~counted & (ledger["paper_value"] != "setting only")
    assert ledger.loc[claimed, "verdict"].str.startswith("not run: ").all()
    assert set(ledger.loc[~counted & ~claimed, "verdict"]) == {"no claim: a setting"}


def test_ledger_rows_come_from_the_runs(monkeypatch):
    shares = {"paper": [0.98, 0.99, 0.985, 0.992, 0.988], "quick": [0.97, 0.98]}

    def recorded(specs, retrain=False):
        profile = "paper" if specs[0].recipe.batch == 16 else "quick"
        if specs[0].method != "CoT2" or specs[0].model.d_model != 32 or specs[0].model.layers != 2:
            return pd.DataFrame()
        values = shares[profile]
        return pd.DataFrame(
            {"seed": range(42, 42 + len(values)), "last": values, "best": values, "split_half": values}
        ).assign(seconds=60.0, threads=1, device="cpu")

    monkeypatch.setattr(measured.runs, "recorded", recorded)
    ledger = paper.ledger().set_index(["id", "profile"])
    row = ledger.loc[("main-mnns-cot2", "paper")]
    assert row["last"] == pytest.approx(100 * np.mean(shares["paper"])) and row["seeds"] == 5
    assert row["last_low"] < row["last"] < row["last_high"] <= 100
    assert row["verdict"] == "reproduced"
    assert row["command"] == "cot2 run csft --profile paper && cot2 collect csft --profile paper"
    assert ledger.loc[("main-mnns-cot2", "quick"), "verdict"] == "quick only"
    assert ledger.loc[("main-mnns-discrete", "paper"), "verdict"] == "not run: no paper records yet"
    shares["paper"] = []
    assert paper.ledger().set_index(["id", "profile"]).loc[("main-mnns-cot2", "paper"), "verdict"] == "quick only"
