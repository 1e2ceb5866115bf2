"""Samples and kinds of the claims on policy gradients over thoughts of K tokens (chapter `grpo_mts`)."""

from collections.abc import Sequence
from functools import cache

import pandas as pd

from cot2lib.specs.profiles import POLICIES
from cot2lib.study import sweeps
from cot2lib.study.comparisons import Cell, Direction, NoGain, Parts, against
from cot2lib.study.grpo_mts import runs
from cot2lib.study.grpo_mts.runs import MANY
from cot2lib.study.judge import NAT
from cot2lib.study.kinds import ENTROPY, SETTLED, Kind, Number, accuracy
from cot2lib.study.printed import paper_value
from cot2lib.study.readings import OfStart, entropies
from cot2lib.study.samples import ON_SPLIT, Sample, rewarded, single
from cot2lib.study.sweeps import KS

CHAPTER, REWARDED = "grpo_mts", "grpo_mts one_split"  # the paper's split is that of the first seed
D_MODELS = (24, 32)
EVERY = [(k, d) for d in D_MODELS for k in KS]


@cache
def sampled(k: int, d_model: int = 24, **options) -> Sample:
    """MTS of K tokens, from discrete CoT."""
    return rewarded(lambda profile, seeds: sweeps.sampled(profile, seeds, (d_model,), (k,), **options))


@cache
def high(ratio: str) -> Sample:
    """K = 3, d = 24 at ten times the learning rate."""
    fixed = dict(d_models=(24,), ks=(3,), ratio=ratio)
    return rewarded(lambda profile, seeds: sweeps.sampled(profile, seeds, lr=POLICIES[profile].high_lr, **fixed))


@cache
def scaled(k: int) -> Sample:
    """MTS with logits / K, d = 24."""
    return rewarded(lambda profile, seeds: runs.scaled(profile, seeds, (k,)))


@cache
def single_policy(k: int, d_model: int) -> Sample:
    """MTS of K tokens from several initialisations on the split of the paper's run."""
    return rewarded(lambda profile, seeds: sweeps.sampled(profile, seeds, (d_model,), (k,), one_split=True))


def _best(k: int, d_model: int) -> Number:
    """Accuracy after training by the own sampler; the paper takes the best epoch."""
    return Number(REWARDED, single_policy(k, d_model), 1, best="best", split_half="split_half", judged="best")


def _loses_less(plain: Sample, root: Sample) -> Cell:
    """The plain product loses more of its best than the geometric mean."""
    return against(plain, root, "lost")


def _left(more: int, less: int, d_model: int) -> Cell:
    """More tokens leave more entropy."""
    return against(sampled(more, d_model), sampled(less, d_model), "entropy")


@cache
def begun(k: int, d_model: int) -> Sample:
    """`single_policy` with the accuracy of the discrete model that each run starts from in `before`.

    Those models decode greedily. The profile `paper` trained them, also for runs of `quick`.
    """

    def sample(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
        rows, starts = single_policy(k, d_model)(profile, seeds), single("discrete", d_model)(SETTLED, seeds)
        return starts if starts.empty else rows.join(starts["last"].rename("before"), how="inner")

    return sample


def _gained(k: int, d_model: int) -> Cell:
    """Reward ends above what it starts from."""
    return Cell(begun(k, d_model), "best", begun(k, d_model), "before")


def _first_before(k: int, d_model: int) -> str:
    """The claim on the first thought's entropy before training: K tokens are sampled after it."""
    return f"grpo-mts-d{d_model}-k{k}-entropy1-sft"


def _printed_often(d_model: int) -> str:
    """How the paper's table contradicts those claims: at most one of its values is right."""
    values = ", ".join(f"{paper_value(_first_before(k, d_model)):g}" for k in KS)
    return f"by its own table, which prints {values} for it, which depends on the prompt alone and not on K"


TOKENS: dict[str, Kind] = {
    **{f"grpo-mts-d{d}-sft": accuracy(single("discrete", d), 1, ON_SPLIT) for d in D_MODELS},
    **{f"grpo-mts-d{d}-k{k}": _best(k, d) for k, d in EVERY},
    **{
        claim: kind
        for k, d in EVERY
        for claim, kind in entropies(f"grpo-mts-d{d}-k{k}", REWARDED, single_policy(k, d)).items()
    },
    **{
        _first_before(k, d): OfStart(
            Number(REWARDED, single_policy(k, d), 1, "entropy_1_before", **ENTROPY), refuted=_printed_often(d)
        )
        for k, d in EVERY
    },
    "grpo-improves": Direction(REWARDED, [_gained(k, d) for k, d in EVERY]),
    "logit-scaling": Direction(CHAPTER, [against(sampled(k), scaled(k)) for k in KS[1:]]),
    "grpo-k-moderate": Parts(
        {
            "accuracy": Direction(
                CHAPTER, [against(sampled(3, d), sampled(k, d), "best") for d in D_MODELS for k in (1, 6)]
            ),
            "entropy left": Direction(
                CHAPTER,
                [_left(more, less, d) for d in D_MODELS for less, more in ((1, 3), (3, 6))],
                scale=1.0,
                unit=NAT,
            ),
        }
    ),
    "k-saturates": NoGain(CHAPTER, [against(sampled(MANY), sampled(k), "best") for k in KS[1:]]),
    "gm-stabler": Direction(
        CHAPTER,
        [*(_loses_less(sampled(k, ratio="product"), sampled(k)) for k in KS[1:]),
         _loses_less(high("product"), high("geometric"))],
        given="the stabler training is that whose last epoch loses less of the best",
    ),
    "third-token-entropy": Direction(
        CHAPTER,
        [Cell(sampled(k, d), "entropy_3", sampled(k, d), f"entropy_{t}") for k, d in EVERY for t in (1, 2, 4)],
        scale=1.0,
        unit=NAT,
    ),
}  # fmt: skip
