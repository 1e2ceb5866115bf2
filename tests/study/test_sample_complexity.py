"""What sampled thoughts estimate on chains: reference values, and the frames that figures and sentences draw."""

import pytest

from cot2lib.errors import SpecError
from cot2lib.study.sample_complexity import draw, estimates
from cot2lib.theory import enumeration

KS = [1, 2, 8]


def test_live_chain_takes_every_choice():
    for name in estimates.CHAINS:
        estimates.checked(name, KS, 3)
        table = estimates.samplers(name, [2], 3)
        assert set(table["kind"]) == {"MTS, exact", "MTS, simulated", "Dirichlet, simulated", "systematic"}


def test_systematic_draws_are_simulated_where_they_cannot_be_listed(monkeypatch):
    exact = estimates.samplers("sharp rows", [3], 4).set_index("kind").loc["systematic"]
    monkeypatch.setattr(enumeration, "MOST_ENTRIES", 10)
    found = estimates.samplers("sharp rows", [3], 4).set_index("kind").loc["systematic"]
    assert exact["error"] == 0 < found["error"]
    assert abs(found["ratio"] - exact["ratio"]) < 4.5 * found["error"]


def test_worked_example():
    table = estimates.dependence()
    assert table.iloc[1].tolist() == ["2", "3/20", "3/20", "31/800", "9/400"]
    assert table.iloc[0, -1] == table.iloc[0, -2] == "1/25"


def test_tables_have_the_reference_values():
    found = estimates.ratios([4], 6)
    ratios = found[found["over"] == "K"].set_index("chain")["ratio"]
    assert ratios["identity"] == pytest.approx(ratios[estimates.TIGHT]) == pytest.approx(3.2881, abs=6e-5)
    assert ratios["MNNS"] == pytest.approx(1.5687, abs=6e-5) and ratios[estimates.PRINTED] == 1.75
    assert estimates.mnns_table([8]).iloc[0]["m = 4"] == pytest.approx(1.5755, abs=6e-5)
    errors = estimates.read_out_errors([4]).groupby(["chain", "estimate"])["error"].first()["MNNS, mean over inputs"]
    assert errors[["K tokens", "one token", "the distribution"]].tolist() == pytest.approx(
        [0.3320, 0.9053, 0.1409], abs=6e-5
    )
    assert "1, 2, 4, 4, 4, has ratio 1.98701" in estimates.five_digit_exceptions(16)


def test_chains_beyond_the_printed_bound_are_named_worst_first():
    beyond = draw.beyond(estimates.ratios([2, 8], 4))
    assert beyond["chain"].iloc[0] == "identity" and beyond["ratio"].is_monotonic_decreasing
    assert set(beyond["k"]) == {8} and (beyond["ratio"] > 1.875).all() and "MNNS" not in set(beyond["chain"])
    assert draw.beyond(estimates.ratios([1], 4)).empty


def test_a_figure_over_tokens_draws_every_value():
    rows = estimates.read_out_errors(KS)
    left, _ = draw.read_outs(rows).figure.axes
    drawn = {round(float(y), 4) for line in left.lines for y in line.get_ydata()}
    assert drawn == set(rows[rows["chain"] == "MNNS, mean over inputs"]["error"].round(4))
    assert [label.get_text() for label in left.get_xticklabels()] == ["1", "2", "8"]


@pytest.mark.parametrize(
    "parameters, names",
    [
        (("walk", KS, 4), "live_chain='walk'"),
        (("identity", [], 4), r"ks=\[\]"),
        (("identity", [0], 4), r"ks=\[0\]"),
        (("identity", [2, 2], 4), r"ks=\[2, 2\]: give different"),
        (("identity", [1.5], 4), r"ks=\[1.5\]"),
        (("identity", KS, 2.5), "steps=2.5"),
        (("identity", KS, 1), "steps=1"),
        (("identity", KS, 9), "steps=9"),
    ],
)
def test_parameters_that_cannot_be_drawn_are_named(parameters, names):
    with pytest.raises(SpecError, match=names):
        estimates.checked(*parameters)
