"""What the chapter `budget` claims of the shipped records of the quick profile."""

from collections.abc import Sequence

import pandas as pd

from cot2lib.metrics import paired_interval
from cot2lib.study.checks.claims import decided, part
from cot2lib.study.claims.rules import direction_verdict
from cot2lib.study.sweeps import BUDGETS
from cot2lib.tasks import MNNS

NARROW, WIDE = MNNS(5, 13, 5).name, MNNS(11, 19, 5).name
CERTAIN = 95.0  # percent of the inputs


def checks(rows: pd.DataFrame, path_rows: pd.DataFrame, optimum: pd.DataFrame) -> dict[str, bool]:
    """The chapter's claims, as far as the runs are recorded."""
    shares = optimum.set_index("task")["smallest minus largest (%)"]
    paths = path_rows[path_rows["profile"] == "quick"]
    ordered = {
        f"of {task} the whole path has the best mean, the answer alone the worst (quick)": (
            lambda task=task: _falls(paths, task, (5, 3, 1))
        )
        for task in paths["task"].unique()
    }
    return decided(
        {
            "every budget above 1 is better than discrete CoT (quick, d = 24, 32)": lambda: _above_one(rows),
            "of 11-19 nearly all optima are the three smallest minus the two largest": (
                lambda: shares[WIDE] > CERTAIN
            ),
            **ordered,
            "of 11-19 the whole path leads both others, of 5-13 it is not decided whether the answer alone (quick)": (
                lambda: _leads(paths, WIDE, 3) and _leads(paths, WIDE, 1) and not _leads(paths, NARROW, 1)
            ),
            "of 11-19 nothing is decided between three tokens and the answer alone (quick)": (
                lambda: not _leads(paths, WIDE, 1, whole=3)
            ),
        }
    )


def _above_one(rows: pd.DataFrame) -> bool:
    """Whether the ledger's rule finds every larger budget above B = 1."""
    cells = {(d, b): 100 * _shares(rows, profile="quick", d_model=d, budget=b) for d in (24, 32) for b in BUDGETS}
    pairs = [(cells[d, b], cells[d, 1]) for d in (24, 32) for b in BUDGETS[1:]]
    return direction_verdict(pairs) == "reproduced"


def _falls(rows: pd.DataFrame, task: str, tokens: Sequence[int]) -> bool:
    """Whether the mean falls with the number of tokens shown."""
    means = [_shares(rows, task=task, tokens=count).mean() for count in tokens]
    return means == sorted(means, reverse=True)


def _leads(rows: pd.DataFrame, task: str, tokens: int, whole: int = 5) -> bool:
    """Whether runs that are shown the whole path are surely above those shown fewer tokens, paired by seed."""
    ends = {count: _shares(rows, task=task, tokens=count) for count in (whole, tokens)}
    return paired_interval(ends[whole], ends[tokens]).low > 0


def _shares(rows: pd.DataFrame, **columns) -> pd.Series:
    return part(rows, **columns).set_index("seed")["last"]
