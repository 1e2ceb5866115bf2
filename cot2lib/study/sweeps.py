"""Sweeps by name: grids of the runs that chapters, claims and `cot2 run` share.

A grid has fields of `cot2lib.spec`, each with a value or a list of values, and stands for every combination, with
each of its seeds. A dictionary holds a value for each profile. Some fields are meant as the paper means them: `budget`
counts trajectories, and one of them is discrete chain of thought; there are as many `heads` as `layers`; runs on the
`split` of a seed have their own seeds for initialisation, data order and dropout alone. A grid with a `start`, itself
a grid, is of policy gradients: its other fields are those of `cot2lib.grpo`. A grid with a `profile` has this one
whichever is asked for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pkgutil import resolve_name
from typing import Any, NamedTuple

from cot2lib.errors import SpecError
from cot2lib.llm.settings import LanguageRun
from cot2lib.specs import GRPOSpec, Run, RunSpec, profiles
from cot2lib.specs.profiles import SEEDS, TEN, TWENTY, grpo, spec
from cot2lib.tasks import MNNS, ProntoQA, ProsQA
from cot2lib.thoughts import MTS, Dirichlet, Rule

Grid = Mapping[str, Any]

D_MODELS = (16, 24, 32)
LARGE = D_MODELS[1:]  # at which the paper claims an advantage
BUDGETS = (1, 2, 4, 8, 16)
STEPS = (1, 2, 3, 4)  # outputs on four digits
KS = (1, 3, 6)  # tokens of a sampled thought
MANY = 12  # tokens beyond the paper's table
GAMMAS = (1.0, 10.0, 20.0, 40.0)  # scales of Dirichlet thoughts
BEST_GAMMA = 20.0  # the paper's choice
DROPOUT = 0.1  # probability of dropout in the current policy alone, and in a rollout's own mask
FIVE_DIGITS = ((5, 13), (11, 19))
USUAL = "as usual"  # what nothing is changed about
SPLIT = SEEDS[0]  # of the paper's single runs, whose accuracies are whole numbers of its held-out inputs
METHODS = ("cot2", "discrete", "coconut", "no-cot")
BOTH = METHODS[:2]

FIVE = [MNNS(low, high, 5) for low, high in FIVE_DIGITS]
START = dict(profile="paper", method="discrete", d_model=24, layers=1)  # of policy gradients on sums
RATES = {  # of single sweeps of policy gradients on sums
    "code_lr": {"paper": 5e-6, "quick": 3e-5},  # the public code's, a tenth of the paper's
    "high_lr": {"paper": 5e-4, "quick": 3e-3},  # to see where training becomes unstable; neither has it
    "dirichlet_lr": {"paper": 1e-5, "quick": 6e-5},  # of Dirichlet thoughts from a discrete start (app. B.4)
    "cot2_lr": {"paper": 1e-6, "quick": 6e-6},  # and from CoT2 (app. B.4)
}
SHAPED = dict(ratio="product", lr=RATES["dirichlet_lr"])  # of Dirichlet thoughts
BEST = dict(thought=Dirichlet(BEST_GAMMA), **SHAPED)
SAMPLED = [MTS(k) for k in KS]
BY_AGE = ProsQA(naming="age")  # named as the published files name them
REACHED = ProntoQA(naming="once")  # as the paper reads it
WIDTHS = (24, 32, 40)  # of the paper's figures on graphs
ON_GRAPHS = dict(thought=[MTS(k) for k in (6, 8, 12)])
# The half of the recipe that the paper states for graphs: neither decay nor dropout. The quick recipe has none of it.
UNDROPPED = dict(dropout=0.0, weight_decay=0.0)
STATED = dict(method={"paper": METHODS, "quick": ()}, **UNDROPPED)
# Evaluated twenty times, to keep records small
OTHER_PROMPT = dict(arrow={"paper": True, "quick": False}, evaluate_every={"paper": 16_400, "quick": 410})
OF_PROSQA, OF_PRONTOQA = (dict(profile="quick", task=task, method=BOTH) for task in (ProsQA(), REACHED))

SWEEPS: dict[str, Grid | Sequence[Grid]] = {
    "methods": (
        dict(method=("cot2", "discrete", "no-cot"), d_model=D_MODELS, seed=TWENTY),
        dict(method=("coconut", "coconut-slot", "pause")),
    ),
    "one_layer": dict(method=BOTH, d_model=D_MODELS, layers=1, seed=TWENTY),
    # Five seeds by the authors' recipe, because three left rows open.
    "feeding": dict(self_fed_from=(None, 0.0, 0.5), d_model=D_MODELS, layers=4,
                    seed={"paper": SEEDS, "quick": SEEDS[:3]}),
    "budgets": dict(budget=BUDGETS, d_model=D_MODELS, seed=TWENTY),
    "other_prompt": (  # with the arrow by the authors' recipe, which has none, and without it by the quick one
        OTHER_PROMPT | dict(budget=BUDGETS[-1], d_model={"paper": D_MODELS, "quick": D_MODELS[:2]}, seed=TEN),
        OTHER_PROMPT | dict(budget={"paper": BUDGETS[1:-1], "quick": ()}, d_model=D_MODELS[0], seed=TEN),
        OTHER_PROMPT | dict(budget={"paper": BUDGETS[1:-1], "quick": ()}, d_model=D_MODELS[1], seed=SEEDS),
    ),
    "sparse": (  # all five, three or one token of the path
        dict(method="discrete", task=FIVE, every=(1, 2), seed=SEEDS[:3]),
        dict(method="no-cot", task=FIVE, seed=SEEDS[:3]),
    ),
    "small": dict(method=BOTH, d_model=24, layers=1),
    "trigonometric": dict(embedding=("cosine", "cosine, frozen"), d_model=LARGE, layers=1),
    # What the paper trained once; twenty initialisations by the authors' recipe.
    "one_split": tuple(dict(split=SPLIT, seed={"paper": TWENTY, "quick": SEEDS}, **shape) for shape in (
        dict(method="cot2", d_model=24, layers=1), dict(method="discrete", d_model=LARGE, layers=1),
        dict(method="discrete", d_model=24, layers=2),
    )),
    "mts": dict(start=START | dict(d_model=LARGE), thought=[*SAMPLED, MTS(MANY)]),
    "mts_one_split": dict(start=START | dict(d_model=LARGE, split=SPLIT), thought=SAMPLED),
    "mts_ratios": dict(start=START, thought=SAMPLED, ratio=("geometric", "product")),
    "mts_ratios_high": dict(start=START, thought=MTS(3), ratio=("geometric", "product"), lr=RATES["high_lr"]),
    # Logits / K and the likelihood ratio, as in the public launch script.
    "mts_scaled": dict(start=START, thought=[MTS(k, temperature=float(k)) for k in KS[1:]], ratio="product"),
    "dirichlet": dict(start=START | dict(method="cot2"), thought=[Dirichlet(gamma) for gamma in GAMMAS],
                      **SHAPED | dict(lr=RATES["cot2_lr"])),
    "dirichlet_best": dict(start=START | dict(layers=(1, 2)), **BEST),
    "dirichlet_one_split": dict(start=START | dict(layers=(1, 2), split=SPLIT), **BEST),
    "dirichlet_whole": dict(
        start=START, thought=[Dirichlet(gamma, 0.0, most=None) for gamma in (GAMMAS[0], BEST_GAMMA)], **SHAPED),
    # Policy gradients of the paper's tables, whose thoughts pages show. Dirichlet thoughts with one layer have twenty
    # seeds, because five left rows on entropies open.
    "looked_into": (
        dict(start=START | dict(d_model=LARGE), thought=SAMPLED),
        dict(start=START, seed=TWENTY, **BEST),
        dict(start=START | dict(layers=2), **BEST),
        dict(start=START | dict(method="cot2"), **BEST | dict(lr=RATES["cot2_lr"])),
    ),
    "prosqa": (dict(task=BY_AGE, method=BOTH, d_model=WIDTHS), dict(task=BY_AGE, method=METHODS)),
    "prontoqa": (dict(task=REACHED, method=BOTH, d_model=WIDTHS), dict(task=REACHED, method=METHODS)),
    "prosqa_bare": dict(task=BY_AGE, **STATED),
    "prontoqa_bare": dict(task=REACHED, **STATED),
    "prosqa_starts": OF_PROSQA,
    "prontoqa_starts": OF_PRONTOQA,
    "prosqa_mts": dict(start=OF_PROSQA, **ON_GRAPHS),
    "prontoqa_mts": dict(start=OF_PRONTOQA, **ON_GRAPHS),
}  # fmt: skip


def sweep(name: str, profile: str = "quick", seeds: Sequence[int] | None = None, **changed) -> list[Run]:
    """The runs of a sweep, each once; with other seeds than it has, or other values of fields."""
    grids = SWEEPS[name] if isinstance(SWEEPS[name], tuple) else (SWEEPS[name],)
    return distinct(*(expanded({**grid, **changed}, profile, seeds) for grid in grids))


def expanded(grid: Grid, profile: str = "quick", seeds: Sequence[int] | None = None) -> list[Run]:
    """The runs of a grid. Seeds change the fastest, fields of a start the slowest."""
    trained, places, own_seeds = _places(grid, profile)
    seeds = own_seeds if seeds is None else seeds
    if "start" not in grid:
        return [_supervised(trained, seed=seed, **fields) for fields in places for seed in seeds]
    start, starts, _ = _places(grid["start"], profile)
    return [
        grpo(_supervised(start, seed=seed, **begun), trained, **fields)
        for begun in starts
        for fields in places
        for seed in seeds
    ]


def _places(grid: Grid, profile: str) -> tuple[str, list[dict[str, Any]], Sequence[int]]:
    """The profile of a grid's runs, the fields of each but for the seed, and the seeds."""
    fields = {
        name: value[profile] if isinstance(value, dict) else value for name, value in grid.items() if name != "start"
    }
    trained, seeds = fields.pop("profile", profile), fields.pop("seed", SEEDS)
    axes = [[*value] if isinstance(value, list | tuple) else [value] for value in fields.values()]
    return trained, [dict(zip(fields, values)) for values in product(*axes)], seeds


