"""The paper's statements on estimators and on noise, computed as printed and as corrected.

Every entry checks its statement anew, by the same functions that the theory chapters call; nothing is looked up. The
proofs stand in those chapters.
"""

from cot2lib.study.kinds import Statement
from cot2lib.theory import estimator_claims, points

ESTIMATORS = "tests/theory/test_estimators.py"

COMPUTED: dict[str, Statement] = {
    "consistency": Statement(estimator_claims.consistency, ESTIMATORS),
    "k-infinity": Statement(estimator_claims.k_infinity, ESTIMATORS),
    "sample-complexity-ratio": Statement(estimator_claims.sample_complexity_ratio, ESTIMATORS),
    "sample-complexity-rate": Statement(estimator_claims.sample_complexity_rate, ESTIMATORS),
    "assumption-1": Statement(estimator_claims.assumption_1, ESTIMATORS),
    "gamma-direction": Statement(points.gamma_direction, "tests/thoughts/test_dirichlet.py"),
}
