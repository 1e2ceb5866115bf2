"""Move results from the local store into the shipped records, and ship what chapters measure beside runs."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd
from torch import Tensor

from cot2lib import runs
from cot2lib.errors import RecordError, SpecError
from cot2lib.kit import paths
from cot2lib.kit.provenance import provenance, resolve_device
from cot2lib.runs import records, store
from cot2lib.specs import Run, by_shape
from cot2lib.study import sweeps
from cot2lib.study.analysis import contents, experts

STORE = None  # the local store, as an origin beside folders of records
Origin = Path | None


def collect(
    chapter: str, profile: str, sources: Sequence[Path] = (), folder: Path | None = None, replace: bool = False
) -> list[Path]:
    """Merge what is shipped, `sources` (folders that `collect` wrote elsewhere) and the local store.

    A run comes whole from one origin, the first that has it: its row, its curve and its weights are of one training.

    An entry of `MEASURES` has no runs of its own to merge: its table is measured here, whatever `folder` it is
    written to.

    Args:
        chapter, profile: whose runs, or which measurement.
        sources: more folders of records, say from another machine.
        folder: where to write, the package's records by default.
        replace: let results that are newer to this folder take the place of shipped ones.

    Returns the files written, and prints what was replaced or left out. Raises RecordError if there is nothing to
    collect, a source holds no records or a file is unreadable; SpecError for `sources` or `replace` where
    a chapter measures.
    """
    folder = folder or paths.RECORDS
    if chapter in MEASURES:
        if sources or replace:
            raise SpecError(f"{chapter} is measured anew whenever it is collected: leave out sources and replace.")
        name, measure = MEASURES[chapter]
        table = measure(profile).assign(**provenance(resolve_device("cpu")))
        return [records.ship_table(f"{chapter}.{profile}.{name}", table, folder)]
    for source in sources:
        if not (source / records.MANIFEST).is_file():
            raise RecordError(f"{source} holds no {records.MANIFEST}; name a folder that `cot2 collect --out` wrote.")
    origins = [*sources, STORE, folder] if replace else [folder, *sources, STORE]
    tables = {origin: records.stored() if origin is STORE else records.shipped(origin) for origin in origins}
    specs = sweeps.sweep(chapter, profile)
    chosen = _chosen(specs, tables)
    if not chosen:
        raise RecordError(f"nothing to collect: no finished run of {chapter} under {profile} in {paths.store()}.")
    stem = f"{chapter}.{profile}"
    before = records.shipped_ids(stem, folder)
    order = [spec.id for spec in specs if spec.id in chosen]
    joined = records.join(tables.values())  # of a run that occurs twice the first, as in `_chosen`
    rows, curves = (part.set_index("id").loc[order].reset_index() for part in joined)
    wanted = [spec.id for spec in specs if spec.id in chosen and sweeps.ships_weights(chapter, spec)]
    weights = {run_id: found for run_id in wanted if (found := _weights(run_id, chosen[run_id]))}
    _report(chapter, specs, before, chosen, folder, set(wanted) - set(weights))
    return records.ship(stem, (rows, curves), weights, folder)


def _pass_at_k(profile: str) -> pd.DataFrame:
    """Pass@k of the small models, of the package's records and, for those that do not ship, of the local store.

    Raises:
        RecordError: if a model is neither shipped nor stored.
    """
    from cot2lib.study.analysis.passk import measure  # needs scipy, which a bare GPU machine may lack

    groups = by_shape(sweeps.sweep("sampling", profile))
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
    return contents.measure_all(sweeps.looked_into(profile), load_starts, load_stack)


# Tables that are measured and not merged from runs: the table's name, and what makes it for a profile.
MEASURES: dict[str, tuple[str, Callable[[str], pd.DataFrame]]] = {
    "sampling": ("passk", _pass_at_k),
    "experts": ("training", _expert_blocks),
    "thoughts": ("contents", _contents),
}


def _chosen(specs: Sequence[Run], tables: Mapping[Origin, records.Tables]) -> dict[str, Origin]:
    """The origin that each run of the sweep is taken from."""
    kept = {spec.id for spec in specs}
    chosen: dict[str, Origin] = {}
    for origin, (rows, _) in tables.items():
        for run_id in kept.intersection(rows["id"]):
            chosen.setdefault(run_id, origin)
    return chosen


def _weights(run_id: str, origin: Origin) -> dict[str, Tensor] | None:
    if origin is not STORE:
        return records.shipped_weights(run_id, origin)
    stack, place = store.finished()[run_id]
    return stack.weights(place)


def _report(
    chapter: str,
    specs: Sequence[Run],
    before: set[str],
    chosen: Mapping[str, Origin],
    folder: Path,
    weightless: set[str],
) -> None:
    """Say what does not end up in the records, or not as it was."""
    shapes, kept = {spec.shape() for spec in specs}, {spec.id for spec in specs}
    finished = [stack.specs[place] for stack, place in store.finished().values()]
    outside = [spec for spec in finished if spec.id not in kept and spec.shape() in shapes]
    replaced = [run_id for run_id in before if chosen.get(run_id, folder) != folder]
    notes = {
        f"replaced in the records of {chapter}": len(replaced),
        f"dropped from the records: no longer in the sweep of {chapter}": len(before - kept),
        f"left in the store: like runs of {chapter}, but not in its sweep": len(outside),
        "without weights where they were taken from (--replace takes them from the store)": len(weightless),
    }
    for what, count in notes.items():
        if count:
            print(f"{count} runs {what}")
