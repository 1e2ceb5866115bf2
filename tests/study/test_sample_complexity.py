"""What sampled thoughts estimate on chains."""

from cot2lib.study.sample_complexity import estimates
from cot2lib.theory import enumeration


def test_samplers_simulate_systematic_draws_that_cannot_be_listed(monkeypatch):
    exact = estimates.samplers("sharp rows", [3], 4).set_index("kind").loc["systematic"]
    monkeypatch.setattr(enumeration, "MOST_ENTRIES", 10)
    found = estimates.samplers("sharp rows", [3], 4).set_index("kind").loc["systematic"]
    assert exact["error"] == 0 < found["error"]
    assert abs(found["ratio"] - exact["ratio"]) < 4.5 * found["error"]
