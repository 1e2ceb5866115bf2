from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cot2lib import runs
from cot2lib.errors import SpecError
from cot2lib.metrics import mean_interval
from cot2lib.runs import finished, records
from cot2lib.specs.profiles import TWENTY
from cot2lib.study import samples, sweeps
from cot2lib.study.book import ledger, listing
from cot2lib.study.book.ledger import KINDS, STATEMENTS, rows_of
from cot2lib.study.comparisons import Beside, Direction, Parts, Reaches, Value, against
from cot2lib.study.csft import claims as training
from cot2lib.study.judge import (
    NAT,
    group,
    value_verdict,
)
from cot2lib.study.kinds import Number, Statement, command
from cot2lib.study.printed import claims, paper_value
from cot2lib.study.readings import HalfStated
from cot2lib.study.sampling.claims import passing
from cot2lib.theory.verdict import Verdict

ROOT = Path(__file__).parents[2]
SEEDS_DECIDE = "seeds that spread as these would decide"


def row_of(claim, profile="paper", seeds=(42, 43, 44, 45, 46)):
    """One row of the ledger, made alone."""
    rows = rows_of(claim, lambda sample, of: sample(of, seeds))
    return dict(zip(ledger.PROFILES, rows))[profile]


@pytest.fixture(scope="module")
def shipped():
    """The ledger of the shipped records."""
    return ledger.of_records()


def test_claims_are_unique_and_all_measured_ones_exist():
    known = claims().index
    assert known.is_unique and set(KINDS) <= set(known)
    assert paper_value("main-mnns-cot2") == 98.94


def test_a_value_to_be_reached_in_the_ledger(monkeypatch):
    """The best reading is shown; what the paper profile lacks is no verdict."""
    sample = lambda shares: (
        lambda profile, seeds: pd.DataFrame(
            {"last": shares if profile == "quick" else []}, index=seeds if profile == "quick" else []
        )
    )
    claim, seeds = "construction-trained", (42, 43, 44)
    nearly = Reaches("construction", [sample([0.9, 0.8, 0.9]), sample([1, 1, 0.97])], 100.0)
    monkeypatch.setitem(KINDS, claim, nearly)
    quick, settled = row_of(claim, "quick", seeds), row_of(claim, "paper", seeds)
    assert quick["verdict"] == "quick only: there not reproduced, not every run does" and quick[
        "last"
    ] == pytest.approx(99)
    assert quick["last_low"] < 99 < quick["last_high"] <= 100 and quick["seeds"] == 3
    assert settled["verdict"] == "quick only" and settled["seeds"] == 0
    assert nearly.ours(pd.Series(quick)).startswith("99.0"), "a value, not a gap"
    drawn = nearly.drawn(claim, "quick", lambda sample, profile: sample(profile, seeds))
    assert np.stack([line.values for line in drawn]) == pytest.approx(np.array([[90, 80, 90], [100, 100, 97]]))
    monkeypatch.setitem(KINDS, claim, Reaches("construction", [sample([0.9] * 3), sample([1.0] * 3)], 100.0))
    assert row_of(claim, "quick", seeds)["verdict"] == "quick only: there reproduced"


def test_judged_counts_a_number_once_and_so_a_series(shipped):
    """The four temperatures of Pass@k are four series, and a setting claims nothing."""
    known = claims()
    alone = known[known["metric"] != "pass_at_k"]
    twice = int(alone.duplicated(["task", "setting", "paper_value"]).sum())
    assert twice >= 2, "main table and budget figure share two"
    assert len(ledger.judged(shipped)) == len(alone) - twice + 4 - 1


@pytest.mark.parametrize("worst", ["near", "open: 7 runs decide", "not reproduced: ours 9.0 points lower"])
def test_a_series_is_as_good_as_its_worst_point(shipped, worst):
    at = shipped["id"] == "passk-discrete-t0.4-k9"
    rows = shipped.assign(verdict=shipped["verdict"].mask(ledger.is_series(shipped), "reproduced").mask(at, worst))
    found = ledger.verdicts(rows)
    assert (
        found["passk-discrete-t0.4-k1"] == worst.partition(":")[0] and found["passk-discrete-t0.8-k1"] == "reproduced"
    )


