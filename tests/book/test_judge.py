"""The rules of verdicts: hand cases, and what holds whatever the values."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cot2lib.errors import SpecError
from cot2lib.metrics import mean_interval, paired_interval, prediction_interval
from cot2lib.study.book import ledger, sensitivity
from cot2lib.study.judge import (
    FEWEST_ALONE,
    GROUPS,
    NAT,
    POINTS,
    Words,
    differences,
    direction_verdict,
    group,
    in_words,
    learnt,
    loneliness,
    no_gain_verdict,
    number_verdict,
    outcomes,
    parts_verdict,
    reaches_verdict,
    share,
    significant,
    value_verdict,
)

SEEDS_DECIDE = "seeds that spread as these would decide"
SPREAD = [*np.linspace(60.0, 79.0, 19), 30.0]  # twenty runs: one collapsed
NO_DIFFERENCE = "not reproduced: no difference the stated way is significant"


@pytest.mark.parametrize(
    "values, stated, paper_runs, verdict",
    [
        ([98.0, 99.0], 98.94, 5, "open: 2 of at least 3 seeds"),
        ([98.0, 99.0, 98.5, 99.2, 98.8], 98.94, 5, "reproduced"),
        ([98.0, 98.1, 97.9, 98.0, 98.0], 98.5, 5, "reproduced"),  # outside the interval, and half a point away
        ([98.0, 99.0, 98.5, 99.2, 98.8], 92.0, 5, "not reproduced: ours 6.7 points higher"),
        ([88.0, 99.0, 92.0, 90.0, 95.0], 94.0, 5, "near"),
        # The interval of a mean of five runs excludes the number, or one mean of five is all that there is.
        ([60.0, 99.0, 80.0, 70.0, 95.0], 20.0, 5, "not reproduced: ours 60.8 points higher"),
        ([60.0, 99.0, 80.0, 70.0, 95.0], 79.0, 5, "depends on the run: 100 % of the means of 5 of our runs"),
        ([60.0, 99.0, 80.0, 70.0, 95.0], 70.0, 5, "open: none within 5.0 points, and the prediction interval"),
        # One run of the paper's: whether any of ours is close, and from 19 runs on whether ours stand as much alone.
        ([60.0, 99.0, 80.0, 70.0, 95.0], 72.0, 1, "depends on the run: 1 of 5 runs, 20 % [1, 72], within 5.0 points"),
        ([60.0, 99.0, 80.0, 70.0, 95.0], 88.0, 1, "open: none within 5.0 points, and the prediction interval"),
        ([40.0, 60.0] * 10, 50.0, 1, "open: our mean is within 5.0 points, none of our 20 runs is"),
        ([*np.linspace(60.0, 79.0, 119), 30.0], 28.0, 1, "depends on the run: 1 of 120 runs"),
        (SPREAD, 65.0, 1, "depends on the run: 9 of 20 runs, 45 % [23, 68], within 5.0 points"),
        (SPREAD, 50.0, 1, "open: as far from any other as the paper's number is 1 of our 20 runs (p = 0.10)"),
        ([*SPREAD[:-1], 68.0], 50.0, 1, "not reproduced: ours 19.4 points higher"),
        (SPREAD[:-1] + [69.5], 54.9, 1, "not reproduced: ours 14.6 points higher"),
    ],
)
def test_number_verdict(values, stated, paper_runs, verdict):
    assert number_verdict(values, stated, paper_runs).replace("\N{NO-BREAK SPACE}", " ").startswith(verdict)


@pytest.mark.parametrize("half, verdict", [(4.9, "reproduced"), (5.1, "near"), (14.9, "near"), (15.1, "depends")])
def test_number_verdict_goes_by_the_width_of_the_interval(half, verdict):
    values = np.array([-1.0, 0.0, 1.0])
    values *= half / prediction_interval(values, 3).half_width
    assert number_verdict(50 + values, 50.0, 3).startswith(verdict)


def test_number_verdict_uses_the_interval_before_it_is_cut():
    """Between 92 and 100 the interval looks narrow; what it predicts is not."""
    values = [99.5, 92.0, 99.9, 99.8, 96.0]
    interval = prediction_interval(values, 5)
    assert interval.half_width > 5 > (100 - interval.low) / 2
    assert number_verdict(values, 98.94, 5) == "near"


def test_number_verdict_turns_five_points_away():
    """An interval narrower than the miss leaves nothing open."""
    values = [84.0, 86.0, 85.0, 87.0, 84.5]
    assert number_verdict(values, 90.29, 5) == number_verdict(values, 80.31, 5) == "reproduced"
    assert number_verdict(values, 90.31, 5) == "not reproduced: ours 5.0 points lower"
    assert number_verdict(values, 80.29, 5) == "not reproduced: ours 5.0 points higher"


def test_number_verdict_of_entropies_has_narrower_limits():
    values = [1.30, 1.35, 1.40]
    assert number_verdict(values, 1.35, 1) == "reproduced"
    assert number_verdict(values, 1.37, 1, NAT).startswith("depends on the run: 2 of 3 runs, 67 % ")
    assert number_verdict([1.349, 1.35, 1.351], 1.31, 5, NAT) == "reproduced", "outside the interval, .04 away"
    assert number_verdict([0.049, 0.05, 0.051], 0.03, 3, NAT) == "not reproduced: ours 0.020 nat higher"


@given(st.lists(st.integers(0, 400), min_size=3, max_size=22), st.integers(0, 400), st.integers(-40, 40))
def test_number_verdict_does_not_change_if_all_values_shift(values, stated, shift):
    """Quarters of points, beside which the paper's number never lies at a margin."""
    values, stated = np.array(values) / 4, stated / 4 + 0.013
    label = lambda by: number_verdict(values + by, stated + by, 1).partition(":")[0]
    assert label(0) == label(shift)


