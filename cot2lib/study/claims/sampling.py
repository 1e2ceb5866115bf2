"""What stands beside the claims on Pass@k (chapter `sampling`)."""

from cot2lib.study.analysis.passk import MOST, TEMPERATURES
from cot2lib.study.claims.comparisons import Direction, against
from cot2lib.study.claims.kinds import Kind, Number
from cot2lib.study.claims.samples import passing, single
from cot2lib.study.claims.training import accuracy

POINTS = [(t, k) for t in TEMPERATURES for k in range(1, MOST + 1)]

SAMPLING: dict[str, Kind] = {
    "passk-cot2": accuracy(single("cot2", 24), 1, "one_split"),
    "passk-mnns": Direction(
        "sampling",
        [against(passing("cot2", t, k), passing("discrete", t, k), "pass_at_k") for t, k in POINTS],
        scale=1.0,
        given="CoT2 may try as often",
    ),
    **{
        f"passk-discrete-t{t}-k{k}": Number("sampling", passing("discrete", t, k, True), 1, "pass_at_k", scale=1.0)
        for t, k in POINTS
    },
}
