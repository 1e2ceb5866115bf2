"""What sampled thoughts estimate on chains: simulations, and which parameters are refused."""

import pytest

from cot2lib.errors import SpecError
from cot2lib.study.sample_complexity import estimates
from cot2lib.theory import enumeration

KS = [1, 2, 8]


def test_samplers_simulate_systematic_draws_that_cannot_be_listed(monkeypatch):
    exact = estimates.samplers("sharp rows", [3], 4).set_index("kind").loc["systematic"]
    monkeypatch.setattr(enumeration, "MOST_ENTRIES", 10)
    found = estimates.samplers("sharp rows", [3], 4).set_index("kind").loc["systematic"]
    assert exact["error"] == 0 < found["error"]
    assert abs(found["ratio"] - exact["ratio"]) < 4.5 * found["error"]


@pytest.mark.parametrize(
    "parameters, names",
    [
        (("walk", KS, 4), "live_chain='walk'"),
        (("identity", [], 4), r"ks=\[\]"),
        (("identity", [2, 2], 4), r"ks=\[2, 2\]: give different"),
        (("identity", [1.5], 4), r"ks=\[1.5\]"),
        (("identity", KS, 2.5), "steps=2.5"),
        (("identity", KS, 9), "steps=9"),
    ],
)
def test_checked_refuses(parameters, names):
    for name in estimates.CHAINS:
        estimates.checked(name, KS, 3)
    with pytest.raises(SpecError, match=names):
        estimates.checked(*parameters)
