"""Which measurement of policy gradients stands beside which claim."""

from collections.abc import Callable, Sequence
from functools import cache

import pandas as pd

from cot2lib import runs
from cot2lib.specs import GRPOSpec
from cot2lib.specs.profiles import POLICIES
from cot2lib.study import sweeps
from cot2lib.study.claims.supervised import WIDEST_ENTROPY, Direction, NoGain, Number, Sample, contents, run_sample
from cot2lib.study.sweeps import BEST_GAMMA, GAMMAS, KS, MANY
from cot2lib.thoughts import Dirichlet

MTS, DIRICHLET = "grpo_mts", "grpo_dirichlet"  # chapters
D_MODELS = (24, 32)
STEPS = (1, 2, 3, 4)
LAYERS = {"1l": 1, "2l": 2}

Chosen = Callable[[str, Sequence[int]], list[GRPOSpec]]


def sample(chosen: Chosen, first: bool = False) -> Sample:
    """Recorded runs of a profile and seeds, by seed.

    Further columns: `entropy_t` of the last evaluation, or of the one before any step; `base_best`, the best share of
    right answers by base decoding; `lost` and `base_lost`, what the last evaluation lacks of the best, by the own
    sampler and by base decoding.
    """

    def by_seed(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
        specs = chosen(profile, seeds)
        rows = runs.recorded(specs)
        if rows.empty:
            return rows
        known = set(rows["id"])
        points = runs.curves([spec for spec in specs if spec.id in known]).sort_values("step", kind="stable")
        rows = rows.set_index("seed")
        inputs = points["seed"].map(rows["inputs_a"] + rows["inputs_b"])
        points["base"] = (points["base_a"] + points["base_b"]) / inputs
        by_run = points.groupby("seed")
        base_best, last = by_run["base"].max(), by_run.last()
        entropies = (by_run.first() if first else last)[[f"entropy_{step}" for step in STEPS]]
        lost = dict(lost=rows["best"] - rows["last"], base_lost=base_best - last["base"])
        return rows.join(entropies).assign(base_best=base_best, **lost)

    return by_seed


@cache
def sampled(k: int, d_model: int = 24, first: bool = False, **options) -> Sample:
    """Runs of `sweeps.sampled` of one K and dimension."""
    return sample(lambda profile, seeds: sweeps.sampled(profile, seeds, (d_model,), (k,), **options), first)


def high(ratio: str) -> Sample:
    """K = 3, d = 24 at ten times the learning rate."""
    chosen = lambda profile, seeds: sweeps.sampled(
        profile, seeds, (24,), (3,), lr=POLICIES[profile].high_lr, ratio=ratio
    )
    return sample(chosen)


def scaled(k: int) -> Sample:
    """Runs with logits / K, d = 24."""
    return sample(lambda profile, seeds: sweeps.scaled(profile, seeds, (k,)))


@cache
def dirichlet(gamma: float, method: str = "discrete", layers: int = 1) -> Sample:
    """Runs of `sweeps.dirichlet` of one gamma."""
    return sample(lambda profile, seeds: sweeps.dirichlet(profile, seeds, (gamma,), method, layers))


def base_entropies(layers: int, first: bool) -> Sample:
    """Step entropies under base decoding, which is the paper's with Dirichlet thoughts, gamma = 20."""

    def by_seed(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
        specs = sweeps.dirichlet(profile, seeds, (BEST_GAMMA,), layers=layers)
        table, seed_of = contents(profile), {spec.id: spec.seed for spec in specs}
        rows = table[table["id"].isin(seed_of) & (table["when"] == ("before" if first else "after"))]
        rows = rows.assign(seed=rows["id"].map(seed_of))
        return rows.pivot(index="seed", columns="step", values="base_entropy").add_prefix("entropy_")

    return by_seed


def untreated(gamma: float) -> Sample:
    """Dirichlet thoughts on the whole vocabulary."""
    return sample(lambda profile, seeds: sweeps.treated(Dirichlet(gamma, 0.0, most=None), profile, seeds))


def _entropies(stem: str, chapter: str, runs_of: Callable[[bool], Sample]) -> dict[str, Number]:
    """The paper's entropies before and after, of one row of a table."""
    samples = {suffix: runs_of(bool(suffix)) for suffix in ("-sft", "")}
    return {
        f"{stem}-entropy{step}{suffix}": Number(chapter, one, 1, f"entropy_{step}", 1.0, float("inf"), WIDEST_ENTROPY)
        for step in STEPS
        for suffix, one in samples.items()
    }


def _best(gamma: float, method: str = "discrete", layers: int = 1) -> Number:
    """Accuracy after training with Dirichlet thoughts: the paper decodes without noise, and takes the best epoch."""
    return Number(DIRICHLET, dirichlet(gamma, method, layers), 1, "base_best")


def _start(method: str, d_model: int = 24, layers: int = 1) -> Number:
    return Number("csft", run_sample(method, d_model=d_model, layers=layers, heads=layers), 1)


MULTI_TOKEN: dict[str, Number | Direction | NoGain] = {
    **{f"grpo-mts-d{d}-sft": _start("discrete", d) for d in D_MODELS},
    **{f"grpo-mts-d{d}-k{k}": Number(MTS, sampled(k, d), 1, "best") for d in D_MODELS for k in KS},
    **{
        name: number
        for d in D_MODELS
        for k in KS
        for name, number in _entropies(
            f"grpo-mts-d{d}-k{k}", MTS, lambda first, k=k, d=d: sampled(k, d, first)
        ).items()
    },
    "logit-scaling": Direction(MTS, [(sampled(k), "last", scaled(k), "last") for k in KS[1:]]),
    "grpo-k-moderate": Direction(
        MTS, [(sampled(3, d), "best", sampled(k, d), "best") for d in D_MODELS for k in (1, 6)]
    ),
    "k-saturates": NoGain(MTS, [(sampled(MANY), "best", sampled(k), "best") for k in KS[1:]]),
    "gm-stabler": Direction(
        MTS,
        [
            *((sampled(k, ratio="product"), "lost", sampled(k), "lost") for k in KS[1:]),
            (high("product"), "lost", high("geometric"), "lost"),
        ],
        given="the stabler training is that whose last epoch loses less of the best",
    ),
    "third-token-entropy": Direction(
        MTS,
        [(sampled(k, d), "entropy_3", sampled(k, d), f"entropy_{t}") for d in D_MODELS for k in KS for t in (1, 2, 4)],
        scale=1.0,
        widest=WIDEST_ENTROPY,
    ),
}
POINTS_OF_THE_SIMPLEX: dict[str, Number | Direction] = {
    **{f"dirichlet-discrete-{name}-sft": _start("discrete", layers=layers) for name, layers in LAYERS.items()},
    **{f"dirichlet-discrete-{name}": _best(BEST_GAMMA, layers=layers) for name, layers in LAYERS.items()},
    **{
        name: number
        for short, layers in LAYERS.items()
        for name, number in _entropies(
            f"dirichlet-discrete-{short}",
            DIRICHLET,
            lambda first, layers=layers: base_entropies(layers, first),
        ).items()
    },
    "dirichlet-cot2-sft": _start("cot2"),
    **{f"dirichlet-cot2-g{gamma:g}": _best(gamma, "cot2") for gamma in GAMMAS[1:]},
    "gamma-optimum": Direction(
        DIRICHLET,
        [
            (dirichlet(BEST_GAMMA, "cot2"), "base_best", dirichlet(gamma, "cot2"), "base_best")
            for gamma in GAMMAS[1:]
            if gamma != BEST_GAMMA
        ],
    ),
    "dirichlet-unscaled": Direction(
        DIRICHLET,
        [(untreated(GAMMAS[0]), "base_lost", untreated(BEST_GAMMA), "base_lost")],
        given="unstable training is that whose last epoch loses more of the best, by base decoding",
    ),
}
REWARDED = MULTI_TOKEN | POINTS_OF_THE_SIMPLEX
