"""Measurements beside the claims on the construction (chapter `construction`): propositions, and the trained block."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from cot2lib.study import measured
from cot2lib.study.comparisons import Reaches
from cot2lib.study.construction import block as blocks
from cot2lib.study.construction.runs import trigonometric
from cot2lib.study.kinds import Kind, Statement
from cot2lib.study.samples import Sample, recorded
from cot2lib.study.sweeps import LARGE
from cot2lib.theory import propositions

PERFECT = 100.0


def cosine(embedding: str, d_model: int) -> Sample:
    """CoT2 with one layer whose embeddings start, or stay, trigonometric."""
    return recorded(lambda profile, seeds: trigonometric(profile, seeds, (d_model,), (embedding,)))


def block(feed: str, lr: float) -> Sample:
    """The construction's block, trained from random weights: share of right answers after training, in `last`."""

    def sample(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
        table = measured.read("experts", profile)
        rows = table[(table["feed"] == feed) & np.isclose(table["lr"], lr) & table["seed"].isin(seeds)]
        return blocks.last_steps(rows).assign(last=lambda row: row["accuracy"]).set_index("seed")

    return sample


TRIGONOMETRIC: list[Sample] = [  # what training with trigonometric embeddings can mean
    *(cosine(embedding, d) for d in LARGE for embedding in ("cosine", "cosine, frozen")),
    *(block(feed, lr) for feed in blocks.FEEDS for lr in blocks.RATES),
]
CONSTRUCTED: dict[str, Kind] = {
    **{claim: Statement(check, "tests/theory/test_construction.py") for claim, check in propositions.CLAIMS.items()},
    "construction-trained": Reaches("construction", TRIGONOMETRIC, PERFECT),
}