@pytest.mark.parametrize(
    "found, verdict",
    [
        (Verdict(True), "holds"),
        (Verdict(False, True, "m <= 2"), "holds if m <= 2"),
        (Verdict(False, False, "m <= 2"), "refuted"),
    ],
)
def test_what_computation_settles(found, verdict, monkeypatch, shipped):
    statement = Statement(lambda: found, "tests/test_x.py")
    monkeypatch.setitem(KINDS, "consistency", statement)
    monkeypatch.setitem(STATEMENTS, "consistency", statement)
    ours = pd.DataFrame(rows_of("consistency", lambda sample, profile: pytest.fail("no run is asked")))
    assert ours["verdict"].tolist() == [verdict] * 2 and set(ours["command"]) == {"pytest tests/test_x.py"}
    assert ledger.is_measured(ours).all()
    told = listing.claims_table(ours.reindex(columns=shipped.columns))["verdict"]
    assert told.tolist() == [f"{{ref}}`{group(verdict)} <claim-consistency>`"]


def test_a_statement_that_says_nothing_holds_vacuously():
    empty = Statement(lambda: Verdict(True), "tests/test_x.py", lambda: "it excludes nothing")
    assert empty.verdict == "holds vacuously: it excludes nothing"
    assert Statement(lambda: Verdict(False), "tests/test_x.py", lambda: "it excludes nothing").verdict == "refuted"


def test_gaps_of_entropies_are_shown_in_thousandths(shipped):
    asked = shipped[shipped["id"].str.contains("entropy-uniform|csft-above-coconut")]
    shown = listing.claims_table(asked)["ours"].str.replace("\xa0", " ")
    assert len(shown) and shown.str.fullmatch(r"(gap|difference) -?\d+\.(\d{3}|\d) .*").all()
    assert shown.str.contains(r"\.\d{3} ").any()


def test_every_statement_of_the_paper_has_a_file_of_tests():
    assert set(STATEMENTS) <= set(claims().index)
    assert all((ROOT / statement.test).is_file() for statement in STATEMENTS.values())


PASSED = [("cot2", 1.0, 0, 90.0), ("discrete", 1.0, 50, 70.0), ("discrete", 1.0, 0, 71.0), ("discrete", 0.0, 0, 40.0)]


def small_models(method):
    """Three seeds, and the last two on the split of the first."""
    usual = sweeps.methods("paper", (42, 43, 44), (24,), (method,), 1)
    return [*usual, *sweeps.on_split(usual[1:])]


@pytest.fixture
def passk(nothing_shipped):
    """A shipped Pass@k table of three seeds, k = 1 and 2; on one split it is two points higher."""
    rows = [
        {"id": run.id, "temperature": temperature, "top_k": top_k, "k": k,
         "pass_at_k": value + k + run.seed / 1000 + 2 * (run.split is not None)}
        for method, temperature, top_k, value in PASSED for run in small_models(method) for k in (1, 2)
    ]  # fmt: skip
    records.ship_table("sampling.paper.passk", pd.DataFrame(rows))


