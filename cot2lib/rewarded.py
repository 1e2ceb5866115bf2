"""Which measurement of policy gradients stands beside which claim; `cot2lib.measured` has the kinds and the rest."""

from collections.abc import Sequence

import pandas as pd

from cot2lib import runs, sweeps
from cot2lib.measured import WIDEST_ENTROPY, Direction, Number, Sample, run_sample
from cot2lib.sweeps import KS

CHAPTER = "grpo_mts"
D_MODELS = (24, 32)
SHAPE = dict(layers=1, heads=1)


def sampled(k: int, d_model: int, first: bool = False) -> Sample:
    """Runs of `sweeps.sampled` by seed, with `entropy_t` of their last evaluation, or of the one before any step."""

    def sample(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
        specs = sweeps.sampled(profile, seeds, (d_model,), (k,))
        rows = runs.recorded(specs)
        if rows.empty:
            return rows
        have = [spec for spec in specs if spec.id in set(rows["id"])]
        points = runs.curves(have).sort_values("step", kind="stable").groupby("seed")
        at = points.first() if first else points.last()
        return rows.set_index("seed").join(at[[name for name in at if name.startswith("entropy_")]])

    return sample


def scaled(k: int) -> Sample:
    """Runs with logits / K, d = 24."""

    def sample(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
        rows = runs.recorded(sweeps.scaled(profile, seeds, (k,)))
        return rows if rows.empty else rows.set_index("seed")

    return sample


def _entropies(k: int, d_model: int) -> dict[str, Number]:
    """The paper's entropies before and after, of one cell of its table."""
    stem = f"grpo-mts-d{d_model}-k{k}-entropy"
    return {
        f"{stem}{step}{suffix}": Number(
            CHAPTER, sampled(k, d_model, bool(suffix)), 1, f"entropy_{step}", 1.0, float("inf"), WIDEST_ENTROPY
        )
        for step in (1, 2, 3, 4)
        for suffix in ("-sft", "")
    }


REWARDED: dict[str, Number | Direction] = {
    **{
        f"grpo-mts-d{d}-sft": Number("csft", run_sample("discrete", d_model=d, layers=1, heads=1), 1) for d in D_MODELS
    },
    **{f"grpo-mts-d{d}-k{k}": Number(CHAPTER, sampled(k, d), 1, "best") for d in D_MODELS for k in KS},
    **{name: number for d in D_MODELS for k in KS for name, number in _entropies(k, d).items()},
    "logit-scaling": Direction(CHAPTER, [(sampled(k, 24), "last", scaled(k), "last") for k in KS[1:]]),
    "grpo-k-moderate": Direction(
        CHAPTER, [(sampled(3, d), "best", sampled(k, d), "best") for d in D_MODELS for k in (1, 6)]
    ),
    "third-token-entropy": Direction(
        CHAPTER,
        [(sampled(k, d), "entropy_3", sampled(k, d), f"entropy_{t}") for d in D_MODELS for k in KS for t in (1, 2, 4)],
        scale=1.0,
        widest=WIDEST_ENTROPY,
    ),
}
