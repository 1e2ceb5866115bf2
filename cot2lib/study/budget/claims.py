"""Measurements beside the claims on budgets and on fewer supervised tokens (chapter `budget`)."""

from functools import cache

from cot2lib.study.budget.measure import simple_optimum
from cot2lib.study.comparisons import Direction, against
from cot2lib.study.kinds import Fact, Kind, accuracy
from cot2lib.study.samples import budget, shown
from cot2lib.study.sweeps import D_MODELS, LARGE
from cot2lib.tasks import MNNS

NEARLY_ALL = 95.0  # %


@cache
def _three_smallest_minus_two_largest() -> float:
    """`simple_optimum` of five digits 11-19."""
    return simple_optimum(MNNS(11, 19, 5))


def _rises(d_model: int) -> Direction:
    """Every larger budget above the one before."""
    steps = ((1, 4), (4, 8), (8, 16))
    return Direction("csft budget", [against(budget(more, d_model), budget(less, d_model)) for less, more in steps])


def _tokens(low: int, high: int, *pairs: tuple[int, int]) -> Direction:
    """So many supervised tokens above so many."""
    return Direction("budget", [against(shown(one, low, high), shown(other, low, high)) for one, other in pairs])


BUDGETS: dict[str, Kind] = {
    **{f"budget-b{b}-d{d}": accuracy(budget(b, d), 5) for b in (1, 16) for d in D_MODELS},
    **{f"budget-b4-d{d}": accuracy(budget(4, d), 5, "budget") for d in D_MODELS},
    "budget-d16": Direction("csft budget", [against(budget(8, 16), budget(b, 16)) for b in (1, 4, 16)]),
    **{f"budget-d{d}": _rises(d) for d in LARGE},
    "sparse-5-13": _tokens(5, 13, (5, 3), (5, 1), (3, 1)),
    "sparse-11-19": _tokens(11, 19, (1, 3), (1, 5)),
    "optimum-min3-max2": Fact(_three_smallest_minus_two_largest, lambda share: share > NEARLY_ALL),
}