def test_pass_at_k_is_read_by_temperature_tokens_and_k(passk):
    value = lambda *which: passing(*which)("paper", [42, 44])["pass_at_k"].tolist()
    assert value("discrete", 1.0, 2) == pytest.approx([72.042, 72.044]), "of the top tokens"
    assert value("cot2", 1.0, 1) == pytest.approx([91.042, 91.044]), "of all tokens"
    assert value("discrete", 0.0, 1) == pytest.approx([41.042, 41.044]), "the most likely token"
    assert passing("discrete", 0.4, 1)("paper", [42]).empty
    assert passing("discrete", 1.0, 1)("quick", [42]).empty
    on_split = passing("discrete", 1.0, 2, one_split=True)("paper", [42, 43, 44])["pass_at_k"]
    assert on_split.tolist() == pytest.approx([72.042, 74.043, 74.044]), "seed 42 is the usual run"
    row = row_of("passk-discrete-t1.0-k2")
    assert row["seeds"] == 3 and row["last"] == pytest.approx(on_split.mean())
    gain, stated = 1.0, 49.11 - paper_value("passk-discrete-t1.0-k1")
    assert row["verdict"] == f"not reproduced: ours {stated - gain:.1f} points lower" and "best" not in row
    assert row["difference"] == pytest.approx(gain - stated) and row["judged"] == "gain"
    first = row_of("passk-discrete-t1.0-k1")
    assert first["judged"] == "last" and first["difference"] == pytest.approx(
        on_split.mean() - 1 - paper_value("passk-discrete-t1.0-k1")
    )


@pytest.mark.parametrize(
    "best, reached",
    [
        ([93.0, 93.5, 92.8], "yes"),
        ([99.3, 99.0, 99.4], "yes: ours 5.9 points higher"),
        ([80.0, 80.5, 79.5], "no: ours 13.4 points lower"),
        ([99.0, 70.0, 99.0], "undecided: "),
    ],
)
def test_a_method_reaches_a_number_that_its_best_recipe_meets_or_passes(best, reached):
    """The verdict stays that on the stated half."""
    number = lambda values: Number("search", lambda profile, seeds: pd.DataFrame({"last": np.array(values) / 100}), 5)
    rows = lambda sample, profile: sample(profile, (42, 43, 44))
    kind = HalfStated(number([60.0, 60.5, 59.5]), number(best))
    row = kind.row("main-prosqa-cot2", "paper", rows)  # 93.37 in the paper
    assert row["reached"].startswith(reached) and row["verdict"] == "not reproduced: ours 33.4 points lower"
    assert kind.row("main-prosqa-cot2", "quick", rows)["last"] == pytest.approx(np.mean(best))


def test_entropies_less_a_value_of_their_seed(monkeypatch):
    exact = {42: samples.target_entropy(3, 42), 43: samples.target_entropy(3, 43)}
    assert 1.8 < exact[42] < 3 * np.log(2) and exact[42] != exact[43]
    rows = pd.DataFrame({"seed": [42, 43], "entropy_3": [exact[42] + 0.01, exact[43] - 0.01]}).set_index("seed")
    monkeypatch.setattr(samples, "probe", lambda: lambda profile, seeds: rows)
    left = samples.entropy_less(3, exact=exact.get, one=lambda seed: 1.0)("quick", [42, 43])
    assert left["exact"].tolist() == pytest.approx([0.01, -0.01])
    assert left["one"].tolist() == pytest.approx([exact[42] - 0.99, exact[43] - 1.01])


def test_a_claimed_value_is_judged_by_how_far_it_lies_outside():
    """In steps 1 and 2 our values lie about the claimed one; in step 3 they lie 0.3 below, about the other."""
    at = lambda claimed, other: lambda profile, seeds: pd.DataFrame({"claimed": claimed, "other": other})
    inside, away = [-0.01, 0.0, 0.01], [-0.31, -0.30, -0.29]
    read = lambda sample, profile: sample(profile, ())
    holds = Value("csft", [Beside("step 2", at(inside, away))], "the exact one", NAT).row("x", "paper", read)
    said = "at step 2 our interval misses it by 0.000 nat, the exact one by 0.275 nat"
    assert holds["verdict"] == f"reproduced: {said}" and holds["last"] == pytest.approx(0) and holds["seeds"] == 3
    cases = [Beside("step 2", at(inside, away)), Beside("step 3", at(away, inside))]
    fails = Value("csft", cases, "the exact one", NAT, but=lambda: "so")
    row = fails.row("x", "paper", read)
    told = f"not reproduced: but so; {said}; at step 3 our interval misses it by 0.275 nat, the exact one by 0.000 nat"
    assert row["verdict"] == told and row["last"] == pytest.approx(-0.3)
    assert fails.row("x", "quick", read)["verdict"].startswith("quick only: there not reproduced, but so;")
    wide = Value("csft", [Beside("step 2", at([-0.03, 0.0, 0.03], inside))], "x", NAT).row("x", "paper", read)
    assert wide["verdict"].startswith("near")
    assert value_verdict([np.array([-0.2, 0.1, 0.0])], NAT) == f"open: about 7 {SEEDS_DECIDE}"
    assert value_verdict([np.array([0.01, 0.011, 0.012])], NAT) == "reproduced", "surely not zero, and close"


