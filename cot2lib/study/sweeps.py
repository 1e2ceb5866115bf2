"""Which runs each chapter stands on, per profile: the one list that notebooks, `cot2 run` and `cot2 collect` share."""

from collections.abc import Callable, Sequence

from cot2lib.errors import SpecError
from cot2lib.specs import GRPOSpec, Run, RunSpec
from cot2lib.specs.profiles import POLICIES, SEEDS, grpo, spec
from cot2lib.tasks import MNNS
from cot2lib.thoughts import MTS, Base, Dirichlet, Gaussian, Gumbel, Rule

D_MODELS = (16, 24, 32)
ALL_METHODS = ("cot2", "discrete", "coconut", "coconut-slot", "no-cot", "pause")
BUDGETS = (1, 2, 4, 8, 16)
SWITCH = 0.5  # share of the training before a curriculum's switch to the model's own thoughts
FEEDINGS = {"teacher": None, "self": 0.0, "teacher, then self": SWITCH}
KS = (1, 3, 6)  # tokens of a sampled thought
MANY = 12  # tokens beyond the paper's table
GAMMAS = (1.0, 10.0, 20.0, 40.0)  # scales of Dirichlet thoughts
BEST_GAMMA = 20.0  # the paper's choice
TEMPERATURES = (0.1, 1.0)  # of Gumbel thoughts
SIGMAS = (0.1, 0.3)  # of Gaussian thoughts
MASK = 0.1  # dropout of a rollout's own mask
BETA, GAMMA = "\N{GREEK SMALL LETTER BETA}", "\N{GREEK SMALL LETTER GAMMA}"
SIGMA, TAU = "\N{GREEK SMALL LETTER SIGMA}", "\N{GREEK SMALL LETTER TAU}"

Variants = dict[str, list[GRPOSpec]]  # runs by what is particular about them
FIVE_DIGITS = ((5, 13), (11, 19))


def methods(
    profile: str = "quick",
    seeds: Sequence[int] = SEEDS,
    d_models: Sequence[int] = D_MODELS,
    names: Sequence[str] = ("cot2", "discrete", "no-cot"),
    layers: int = 2,
) -> list[RunSpec]:
    """Methods on MNNS 4 x 1-9 over embedding dimensions, as many heads as layers."""
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


def feeding(profile: str = "quick", seeds: Sequence[int] = SEEDS[:3]) -> list[RunSpec]:
    """Teacher forcing, self-feeding and the curriculum from one to the other, 4 layers, 4 heads."""
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
    """Budgets B of the targets over embedding dimensions; B = 1 is discrete CoT."""
    chosen = {b: ("discrete", None) if b == 1 else ("cot2", b) for b in budgets}
    return [
        spec(name, profile, budget=budget, d_model=d_model, seed=seed)
        for name, budget in chosen.values()
        for d_model in d_models
        for seed in seeds
    ]


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


def trigonometric(
    profile: str = "quick",
    seeds: Sequence[int] = SEEDS,
    d_models: Sequence[int] = (24, 32),
    embeddings: Sequence[str] = ("cosine", "cosine, frozen"),
) -> list[RunSpec]:
    """CoT2 with one layer and one head whose embeddings start, or stay, trigonometric."""
    return [
        spec("cot2", profile, d_model=d_model, layers=1, heads=1, embedding=embedding, seed=seed)
        for embedding in embeddings
        for d_model in d_models
        for seed in seeds
    ]


def starts(
    seeds: Sequence[int] = SEEDS, d_model: int = 24, method: str = "discrete", layers: int = 1, profile: str = "paper"
) -> list[RunSpec]:
    """Supervised runs that policy gradients start from."""
    return methods(profile, seeds, (d_model,), (method,), layers)


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
    **options,
) -> list[GRPOSpec]:
    """MTS of K tokens from discrete CoT with one layer and one head, which was trained under the profile `paper`."""
    thoughts = [MTS(k) for k in ks]
    return [run for d_model in d_models for run in rewarded(starts(seeds, d_model), profile, thoughts, **options)]


def scaled(profile: str = "quick", seeds: Sequence[int] = SEEDS, ks: Sequence[int] = KS[1:]) -> list[GRPOSpec]:
    """Logits / K and the likelihood ratio, as in the public launch script; d = 24."""
    return rewarded(starts(seeds), profile, [MTS(k, temperature=float(k)) for k in ks], ratio="product")