def _supervised(profile: str, seed: int, split: int | None = None, **fields) -> RunSpec:
    if "layers" in fields:
        fields["heads"] = fields["layers"]
    if "budget" in fields:
        made = of_budget(fields.pop("budget"), profile, seed=seed, **fields)
    else:
        made = spec(fields.pop("method", "cot2"), profile, seed=seed, **fields)
    return made if split in (None, seed) else replace(made, split=split)


# Runs with other values than a sweep's, for chapters whose parameters these are


def methods(
    profile: str,
    seeds: Sequence[int],
    d_models: Sequence[int],
    names: Sequence[str] = ("cot2", "discrete", "no-cot"),
    layers: int = 2,
) -> list[RunSpec]:
    """Methods on MNNS 4 x 1-9 by embedding dimension, as many heads as layers."""
    return expanded(dict(method=tuple(names), d_model=tuple(d_models), layers=layers), profile, seeds)


def of_budget(budget: int, profile: str = "quick", **options) -> RunSpec:
    """The run that is shown B trajectories: discrete CoT for one, CoT2 for more; `options` are those of `spec`.

    Everywhere but inside a spec B is the number of trajectories; a spec holds None for all of them.
    """
    return spec("discrete", profile, **options) if budget == 1 else spec("cot2", profile, budget=budget, **options)


