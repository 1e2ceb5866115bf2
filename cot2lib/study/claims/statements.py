"""What becomes of the paper's theoretical statements when they are computed: as printed, and as corrected.

Every entry checks its statement anew, by the same functions that the theory chapters call; nothing is
looked up. The proofs stand in those chapters.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from cot2lib.study.analysis import overhead
from cot2lib.study.sweeps import D_MODELS
from cot2lib.theory import estimator_claims, packing, points, propositions
from cot2lib.theory.verdict import Verdict

CONSTRUCTION, ESTIMATORS, PACKING = (f"tests/test_{name}.py" for name in ("construction", "estimators", "packing"))


@dataclass(frozen=True)
class Statement:
    """A statement of the paper that computation settles.

    Attributes:
        check: decides it as printed and as corrected.
        test: the file whose tests fail if the verdict is wrong.
    """

    check: Callable[[], Verdict]
    test: str

    @cached_property
    def verdict(self) -> str:
        """`holds`, `holds if ...` or `refuted`."""
        return self.check().text


def _packing() -> Verdict:
    at_possible = packing.bound_holds_at_possible_margins()
    return Verdict(packing.fixed_margin_is_possible(), at_possible, "the margin exists: delta < sqrt(2v/(v-1)) / (2B)")


def _thresholds() -> Verdict:
    below = packing.most_asked_for() < min(D_MODELS)
    return Verdict(packing.rules_out(D_MODELS), below, "no more is meant than that the bound lies below the threshold")


def _overhead() -> Verdict:
    extra, large = overhead.equals_projection(), overhead.is_dominated()
    return Verdict(extra and large and overhead.is_dominated(overhead.SMALL), extra and large, "v < 12 L d + 2 L N")


STATEMENTS = {
    **{claim: Statement(check, CONSTRUCTION) for claim, check in propositions.CLAIMS.items()},
    "consistency": Statement(estimator_claims.consistency, ESTIMATORS),
    "k-infinity": Statement(estimator_claims.k_infinity, ESTIMATORS),
    "sample-complexity-ratio": Statement(estimator_claims.sample_complexity_ratio, ESTIMATORS),
    "sample-complexity-rate": Statement(estimator_claims.sample_complexity_rate, ESTIMATORS),
    "assumption-1": Statement(estimator_claims.assumption_1, ESTIMATORS),
    "packing": Statement(_packing, PACKING),
    "threshold-packing": Statement(_thresholds, PACKING),
    "gamma-direction": Statement(points.gamma_direction, "tests/test_dirichlet.py"),
    "decode-overhead": Statement(_overhead, "tests/test_bench.py"),
}
