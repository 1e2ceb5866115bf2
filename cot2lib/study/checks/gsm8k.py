"""What the chapter `gsm8k` claims of the shipped tables."""

import pandas as pd

from cot2lib.llm.settings import SMALL, SMOLLM2
from cot2lib.study.analysis.language_runs import THOUGHTS, TOKENS, TRAINING, ends

APART = 0.04  # of shares: one answer of 32 is three points


def checks(table: pd.DataFrame, measured: pd.DataFrame) -> dict[str, bool]:
    """The claims.

    Args:
        table: of `language_runs.shipped`.
        measured: of `decodings.shipped`.
    """
    small = ends(table[(table["model"] == SMALL) & (table["enter"] > 0)])
    starts = small.groupby("longest")["start_accuracy"].mean().sort_index()
    plain, mixed = small[small["continuous"] == 0], small[small["continuous"] > 0]
    at_longest = [
        part[part["longest"] == part["longest"].max()].set_index("seed")["accuracy"] for part in (plain, mixed)
    ]
    rewards = table[(table["model"] == SMOLLM2) & (table["decoding"] == TRAINING)]
    rewarded = rewards.groupby("step")["accuracy"].mean()
    thinks = table[(table["model"] == SMALL) & (table["enter"] > 0) & (table["step"] == 0) & (table["continuous"] > 0)]
    untrained = thinks.groupby(["longest", "decoding"])["accuracy"].mean().unstack()
    right = measured.set_index(["model", "sums", "decoding"])["accuracy"]
    return {
        "a shorter limit costs the start right sampled answers": bool((starts.diff().iloc[1:] > 0).all()),
        "reward gives every run of discrete chain of thought right sampled answers": bool(
            (plain["accuracy"] > plain["start_accuracy"]).all()
        ),
        "at the longest limit every run of MTS ends below its seed's of discrete chain of thought": bool(
            at_longest[1].lt(at_longest[0]).all()
        ),
        "SmolLM2's reward is higher at the end of its trainings than at their start": bool(
            rewarded.iloc[-1] > rewarded.iloc[0]
        ),
        "thoughts before any training cost SmolLM2 right answers": bool(
            right[SMOLLM2, 1, "base"] < right[SMOLLM2, 1, "greedy tokens"]
        ),
        "both parsers find as many right answers, to four points": bool(
            ((measured["verified"] - measured["accuracy"]).abs() < APART).all()
        ),
        "thoughts before any training cost the small model right answers at every limit": bool(
            (untrained[THOUGHTS] < untrained[TOKENS]).all()
        ),
    }
