"""One tidy frame of runs, and one of their curves: accuracies in percent, categories in one order.

Chapters draw, tell and check these frames. `recipe` names the profile in words. A column of `ORDER` is an ordered
category; a value that the book does not have comes after those that it has.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

import pandas as pd

from cot2lib import runs
from cot2lib.runs import records, store
from cot2lib.runs.records import Tables
from cot2lib.specs import Run
from cot2lib.study.report import PERCENT, RECIPES, Text, bullets, recipe
from cot2lib.study.sweeps import STEPS, sweep

SECONDS_AN_HOUR = 3600.0
RESULTS = ["id", *records.INPUTS, *records.SHARES, "seconds", "threads", "device"]
PROBED = "one_layer"  # the supervised sweep whose step entropies the paper prints
# columns that records hold as shares
SHARES = ("accuracy", "last", "best", "split_half", "closing_mean", "curve_mean", "seen")
ORDER: dict[str, tuple] = {
    "recipe": (
        "authors' recipe",
        "authors' recipe, with the arrow",
        "authors' recipe, no dropout or decay",
        "quick recipe",
    ),
    "method": ("CoT2", "COCONUT", "COCONUT, zero slot", "discrete CoT", "no-CoT", "no-CoT, pauses"),
    "fed": ("teacher", "self", "teacher, then self"),
    "embedding": ("learned", "cosine", "cosine, frozen"),
    "when": ("before", "after"),
    "origin": ("discrete CoT, 1 layer", "discrete CoT, 2 layers", "CoT2, 1 layer"),
    "naming": ("age", "once", "fresh"),
    "reading": ("reachable", "sign", "twins"),
    "task": (),  # as they come
}


def _many(word: str) -> Callable[[int], str]:
    return lambda count: f"{count} {word}{'' if count == 1 else 's'}"


NAMES: dict[str, Callable[[object], str]] = {  # of values, where a number alone says too little
    "d_model": "d = {}".format,
    "budget": lambda budget: "every trajectory" if budget == float("inf") else f"B = {budget:g}",
    "k": "K = {}".format,
    "tries": "k = {}".format,
    "temperature": "T = {:g}".format,
    "top_k": lambda kept: f"the {kept} likeliest tokens" if kept else "all tokens",
    "gamma": "\N{GREEK SMALL LETTER GAMMA} = {:g}".format,
    "layers": _many("layer"),
    "heads": _many("head"),
    "tokens": _many("token"),
    "digits": _many("digit"),
    "fed": "fed by {}".format,
    "token": "t = {}".format,
    "decoder": {"own": "own sampler", "base": "base decoding", "discrete": "discrete decoding"}.get,
    "dropout": "dropout {:g}".format,
    "ratio": {"geometric": "geometric mean", "product": "product", "per-draw": "per draw"}.get,
    "naming": {"age": "names by age", "once": "names drawn once", "fresh": "fresh names"}.get,
    "reading": {"reachable": "is it reached?", "sign": "which sign?", "twins": "twins"}.get,
}


def read(requests: Mapping[str, Sequence[Run]], retrained: str | None = None) -> Tables:
    """Tidy rows and curves of the recorded runs of each profile; arguments and errors as `runs.by_profile`."""
    rows, curves = runs.by_profile(requests, retrained)
    return tidy(rows), tidy(curves)


def tidy(rows: pd.DataFrame) -> pd.DataFrame:
    """The frame in percent, with ordered categories, and with `recipe` where it has a profile."""
    rows = rows.assign(**{name: PERCENT * rows[name] for name in SHARES if name in rows})
    if "profile" in rows:
        rows["recipe"] = rows["profile"].map(recipe)
    return rows.assign(**{name: ordered(rows[name], known) for name, known in ORDER.items() if name in rows})


def ordered(values: Iterable, known: Sequence = ()) -> pd.Categorical:
    """Values as an ordered category: those of `known` in its order, then others, numbers by size."""
    values = pd.Series(values)
    values = values.cat.remove_unused_categories() if isinstance(values.dtype, pd.CategoricalDtype) else values
    strange = [value for value in values.dropna().unique() if value not in known]
    strange = sorted(strange) if pd.api.types.is_numeric_dtype(values) else strange
    present = set(values)
    return pd.Categorical(values, [*(value for value in known if value in present), *strange], ordered=True)


def at(rows: pd.DataFrame, **columns) -> pd.DataFrame:
    """The rows whose columns have these values, or one of several in a list; none if there are none."""
    for name, value in columns.items():
        rows = rows[rows[name].isin(value if isinstance(value, list | tuple) else [value])]
    return rows


def hours(rows: pd.DataFrame) -> pd.Series:
    """The time of each run in hours of one core or GPU; a run's share of its stack."""
    cores = rows["threads"].where(rows["device"].str.startswith("cpu"), 1)
    return rows["seconds"] * cores / SECONDS_AN_HOUR


