"""Collect a chapter's runs into the shipped records, and what chapters measure beside runs."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from cot2lib import runs
from cot2lib.errors import RecordError, SpecError
from cot2lib.kit import paths
from cot2lib.kit.provenance import provenance, resolve_device
from cot2lib.runs import collect as merge
from cot2lib.runs import records
from cot2lib.runs.lookup import absent, absent_message, weights
from cot2lib.specs import GRPOSpec, Run, by_shape
from cot2lib.specs.profiles import TWENTY
from cot2lib.study import graph_tests, sweeps, thoughts_held
from cot2lib.study.book import all_runs
from cot2lib.study.construction import block
from cot2lib.study.controls import along, edits, transfer
from cot2lib.study.controls import runs as controls
from cot2lib.study.gsm8k import measure as language_runs
from cot2lib.study.prosqa import questions
from cot2lib.study.prosqa import runs as prosqa


def collect(
    chapter: str, profile: str, sources: Sequence[Path] = (), folder: Path | None = None, replace: bool = False
) -> list[Path]:
    """Merge the finished runs of a chapter (`cot2lib.runs.collect`), or measure its table.

    An entry of `MEASURES` has no runs of its own to merge: its table is measured here, whatever `folder` it is
    written to. One of `OF_MODELS` is measured for those trained models that are here; for others the rows that ship
    stay. `gsm8k` is merged from finished runs, which are preferred to what is shipped.

    Args:
        chapter, profile: whose runs, or which measurement.
        sources, folder, replace: see `cot2lib.runs.collect.collect`.

    Returns the files written. Raises RecordError as there; SpecError for `sources` or `replace` where a chapter
    measures.
    """
    if chapter == "gsm8k":
        return _language_models(profile, sources, folder)
    if chapter not in MEASURES | OF_MODELS:
        specs = all_runs.sweep(chapter, profile)
        shipping = {spec for spec in specs if all_runs.ships_weights(chapter, spec)}
        options = dict(sources=sources, folder=folder, replace=replace, half=chapter in all_runs.HALF)
        return merge.collect(f"{chapter}.{profile}", specs, with_weights=shipping, **options)
    if sources or replace:
        raise SpecError(f"{chapter} is measured anew whenever it is collected: leave out sources and replace.")
    if chapter in OF_MODELS:
        stem = f"{chapter}.{profile}.{OF_MODELS[chapter].name}"
        table = _of_models(stem, OF_MODELS[chapter], profile)
    else:
        name, measure = MEASURES[chapter]
        stem, table = f"{chapter}.{profile}.{name}", _provided(measure(profile))
    return [records.ship_table(stem, table, folder or paths.records())]


class OfModels(NamedTuple):
    """A table of rows by run that is measured on trained models.

    Attributes:
        name: of the table.
        specs: the runs of a profile.
        measure: the rows of some runs of one shape, from their models.
    """

    name: str
    specs: Callable[[str], Sequence[Run]]
    measure: Callable[[Sequence[Run]], pd.DataFrame]


def _of_models(stem: str, table: OfModels, profile: str) -> pd.DataFrame:
    """The rows of all runs whose weights are here, after the shipped rows of the others.

    Raises:
        RecordError: if no weights are here.
    """
    if not (asked := table.specs(profile)):
        raise SpecError(f"{stem}: no runs of this profile are asked; choose the other one.")
    here = [run for run in asked if weights(run, retrain=False) is not None]
    if not here:
        raise RecordError(absent_message(asked, retrain=True, lacks="no trained weights"))
    measured = pd.concat([table.measure(group) for group in by_shape(here)], ignore_index=True)
    shipped = records.shipped_rows(stem, [*measured.columns])
    others = {run.id for run in asked} - {run.id for run in here}
    kept = shipped[shipped["id"].isin(others)]
    return pd.concat([kept, _provided(measured)], ignore_index=True) if len(kept) else _provided(measured)


def _provided(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(**provenance(resolve_device("cpu")))


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
    from cot2lib.study.passk import measure  # needs scipy, which a bare GPU machine may lack

    again = [run for run in sweeps.on_split(sweeps.small(profile, TWENTY)) if run.split is not None]
    missing = absent(again, retrain=False)
    groups = by_shape([*all_runs.sweep("sampling", profile), *(run for run in again if run not in missing)])
    tables = [measure(runs.load_stack(specs, missing="error"), specs) for specs in groups]
    return pd.concat(tables, ignore_index=True)


def _expert_blocks(profile: str) -> pd.DataFrame:
    """Training curves of the construction's block.

    Raises:
        SpecError: for the paper profile, of which nothing is known.
    """
    if profile != "quick":
        raise SpecError(f"experts under {profile!r}: the paper says nothing of how it trained them; choose 'quick'.")
    return block.measure()


def _contents(specs: Sequence[GRPOSpec]) -> pd.DataFrame:
    """The thoughts of runs, and how much they hold before and after training."""
    start, trained = (load(specs, missing="error") for load in (runs.load_starts, runs.load_stack))
    return thoughts_held.measure(start, trained, specs)


# Tables that are measured and not merged from runs: the table's name, and what makes it for a profile.
MEASURES: dict[str, tuple[str, Callable[[str], pd.DataFrame]]] = {
    "sampling": ("passk", _pass_at_k),
    "experts": ("training", _expert_blocks),
    "along": ("edits", along.measure),
    "transfer": ("tuned", transfer.measure),
}

OF_MODELS = {
    "thoughts": OfModels("contents", sweeps.looked_into, _contents),
    "searched": OfModels("tested", prosqa.searched, graph_tests.measure),
    "votes": OfModels("majority", prosqa.polled, graph_tests.votes),
    "questions": OfModels("tested", prosqa.compared, questions.measure),
    "farther": OfModels("tested", prosqa.tried_farther, questions.measure_hops),
    "edits": OfModels("answers", controls.thinking, edits.measure),
}
