"""Samples and kinds of the claims on policy gradients over points of the simplex (chapter `grpo_dirichlet`)."""

from collections.abc import Sequence
from functools import cache

import pandas as pd

from cot2lib.study import measured, sweeps, thoughts_held
from cot2lib.study.comparisons import Cell, Direction, against
from cot2lib.study.grpo_dirichlet import runs
from cot2lib.study.kinds import Kind, Number, accuracy
from cot2lib.study.readings import entropies
from cot2lib.study.samples import ON_SPLIT, Sample, rewarded, single
from cot2lib.study.sweeps import BEST_GAMMA, GAMMAS
from cot2lib.thoughts import Dirichlet

CHAPTER = "grpo_dirichlet"
LAYERS = {"1l": 1, "2l": 2}
SMALLEST, *OTHERS = GAMMAS


@cache
def dirichlet(gamma: float, method: str = "discrete", layers: int = 1, **options) -> Sample:
    """Dirichlet thoughts, from discrete CoT or CoT2."""
    return rewarded(lambda profile, seeds: sweeps.dirichlet(profile, seeds, (gamma,), method, layers, **options))


@cache
def untreated(gamma: float) -> Sample:
    """Dirichlet thoughts on the whole vocabulary, from discrete CoT."""
    whole = Dirichlet(gamma, 0.0, most=None)
    return rewarded(lambda profile, seeds: runs.treated(whole, profile, seeds))


@cache
def base_entropies(layers: int) -> Sample:
    """Step entropies under base decoding, with Dirichlet thoughts as the paper has them.

    Those after training are `entropy_t`, those before it `entropy_t_before`.
    """

    def sample(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
        found = thoughts_held.base_entropies(measured.read("thoughts", profile))
        seed_of = {run.id: run.seed for run in sweeps.dirichlet(profile, seeds, (BEST_GAMMA,), layers=layers)}
        return found[found.index.isin(seed_of)].rename(index=seed_of).rename_axis(index="seed").sort_index()

    return sample


def _best(gamma: float, method: str = "discrete", layers: int = 1) -> Number:
    """Accuracy after training with Dirichlet thoughts: the paper decodes without noise, and takes the best epoch."""
    chosen = dict(last="base_last", best="base_best", split_half="base_split_half", judged="best")
    one_split = method == "discrete"  # from CoT2 every run has a split of its own
    chapters = f"{CHAPTER} one_split" if one_split else CHAPTER
    return Number(chapters, dirichlet(gamma, method, layers, one_split=one_split), 1, **chosen)


def _gained(gamma: float) -> Cell:
    """Reward ends above the CoT2 model that each run starts from, at the epoch that half of the questions choose."""
    return Cell(dirichlet(gamma, "cot2"), "base_split_half", dirichlet(gamma, "cot2"), "base_before")


SIMPLEX: dict[str, Kind] = {
    **{
        f"dirichlet-discrete-{name}-sft": accuracy(single("discrete", 24, layers), 1, ON_SPLIT)
        for name, layers in LAYERS.items()
    },
    **{f"dirichlet-discrete-{name}": _best(BEST_GAMMA, layers=layers) for name, layers in LAYERS.items()},
    **{
        claim: kind
        for name, layers in LAYERS.items()
        for claim, kind in entropies(f"dirichlet-discrete-{name}", CHAPTER, base_entropies(layers)).items()
    },
    "dirichlet-cot2-sft": accuracy(single("cot2", 24), 1, ON_SPLIT),
    **{f"dirichlet-cot2-g{gamma:g}": _best(gamma, "cot2") for gamma in OTHERS},
    "dirichlet-improves": Direction(
        CHAPTER,
        [_gained(gamma) for gamma in OTHERS],
        given="the best epoch counts, chosen on other questions",
    ),
    "gamma-optimum": Direction(
        CHAPTER,
        [
            against(dirichlet(BEST_GAMMA, "cot2"), dirichlet(gamma, "cot2"), "base_best")
            for gamma in OTHERS
            if gamma != BEST_GAMMA
        ],
    ),
    "dirichlet-unscaled": Direction(
        CHAPTER,
        [
            against(untreated(SMALLEST), untreated(BEST_GAMMA), "base_lost"),
            against(dirichlet(SMALLEST, "cot2"), dirichlet(BEST_GAMMA, "cot2"), "base_lost"),
        ],
        given="unstable training is that whose last epoch loses more of the best, by base decoding",
    ),
}
