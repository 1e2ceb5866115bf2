"""Runs of the chapters `grpo_mts` and `grpo_dirichlet`: by sweep, and in each by what is changed.

Where nothing is changed the change is `USUAL`. But for `better start` all start from models of the profile `paper`.
"""

from collections.abc import Mapping, Sequence

from cot2lib.specs import GRPOSpec
from cot2lib.specs.profiles import POLICIES, SEEDS, TEN, TWENTY
from cot2lib.study.frame import called
from cot2lib.study.sweeps import (
    BEST_GAMMA,
    DROPOUT,
    GAMMAS,
    KS,
    MANY,
    RATES,
    USUAL,
    dirichlet,
    distinct,
    looked_into,
    rewarded,
    sampled,
    starts,
    sweep,
)
from cot2lib.thoughts import Base, Dirichlet, Gaussian, Gumbel

DIVERGENCE = 0.1  # weight of the penalty, where there is one
FEW = len(SEEDS)
DROPPED = {"paper": len(TEN), "quick": FEW}  # initialisations with dropout on the paper's split

Asked = Mapping[str, Mapping[str, Sequence[GRPOSpec]]]  # runs of a profile by sweep and change


def specs(asked: Asked, but: str = "") -> list[GRPOSpec]:
    """The different runs of all sweeps, or of all but one."""
    return distinct(*(some for sweep, changes in asked.items() if sweep != but for some in changes.values()))


# Multi-token sampling


def mts(profile: str = "quick", seeds: Sequence[int] = TWENTY, split_seeds: Sequence[int] = TWENTY) -> Asked:
    """The paper's table, what can be changed about it, and d = 24 on the split of its runs without and with dropout.

    The table has the first five seeds, and by the authors' recipe all of them for K of 3 and 6 at d = 24.
    """
    more = sampled(profile, seeds, (24,), KS[1:]) if profile == "paper" else []
    one = dict(profile=profile, d_models=(24,), one_split=True)
    dropped = sampled(seeds=split_seeds[: DROPPED[profile]], dropout=DROPOUT, **one)
    return {
        "table": {USUAL: distinct(sampled(profile, seeds[:FEW]), more)},
        "variants": mts_variants(profile, seeds[:FEW]),
        "split": {USUAL: sampled(seeds=split_seeds, **one), "one-sided dropout": dropped},
    }


def mts_variants(profile: str, seeds: Sequence[int]) -> dict[str, list[GRPOSpec]]:
    """Changes of MTS, d = 24, and the usual runs."""
    high = RATES["high_lr"][profile]
    at = lambda *ks, **options: sampled(profile, seeds, (24,), ks, **options)
    return {
        USUAL: at(*KS, MANY),
        f"\N{GREEK SMALL LETTER BETA} = {DIVERGENCE}": at(*KS, kl=DIVERGENCE),
        "product": at(*KS[1:], ratio="product"),
        "logits / K": sweep("mts_scaled", profile, seeds),
        "no learning": at(3, lr=0.0),
        "a tenth of the rate": at(3, lr=RATES["code_lr"][profile]),
        "ten times the rate": at(3, lr=high),
        "product, ten times the rate": at(3, lr=high, ratio="product"),
        "one-sided dropout": at(3, dropout=DROPOUT),
        "better start": rewarded(starts(seeds, profile="quick"), profile),
        "rising from 1": at(6, first_k=1),
    }


def explaining(profile: str) -> list[GRPOSpec]:
    """Runs that tell explanations of the paper's Table 1 apart, on the split of its runs.

    `grpo_mts_predicted.csv` says what each explanation predicts. Twenty initialisations as the text has it, ten with
    the public code's dropout in the current policy, five at the code's learning rate. The quick recipe has the first
    alone, for it evaluates what its runs start from.
    """
    one = dict(profile=profile, one_split=True)
    stated = sampled(seeds=TWENTY, **one)
    if profile != "paper":
        return stated
    dropped = sampled(seeds=TEN, dropout=DROPOUT, **one)
    return [*stated, *dropped, *sampled(lr=RATES["code_lr"][profile], **one)]


def every_mts(profile: str) -> list[GRPOSpec]:
    """All runs of the chapter but those on one split.

    By the authors' recipe K of 3, 6 and 12 have twenty seeds at d = 24, for ten left open whether more tokens help.
    """
    more = sampled(profile, TWENTY, (24,), (MANY,)) if profile == "paper" else []
    return distinct(specs(mts(profile), but="split"), more)


