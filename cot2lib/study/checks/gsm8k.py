"""What the chapter `gsm8k` claims of the shipped tables and of the small model's responses."""

import pandas as pd

from cot2lib.llm.settings import SMALL, SMOLLM2
from cot2lib.study.analysis.language_runs import TRAINING, ends


def checks(table: pd.DataFrame, measured: pd.DataFrame, before: pd.DataFrame, after: pd.DataFrame) -> dict[str, bool]:
    """The claims.

    Args:
        table: of `language_runs.shipped`.
        measured: of `decodings.shipped`.
        before, after: of `answered.responses`.
    """
    small = ends(table[table["model"] == SMALL])
    starts = small.groupby("longest")["start_accuracy"].mean().sort_index()
    last = small.groupby("longest")["accuracy"].mean().sort_index()
    rewards = table[(table["model"] == SMOLLM2) & (table["decoding"] == TRAINING)]
    first, final = (rewards[rewards["step"] == step]["accuracy"].mean() for step in _ends_of(rewards))
    right = measured.set_index(["model", "sums", "decoding"])["accuracy"]
    parsers = (measured["accuracy"] - measured["verified"]).abs().max()
    return {
        "a shorter limit costs the start right answers": bool((starts.diff().iloc[1:] > 0).all()),
        "reward gives right answers at every limit, in the mean of both methods": bool((last > starts).all()),
        "SmolLM2's reward is higher at the end of its trainings than at their start": bool(final > first),
        "thoughts before any training cost SmolLM2 right answers": bool(
            right[SMOLLM2, 1, "base"] < right[SMOLLM2, 1, "greedy tokens"]
        ),
        "both parsers agree on 99 of 100 answers": bool(parsers < 0.01),
        "the model thinks after its training, and not before": bool(
            (after["thoughts"] != "").all() and (before["thoughts"] == "").all()
        ),
    }


def _ends_of(rewards: pd.DataFrame) -> tuple[int, int]:
    return rewards["step"].min(), rewards["step"].max()
