"""Queries on recorded runs and measured tables: `source: condition`, the condition in pandas' query language.

`one_layer: method == 'CoT2' and d_model == 32` selects among the runs of the sweep `one_layer` by the columns of their
specs; `votes: ...` among the rows of a table. A query gives rows by seed: what is measured, accuracies as shares, and
in `asked` the ids of all runs that it looked for, recorded or not. Claims are queries, so they stand in `claims.csv`.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial

import pandas as pd

from cot2lib.errors import SpecError
from cot2lib.runs import finished, records
from cot2lib.specs import Run
from cot2lib.specs.profiles import POLICIES
from cot2lib.study import construction_block, graph_runs, gsm8k_runs, measured, sweeps, thoughts_held
from cot2lib.study.frame import hours
from cot2lib.study.graph_runs import METHODS, REACHED
from cot2lib.study.gsm8k_runs import QWEN
from cot2lib.study.reward_runs import MANY, scaled, treated
from cot2lib.study.sweeps import BEST_GAMMA, GAMMAS, KS, LARGE, STEPS
from cot2lib.thoughts import Dirichlet

RATIOS, LAYERS = ("geometric", "product"), (1, 2)
RESULTS = ["id", *records.INPUTS, *records.SHARES, "seconds", "threads", "device"]
PROBED = "one_layer"  # the supervised sweep whose step entropies the paper prints

Sweep = Callable[[str, Sequence[int]], Sequence[Run]]  # a profile's runs with these seeds
Table = Callable[[str, Sequence[int]], pd.DataFrame]  # rows with a column `seed`
Read = Callable[[str, str], pd.DataFrame]  # the rows of a query under a profile


# Sources: sweeps of runs, and tables that are measured on their models


def every(*parts: Sweep) -> Sweep:
    """The runs of several sweeps."""
    return lambda profile, seeds: [run for part in parts for run in part(profile, seeds)]


def high(ratio: str) -> Sweep:
    """MTS of three tokens at ten times the learning rate."""
    fixed = dict(d_models=(24,), ks=(3,), ratio=ratio)
    return lambda profile, seeds: sweeps.sampled(profile, seeds, lr=POLICIES[profile].high_lr, **fixed)


def voting(task: str) -> Sweep:
    return partial(graph_runs.voting, tasks=(task,))


dirichlet = partial(sweeps.dirichlet, gammas=(BEST_GAMMA,))
single = partial(sweeps.methods, d_models=(24,), names=("cot2", "discrete"), layers=1)
graphs = partial(graph_runs.dimension, d_models=(32,), methods=METHODS)
SWEEPS: dict[str, Sweep] = {
    "methods": partial(sweeps.methods, d_models=LARGE, names=("cot2", "coconut-slot", "discrete", "no-cot")),
    "one_layer": partial(sweeps.methods, d_models=LARGE, names=("cot2", "discrete"), layers=1),
    "one_split": lambda profile, seeds: sweeps.on_split(
        [
            *sweeps.methods(profile, seeds, LARGE, ("cot2", "discrete"), layers=1),
            *sweeps.methods(profile, seeds, (24,), ("discrete",)),
        ]
    ),
    "budgets": sweeps.budgets,
    "feeding": sweeps.feeding,
    "sparse": sweeps.sparse,
    "trigonometric": sweeps.trigonometric,
    "mts": partial(sweeps.sampled, ks=(*KS, MANY)),
    "mts_one_split": partial(sweeps.sampled, one_split=True),
    "mts_ratios": every(*(partial(sweeps.sampled, d_models=(24,), ratio=ratio) for ratio in RATIOS)),
    "mts_ratios_high": every(*map(high, RATIOS)),
    "mts_scaled": scaled,
    "dirichlet": partial(sweeps.dirichlet, method="cot2"),
    "dirichlet_one_split": every(*(partial(dirichlet, layers=layers, one_split=True) for layers in LAYERS)),
    "dirichlet_whole": every(
        *(partial(treated, Dirichlet(gamma, 0.0, most=None)) for gamma in (GAMMAS[0], BEST_GAMMA))
    ),
    "prosqa": every(graph_runs.dimension, graphs),  # with names that are ages, as the published files name them
    "prontoqa": every(partial(graph_runs.dimension, task=REACHED), partial(graphs, task=REACHED)),
    # The half of the recipe that the paper states: neither decay nor dropout. The quick recipe has none of it.
    "prosqa_bare": lambda profile, seeds: graph_runs.bare(seeds, ("age",), METHODS) if profile == "paper" else [],
    "prontoqa_bare": lambda profile, seeds: graph_runs.bare_answering(seeds) if profile == "paper" else [],
    "prosqa_starts": lambda profile, seeds: graph_runs.starts("ProsQA", seeds),  # the same under every profile
    "prontoqa_starts": lambda profile, seeds: graph_runs.starts("ProntoQA", seeds),
    "prosqa_mts": partial(graph_runs.rewarded, tasks=("ProsQA",)),
    "prontoqa_mts": partial(graph_runs.rewarded, tasks=("ProntoQA",)),
}


def of_models(table: str, models: Sweep) -> Table:
    """A table of `cot2lib.passk` with the method and the seed of each model."""

    def rows(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
        runs = [(run.id, run.seed, run.method) for run in dict.fromkeys(models(profile, seeds))]
        known = pd.DataFrame(runs, columns=["id", "seed", "method"])
        known["asked"] = known.groupby("method")["id"].transform(" ".join)
        return known.merge(measured.read(table, profile), on="id")

    return rows


def base_entropies(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
    """Step entropies under base decoding, with Dirichlet thoughts as the paper has them, before and after training."""
    runs = [run for layers in LAYERS for run in dirichlet(profile, seeds, layers=layers)]
    known = pd.DataFrame([(run.id, run.seed, run.model.layers) for run in runs], columns=["id", "seed", "layers"])
    found = thoughts_held.base_entropies(measured.read("thoughts", profile))
    return known.merge(found, left_on="id", right_index=True).drop(columns="id")


def blocks(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
    """The construction's block, trained from random weights: share of right answers after training, in `last`."""
    rows = construction_block.last_steps(measured.read("experts", profile))
    return rows[rows["seed"].isin(seeds)].assign(last=lambda row: row["accuracy"])


