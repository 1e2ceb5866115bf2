"""Collect a chapter's runs into the shipped records, and what chapters measure beside runs."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from cot2lib import runs
from cot2lib.errors import SpecError
from cot2lib.kit import paths
from cot2lib.kit.provenance import provenance, resolve_device
from cot2lib.runs import collect as merge
from cot2lib.runs import records
from cot2lib.runs.lookup import absent
from cot2lib.specs import by_shape
from cot2lib.study import sweeps
from cot2lib.study.analysis import decodings, drift, experts, language_runs, searched, step_costs, thoughts_held, votes
from cot2lib.study.bench import recorded as speed


def collect(
    chapter: str, profile: str, sources: Sequence[Path] = (), folder: Path | None = None, replace: bool = False
) -> list[Path]:
    """Merge the finished runs of a chapter (`cot2lib.runs.collect`), or measure its table.

    An entry of `MEASURES` has no runs of its own to merge: its table is measured here, whatever `folder` it is
    written to. `gsm8k` is merged from finished runs, which are preferred to what is shipped.

    Args:
        chapter, profile: whose runs, or which measurement.
        sources, folder, replace: see `cot2lib.runs.collect.collect`.

    Returns the files written. Raises RecordError as there; SpecError for `sources` or `replace` where a chapter
    measures.
    """
    if chapter == "gsm8k":
        return _language_models(profile, sources, folder)
    if chapter not in MEASURES:
        specs = sweeps.sweep(chapter, profile)
        shipping = {spec for spec in specs if sweeps.ships_weights(chapter, spec)}
        options = dict(with_weights=shipping, sources=sources, folder=folder, replace=replace)
        return merge.collect(f"{chapter}.{profile}", specs, **options)
    if sources or replace:
        raise SpecError(f"{chapter} is measured anew whenever it is collected: leave out sources and replace.")
    name, measure = MEASURES[chapter]
    table = measure(profile).assign(**provenance(resolve_device("cpu")))
    return [records.ship_table(f"{chapter}.{profile}.{name}", table, folder or paths.RECORDS)]


def _language_models(profile: str, sources: Sequence[Path], folder: Path | None) -> list[Path]:
    """Ship evaluations, of which each says where it was made, and the models that the chapter shows."""
    table = language_runs.collect(profile, sources)
    shipped = records.ship_table(f"gsm8k.{profile}.evaluations", table, folder)
    return [shipped, *language_runs.ship_models(profile, folder)]


def _pass_at_k(profile: str) -> pd.DataFrame:
    """Pass@k of the small models, of the package's records and, for those that do not ship, of the local store.

    Those on one split are measured as far as they are there.

    Raises:
        RecordError: if a model is neither shipped nor stored.
    """
    from cot2lib.study.analysis.passk import measure  # needs scipy, which a bare GPU machine may lack

    again = [run for run in sweeps.on_split(sweeps.small(profile)) if run.split is not None]
    missing = absent(again, retrain=False)
    groups = by_shape([*sweeps.sweep("sampling", profile), *(run for run in again if run not in missing)])
    tables = [measure(runs.load_stack(specs, missing="error"), specs) for specs in groups]
    return pd.concat(tables, ignore_index=True)


def _expert_blocks(profile: str) -> pd.DataFrame:
    """Training curves of the construction's block.

    Raises:
        SpecError: for the paper profile, of which nothing is known.
    """
    if profile != "quick":
        raise SpecError(f"experts under {profile!r}: the paper says nothing of how it trained them; choose 'quick'.")
    return experts.measure()


def _contents(profile: str) -> pd.DataFrame:
    """What thoughts of the policy-gradient runs hold that pages look into.

    Raises:
        RecordError: if the weights of a run or its start are neither shipped nor stored.
    """
    load_starts, load_stack = (partial(load, missing="error") for load in (runs.load_starts, runs.load_stack))
    return thoughts_held.measure_all(sweeps.looked_into(profile), load_starts, load_stack)


# Tables that are measured and not merged from runs: the table's name, and what makes it for a profile.
MEASURES: dict[str, tuple[str, Callable[[str], pd.DataFrame]]] = {
    "sampling": ("passk", _pass_at_k),
    "experts": ("training", _expert_blocks),
    "thoughts": ("contents", _contents),
    "drift": ("again", drift.measure),
    "searched": ("tested", searched.measure),
    "votes": ("majority", votes.measure),
    "decodings": ("measured", decodings.measure),
    "steps": ("costs", step_costs.measure),
    "speed": ("measured", speed.measure),
}