@given(st.lists(st.floats(-10, 10), min_size=3, max_size=22, unique=True), st.floats(1.01, 5))
def test_a_wider_spread_makes_no_number_reproduced(values, wider):
    values = 50 + np.array(values) - np.mean(values)
    spread = 50 + wider * (values - 50)
    if number_verdict(values, 50.0, 1) != "reproduced":
        assert number_verdict(spread, 50.0, 1) != "reproduced"


@pytest.mark.parametrize("law", [lambda rng: rng.normal(size=20), lambda rng: rng.random(20) ** 8])
def test_loneliness_is_a_p_value_whatever_the_distribution(law):
    """Of twenty exchangeable values each is the loneliest in one case of twenty at most."""
    rng = np.random.default_rng(0)
    found = [loneliness(values[1:], values[0]) for values in (law(rng) for _ in range(2000))]
    assert np.mean(np.array(found) <= 0.05) <= 0.065 and np.mean(np.array(found) <= 0.5) <= 0.55
    assert loneliness([1.0, 2.0, 4.0], 10.0) == 0.25 and loneliness([1.0, 2.0, 4.0], 6.0) == 0.5


def test_few_of_our_own_runs_differ_from_the_others():
    """Each run of the cells with twenty plays the paper's number, as when the rule was chosen."""
    table = ledger.misses_table(ledger.of_records(), ledger.reading_records())
    rate = table["our runs that differ"].sum() / table["our runs"].sum()
    assert 0 < rate < 0.05 and (table["differ"] <= table["numbers"]).all()


def test_share_is_clopper_pearson():
    assert share(0, 19) == "0 % [0,\N{NO-BREAK SPACE}18]" and share(5, 20) == "25 % [9,\N{NO-BREAK SPACE}49]"