one_layer, feeding, sparse, small = (partial(sweep, name) for name in ("one_layer", "feeding", "sparse", "small"))
trigonometric, looked_into = (partial(sweep, name) for name in ("trigonometric", "looked_into"))


def on_split(chosen: Sequence[RunSpec]) -> list[RunSpec]:
    """Runs on the one split of the paper's: the seed is that of initialisation, data order and dropout alone."""
    return [run if run.seed == SPLIT else replace(run, split=SPLIT) for run in chosen]


def starts(
    seeds: Sequence[int] = SEEDS,
    d_model: int = 24,
    method: str = "discrete",
    layers: int = 1,
    profile: str = "paper",
) -> list[RunSpec]:
    """Supervised runs that policy gradients start from."""
    return expanded(dict(method=method, d_model=d_model, layers=layers), profile, seeds)


def rewarded(
    chosen: Sequence[RunSpec], profile: str = "quick", thoughts: Sequence[Rule] = (MTS(3),), **options
) -> list[GRPOSpec]:
    """Policy gradients from every start with every rule; `options` are those of `cot2lib.specs.profiles.grpo`."""
    return [grpo(start, profile, thought=thought, **options) for thought in thoughts for start in chosen]


def sampled(
    profile: str = "quick",
    seeds: Sequence[int] = SEEDS,
    d_models: Sequence[int] = LARGE,
    ks: Sequence[int] = KS,
    one_split: bool = False,
    **options,
) -> list[GRPOSpec]:
    """MTS of K tokens from discrete CoT with one layer and one head, which was trained under the profile `paper`."""
    start = START | dict(d_model=tuple(d_models), split=SPLIT if one_split else None)
    return expanded(dict(start=start, thought=[MTS(k) for k in ks]) | options, profile, seeds)


def dirichlet(
    profile: str = "quick",
    seeds: Sequence[int] = SEEDS,
    gammas: Sequence[float] = GAMMAS,
    method: str = "discrete",
    layers: int = 1,
    **options,
) -> list[GRPOSpec]:
    """Dirichlet thoughts from discrete CoT or CoT2 (`method`), d = 24, trained under the profile `paper`."""
    start = START | dict(method=method, layers=layers)
    rate = RATES["cot2_lr" if method == "cot2" else "dirichlet_lr"]
    thoughts = [Dirichlet(gamma) for gamma in gammas]
    return expanded(SHAPED | dict(start=start, thought=thoughts, lr=rate) | options, profile, seeds)


