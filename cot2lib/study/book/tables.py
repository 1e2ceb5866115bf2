"""Claims that the paper's own tables settle, computed from `claims.csv`."""

import numpy as np

from cot2lib.study.kinds import Fact, Kind
from cot2lib.study.printed import claims, paper_value

THE_TABLES = "the paper's own tables"
KS = {"mts": (1, 3, 6), "prosqa": (6, 8, 12), "prontoqa": (6, 8, 12)}


def gains(stem: str) -> list[float]:
    """Accuracy after policy gradients less that of the start (points), for every K of one row of starts."""
    start = paper_value(f"{stem}-sft")
    return [paper_value(f"{stem}-k{k}") - start for k in KS[stem.split("-")[1]]]


def starts(task: str) -> list[str]:
    """The paper's starts on a task: ids without `-sft`."""
    known = [claim for claim in claims().index if claim.startswith(f"grpo-{task}-") and claim.endswith("-sft")]
    return [claim.removesuffix("-sft") for claim in known if "entropy" not in claim]


def smallest_gain() -> float:
    """The smallest gain (points) on ProsQA and ProntoQA."""
    return min(min(gains(stem)) for task in ("prosqa", "prontoqa") for stem in starts(task))


def gain_beside_mnns() -> float:
    """Mean gain (points) on ProsQA and ProntoQA of the kind of start that gains more, less that on MNNS."""
    elsewhere = [
        np.mean([gains(f"grpo-{task}-{start}") for task in ("prosqa", "prontoqa")]) for start in ("cot2", "discrete")
    ]
    return float(max(elsewhere) - np.mean([gains(stem) for stem in starts("mts")]))


TABLES: dict[str, Kind] = {
    "rl-consistent": Fact(smallest_gain, lambda points: points > 0, THE_TABLES),
    "rl-mnns-smaller": Fact(gain_beside_mnns, lambda points: points > 0, THE_TABLES),
}
