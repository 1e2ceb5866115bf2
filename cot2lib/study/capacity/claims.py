"""The paper's statements on capacity (chapter `capacity`), computed.

Every entry checks its statement anew, by the functions that the chapter calls; nothing is looked up.
"""

from cot2lib.study import overhead
from cot2lib.study.kinds import Kind, Statement
from cot2lib.study.sweeps import D_MODELS
from cot2lib.theory import packing
from cot2lib.theory.verdict import Verdict

PACKING = "tests/theory/test_packing.py"


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


CAPACITY: dict[str, Kind] = {
    "packing": Statement(_packing, PACKING),
    "threshold-packing": Statement(_thresholds, PACKING, _excludes_nothing),
    "decode-overhead": Statement(_overhead, "tests/study/test_overhead.py"),
}