def distinct(*parts: Sequence[Run]) -> list[Run]:
    return list(dict.fromkeys(run for part in parts for run in part))


# The runs of each chapter, as `cot2 run` and the records have them


def function(where: str) -> Callable:
    """A function of the study, as "module:name"; its module may import this one."""
    return resolve_name(f"cot2lib.study.{where}")


def listed(where: str) -> Callable[[str], Sequence[Run]]:
    """A function that lists a profile's runs where no grid can."""
    return lambda profile: function(where)(profile)


class Chapter(NamedTuple):
    """What a chapter trains: sweeps by name or functions, less the runs of other chapters."""

    sweeps: tuple[str | Callable[[str], Sequence[Run]], ...]
    without: tuple[str, ...] = ()


CHAPTERS: dict[str, Chapter] = {
    "csft": Chapter(("methods", "one_layer", "feeding")),
    "budget": Chapter(("budgets", "sparse"), without=("csft",)),
    "sampling": Chapter(("small",)),  # which are of `csft`, too
    "one_split": Chapter(
        ("one_split", listed("reward_runs:on_split")), without=("csft", "grpo_mts", "grpo_dirichlet")
    ),
    "construction": Chapter(("trigonometric",)),
    "search": Chapter((listed("graph_runs:every"),)),  # of `prosqa` and `prontoqa`; not renamed, for its records
    "prosqa": Chapter((listed("prosqa.runs:every"),)),
    "controls": Chapter((listed("controls.runs:every"),)),
    "steps": Chapter((listed("controls.steps:every"),)),  # of the chapter on controls
    "hops": Chapter((listed("controls.steps:every_hop"),)),  # of the same
    "arrow": Chapter(("other_prompt",)),  # of the chapter on budgets
    "grpo_mts": Chapter((listed("reward_runs:every_mts"),)),
    "grpo_dirichlet": Chapter((listed("reward_runs:every_simplex"),)),
}
HALF = ("prosqa",)  # chapters whose weights ship in half precision


def of_chapter(name: str, profile: str) -> list[Run]:
    """All runs that a chapter stands on under a profile; `budget` leaves out those of `csft`, `sampling` repeats some.

    SpecError for a chapter that trains nothing or does not exist, or an unknown profile.
    """
    if name not in CHAPTERS:
        other = " `cot2 llm train` trains its language models." if name == "gsm8k" else ""
        raise SpecError(f"chapter {name!r} has no runs; chapters with runs: {', '.join(CHAPTERS)}.{other}")
    return list(_of_chapter(CHAPTERS[name], profiles.profile(profile)))


@cache
def _of_chapter(chapter: Chapter, profile: str) -> tuple[Run, ...]:
    """A chapter's runs; whoever looks for the chapter of a run asks for all of them."""
    parts = [sweep(part, profile) if isinstance(part, str) else part(profile) for part in chapter.sweeps]
    known = {run for name in chapter.without for run in of_chapter(name, profile)}
    return tuple(run for run in distinct(*parts) if run not in known)


def ships_weights(chapter: str, run: Run) -> bool:
    """Whether a run's trained weights are shipped: those that a page looks into or a later chapter starts from."""
    if chapter == "one_split":
        return isinstance(run, RunSpec) and run.seed in TEN
    if chapter == "search":
        return run in function("graph_runs:looked_into")()
    if chapter == "prosqa":
        return run in function("prosqa.runs:with_weights")()
    if chapter != "csft" or run.method not in ("CoT2", "discrete CoT") or run.seed not in SEEDS:
        return False
    looked_into = run.model.layers == 1 or (run.model.layers == 2 and run.model.d_model == 32)
    return looked_into or run in starts(layers=2)


def where(specs: Sequence[Run | LanguageRun], conditions: Sequence[str]) -> list[Run | LanguageRun]:
    """Specs whose fields (`columns`) equal every "field=value".

    SpecError for no specs, an unknown field, a malformed condition, or if no run is left.
    """
    if not specs:
        raise SpecError("there are no such runs under this profile; choose the other one.")
    columns = {spec: spec.columns() for spec in specs}
    for condition in conditions:
        name, equals, value = condition.partition("=")
        known = list(dict.fromkeys(field for spec in specs for field in columns[spec]))
        if not equals or name not in known:
            raise SpecError(f"condition {condition!r}: write FIELD=VALUE with a field of {', '.join(known)}.")
        left = [spec for spec in specs if str(columns[spec].get(name)) == value]
        if not left:
            values = sorted({str(columns[spec].get(name)) for spec in specs})
            raise SpecError(f"condition {condition!r} leaves no run; {name} is one of {', '.join(values)}.")
        specs = left
    return list(specs)
