"""Claims that the paper's own tables settle, computed from `claims.csv`."""

import numpy as np

from cot2lib.study.grpo_mts.recipes import GAINS, gains
from cot2lib.study.kinds import Fact, Kind
from cot2lib.study.printed import claims

THE_TABLES = "the paper's own tables"
TASKS = ("MNNS", "ProsQA", "ProntoQA")


def smallest_gain() -> float:
    """The smallest gain (points) by policy gradients on ProsQA and ProntoQA."""
    return float(min(gains(model).min() for model in GAINS if not model.startswith(TASKS[0])))


def falls() -> str:
    """The cells of those tasks where accuracy does not rise by policy gradients, with both values; "" without any."""
    printed = claims()["paper_value"]
    return "; ".join(
        f"{model}, K = {k} falls by {-gained:.2f} points, from {printed[f'{stem}-sft']} to {printed[f'{stem}-k{k}']}"
        for model, (stem, _) in GAINS.items()
        if not model.startswith(TASKS[0])
        for k, gained in gains(model).items()
        if gained <= 0
    )


def gain_beside_mnns() -> float:
    """Mean gain (points) on ProsQA and ProntoQA of the kind of start that gains more, less that on MNNS."""
    signed_sums = np.mean([gains(model) for model in GAINS if model.startswith(TASKS[0])])
    elsewhere = [np.mean([gains(f"{task}, {start}") for task in TASKS[1:]]) for start in ("CoT2", "discrete CoT")]
    return float(max(elsewhere) - signed_sums)


TABLES: dict[str, Kind] = {
    "rl-consistent": Fact(smallest_gain, lambda points: points > 0, THE_TABLES, falls),
    "rl-mnns-smaller": Fact(gain_beside_mnns, lambda points: points > 0, THE_TABLES),
}