def _convergence(monkeypatch, shares):
    """The ledger's row of the convergence claim, from accuracies by (method, dimension, column)."""

    def recorded(specs, retrain=False):
        key = specs[0].method, specs[0].model.d_model
        columns = {column: shares.get((*key, column), [0.5] * 3) for column in ("last", "curve_mean")}
        rows = pd.DataFrame({"seed": range(42, 45), **columns, "best": 0.5, "split_half": 0.5})
        rows = rows.assign(seconds=60.0, threads=1, device="cpu")
        wanted = specs[0].recipe.batch == 16 and specs[0].model.layers == 2 and specs[0].fed == "teacher"
        return rows if wanted else rows[:0]

    monkeypatch.setattr(runs, "recorded", recorded)
    return row_of("convergence-2l2h")


def test_convergence_needs_both_columns_at_both_dimensions(monkeypatch):
    ahead = {("CoT2", d, column): [0.70, 0.71, 0.705] for d in (24, 32) for column in ("last", "curve_mean")}
    row = _convergence(monkeypatch, ahead)
    assert row["verdict"] == "reproduced" and row["seeds"] == 3
    assert row["last"] == pytest.approx(20.5) and row["last_low"] < 20.5 < row["last_high"], "the cell that decides"
    for cell in ahead:
        row = _convergence(monkeypatch, ahead | {cell: [0.3, 0.301, 0.302]})
        assert row["verdict"].startswith("in part: ") and row["last"] < -19, cell
    wide = {("CoT2", 16, "last"): [0.1, 0.1, 0.1], ("CoT2", 24, "last"): [0.4, 0.6, 0.5]}
    assert _convergence(monkeypatch, wide)["verdict"] == f"open: about 18 {SEEDS_DECIDE}", "in points, not shares"
    assert _convergence(monkeypatch, {})["verdict"].startswith("not reproduced")


def test_requests_for_nothing_are_named(shipped):
    with pytest.raises(SpecError, match="the ledger counts no seed"):
        ledger.ledger([])
    with pytest.raises(SpecError, match="profile 'slow' is unknown"):
        ledger.open_table(shipped, "slow")


def test_ledger_without_records_reads_no_store(nothing_shipped, store, monkeypatch):
    monkeypatch.setattr(finished, "tables", lambda: pytest.fail("the store was read"))
    rows = ledger.ledger()
    assert tuple(rows.columns) == ledger.COLUMNS and len(rows) == 2 * len(claims())
    counted = ledger.is_settled(rows)
    assert (rows["seeds"] == 0).all() and not rows.loc[~counted, "last"].notna().any() and counted.any()
    claimed = ~counted & (rows["paper_value"] != "setting only")
    assert rows.loc[claimed, "verdict"].str.startswith("not run: ").all()
    assert set(rows.loc[~counted & ~claimed, "verdict"]) == {"no claim: a setting"}


