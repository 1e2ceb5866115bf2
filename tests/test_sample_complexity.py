import pandas as pd
import pytest

from cot2lib import runs
from cot2lib.errors import SpecError
from cot2lib.study import sweeps
from cot2lib.study.analysis import estimates, probes
from cot2lib.study.checks.sample_complexity import checks, model_checks
from cot2lib.study.figures import sample_complexity
from cot2lib.theory import enumeration

KS = [1, 2, 8]


@pytest.fixture(scope="module")
def claims():
    return estimates.samplers("lazy 0.1", KS, 4), estimates.size_table(), estimates.coverages([1, 2, 6])


def test_claims_hold_and_notice_when_they_do_not(claims):
    live, sizes, covered = claims
    assert all(checks(live, sizes, covered).values())
    moved = live.assign(ratio=live["ratio"].where(live["kind"] != "dirichlet", live["ratio"] + 1))
    swapped = covered.assign(kind=covered["kind"].replace({"MTS": "systematic", "systematic": "MTS"}))
    printed = sizes.assign(**{"fails, Chebyshev": sizes["fails, printed"]})
    broken = [name for name, holds in checks(moved, printed, swapped).items() if not holds]
    assert len(broken) == 3


def test_live_chain_takes_every_choice():
    for name in estimates.CHAINS:
        estimates.checked(name, KS, 3)
        table = estimates.samplers(name, [2], 3)
        assert set(table["kind"]) == {"exact", "multinomial", "dirichlet", "systematic"}


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
    ratios = estimates.ratio_table([4], 6).iloc[0]
    assert ratios["identity"] == pytest.approx(ratios["tight"]) == pytest.approx(3.2881, abs=6e-5)
    assert ratios["MNNS"] == pytest.approx(1.5687, abs=6e-5)
    assert estimates.mnns_table([8]).iloc[0]["m = 4"] == pytest.approx(1.5755, abs=6e-5)
    limits = estimates.convergence([10**7], 5)
    assert limits["K = 10000000"].to_numpy() == pytest.approx(limits["limit"].to_numpy(), rel=1e-5)
    errors = estimates.read_out_errors([4]).iloc[0]
    assert errors[["K tokens", "one token", "the law"]].tolist() == pytest.approx([0.3320, 0.9053, 0.1409], abs=6e-5)
    assert "1, 2, 4, 4, 4, has ratio 1.98701" in estimates.five_digit_exceptions(16)


def test_claims_on_models_notice_when_they_do_not_hold():
    specs = sweeps.methods("quick", (42, 43), (24,), ("cot2",), layers=1)
    own = [probes.probed(runs.load_stack(specs, missing="error"), specs, 30)]
    distances, answers = probes.of_each(own, probes.linearity), probes.of_each(own, probes.linear_answers)
    bias = probes.of_each(own, probes.consistency, [1, 16], 8)
    assert all(model_checks(distances, answers, bias).values())
    flat = distances.assign(linear=-distances["step"], markov_mean=1.0)
    level, turned = answers.assign(linear=answers["base"]), bias.assign(gap=-bias["gap"])
    assert not any(model_checks(flat, level, turned).values())
    assert "made linear" in sample_complexity.model_findings(distances, answers)[0]
    assert (
        isinstance(sample_complexity.gap_table(bias), pd.DataFrame)
        and len(sample_complexity.distance_table(distances)) == 3
    )


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
