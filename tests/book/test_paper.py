from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import special

from cot2lib import runs
from cot2lib.errors import SpecError
from cot2lib.metrics import mean_interval, paired_interval, prediction_interval
from cot2lib.runs import finished, records
from cot2lib.specs.profiles import TWENTY
from cot2lib.study import samples, sweeps
from cot2lib.study.book import ledger, listing
from cot2lib.study.book.ledger import KINDS, STATEMENTS, rows_of
from cot2lib.study.comparisons import Beside, Direction, Parts, Reaches, Value, against
from cot2lib.study.csft import claims as training
from cot2lib.study.judge import (
    GROUPS,
    NAT,
    POINTS,
    differences,
    direction_verdict,
    enough,
    group,
    learnt,
    no_gain_verdict,
    number_verdict,
    outcomes,
    parts_verdict,
    reaches_verdict,
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


@pytest.mark.parametrize(
    "values, stated, verdict",
    [
        ([98.0, 99.0, 98.5, 99.2, 98.8], 98.94, "reproduced"),
        ([98.0, 99.0, 98.5, 99.2, 98.8], 92.0, "not reproduced: ours is 6.7 points higher"),
        ([98.0, 98.1, 97.9, 98.0, 98.0], 98.5, "reproduced"),  # outside the interval, and half a point away
        ([88.0, 99.0, 92.0, 90.0, 95.0], 94.0, "near"),
        ([88.0, 99.0, 92.0, 90.0, 95.0], 98.5, "open: about 9 runs that spread as these would decide"),
        ([60.0, 99.0, 80.0, 70.0, 95.0], 82.0, "open: about 94 runs that spread as these would decide"),
        ([60.0, 99.0, 80.0, 70.0, 95.0], 20.0, "not reproduced: ours is 60.8 points higher"),
        ([98.0, 99.0], 98.94, "open: 2 of at least 3 seeds"),
    ],
)
def test_number_verdicts(values, stated, verdict):
    assert number_verdict(values, stated, 5) == verdict


def test_number_verdict_turns_five_points_away():
    """An interval narrower than the miss leaves nothing open."""
    values = [84.0, 86.0, 85.0, 87.0, 84.5]
    assert prediction_interval(values, 5).half_width < 5
    assert number_verdict(values, 90.29, 5) == number_verdict(values, 80.31, 5) == "reproduced"
    assert number_verdict(values, 90.31, 5) == "not reproduced: ours is 5.0 points lower"
    assert number_verdict(values, 80.29, 5) == "not reproduced: ours is 5.0 points higher"


def test_beyond_five_points_the_interval_decides():
    values = [80.0, 90.0, 85.0, 88.0, 82.0]
    high = prediction_interval(values, 5).high
    assert high > 90
    assert number_verdict(values, high - 1e-6, 5).startswith("open: ")
    assert number_verdict(values, high + 1e-6, 5).startswith("not reproduced: ")


def test_an_open_number_is_closed_by_so_many_runs():
    """One fewer leaves the interval as wide as the miss, or as three times five points where the mean is close."""
    values = [60.0, 99.0, 80.0, 70.0, 95.0]
    spread = np.std(values, ddof=1)
    half = lambda n: special.stdtrit(n - 1, 0.975) * spread * np.sqrt(1 / n + 1 / 5)
    told = "open: about {} runs that spread as these would decide".format
    assert number_verdict(values, 82.0, 5) == told(94) and half(93) >= 15 > half(94)
    assert number_verdict(values, 60.8, 5) == told(11) and half(10) >= 20 > half(11)
    assert "no count of runs decides, for the paper's one run spreads as much" in number_verdict(values, 82.0, 1)


def test_runs_that_end_in_two_groups_are_told():
    """Fifteen points apart, and farther than either group is wide; the number is of the group it lies within or by."""
    values = [34.3, 75.8, 65.3, 34.6, 70.0]
    told = "of 5 runs 3 at 65.3 to 75.8 and 2 at 34.3 to 34.6, the paper's number is of "
    assert outcomes(values, 49.0, POINTS) == f"{told}neither"
    assert (
        outcomes(values, 61.0, POINTS) == f"{told}the higher" and outcomes(values, 30.0, POINTS) == f"{told}the lower"
    )
    assert outcomes([50.0, 64.9, 64.0], 60, POINTS) == "" and outcomes([20.0, 35.0, 36.0], 60, POINTS) != ""
    assert outcomes([20.0, 40.0, 56.0, 80.0], 60, POINTS) == "", "three steps are no two groups"
    assert number_verdict(values, 52.0, 1).startswith(f"open: {told}neither; no count of runs decides")
    assert outcomes([0.1, 0.11, 0.4], 0.4, NAT) == "of 3 runs 1 at 0.400 and 2 at 0.100 to 0.110, " + (
        "the paper's number is of the higher"
    )


@pytest.mark.parametrize(
    "right, found",
    [((500, 510, 505), False), ((500, 510, 540), True), ((400, 300, 200), False), ((527,), True), ((526,), False)],
)
def test_learning_is_told_from_luck(right, found):
    """Of 1,000 questions with two options one run in 20 is right on 527 by luck, and one of three runs on 535."""
    assert learnt(right, [1000] * len(right), 0.5) == found
    assert learnt([535] * 3, [1000] * 3, 0.5) and not learnt([534] * 3, [1000] * 3, 0.5)


def test_every_verdict_has_a_group(shipped):
    assert {name for name in shipped["verdict"].map(group)} == {*GROUPS, ""}
    assert shipped.loc[shipped["verdict"].map(group) == "", "id"].unique().tolist() == ["kl-coefficient"]
    told = {"near": "agrees", "holds if m = 2": "agrees", "did not learn: x": "differs", "partly: a": "cannot be told"}
    assert {verdict: group(verdict) for verdict in told} == told


@pytest.mark.parametrize("half, verdict", [(4.9, "reproduced"), (5.1, "near"), (14.9, "near"), (15.1, "open: ")])
def test_a_number_is_told_by_the_width_of_its_interval(half, verdict):
    values = np.array([-1.0, 0.0, 1.0])
    values *= half / prediction_interval(values, 5).half_width
    assert number_verdict(50 + values, 50.0, 5).startswith(verdict)


def test_how_many_seeds_would_be_enough():
    """The first count whose interval is tight; none where one run of the paper's spreads as much."""
    values = [88.0, 99.0, 92.0, 90.0, 95.0]
    count = int(enough(values, 94.0, 5))
    spread = np.std(values, ddof=1)
    halves = [special.stdtrit(n - 1, 0.975) * spread * np.sqrt(1 / n + 1 / 5) for n in (count - 1, count)]
    assert halves[0] >= 5 > halves[1]
    assert enough(values, 94.0, 1) == "none" and 1.96 * spread > 5


def sides(above, below):
    """Both sides of a cell, by seed from 42 on."""
    return tuple(pd.Series(values, dtype=float, index=range(42, 42 + len(values))) for values in (above, below))


def test_direction_verdicts():
    clear = sides([90, 91, 92], [80, 80.5, 81])
    unclear = sides([90, 91, 92], [80, 95, 91])
    against = sides([80, 80.5, 81], [90, 91, 92])
    assert direction_verdict([clear, clear]) == "reproduced"
    assert direction_verdict([clear, unclear]) == direction_verdict([clear, against]) == "partly"
    assert direction_verdict([against]) == "not reproduced"
    assert direction_verdict([unclear]) == direction_verdict([unclear, against]) == f"open: about 11 {SEEDS_DECIDE}"
    assert direction_verdict([sides([90, 91], [80, 80])]) == "open: fewer than 3 seeds"


def test_a_direction_pairs_by_seed():
    """Two seeds in common, whatever their order: above by 10 on both, and too few for a verdict."""
    above, below = sides([90, 50, 70], [60, 80, 40])
    turned = below[::-1].rename({44: 7})
    assert differences((above, below[::-1])).to_dict() == {42: 30, 43: -30, 44: 30}
    assert direction_verdict([(above, turned)]) == "open: fewer than 3 seeds"
    with pytest.raises(SpecError, match="no seed is on both sides"):
        direction_verdict([(above, below.rename(lambda seed: seed + 10))])


def test_one_cell_of_many_needs_more_than_its_own_interval():
    """Holm's correction: what one comparison shows by a little, it does not show among twenty."""
    rng = np.random.default_rng(0)
    noise = [sides(50 + rng.normal(size=5) * 0.01, np.full(5, 50.0) + rng.normal(size=5) * 0.01) for _ in range(19)]
    little = sides([50.15, 50.2, 50.35, 50.08, 50.3], np.full(5, 50.0))
    assert paired_interval(*little).low > 0 and direction_verdict([little, little]) == "reproduced"
    assert direction_verdict([little, (little[1], little[1] + [1, -1, 0.5, -0.5, 0])]) == "partly"
    assert direction_verdict([little, *noise]) == "not reproduced"


def test_no_gain_verdicts():
    base = pd.Series([90.0, 91, 92])
    same, better, worse = base + [0.1, -0.1, 0.0], base + [3, 3.1, 2.9], base - [3, 3.1, 2.9]
    assert no_gain_verdict([(same, base), (worse, base)]) == "reproduced"
    assert no_gain_verdict([(same, base), (better, base)]) == "not reproduced"
    assert no_gain_verdict([(base + [2, -2, 0], base)]) == f"open: about 18 {SEEDS_DECIDE}"
    assert no_gain_verdict([(base[:2], base[:2])]) == "open: fewer than 3 seeds"
    edge = base + [0.5, 0.6, 0.7]
    assert paired_interval(edge, base).low > 0 and no_gain_verdict([(edge, base)]) == "not reproduced"


def test_reaches_verdicts():
    """Every run of one reading has to be there; too few runs settle nothing."""
    perfect, nearly = np.array([100.0, 100, 100]), np.array([100.0, 99.9, 100])
    assert reaches_verdict([nearly, perfect], 100.0) == "reproduced"
    assert reaches_verdict([nearly, nearly], 100.0) == "not reproduced"
    assert reaches_verdict([nearly, perfect[:2]], 100.0) == "not reproduced"
    assert reaches_verdict([perfect[:2]], 100.0) == "open: fewer than 3 seeds"


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
    assert quick["verdict"] == "quick only: there not reproduced" and quick["last"] == pytest.approx(99)
    assert quick["last_low"] < 99 < quick["last_high"] <= 100 and quick["seeds"] == 3
    assert settled["verdict"] == "quick only" and settled["seeds"] == 0
    assert nearly.ours(pd.Series(quick)).startswith("99.0"), "a value, not a gap"
    drawn = nearly.drawn(claim, "quick", lambda sample, profile: sample(profile, seeds))
    assert np.stack([line.values for line in drawn]) == pytest.approx(np.array([[90, 80, 90], [100, 100, 97]]))
    monkeypatch.setitem(KINDS, claim, Reaches("construction", [sample([0.9] * 3), sample([1.0] * 3)], 100.0))
    assert row_of(claim, "quick", seeds)["verdict"] == "quick only: there reproduced"


def test_narrower_limits_for_entropies():
    values = [1.30, 1.35, 1.40]
    assert number_verdict(values, 1.35, 1) == "reproduced"
    assert number_verdict(values, 1.35, 1, NAT).startswith("open: ")
    assert number_verdict([1.34, 1.35, 1.36], 1.35, 5, NAT) == "reproduced"
    assert number_verdict([1.349, 1.35, 1.351], 1.31, 5, NAT) == "reproduced", "outside the interval, .04 away"
    assert number_verdict([0.049, 0.05, 0.051], 0.03, 5, NAT) == "not reproduced: ours is 0.020 nat higher"
    assert number_verdict([1.34, 1.35, 1.36], 1.05, 1, NAT) == "not reproduced: ours is 0.300 nat higher"


def test_verdicts_count_a_number_once_and_so_a_series(shipped):
    """The four temperatures of Pass@k are four series."""
    rows = shipped.assign(verdict="reproduced")
    counted, known = int(ledger.verdict_counts(rows)["claims"].sum()), claims()
    assert counted == len(known) - int((known["metric"] == "pass_at_k").sum()) - _twice(known) + 4
    assert ledger.total(rows) == f"Of {counted} claims {counted} agree with our runs, 0 differ, 0 cannot be told, " + (
        "and 0 were not run by the authors' recipe."
    )


@pytest.mark.parametrize("worst", ["near", "open: 7 runs decide", "not reproduced: ours is 9.0 points lower"])
def test_a_series_is_as_good_as_its_worst_point(shipped, worst):
    at = shipped["id"] == "passk-discrete-t0.4-k9"
    rows = shipped.assign(verdict=shipped["verdict"].mask(ledger.is_series(shipped), "reproduced").mask(at, worst))
    found = ledger.verdicts(rows)
    assert (
        found["passk-discrete-t0.4-k1"] == worst.partition(":")[0] and found["passk-discrete-t0.8-k1"] == "reproduced"
    )


@pytest.mark.parametrize(
    "verdict, counted",
    [
        ("reproduced", "reproduced"),
        ("reproduced: if CoT2 may try as often", "reproduced if ..."),
        ("reproduced: but the paper's own 1.9588 at step 3 is nearer", "reproduced but ..."),
        ("partly: if it is read so", "partly if ..."),
        ("partly: ProsQA not run yet", "partly"),
        ("open: 6 runs decide", "open"),
        ("near", "near"),
        ("did not learn: ours stays at chance, if our graphs", "did not learn if ..."),
        ("not reproduced: ours is 3.2 points lower", "not reproduced"),
        ("not run: needs the Qwen3-0.6B weights and a GPU", "not run"),
        ("refuted: by the paper's own tables", "refuted"),
        ("holds if the margin exists: delta < 1", "holds if ..."),
        ("holds vacuously: the bound excludes nothing", "holds vacuously"),
        ("quick only", "quick only"),
    ],
)
def test_conditional_verdicts_are_counted_apart(shipped, verdict, counted):
    rows = shipped[shipped["id"] == "packing"].assign(verdict=verdict)
    counts = ledger.verdict_counts(rows).to_dict("records")
    assert counts == [{"group": group(verdict), "verdict": counted, "claims": 1}]


def _twice(known):
    alone = known[known["metric"] != "pass_at_k"]
    repeated = int(alone.duplicated(["task", "setting", "paper_value"]).sum())
    assert repeated >= 2, "main table and budget figure share two"
    return repeated


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
    assert told.tolist() == [f"{{ref}}`{ledger.short(verdict)} <claim-consistency>`"]


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
    assert row["verdict"] == f"not reproduced: ours is {stated - gain:.1f} points lower" and "best" not in row
    assert row["difference"] == pytest.approx(gain - stated) and row["judged"] == "gain" and row["enough"] is None
    first = row_of("passk-discrete-t1.0-k1")
    assert first["judged"] == "last" and first["difference"] == pytest.approx(
        on_split.mean() - 1 - paper_value("passk-discrete-t1.0-k1")
    )


@pytest.mark.parametrize(
    "best, reached",
    [
        ([93.0, 93.5, 92.8], "yes: reproduced"),
        ([99.3, 99.0, 99.4], "yes: ours is 5.9 points higher"),
        ([80.0, 80.5, 79.5], "no: ours is 13.4 points lower"),
        ([99.0, 70.0, 99.0], "open: of 3 runs 2 at 99.0 and 1 at 70.0"),
    ],
)
def test_a_method_reaches_a_number_that_its_best_recipe_meets_or_passes(best, reached):
    """The verdict stays that on the stated half."""
    number = lambda values: Number("search", lambda profile, seeds: pd.DataFrame({"last": np.array(values) / 100}), 5)
    rows = lambda sample, profile: sample(profile, (42, 43, 44))
    kind = HalfStated(number([60.0, 60.5, 59.5]), number(best))
    row = kind.row("main-prosqa-cot2", "paper", rows)  # 93.37 in the paper
    assert row["reached"].startswith(reached) and row["verdict"] == "not reproduced: ours is 33.4 points lower"
    assert kind.row("main-prosqa-cot2", "quick", rows)["last"] == pytest.approx(np.mean(best))


def test_three_runs_say_how_many_would_be_enough():
    values = np.array([99.0, 93.0, 88.0])
    number = Number("search", lambda profile, seeds: pd.DataFrame({"last": values[: len(seeds)] / 100}), 5)
    row = lambda *seeds: number.row("main-prosqa-cot2", "paper", lambda sample, profile: sample(profile, seeds))
    assert row(42, 43, 44)["enough"] == enough(values, paper_value("main-prosqa-cot2"), 5) != "none"
    assert row(42, 43)["enough"] is None


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


def test_half_width_of_a_number_is_that_of_the_uncut_interval():
    """Between 92 and 100 the interval looks narrow; what it predicts is not."""
    values = [99.5, 92.0, 99.9, 99.8, 96.0]
    interval = prediction_interval(values, 5)
    assert interval.half_width > 5 > (100 - interval.low) / 2
    assert number_verdict(values, 98.94, 5) == "near"


@pytest.mark.parametrize("shift, verdict", [(4.9, "not reproduced"), (5.1, f"open: about 4 {SEEDS_DECIDE}")])
def test_a_direction_is_undecided_from_five_points(shift, verdict):
    gaps = np.array([-1.0, 0.0, 1.0])
    gaps *= shift / mean_interval(gaps).half_width
    assert direction_verdict([sides(50 + gaps, [50, 50, 50])]) == verdict


def test_a_wide_interval_on_the_wrong_side_is_no_question():
    below = pd.Series([50.0, 60.0, 70.0])
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

    monkeypatch.setattr(runs, "recorded", recorded)
    return row_of("convergence-2l2h")


def test_convergence_needs_both_columns_at_both_dimensions(monkeypatch):
    ahead = {("CoT2", d, column): [0.70, 0.71, 0.705] for d in (24, 32) for column in ("last", "curve_mean")}
    row = _convergence(monkeypatch, ahead)
    assert row["verdict"] == "reproduced" and row["seeds"] == 3
    assert row["last"] == pytest.approx(20.5) and row["last_low"] < 20.5 < row["last_high"], "the cell that decides"
    for cell in ahead:
        row = _convergence(monkeypatch, ahead | {cell: [0.3, 0.301, 0.302]})
        assert row["verdict"].startswith("partly: the other way round: ") and row["last"] < -19, cell
    wide = {("CoT2", 16, "last"): [0.1, 0.1, 0.1], ("CoT2", 24, "last"): [0.4, 0.6, 0.5]}
    assert _convergence(monkeypatch, wide)["verdict"] == f"open: about 18 {SEEDS_DECIDE}", "in points, not shares"
    assert _convergence(monkeypatch, {})["verdict"] == "not reproduced"


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
    assert row["verdict"] == "not reproduced: the other way round: d = 16 minus d = 32" and row["seeds"] == 3
    given = Direction("csft", [against(small, large)], given="so read", but=lambda: "not so").row("x", "paper", read)
    assert given["verdict"] == "not reproduced: the other way round: d = 16 minus d = 32, if so read, but not so"
    assert Direction("csft", [against(high, low)]).row("x", "quick", read)["verdict"] == "quick only: there reproduced"


@pytest.mark.parametrize(
    "verdicts, expected",
    [
        (("reproduced", "reproduced"), "reproduced"),
        (("not reproduced: the other way round", "not reproduced"), "not reproduced"),
        (("not reproduced", "partly"), "partly: a not reproduced, b partly"),
        (("reproduced", "open: 9 seeds decide"), "partly: a reproduced, b open"),
        (("not reproduced", "open: 9 seeds decide"), "open: a not reproduced, b open"),
    ],
)
def test_verdicts_on_a_claim_of_parts(verdicts, expected):
    assert parts_verdict(dict(zip("ab", verdicts))) == expected


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
    assert row["verdict"] == "partly: accuracy reproduced, entropy not reproduced" and row["last"] == pytest.approx(10)
    assert both.row("x", "quick", read)["verdict"].startswith("quick only: there partly, accuracy reproduced")
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


def test_misses_are_counted_by_the_runs_they_rest_on(shipped):
    """The Pass@k series is one family; one number in twenty is expected outside."""
    table = ledger.misses_table(shipped, ledger.reading_records()).set_index("family")
    assert table.loc["`sampling`, points, series", "numbers"] == 56
    assert table["expected"].tolist() == pytest.approx((0.05 * table["numbers"]).tolist())
    assert (table["outside"] <= table["numbers"]).all()
    settled = shipped[shipped["profile"] == "paper"].set_index("id")
    mts = settled.loc[[f"grpo-mts-d{d}-k{k}" for d in (24, 32) for k in (1, 3, 6)]]
    outside = (mts["difference"].abs() > (mts["predicted_high"] - mts["predicted_low"]) / 2).sum()
    assert table.loc["`grpo_mts`, points", "numbers"] == 6 and table.loc["`grpo_mts`, points", "outside"] == outside
    assert (table["inside, left out"] <= table["our runs"]).all() and (table["our runs"] > table["numbers"]).all()
    assert ledger.left_out(pd.Series([50.0, 51.0, 49.0, 50.5, 90.0])) == [True] * 4 + [False]
    assert ledger.misses_table(shipped.assign(seeds=2), ledger.reading_records()).empty


@pytest.mark.parametrize("profile", ["quick", "paper"])
def test_small_models_surely_lose_for_every_budget_as_the_errata_say(profile):
    """From d = 32 to 16 the mean falls, and the paired interval leaves zero out."""
    ends = lambda b, d: runs.recorded(sweeps.budgets(profile, TWENTY, (d,), (b,))).set_index("seed")["last"]
    falls = {b: ends(b, 32).sub(ends(b, 16)).dropna() for b in sweeps.BUDGETS}
    assert min(map(len, falls.values())) == len(TWENTY)
    assert all(mean_interval(fall).low > 0 for fall in falls.values())
