"""What the chapter `construction` claims of what it has computed, and of the models that were trained."""

import numpy as np
import pandas as pd

from cot2lib.study.analysis.experts import best_rates, last_steps
from cot2lib.study.analysis.solving import SOLVED
from cot2lib.study.claims.training import PERFECT
from cot2lib.training.settings import EMBEDDINGS

CLOSE = 0.02  # difference of mean shares


def checks(
    exact: pd.DataFrame,
    failed: pd.DataFrame,
    curves: pd.DataFrame,
    least: pd.DataFrame,
    cosine: pd.DataFrame,
    tagged: pd.DataFrame,
) -> dict[str, bool]:
    """The chapter's claims about what it has computed."""
    right = exact.set_index("variant").filter(like="right of")
    total = int(failed["inputs"].sum())
    zero = failed["optimum"] == 0
    in_single = tagged[tagged["precision"] == "float32"].groupby("n")[SOLVED].max()
    return {
        "as printed, the inputs with optimum 0 and no others are answered wrong": bool(
            (failed.loc[zero, "answered right"] == 0).all()
            and (failed.loc[~zero, "answered right"] == failed.loc[~zero, "inputs"]).all()
        ),
        "every repair solves every input in both precisions": bool((right.drop("as-written") == total).all(axis=None)),
        "single and double precision agree to half a point at every sharpness": bool(
            np.ptp([part[SOLVED] for _, part in curves.groupby("precision")], axis=0).max() < 0.5
        ),
        "the sufficient sharpness suffices": bool((least["smallest c"] < least["sufficient c"]).all()),
        "the cosine construction solves every input in both precisions": all(
            (cosine[column] == cosine["inputs"]).all() for column in cosine.filter(like="right")
        ),
        "through a tagged vocabulary some c solves four digits in single precision, none six": bool(
            in_single.loc[4] == 100 and in_single.loc[6] < 95
        ),
    }


def trained_checks(rows: pd.DataFrame, blocks: pd.DataFrame) -> dict[str, bool]:
    """What the chapter says of the shipped records; of embeddings without runs nothing holds."""
    mean = rows.groupby(["profile", "d_model", "embedding"])["last"].mean().unstack().reindex(columns=EMBEDDINGS)
    quick, paper = (mean[mean.index.get_level_values("profile") == name] for name in ("quick", "paper"))
    lost = (mean["learned"] - mean["cosine, frozen"]).groupby("profile")
    closing = last_steps(best_rates(blocks)).groupby("feed")[["accuracy", "seen"]].mean()
    return {
        "no trained model or block is perfect on the validation inputs of every seed": not any(
            (100 * part >= PERFECT).all()
            for part in [
                *(part["last"] for _, part in rows.groupby(["profile", "embedding", "d_model"])),
                *(part["accuracy"] for _, part in last_steps(blocks).groupby(["feed", "lr"])),
            ]
        ),
        "under the quick recipe embeddings that start trigonometric do about as well as learned ones": (
            len(quick) > 0 and bool(((quick["cosine"] - quick["learned"]).abs() < CLOSE).all())
        ),
        "under the authors' recipe they do worse": len(paper) > 0 and bool((paper["cosine"] < paper["learned"]).all()),
        "embeddings that stay trigonometric do worse": bool((mean["cosine, frozen"] < mean["cosine"]).all()),
        "and they lose less in more dimensions": all(part.is_monotonic_decreasing for _, part in lost),
        "the block that hands on its output does better than the one that hands on a mixture": bool(
            closing.loc["output", "accuracy"] > closing.loc["mixture", "accuracy"]
        ),
        "that block answers every input it was trained on, whatever the seed": bool(
            closing.loc["output", "seen"] == 1
        ),
    }