def gsm8k(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
    """Runs of Qwen3 on word problems, as `ends` describes them."""
    table = gsm8k_runs.shipped(profile)
    table = table[(table["model"] == QWEN) & table["seed"].isin(seeds)]
    return gsm8k_runs.ends(table) if len(table) else table


TABLES: dict[str, Table] = {
    "passk": of_models("sampling", single),
    "passk_one_split": of_models("sampling", lambda profile, seeds: sweeps.on_split(single(profile, seeds))),
    "prosqa_votes": of_models("votes", voting("ProsQA")),
    "prontoqa_votes": of_models("votes", voting("ProntoQA")),
    "thoughts": base_entropies,
    "experts": blocks,
    "gsm8k": gsm8k,
}


# From a query to rows by seed


def reading(seeds: Sequence[int]) -> Read:
    """Read queries for these seeds. Each sweep and table is read once, and each query answered once."""
    source = cache(lambda name, profile: _source(name, profile, tuple(seeds)))

    def rows(query: str, profile: str) -> pd.DataFrame:
        name, _, condition = query.partition(": ")
        known, planned = source(name, profile)
        if known.empty:
            return known
        if planned is None:
            return known.query(condition).set_index("seed")
        asked = planned.query(condition)["id"]
        return known[known["id"].isin(asked)].assign(asked=" ".join(asked)).set_index("seed")

    return cache(rows)


def _source(name: str, profile: str, seeds: tuple[int, ...]) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """The rows of a table; of a sweep those of recorded runs, and the columns of all its specs."""
    if name in TABLES:
        return TABLES[name](profile, seeds), None
    if name not in SWEEPS:
        raise SpecError(f"{name!r} is no source of a query; choose one of {', '.join([*SWEEPS, *TABLES])}.")
    planned, shipped = planned_runs(name, profile, seeds), records.shipped_runs()
    if planned.empty or not shipped["id"].isin(planned["id"]).any():
        return planned[:0], planned
    rows = planned.merge(shipped[RESULTS], on="id")
    rows["hours"] = hours(rows)
    if "start" in rows or name == PROBED:
        rows = rows.join(of_curves(rows), on="id")
    if "start" in rows:
        rows["before"] = rows["start"].map(shipped.set_index("id")["last"])
    return rows, planned


@cache
def planned_runs(name: str, profile: str, seeds: tuple[int, ...]) -> pd.DataFrame:
    """The columns of a sweep's specs, and their ids; do not change it."""
    return pd.DataFrame([run.columns() | {"id": run.id} for run in dict.fromkeys(SWEEPS[name](profile, seeds))])


def of_curves(rows: pd.DataFrame) -> pd.DataFrame:
    """What only the learning curves of these runs hold, by id.

    Step entropies (nat) at the last evaluation are `entropy_t`, at the first one `entropy_t_before`, and `entropy` is
    their mean over four steps. `gain` is what the last evaluation has more than the first, `lost` what it has less
    than the best. By base decoding there are `base_before`, `base_last`, `base_best`, `base_split_half`, `base_lost`.
    """
    points = records.shipped_curves(rows["id"]).sort_values("step", kind="stable")
    asked = rows.set_index("id")
    inputs, by_run = held_out(asked), points.groupby("id")
    first, last = by_run.first(), by_run.last()
    names = [f"entropy_{step}" for step in STEPS]
    found = last[names].join(first[names].add_suffix("_before")).assign(entropy=last[names].mean(axis=1))
    found["gain"] = asked["last"] - (first["correct_a"] + first["correct_b"]) / inputs
    found["lost"] = asked["best"] - asked["last"]
    if "base_a" not in points or points["base_a"].isna().all():
        return found
    base = points.assign(base=points["base_a"] + points["base_b"]).groupby("id")["base"].agg(["first", "last", "max"])
    halves = {
        run: finished.split_half(curve["base_a"].to_numpy(), curve["base_b"].to_numpy()) for run, curve in by_run
    }
    right = base.assign(split_half=pd.Series(halves)).rename(columns={"first": "before", "max": "best"})
    shares = right.div(inputs, axis=0).add_prefix("base_")
    return found.join(shares).assign(base_lost=shares["base_best"] - shares["base_last"])


def held_out(rows: pd.DataFrame) -> pd.Series:
    """Inputs that each run is evaluated on."""
    return rows["inputs_a"] + rows["inputs_b"]
