"""What becomes of the paper's theoretical statements when they are computed: as printed, and as corrected.

Every entry checks its statement anew, by the same functions that the theory chapters call; nothing is
looked up. The proofs stand in those chapters.
"""

from cot2lib.study.analysis import overhead
from cot2lib.study.claims.kinds import Statement
from cot2lib.study.sweeps import D_MODELS
from cot2lib.theory import estimator_claims, packing, points, propositions
from cot2lib.theory.verdict import Verdict

CONSTRUCTION, ESTIMATORS, PACKING = (f"tests/test_{name}.py" for name in ("construction", "estimators", "packing"))


def _packing() -> Verdict:
    at_possible = packing.bound_holds_at_possible_margins()
    return Verdict(packing.fixed_margin_is_possible(), at_possible, "the margin exists: delta < sqrt(2v/(v-1)) / (2B)")


def _thresholds() -> Verdict:
    """Consistent: the bound allows the dimensions at which the full budget works."""
    return Verdict(not packing.rules_out([d for d in D_MODELS if d > min(D_MODELS)]))


def _excludes_nothing() -> str:
    return "" if packing.rules_out(D_MODELS) else "the bound excludes no dimension that was tried"


def _overhead() -> Verdict:
    extra, large = overhead.equals_projection(), overhead.is_dominated()
    return Verdict(extra and large and overhead.is_dominated(overhead.SMALL), extra and large, "v < 12 L d + 2 L N")


STATEMENTS: dict[str, Statement] = {
    **{claim: Statement(check, CONSTRUCTION) for claim, check in propositions.CLAIMS.items()},
    "consistency": Statement(estimator_claims.consistency, ESTIMATORS),
    "k-infinity": Statement(estimator_claims.k_infinity, ESTIMATORS),
    "sample-complexity-ratio": Statement(estimator_claims.sample_complexity_ratio, ESTIMATORS),
    "sample-complexity-rate": Statement(estimator_claims.sample_complexity_rate, ESTIMATORS),
    "assumption-1": Statement(estimator_claims.assumption_1, ESTIMATORS),
    "packing": Statement(_packing, PACKING),
    "threshold-packing": Statement(_thresholds, PACKING, _excludes_nothing),
    "gamma-direction": Statement(points.gamma_direction, "tests/test_dirichlet.py"),
    "decode-overhead": Statement(_overhead, "tests/test_bench.py"),
}