def test_outcomes_are_two_groups_far_apart():
    """Fifteen points apart, and farther than either group is wide."""
    values = [34.3, 75.8, 65.3, 34.6, 70.0]
    said = outcomes(values, 49.0, POINTS).replace("\N{NO-BREAK SPACE}", " ")
    assert said == (
        "Runs end in two groups: 3 at 65.3 to 75.8 points (mean 70.4), and 2 at 34.3 to 34.6, a share of 40 % "
        "[5, 85]. The paper's number is in neither."
    )
    assert outcomes(values, 67.0, POINTS).endswith("in the higher group.")
    assert outcomes(values, 31.0, POINTS).endswith("in the lower group.")
    assert outcomes([10.0, 60.0, 74.0], 67.0, POINTS).endswith("in the higher group."), "between its runs"
    assert outcomes([50.0, 64.9, 64.0], 60, POINTS) == "" and outcomes([20.0, 35.0, 36.0], 60, POINTS) != ""
    assert outcomes([20.0, 40.0, 56.0, 80.0], 60, POINTS) == "", "three steps are no two groups"


@pytest.mark.parametrize(
    "right, found",
    [((500, 510, 505), False), ((500, 510, 540), True), ((400, 300, 200), False), ((527,), True), ((526,), False)],
)
def test_learnt_is_more_than_luck(right, found):
    """Of 1,000 questions with two options one run in 20 is right on 527 by luck, and one of three runs on 535."""
    assert learnt(right, [1000] * len(right), 0.5) == found
    assert learnt([535] * 3, [1000] * 3, 0.5) and not learnt([534] * 3, [1000] * 3, 0.5)


def sides(above, below):
    """Both sides of a cell, by seed from 42 on."""
    return tuple(pd.Series(values, dtype=float, index=range(42, 42 + len(values))) for values in (above, below))


def test_direction_verdict():
    clear = sides([90, 91, 92], [80, 80.5, 81])
    unclear = sides([90, 91, 92], [80, 95, 91])
    against = sides([80, 80.5, 81], [90, 91, 92])
    assert direction_verdict([clear, clear]) == "reproduced"
    assert direction_verdict([clear, unclear]) == direction_verdict([clear, against]) == "in part"
    assert significant([clear, unclear, against]) == [True, False, False]
    assert direction_verdict([against]) == NO_DIFFERENCE
    assert direction_verdict([unclear]) == direction_verdict([unclear, against]) == f"open: about 11 {SEEDS_DECIDE}"
    assert direction_verdict([sides([90, 91], [80, 80])]) == "open: fewer than 3 seeds"


def test_direction_verdict_pairs_by_seed():
    """Two seeds in common, whatever their order: above by 10 on both, and too few for a verdict."""
    above, below = sides([90, 50, 70], [60, 80, 40])
    turned = below[::-1].rename({44: 7})
    assert differences((above, below[::-1])).to_dict() == {42: 30, 43: -30, 44: 30}
    assert direction_verdict([(above, turned)]) == "open: fewer than 3 seeds"
    with pytest.raises(SpecError, match="no seed is on both sides"):
        direction_verdict([(above, below.rename(lambda seed: seed + 10))])


def test_significant_is_corrected_for_the_number_of_cells():
    """Holm's correction: what one comparison shows by a little, it does not show among twenty."""
    rng = np.random.default_rng(0)
    noise = [sides(50 + rng.normal(size=5) * 0.01, np.full(5, 50.0) + rng.normal(size=5) * 0.01) for _ in range(19)]
    little = sides([50.15, 50.2, 50.35, 50.08, 50.3], np.full(5, 50.0))
    assert paired_interval(*little).low > 0 and direction_verdict([little, little]) == "reproduced"
    assert direction_verdict([little, (little[1], little[1] + [1, -1, 0.5, -0.5, 0])]) == "in part"
    assert direction_verdict([little, *noise]) == NO_DIFFERENCE


@pytest.mark.parametrize("shift, verdict", [(4.9, NO_DIFFERENCE), (5.1, f"open: about 4 {SEEDS_DECIDE}")])
def test_direction_verdict_is_open_from_five_points(shift, verdict):
    gaps = np.array([-1.0, 0.0, 1.0])
    gaps *= shift / mean_interval(gaps).half_width
    assert direction_verdict([sides(50 + gaps, [50, 50, 50])]) == verdict


