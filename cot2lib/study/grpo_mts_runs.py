"""Runs of the chapter `grpo_mts`: the paper's table, what can be changed about it, and the split of its runs."""

from collections.abc import Sequence

from cot2lib.specs import GRPOSpec
from cot2lib.specs.profiles import POLICIES, SEEDS, TEN, TWENTY
from cot2lib.study.sweeps import DROPOUT, KS, USUAL, Variant, distinct, rewarded, runs_of, sampled, starts
from cot2lib.thoughts import MTS

MANY = 12  # tokens beyond the paper's table
DIVERGENCE = 0.1  # weight of the penalty, where there is one
PENALTY = f"\N{GREEK SMALL LETTER BETA} = {DIVERGENCE}"


def every(profile: str) -> list[GRPOSpec]:
    """All runs of the chapter but those on one split.

    By the authors' recipe K of 3, 6 and 12 have twenty seeds at d = 24, for ten left open whether more tokens help.
    """
    more = sampled(profile, TWENTY, (24,), (*KS[1:], MANY)) if profile == "paper" else []
    return distinct(sampled(profile), runs_of(variants(profile)), more)


def tables(profile: str = "quick", seeds: Sequence[int] = TWENTY) -> list[GRPOSpec]:
    """The runs of the paper's table: the first five seeds, and all of them for K of 3 and 6 at d = 24 by the authors'
    recipe."""
    more = sampled(profile, seeds, (24,), KS[1:]) if profile == "paper" else []
    return distinct(sampled(profile, seeds[: len(SEEDS)]), more)


def on_split(profile: str = "quick", seeds: Sequence[int] = SEEDS) -> list[GRPOSpec]:
    """MTS of the paper's K on the split of its runs, d = 24, without dropout and with the public code's."""
    one = dict(profile=profile, seeds=seeds, d_models=(24,), one_split=True)
    return [*sampled(**one), *sampled(**one, dropout=DROPOUT)]


def explaining(profile: str) -> list[GRPOSpec]:
    """Runs that tell explanations of the paper's Table 1 apart, on the split of its runs.

    `grpo_mts_predicted.csv` says what each explanation predicts; it was committed before they ran. Twenty
    initialisations as the text has it, ten with the public code's dropout in the current policy, five at the code's
    learning rate. The quick recipe has the first alone, for it evaluates what its runs start from.
    """
    asked = dict(profile=profile, one_split=True)
    stated = sampled(seeds=TWENTY, **asked)
    if profile != "paper":
        return stated
    return [
        *stated,
        *sampled(seeds=TEN, dropout=DROPOUT, **asked),
        *sampled(lr=POLICIES[profile].code_lr, **asked),
    ]


def scaled(profile: str = "quick", seeds: Sequence[int] = SEEDS, ks: Sequence[int] = KS[1:]) -> list[GRPOSpec]:
    """Logits / K and the likelihood ratio, as in the public launch script; d = 24."""
    return rewarded(starts(seeds), profile, [MTS(k, temperature=float(k)) for k in ks], ratio="product")


def variants(profile: str = "quick", seeds: Sequence[int] = SEEDS) -> list[Variant]:
    """Changes of MTS, d = 24, beside the usual runs, in the order of K."""
    return [found for k in (*KS, MANY) for found in _variants_of(k, profile, seeds)]


def _variants_of(k: int, profile: str, seeds: Sequence[int]) -> list[Variant]:
    changed = lambda change, **options: Variant(change, tuple(sampled(profile, seeds, (24,), (k,), **options)))
    found = [changed(USUAL)]
    if k in KS[1:]:
        found += [changed("product", ratio="product"), Variant("logits / K", tuple(scaled(profile, seeds, (k,))))]
    if k in KS:
        found.append(changed(PENALTY, kl=DIVERGENCE))
    if k == 3:
        chosen = POLICIES[profile]
        better = rewarded(starts(seeds, profile="quick"), profile)
        found += [
            changed("no learning", lr=0.0),
            changed("a tenth of the rate", lr=chosen.code_lr),
            changed("ten times the rate", lr=chosen.high_lr),
            changed("product, ten times the rate", lr=chosen.high_lr, ratio="product"),
            changed("one-sided dropout", dropout=DROPOUT),
            Variant("better start", tuple(better)),
        ]
    if k == 6:
        found.append(changed("rising from 1", first_k=1))
    return found