def variants(profile: str = "quick", seeds: Sequence[int] = SEEDS) -> Variants:
    """What can be changed about MTS, d = 24, beside the usual runs; what a name does not mention is as usual."""
    chosen, small = POLICIES[profile], dict(profile=profile, seeds=seeds, d_models=(24,))
    runs = {}
    for k in (*KS, MANY):
        usual = small | {"ks": (k,)}
        runs[f"K = {k}, as usual"] = sampled(**usual)
        if k in KS[1:]:
            runs[f"K = {k}, product"] = sampled(**usual, ratio="product")
            runs[f"K = {k}, logits / K"] = scaled(profile, seeds, (k,))
        if k in KS:
            runs[f"K = {k}, {BETA} = 0.1"] = sampled(**usual, kl=0.1)
    three = small | {"ks": (3,)}
    runs["K = 3, no learning"] = sampled(**three, lr=0.0)
    runs["K = 3, a tenth of the rate"] = sampled(**three, lr=chosen.code_lr)
    runs["K = 3, ten times the rate"] = sampled(**three, lr=chosen.high_lr)
    runs["K = 3, product, ten times the rate"] = sampled(**three, lr=chosen.high_lr, ratio="product")
    runs["K = 3, one-sided dropout"] = sampled(**three, dropout=0.1)
    runs["K = 3, better start"] = rewarded(starts(seeds, profile="quick"), profile)
    runs["K = 6, rising from 1"] = sampled(profile, seeds, (24,), (6,), first_k=1)
    return dict(sorted(runs.items(), key=lambda item: int(item[0].split(",")[0].removeprefix("K = "))))


def dirichlet(
    profile: str = "quick",
    seeds: Sequence[int] = SEEDS,
    gammas: Sequence[float] = GAMMAS,
    method: str = "discrete",
    layers: int = 1,
    **options,
) -> list[GRPOSpec]:
    """Dirichlet thoughts from discrete CoT or CoT2 (`method`), d = 24, trained under the profile `paper`."""
    chosen = POLICIES[profile]
    usual = dict(lr=chosen.cot2_lr if method == "cot2" else chosen.dirichlet_lr, ratio="product")
    thoughts = [Dirichlet(gamma) for gamma in gammas]
    return rewarded(starts(seeds, method=method, layers=layers), profile, thoughts, **usual | options)


def treated(thought: Dirichlet, profile: str = "quick", seeds: Sequence[int] = SEEDS) -> list[GRPOSpec]:
    """Dirichlet thoughts with another treatment of tiny concentrations, from discrete CoT with one layer, d = 24."""
    return rewarded(starts(seeds), profile, [thought], lr=POLICIES[profile].dirichlet_lr, ratio="product")


def looked_into(profile: str = "quick") -> list[GRPOSpec]:
    """The policy-gradient runs of the paper's tables, whose thoughts pages look into."""
    at_best = dict(profile=profile, gammas=(BEST_GAMMA,))
    return [
        *sampled(profile),
        *dirichlet(**at_best),
        *dirichlet(**at_best, layers=2),
        *dirichlet(**at_best, method="cot2"),
    ]


def dirichlet_variants(profile: str = "quick", seeds: Sequence[int] = SEEDS) -> Variants:
    """Dirichlet thoughts at other learning rates, and with other treatments of tiny concentrations; d = 24."""
    chosen, one = POLICIES[profile], dict(profile=profile, seeds=seeds, gammas=(BEST_GAMMA,))
    best, rate = f"{GAMMA} = {BEST_GAMMA:g}", chosen.dirichlet_lr
    runs = {
        f"{best}, as usual": dirichlet(**one),
        f"{best}, no learning": dirichlet(**one, lr=0.0),
        f"{best}, half the rate": dirichlet(**one, lr=rate / 2),
        f"{best}, the rate of MTS": dirichlet(**one, lr=chosen.lr),
    }
    for gamma in (BEST_GAMMA, GAMMAS[0]):
        runs[f"{GAMMA} = {gamma:g}, as usual"] = dirichlet(profile, seeds, (gamma,))
        runs[f"{GAMMA} = {gamma:g}, masked"] = treated(Dirichlet(gamma, masked=True), profile, seeds)
        runs[f"{GAMMA} = {gamma:g}, whole vocabulary"] = treated(Dirichlet(gamma, 0.0, most=None), profile, seeds)
    runs[f"CoT2, {best}"] = dirichlet(**one, method="cot2")
    runs[f"CoT2, {best}, ten times the rate"] = dirichlet(**one, method="cot2", lr=rate)
    return runs