def test_direction_verdict_of_a_wide_interval_on_the_wrong_side():
    below = pd.Series([50.0, 60.0, 70.0])
    above = below - [20, 30, 40]
    gap = paired_interval(above, below)
    assert gap.half_width > 5 and gap.high < 0 and direction_verdict([(above, below)]) == NO_DIFFERENCE


def test_no_gain_verdict():
    base = pd.Series([90.0, 91, 92])
    same, better, worse = base + [0.1, -0.1, 0.0], base + [3, 3.1, 2.9], base - [3, 3.1, 2.9]
    assert no_gain_verdict([(same, base), (worse, base)]) == "reproduced"
    assert no_gain_verdict([(same, base), (better, base)]) == "not reproduced: a gain is significant"
    assert no_gain_verdict([(base + [2, -2, 0], base)]) == f"open: about 18 {SEEDS_DECIDE}"
    assert no_gain_verdict([(base[:2], base[:2])]) == "open: fewer than 3 seeds"
    edge = base + [0.5, 0.6, 0.7]
    assert paired_interval(edge, base).low > 0 and no_gain_verdict([(edge, base)]).startswith("not reproduced")


def test_reaches_verdict():
    """Every run of one reading has to be there; too few runs settle nothing."""
    perfect, nearly = np.array([100.0, 100, 100]), np.array([100.0, 99.9, 100])
    assert reaches_verdict([nearly, perfect], 100.0) == "reproduced"
    assert reaches_verdict([nearly, nearly], 100.0) == "not reproduced: not every run does"
    assert reaches_verdict([nearly, perfect[:2]], 100.0).startswith("not reproduced")
    assert reaches_verdict([perfect[:2]], 100.0) == "open: fewer than 3 seeds"


def test_value_verdict():
    assert value_verdict([np.array([-0.2, 0.1, 0.0])], NAT) == f"open: about 7 {SEEDS_DECIDE}"
    assert value_verdict([np.array([0.01, 0.011, 0.012])], NAT) == "reproduced", "surely not zero, and close"


@pytest.mark.parametrize(
    "verdicts, expected",
    [
        (("reproduced", "reproduced"), "reproduced"),
        (("not reproduced: the other way round", "not reproduced"), "not reproduced"),
        (("not reproduced", "in part"), "in part: a differs, b undecided"),
        (("reproduced", "open: 9 seeds decide"), "in part: a agrees, b undecided"),
        (("not reproduced", "open: 9 seeds decide"), "open: a differs, b undecided"),
    ],
)
def test_parts_verdict(verdicts, expected):
    assert parts_verdict(dict(zip("ab", verdicts))) == expected


@pytest.mark.parametrize(
    "verdict, words",
    [
        ("reproduced", ("agrees", "", "")),
        ("reproduced: if CoT2 may try as often", ("agrees", "", "CoT2 may try as often")),
        ("reproduced: but the paper's own 1.9588 is nearer", ("agrees", "but the paper's own 1.9588 is nearer", "")),
        ("near", ("agrees", "our runs spread by more than the margin", "")),
        ("holds if the margin exists: d < 1", ("agrees", "", "the margin exists: d < 1")),
        ("holds vacuously: it excludes nothing", ("agrees", "vacuously: it excludes nothing", "")),
        ("not reproduced: ours 3.2 points lower, if so read", ("differs", "ours 3.2 points lower", "so read")),
        ("did not learn: ours stay at chance", ("differs", "ours stay at chance", "")),
        ("refuted: by the paper's own tables", ("differs", "refuted by the paper's own tables", "")),
        ("depends on the run: 1 of 5 runs", ("depends on the run", "1 of 5 runs", "")),
        ("in part: d = 16, if a, and if b", ("undecided", "in part: d = 16", "a, and if b")),
        ("open: 6 runs decide", ("undecided", "6 runs decide", "")),
        ("not run: needs a GPU", ("not tested", "not run: needs a GPU", "")),
        ("not tested: half of the recipe", ("not tested", "half of the recipe", "")),
        ("quick only", ("not tested", "quick recipe alone", "")),
        ("quick only: there in part, d = 16", ("not tested", "quick recipe alone: undecided: in part: d = 16", "")),
        ("no claim: a setting", ("", "a setting", "")),
    ],
)
def test_in_words(verdict, words):
    assert in_words(verdict) == Words(*words)


