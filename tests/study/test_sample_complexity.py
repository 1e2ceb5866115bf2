"""What sampled thoughts estimate on chains: reference values, simulations, and which parameters are refused."""

import pytest

from cot2lib.errors import SpecError
from cot2lib.study.sample_complexity import estimates
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
