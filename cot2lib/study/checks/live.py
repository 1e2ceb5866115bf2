"""What every live training must show: that it learnt something."""

import pandas as pd

from cot2lib.study.analysis.guessing import baselines
from cot2lib.tasks import MNNS

MARGIN = 10  # points
GAIN = 5  # points


def live_checks(rows: pd.DataFrame, task: MNNS) -> dict[str, bool]:
    """That the live run of the largest budget learnt more than the parity of the digits' sum tells."""
    rule = float(baselines(task)["all inputs (%)"].max())
    learnt = 100 * rows.loc[rows["budget"].idxmax(), "last"]
    return {
        f"the largest live budget is {MARGIN} points above the best rule that does not search": bool(
            learnt > rule + MARGIN
        )
    }


def reward_checks(rewards: pd.DataFrame, start: float) -> dict[str, bool]:
    """That the last quarter of a live training (`cot2lib.study.analysis.live.rewards`) is above the start's level."""
    closing = rewards.iloc[-max(1, len(rewards) // 4) :].to_numpy().mean()
    return {f"live training by reward gains {GAIN} points": bool(closing > start + GAIN)}