def later(profile: str = "quick", seeds: Sequence[int] = SEEDS) -> Variants:
    """Sampling rules and a normaliser of later papers, beside the paper's rules at one learning rate; d = 24."""
    chosen, rate = starts(seeds), POLICIES[profile].lr
    one = dict(profile=profile, seeds=seeds, d_models=(24,), ks=(3,))
    by = lambda rule, **options: rewarded(chosen, profile, [rule], **options)
    return {
        "MTS, K = 3": sampled(**one),
        "MTS, K = 3, centred": sampled(**one, scaled=False),
        f"Dirichlet, {GAMMA} = {BEST_GAMMA:g}": dirichlet(profile, seeds, (BEST_GAMMA,), lr=rate),
        **{f"Gumbel, {TAU} = {t:g}": by(Gumbel(t), ratio="product") for t in TEMPERATURES},
        **{f"Gaussian, {SIGMA} = {s:g}": by(Gaussian(s), ratio="product") for s in SIGMAS},
        "mask per rollout": by(Base(), mask=MASK),
        "CoT2, mask per rollout": rewarded(
            starts(seeds, method="cot2"), profile, [Base()], mask=MASK, lr=POLICIES[profile].dirichlet_lr
        ),
    }


def _grpo_dirichlet(profile: str) -> list[GRPOSpec]:
    known = {run.id for run in _grpo_mts(profile)}
    tables = [*dirichlet(profile), *dirichlet(profile, method="cot2")]
    tables += dirichlet(profile, gammas=(BEST_GAMMA,), layers=2)
    changed = dirichlet_variants(profile) | later(profile)
    return [run for run in _distinct(tables, *changed.values()) if run.id not in known]


def _grpo_mts(profile: str) -> list[GRPOSpec]:
    return _distinct(sampled(profile), *variants(profile).values())


def _distinct(*parts: Sequence[GRPOSpec]) -> list[GRPOSpec]:
    return list(dict.fromkeys(run for part in parts for run in part))


def _csft(profile: str) -> list[RunSpec]:
    return [*methods(profile), *baselines(profile), *one_layer(profile), *feeding(profile)]


def _budget(profile: str) -> list[RunSpec]:
    known = {run.id for run in methods(profile)}
    return [run for run in [*budgets(profile), *sparse(profile)] if run.id not in known]


SWEEPS: dict[str, Callable[[str], Sequence[Run]]] = {
    "csft": _csft,
    "budget": _budget,
    "sampling": small,
    "construction": trigonometric,
    "grpo_mts": _grpo_mts,
    "grpo_dirichlet": _grpo_dirichlet,
}


def sweep(chapter: str, profile: str) -> list[Run]:
    """All runs that a chapter stands on under a profile; `budget` leaves out those of `csft`, `sampling` repeats some.

    Raises:
        SpecError: for a chapter that trains nothing or does not exist.
    """
    if chapter not in SWEEPS:
        raise SpecError(f"chapter {chapter!r} has no runs; chapters with runs: {', '.join(SWEEPS)}.")
    return list(SWEEPS[chapter](profile))


def ships_weights(chapter: str, run: Run) -> bool:
    """Whether a run's trained weights are shipped: those that a page looks into or a later chapter starts from."""
    if chapter != "csft" or run.method not in ("CoT2", "discrete CoT"):
        return False
    looked_into = run.model.layers == 1 or (run.model.layers == 2 and run.model.d_model == 32)
    return looked_into or run in starts(layers=2)


def where(specs: Sequence[Run], conditions: Sequence[str]) -> list[Run]:
    """Specs whose fields (`columns`) equal every "field=value".

    Raises:
        SpecError: for an unknown field, a malformed condition, or if no run is left.
    """
    for condition in conditions:
        name, equals, value = condition.partition("=")
        known = list(specs[0].columns())
        if not equals or name not in known:
            raise SpecError(f"condition {condition!r}: write FIELD=VALUE with a field of {', '.join(known)}.")
        left = [spec for spec in specs if str(spec.columns().get(name)) == value]
        if not left:
            values = sorted({str(spec.columns().get(name)) for spec in specs})
            raise SpecError(f"condition {condition!r} leaves no run; {name} is one of {', '.join(values)}.")
        specs = left
    return list(specs)