# The ledger


@pytest.fixture(scope="module")
def settled():
    """Rows of the authors' recipe, by claim."""
    rows = ledger.of_records()
    return rows[rows["profile"] == "paper"].set_index("id", drop=False)


def test_every_verdict_has_one_of_five_words(settled):
    assert set(settled["group"]) == {*GROUPS, ""} and settled.index[settled["group"] == ""].tolist() == [
        "kl-coefficient"
    ]
    waits = settled[(settled["group"] != "agrees") & (settled["group"] != "differs")]
    assert (waits["why"] != "").all() and not settled["why"].str.contains("not reproduced|partly|open:").any()


@pytest.mark.parametrize(
    "claim, word",
    [
        # Student's interval included these numbers, which no run of ours comes near.
        *((f"grpo-mts-d24-k{k}", "differs") for k in (1, 3, 6)),
        *((f"dirichlet-discrete-1l{entropy}", "differs") for entropy in ("", "-entropy2", "-entropy3-sft")),
        # It excluded these, though one of our runs stands as much alone, or is close.
        *((claim, "undecided") for claim in ("grpo-mts-d32-k6", "grpo-mts-d32-k3-entropy3")),
        ("dirichlet-discrete-1l-entropy1", "undecided"),
        ("grpo-mts-d32-k6-entropy3", "depends on the run"),
        *((f"grpo-mts-d32-k{k}", "undecided") for k in (1, 3)),
        ("grpo-prosqa-cot2-k6", "not tested"),
    ],
)
def test_the_rule_decides_as_by_hand(settled, claim, word):
    assert settled.loc[claim, "group"] == word


def test_from_nineteen_runs_on_students_interval_decides_no_single_run(settled):
    """Of numbers with so many of our runs, those that differ have none within the margin."""
    for claim, row in settled[(settled["seeds"] >= FEWEST_ALONE) & (settled["group"] == "differs")].iterrows():
        number = ledger.KINDS[claim].number()
        if number and number.paper_runs == 1 and not row.verdict.startswith("refuted"):
            (line,) = ledger.KINDS[claim].drawn(claim, "paper", ledger.reading_records())
            assert (abs(line.values - line.stated) >= line.unit.margin(line.stated)).all(), claim


@pytest.mark.parametrize(
    "claim, said",
    [
        ("grpo-mts-d32-k3", "Of 20 seeds single ones matter: differs without seed 51."),
        ("grpo-mts-d24-k1", "Another margin would say otherwise (8.0 %: depends on the run)."),
        ("budget-d16", "The verdict stays if any one of the 20 seeds is left out."),
        ("convergence-prosqa", "It stands on 3 seeds: without any one of them it would be undecided."),
        ("gsm8k-160-mts", ""),
    ],
)
def test_sensitivity_by_hand(settled, claim, said):
    lines = getattr(ledger.KINDS[claim], "drawn", lambda *_: [])(claim, "paper", ledger.reading_records())
    found = sensitivity.sentences(claim, settled.loc[claim, "verdict"], lines, ledger.reading_records())
    assert said in found if said else not any(found)


def test_group_is_the_first_word():
    assert {verdict: group(verdict) for verdict in ("near", "holds if m = 2", "partly", "did not learn: x")} == {
        "near": "agrees", "holds if m = 2": "agrees", "partly": "", "did not learn: x": "differs"
    }  # fmt: skip