def test_a_claim_of_two_chapters_names_the_commands_of_both():
    steps = ["run csft", "collect csft", "run search", "collect search"]
    made = " && ".join(f"cot2 {step} --profile paper" for step in steps)
    assert command("csft search", "paper") == {"command": made}
    start = row_of("grpo-mts-d24-k1-entropy1-sft")
    assert start["seeds"] == 5 and "--profile quick" in start["command"], "which hold the paper's starts"


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

    monkeypatch.setattr(runs, "recorded", recorded)
    row = row_of("main-mnns-cot2")
    assert row["last"] == pytest.approx(100 * np.mean(shares["paper"])) and row["seeds"] == 5
    assert row["last_low"] < row["last"] < row["last_high"] <= 100
    assert row["verdict"] == "reproduced"
    assert row["command"] == "cot2 run csft --profile paper && cot2 collect csft --profile paper"
    assert row_of("main-mnns-cot2", "quick")["verdict"] == "quick only"
    assert row_of("main-mnns-discrete")["verdict"] == "not run: no paper records yet"
    shares["paper"] = []
    assert row_of("main-mnns-cot2")["verdict"] == "quick only"


def fixed(values):
    """A sample that gives these values as the column `last`, whatever is asked."""
    return lambda profile, seeds: pd.DataFrame({"last": values}, index=range(42, 42 + len(values)))


def test_a_cell_the_other_way_round_is_named():
    low, high = fixed([0.50, 0.51, 0.505]), fixed([0.60, 0.61, 0.605])
    read = lambda sample, profile: sample(profile, ())
    small, large = (lambda *asked, one=one, d=d: one(*asked).assign(d_model=d) for one, d in ((low, 16), (high, 32)))
    row = Direction("csft", [against(small, large), against(small, small)]).row("x", "paper", read)
    turned = "the other way round in d = 16 minus d = 32"
    assert row["verdict"].endswith(f"significant, {turned}") and row["seeds"] == 3
    given = Direction("csft", [against(small, large)], given="so read", but=lambda: "not so").row("x", "paper", read)
    assert given["verdict"].endswith(f"{turned}, but not so, if so read")
    assert Direction("csft", [against(high, low)]).row("x", "quick", read)["verdict"] == "quick only: there reproduced"


def test_parts_are_judged_in_their_own_units():
    """Gaps of ten points and of .1 nat: in one unit for both, one of them would be wide or nothing."""
    more, less, read = fixed([0.6, 0.61, 0.62]), fixed([0.5, 0.51, 0.52]), lambda sample, profile: sample(profile, ())
    both = Parts(
        {
            "accuracy": Direction("csft", [against(more, less)]),
            "entropy": Direction("csft", [against(less, more)], scale=1.0, unit=NAT),
        }
    )
    row = both.row("x", "paper", read)
    assert row["verdict"] == "in part: accuracy agrees, entropy differs" and row["last"] == pytest.approx(10)
    assert both.row("x", "quick", read)["verdict"].startswith("quick only: there in part, accuracy agrees")
    nothing = Parts(
        {"a": Direction("csft", [against(more, fixed([]))]), "b": Direction("csft", [against(more, less)])}
    )
    assert nothing.row("x", "paper", read)["seeds"] == 0


def test_what_the_papers_own_entropy_makes_of_its_claim(monkeypatch):
    """1.9588 needs a reservation; a value near 3 ln 2 would not."""
    monkeypatch.setattr(training, "paper_value", lambda claim: 2.07)
    assert row_of("entropy-uniform")["verdict"].startswith(
        "reproduced: at step 2 our interval misses it by 0.000 nat,"
    )


@pytest.mark.parametrize("profile", ["quick", "paper"])
def test_small_models_surely_lose_for_every_budget_as_the_errata_say(profile):
    """From d = 32 to 16 the mean falls, and the paired interval leaves zero out."""
    ends = lambda b, d: runs.recorded(sweeps.budgets(profile, TWENTY, (d,), (b,))).set_index("seed")["last"]
    falls = {b: ends(b, 32).sub(ends(b, 16)).dropna() for b in sweeps.BUDGETS}
    assert min(map(len, falls.values())) == len(TWENTY)
    assert all(mean_interval(fall).low > 0 for fall in falls.values())