def on_split(profile: str) -> list[GRPOSpec]:
    """The runs of both chapters on the split of the paper's runs."""
    return distinct(*mts(profile)["split"].values(), *simplex(profile)["split"].values(), explaining(profile))


# Dirichlet thoughts, and the rules of later papers


def simplex(profile: str = "quick", seeds: Sequence[int] = TWENTY, split_seeds: Sequence[int] = TWENTY) -> Asked:
    """The paper's tables and gamma = 1, other rates and treatments, later rules, and the split of the paper's runs.

    The tables have the first five seeds, and all from discrete CoT with one layer at the best scale.
    """
    few, best = seeds[:FEW], (BEST_GAMMA,)
    one_layer = [*dirichlet(profile, few), *dirichlet(profile, few, method="cot2")]
    more = [*dirichlet(profile, few, best, layers=2), *dirichlet(profile, seeds, best)]
    return {
        "table": {USUAL: distinct(one_layer, more)},
        "variants": dirichlet_variants(profile, few),
        "later": later(profile, few),
        "split": {USUAL: sweep("dirichlet_one_split", profile, split_seeds)},
    }


def dirichlet_variants(profile: str, seeds: Sequence[int]) -> dict[str, list[GRPOSpec]]:
    """Dirichlet thoughts at other learning rates, and with other treatments of tiny concentrations; d = 24."""
    rate, best, one = RATES["dirichlet_lr"][profile], called("gamma", BEST_GAMMA), called("gamma", GAMMAS[0])
    at = lambda gamma=BEST_GAMMA, **options: dirichlet(profile, seeds, (gamma,), **options)
    treated = lambda rule: rewarded(starts(seeds), profile, [rule], lr=rate, ratio="product")
    return {
        f"{best}, {USUAL}": at(),
        f"{best}, no learning": at(lr=0.0),
        f"{best}, half the rate": at(lr=rate / 2),
        f"{best}, the rate of MTS": at(lr=POLICIES[profile].lr),
        f"{best}, masked": treated(Dirichlet(BEST_GAMMA, masked=True)),
        f"{best}, whole vocabulary": treated(Dirichlet(BEST_GAMMA, 0.0, most=None)),
        f"{one}, {USUAL}": at(GAMMAS[0]),
        f"{one}, masked": treated(Dirichlet(GAMMAS[0], masked=True)),
        f"{one}, whole vocabulary": treated(Dirichlet(GAMMAS[0], 0.0, most=None)),
        f"CoT2, {best}, {USUAL}": at(method="cot2"),
        f"CoT2, {best}, ten times the rate": at(method="cot2", lr=rate),
    }


def later(profile: str, seeds: Sequence[int]) -> dict[str, list[GRPOSpec]]:
    """Sampling rules and a normaliser of later papers, and the paper's rules at the same learning rate; d = 24."""
    chosen = starts(seeds)
    one = dict(profile=profile, seeds=seeds, d_models=(24,), ks=(3,))
    noisy = lambda rule: rewarded(chosen, profile, [rule], ratio="product")
    masked = lambda chosen, **options: rewarded(chosen, profile, [Base()], mask=DROPOUT, **options)
    tau, sigma = "\N{GREEK SMALL LETTER TAU}", "\N{GREEK SMALL LETTER SIGMA}"
    return {
        "MTS, K = 3": sampled(**one),
        "MTS, K = 3, centred": sampled(**one, scaled=False),
        f"Dirichlet, {called('gamma', BEST_GAMMA)}": dirichlet(profile, seeds, (BEST_GAMMA,), lr=POLICIES[profile].lr),
        **{f"Gumbel, {tau} = {noise:g}": noisy(Gumbel(noise)) for noise in (0.1, 1.0)},
        **{f"Gaussian, {sigma} = {noise:g}": noisy(Gaussian(noise)) for noise in (0.1, 0.3)},
        "mask per rollout": masked(chosen),
        "CoT2, mask per rollout": masked(starts(seeds, method="cot2"), lr=RATES["dirichlet_lr"][profile]),
    }


def every_simplex(profile: str) -> list[GRPOSpec]:
    """All runs of the chapter but those on one split, and those that the chapter on sampled tokens has."""
    known = set(sampled(profile))
    return [run for run in distinct(specs(simplex(profile), but="split"), looked_into(profile)) if run not in known]