def of_sweep(name: str, profile: str, seeds: tuple[int, ...]) -> pd.DataFrame:
    """What claims know of the recorded runs of a sweep, accuracies as shares."""
    planned, shipped = planned_runs(name, profile, seeds), records.shipped_runs()
    if planned.empty or not shipped["id"].isin(planned["id"]).any():
        return planned[:0]
    rows = planned.merge(shipped[RESULTS], on="id")
    rows["hours"] = hours(rows)
    if "start" in rows or name == PROBED:
        rows = rows.join(of_curves(rows), on="id")
    if "start" in rows:
        rows["before"] = rows["start"].map(shipped.set_index("id")["last"])
    return rows


@cache
def planned_runs(name: str, profile: str, seeds: tuple[int, ...]) -> pd.DataFrame:
    """The columns of a sweep's specs, and their ids; do not change it."""
    return pd.DataFrame([run.columns() | {"id": run.id} for run in sweep(name, profile, seeds)])


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
    halves = {run: store.split_half(curve["base_a"].to_numpy(), curve["base_b"].to_numpy()) for run, curve in by_run}
    right = base.assign(split_half=pd.Series(halves)).rename(columns={"first": "before", "max": "best"})
    shares = right.div(inputs, axis=0).add_prefix("base_")
    return found.join(shares).assign(base_lost=shares["base_best"] - shares["base_last"])


def held_out(rows: pd.DataFrame) -> pd.Series:
    """Inputs that each run is evaluated on."""
    return rows["inputs_a"] + rows["inputs_b"]


def called(column: str, value: object) -> str:
    """A value in words, as legends and sentences have it."""
    return NAMES.get(column, str)(value)


def absent(requests: Mapping[str, Sequence[Run]], by: Sequence[str], retrained: str | None = None) -> Text | None:
    """A bullet for each profile that lacks a record of what is asked for, with the remedy.

    Columns `by` name a run, whatever its seed; the other arguments are those of `read`.
    """
    sentences = []
    for profile, specs in requests.items():
        known = set(runs.recorded(list(dict.fromkeys(specs)), retrain=profile == retrained)["id"])
        lacking = [run for run in specs if run.id not in known]
        if lacking:
            sentences.append(
                f"**Not drawn, {RECIPES[profile]}**: there is no record of {_named(lacking, specs, by)}; set "
                f'`profile = "{profile}"` and `retrain = True`, which trains it and, again, the recorded runs.'
            )
    return bullets(sentences)


def _named(lacking: Sequence[Run], specs: Sequence[Run], by: Sequence[str]) -> str:
    """Runs by name, with their seeds where other seeds are there."""
    name = lambda run: ", ".join(called(column, run.columns()[column]) for column in by)
    told = []
    for label in dict.fromkeys(map(name, lacking)):
        missing, wanted = ({run.seed for run in part if name(run) == label} for part in (lacking, specs))
        told.append(label + ("" if missing == wanted else f" (seed {', '.join(map(str, sorted(missing)))})"))
    return "; ".join(told)
