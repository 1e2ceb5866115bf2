"""Runs of the chapter `construction`: a GPT-2 whose embeddings start, or stay, trigonometric."""

from collections.abc import Sequence

from cot2lib.specs import RunSpec
from cot2lib.specs.profiles import SEEDS, spec
from cot2lib.study.sweeps import LARGE


def trigonometric(
    profile: str = "quick",
    seeds: Sequence[int] = SEEDS,
    d_models: Sequence[int] = LARGE,
    embeddings: Sequence[str] = ("cosine", "cosine, frozen"),
) -> list[RunSpec]:
    """CoT2 with one layer and one head whose embeddings start, or stay, trigonometric."""
    return [
        spec("cot2", profile, d_model=d_model, layers=1, heads=1, embedding=embedding, seed=seed)
        for embedding in embeddings
        for d_model in d_models
        for seed in seeds
    ]
