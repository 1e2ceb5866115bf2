"""Runs of the chapter `grpo_dirichlet`: the paper's tables, what can be changed about them, rules of later papers."""

from collections.abc import Sequence

from cot2lib.specs import GRPOSpec
from cot2lib.specs.profiles import POLICIES, SEEDS, TWENTY
from cot2lib.study.sweeps import (
    BEST_GAMMA,
    DROPOUT,
    GAMMAS,
    USUAL,
    Variant,
    dirichlet,
    distinct,
    looked_into,
    rewarded,
    runs_of,
    sampled,
    starts,
)
from cot2lib.thoughts import Base, Dirichlet, Gaussian, Gumbel

TEMPERATURES = (0.1, 1.0)  # of Gumbel thoughts
SIGMAS = (0.1, 0.3)  # of Gaussian thoughts
MASKED = "mask per rollout"


def every(profile: str) -> list[GRPOSpec]:
    """All runs of the chapter but those on one split, and those that the chapter on sampled tokens has."""
    known = {run.id for run in sampled(profile)}
    changed = runs_of([*variants(profile), *later(profile)])
    return [run for run in distinct(tables(profile), looked_into(profile), changed) if run.id not in known]


def tables(profile: str = "quick", seeds: Sequence[int] = TWENTY) -> list[GRPOSpec]:
    """The runs of the paper's tables, and gamma = 1: the first five seeds, and all from discrete CoT with one layer at
    the best scale."""
    few, best = seeds[: len(SEEDS)], (BEST_GAMMA,)
    one_layer = [*dirichlet(profile, few), *dirichlet(profile, few, method="cot2")]
    return distinct(one_layer, dirichlet(profile, few, best, layers=2), dirichlet(profile, seeds, best))


def on_split(profile: str = "quick", seeds: Sequence[int] = TWENTY) -> list[GRPOSpec]:
    """Dirichlet thoughts of the best scale from both discrete starts of the paper, on the split of its runs."""
    one = dict(gammas=(BEST_GAMMA,), one_split=True)
    return [run for layers in (1, 2) for run in dirichlet(profile, seeds, layers=layers, **one)]


def treated(thought: Dirichlet, profile: str, seeds: Sequence[int]) -> list[GRPOSpec]:
    """Dirichlet thoughts with another treatment of tiny concentrations, from discrete CoT with one layer, d = 24."""
    return rewarded(starts(seeds), profile, [thought], lr=POLICIES[profile].dirichlet_lr, ratio="product")


def variants(profile: str = "quick", seeds: Sequence[int] = SEEDS) -> list[Variant]:
    """Dirichlet thoughts at other learning rates, and with other treatments of tiny concentrations; d = 24."""
    chosen = POLICIES[profile]
    at = lambda change, gamma=BEST_GAMMA, **options: Variant(
        change, tuple(dirichlet(profile, seeds, (gamma,), **options))
    )
    handled = lambda change, thought: Variant(change, tuple(treated(thought, profile, seeds)))
    found = [
        at(USUAL),
        at("no learning", lr=0.0),
        at("half the rate", lr=chosen.dirichlet_lr / 2),
        at("the rate of MTS", lr=chosen.lr),
    ]
    for gamma in (BEST_GAMMA, GAMMAS[0]):
        if gamma != BEST_GAMMA:
            found.append(at(USUAL, gamma))
        found.append(handled("masked", Dirichlet(gamma, masked=True)))
        found.append(handled("whole vocabulary", Dirichlet(gamma, 0.0, most=None)))
    return [*found, at(USUAL, method="cot2"), at("ten times the rate", method="cot2", lr=chosen.dirichlet_lr)]


def later(profile: str = "quick", seeds: Sequence[int] = SEEDS) -> list[Variant]:
    """Sampling rules and a normaliser of later papers, beside the paper's rules at one learning rate; d = 24."""
    chosen, rate = starts(seeds), POLICIES[profile].lr
    one = dict(profile=profile, seeds=seeds, d_models=(24,), ks=(3,))
    noise = [*map(Gumbel, TEMPERATURES), *map(Gaussian, SIGMAS)]
    cot2 = starts(seeds, method="cot2")
    gentle = dict(mask=DROPOUT, lr=POLICIES[profile].dirichlet_lr)
    return [
        Variant(USUAL, tuple(sampled(**one))),
        Variant("centred", tuple(sampled(**one, scaled=False))),
        Variant(USUAL, tuple(dirichlet(profile, seeds, (BEST_GAMMA,), lr=rate))),
        *(Variant(USUAL, tuple(rewarded(chosen, profile, [rule], ratio="product"))) for rule in noise),
        Variant(MASKED, tuple(rewarded(chosen, profile, [Base()], mask=DROPOUT))),
        Variant(MASKED, tuple(rewarded(cot2, profile, [Base()], **gentle))),
    ]
