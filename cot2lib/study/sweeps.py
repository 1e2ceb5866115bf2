"""Runs on MNNS that chapters build on, per profile; `cot2lib.study.book.all_runs` lists those of every chapter."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cot2lib.specs import GRPOSpec, RunSpec
from cot2lib.specs.profiles import POLICIES, SEEDS, TWENTY, grpo, spec
from cot2lib.tasks import MNNS
from cot2lib.thoughts import MTS, Dirichlet, Rule

D_MODELS = (16, 24, 32)
LARGE = D_MODELS[1:]  # at which the paper claims an advantage
BUDGETS = (1, 2, 4, 8, 16)
STEPS = (1, 2, 3, 4)  # outputs on four digits
SWITCH = 0.5  # share of the training before a curriculum's switch to the model's own thoughts
FEEDINGS = {"teacher": None, "self": 0.0, "teacher, then self": SWITCH}
KS = (1, 3, 6)  # tokens of a sampled thought
GAMMAS = (1.0, 10.0, 20.0, 40.0)  # scales of Dirichlet thoughts
BEST_GAMMA = 20.0  # the paper's choice
DROPOUT = 0.1  # probability of dropout in the current policy alone, and in a rollout's own mask
FIVE_DIGITS = ((5, 13), (11, 19))
USUAL = "as usual"  # what nothing is changed about


@dataclass(frozen=True)
class Variant:
    """Runs that differ from the usual ones in one way.

    What else tells them apart (K, gamma, the start) stands in the fields of the runs themselves (`columns`).

    Attributes:
        change: what is changed, in the words of figures; `USUAL` where nothing is.
        specs: the runs.
    """

    change: str
    specs: tuple[GRPOSpec, ...]


def methods(
    profile: str = "quick",
    seeds: Sequence[int] = SEEDS,
    d_models: Sequence[int] = D_MODELS,
    names: Sequence[str] = ("cot2", "discrete", "no-cot"),
    layers: int = 2,
) -> list[RunSpec]:
    """Methods on MNNS 4 x 1-9 by embedding dimension, as many heads as layers."""
    return [
        spec(name, profile, d_model=d_model, layers=layers, heads=layers, seed=seed)
        for name in names
        for d_model in d_models
        for seed in seeds
    ]


def baselines(profile: str = "quick", seeds: Sequence[int] = SEEDS) -> list[RunSpec]:
    """COCONUT both ways and no-CoT with pause tokens, 2 layers, 2 heads, d = 32."""
    return methods(profile, seeds, (32,), ("coconut", "coconut-slot", "pause"))


def one_layer(profile: str = "quick", seeds: Sequence[int] = SEEDS) -> list[RunSpec]:
    """CoT2 and discrete CoT with one layer and one head."""
    return methods(profile, seeds, D_MODELS, ("cot2", "discrete"), layers=1)


def feeding(profile: str = "quick", seeds: Sequence[int] | None = None) -> list[RunSpec]:
    """Teacher forcing, self-feeding and the curriculum from one to the other, 4 layers, 4 heads.

    By default with five seeds of the authors' recipe, for three left rows open, and with three of the quick one.
    """
    if seeds is None:
        seeds = SEEDS if profile == "paper" else SEEDS[:3]
    return [
        spec("cot2", profile, d_model=d_model, layers=4, heads=4, self_fed_from=start, seed=seed)
        for start in FEEDINGS.values()
        for d_model in D_MODELS
        for seed in seeds
    ]


def budgets(
    profile: str = "quick",
    seeds: Sequence[int] = SEEDS,
    d_models: Sequence[int] = D_MODELS,
    budgets: Sequence[int] = BUDGETS,
) -> list[RunSpec]:
    """Budgets B of the targets over embedding dimensions."""
    return [
        of_budget(b, profile, d_model=d_model, seed=seed)
        for b in dict.fromkeys(budgets)
        for d_model in d_models
        for seed in seeds
    ]


def of_budget(budget: int, profile: str = "quick", **options) -> RunSpec:
    """The run that is shown B trajectories: discrete CoT for one, CoT2 for more; `options` are those of `spec`.

    Everywhere but inside a spec B is the number of trajectories; a spec holds None for all of them.
    """
    return spec("discrete", profile, **options) if budget == 1 else spec("cot2", profile, budget=budget, **options)


def sparse(profile: str = "quick", seeds: Sequence[int] = SEEDS[:3]) -> list[RunSpec]:
    """Discrete CoT shown all five, three or one token of the path, five digits of 5-13 and of 11-19."""
    tokens = (("discrete", {}), ("discrete", {"every": 2}), ("no-cot", {}))
    return [
        spec(name, profile, task=MNNS(low, high, 5), seed=seed, **options)
        for low, high in FIVE_DIGITS
        for name, options in tokens
        for seed in seeds
    ]


def small(profile: str = "quick", seeds: Sequence[int] = SEEDS) -> list[RunSpec]:
    """The models of the sampling experiments: CoT2 and discrete CoT, 1 layer, 1 head, d = 24."""
    return methods(profile, seeds, (24,), ("cot2", "discrete"), layers=1)


def on_split(chosen: Sequence[RunSpec], split: int = SEEDS[0]) -> list[RunSpec]:
    """Runs on one split of the inputs: the seed is that of initialisation, data order and dropout alone.

    The paper's single runs are of this split: their accuracies are whole numbers of its held-out inputs.
    """
    return [run if run.seed == split else replace(run, split=split) for run in chosen]


def one_split(profile: str) -> list[RunSpec]:
    """Supervised models that the paper trained once, on the split of that run; d = 24 and 32.

    By the authors' recipe each has twenty initialisations.
    """
    seeds = TWENTY if profile == "paper" else SEEDS
    kinds = dict(method="cot2"), dict(d_model=24), dict(d_model=32), dict(d_model=24, layers=2)
    return on_split([run for kind in kinds for run in starts(seeds, profile=profile, **kind)])


def starts(
    seeds: Sequence[int] = SEEDS,
    d_model: int = 24,
    method: str = "discrete",
    layers: int = 1,
    profile: str = "paper",
    one_split: bool = False,
) -> list[RunSpec]:
    """Supervised runs that policy gradients start from; with `one_split` those of `on_split`."""
    chosen = methods(profile, seeds, (d_model,), (method,), layers)
    return on_split(chosen) if one_split else chosen


def rewarded(
    chosen: Sequence[RunSpec], profile: str = "quick", thoughts: Sequence[Rule] = (MTS(3),), **options
) -> list[GRPOSpec]:
    """Policy gradients from every start with every rule; `options` are those of `cot2lib.specs.profiles.grpo`."""
    return [grpo(start, profile, thought=thought, **options) for thought in thoughts for start in chosen]


def sampled(
    profile: str = "quick",
    seeds: Sequence[int] = SEEDS,
    d_models: Sequence[int] = (24, 32),
    ks: Sequence[int] = KS,
    one_split: bool = False,
    **options,
) -> list[GRPOSpec]:
    """MTS of K tokens from discrete CoT with one layer and one head, which was trained under the profile `paper`."""
    thoughts, chosen = [MTS(k) for k in ks], [starts(seeds, d_model, one_split=one_split) for d_model in d_models]
    return [run for some in chosen for run in rewarded(some, profile, thoughts, **options)]


def dirichlet(
    profile: str = "quick",
    seeds: Sequence[int] = SEEDS,
    gammas: Sequence[float] = GAMMAS,
    method: str = "discrete",
    layers: int = 1,
    one_split: bool = False,
    **options,
) -> list[GRPOSpec]:
    """Dirichlet thoughts from discrete CoT or CoT2 (`method`), d = 24, trained under the profile `paper`."""
    rates = POLICIES[profile]
    usual = dict(lr=rates.cot2_lr if method == "cot2" else rates.dirichlet_lr, ratio="product")
    thoughts = [Dirichlet(gamma) for gamma in gammas]
    chosen = starts(seeds, method=method, layers=layers, one_split=one_split)
    return rewarded(chosen, profile, thoughts, **usual | options)


def looked_into(profile: str = "quick") -> list[GRPOSpec]:
    """The policy-gradient runs of the paper's tables, whose thoughts pages look into.

    Dirichlet thoughts with one layer have twenty seeds, for five left rows on entropies open.
    """
    at_best = dict(profile=profile, gammas=(BEST_GAMMA,))
    return [
        *sampled(profile),
        *dirichlet(seeds=TWENTY, **at_best),
        *dirichlet(**at_best, layers=2),
        *dirichlet(**at_best, method="cot2"),
    ]


def runs_of(variants: Sequence[Variant]) -> list[GRPOSpec]:
    """The different runs of some variants."""
    return distinct(*(variant.specs for variant in variants))


def distinct(*parts: Sequence[GRPOSpec]) -> list[GRPOSpec]:
    """The different runs of some lists."""
    return list(dict.fromkeys(run for part in parts for run in part))
