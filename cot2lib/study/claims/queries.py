"""Queries on recorded runs and measured tables: `source: condition`, the condition in pandas' query language.

`one_layer: method == 'CoT2' and d_model == 32` selects among the runs of the sweep `one_layer` by the columns of their
specs; `votes: ...` among the rows of a table. A query gives rows by seed: what is measured, accuracies as shares.
Claims are queries, so they stand in `claims.csv`.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial

import pandas as pd

from cot2lib.errors import SpecError
from cot2lib.study import construction_block, frame, gsm8k_runs, measured, sweeps, thoughts_held
from cot2lib.study.gsm8k_runs import QWEN
from cot2lib.study.sweeps import SPLIT, SWEEPS

Table = Callable[[str, Sequence[int]], pd.DataFrame]  # rows with a column `seed`
Read = Callable[[str, str], pd.DataFrame]  # the rows of a query under a profile


# Tables that are measured on models


def of_models(sweep: str, table: Callable[[str], pd.DataFrame], **changed) -> Table:
    """The rows of a table by profile, with the method, the layers and the seed of each model of a sweep."""

    def rows(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
        models = sweeps.sweep(sweep, profile, seeds, **changed)
        told = [(run.id, run.seed, run.method, run.model.layers) for run in models]
        return pd.DataFrame(told, columns=["id", "seed", "method", "layers"]).merge(table(profile), on="id")

    return rows


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
    "passk": of_models("small", partial(measured.read, "sampling")),
    "passk_one_split": of_models("small", partial(measured.read, "sampling"), split=SPLIT),
    "prosqa_votes": of_models("prosqa", partial(measured.read, "votes"), d_model=32),
    "prontoqa_votes": of_models("prontoqa", partial(measured.read, "votes"), d_model=32),
    # entropies under base decoding, with Dirichlet thoughts as the paper has them, before and after training
    "thoughts": of_models(
        "dirichlet_best", lambda name: thoughts_held.base_entropies(measured.read("thoughts", name))
    ),
    "experts": blocks,
    "gsm8k": gsm8k,
}


# From a query to rows by seed


def reading(seeds: Sequence[int]) -> Read:
    """Read queries for these seeds. Each sweep and table is read once, and each query answered once."""
    source = cache(lambda name, profile: _source(name, profile, tuple(seeds)))

    def rows(query: str, profile: str) -> pd.DataFrame:
        name, _, condition = query.partition(": ")
        known = source(name, profile)
        return known if known.empty else known.query(condition).set_index("seed")

    return cache(rows)


def _source(name: str, profile: str, seeds: tuple[int, ...]) -> pd.DataFrame:
    """The rows of a table, or those of a sweep's recorded runs."""
    if name in TABLES:
        return TABLES[name](profile, seeds)
    if name not in SWEEPS:
        raise SpecError(f"{name!r} is no source of a query; choose one of {', '.join([*SWEEPS, *TABLES])}.")
    return frame.of_sweep(name, profile, seeds)
