"""What every live training must show: that it learnt something."""

import pandas as pd

from cot2lib.study.analysis.guessing import baselines
from cot2lib.tasks import MNNS

MARGIN = 10  # points


def live_checks(rows: pd.DataFrame, task: MNNS) -> dict[str, bool]:
    """That the live run of the largest budget learnt more than the parity of the digits' sum tells."""
    rule = float(baselines(task)["all inputs (%)"].max())
    learnt = 100 * rows.loc[rows["budget"].idxmax(), "last"]
    return {
        f"the largest live budget is {MARGIN} points above the best rule that does not search": bool(
            learnt > rule + MARGIN
        )
    }
