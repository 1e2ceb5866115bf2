"""Move results from the local store into a folder of shipped records, whole runs at a time.

A run comes whole from one origin, the first that has it: its row, its curve and its weights are of one training.
"""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cot2lib.errors import RecordError, SpecError
from cot2lib.kit import paths
from cot2lib.kit.files import Weight
from cot2lib.kit.frozen import outsiders
from cot2lib.runs import finished, manifest, records, store
from cot2lib.specs import Run


@dataclass(frozen=True)
class Origin:
    """A place to take finished runs from: their rows and curves, and how to get the weights of one."""

    tables: records.Tables
    weights: Callable[[str], dict[str, Weight] | None]


def collect(
    stem: str,
    specs: Sequence[Run],
    *,
    with_weights: Container[Run] = (),
    sources: Sequence[Path] = (),
    folder: Path | None = None,
    replace: bool = False,
    half: bool = False,
) -> list[Path]:
    """Merge what is shipped, `sources` (stores, or folders that `collect` wrote) and the local store.

    What was shipped under `stem` is replaced all at once (`cot2lib.runs.manifest`).

    Args:
        stem: what the records are called, `<chapter>.<profile>`.
        specs: the runs, in the order of the table; those that are not finished are left out.
        with_weights: runs whose weights ship too.
        sources: stores and folders of records, say from other machines.
        folder: where to write, the package's records by default.
        replace: let results that are newer to this folder take the place of shipped ones.
        half: ship weights in half precision, for models that would weigh too much.

    Returns the files written, and prints what was replaced or left out.
    """
    if foreign := [kind.__name__ for spec in specs for kind in outsiders(spec)]:
        raise SpecError(f"{foreign[0]} is defined outside the package: runs with it stay in the local store.")
    folder = folder or paths.records()
    own = _shipped(folder)
    others = [*map(_source, sources), _store()]
    origins = [*others, own] if replace else [own, *others]
    chosen = _chosen(stem, specs, origins)
    before = records.ids_of(stem, folder)
    wanted = [spec.id for spec in specs if spec.id in chosen and spec in with_weights]
    weights = {run_id: found for run_id in wanted if (found := chosen[run_id].weights(run_id))}
    if half:
        weights = {run_id: {name: part.half() for name, part in found.items()} for run_id, found in weights.items()}
    replaced = [run_id for run_id in before if chosen.get(run_id, own) is not own]
    _report(stem, specs, before, replaced, set(wanted) - set(weights))
    order = [spec.id for spec in specs if spec.id in chosen]
    joined = map(records.join, zip(*(origin.tables for origin in origins)))
    rows, curves = (table.set_index("id").loc[order].reset_index() for table in joined)
    return records.ship(stem, (rows, curves), weights, folder)


def _shipped(folder: Path) -> Origin:
    return Origin(records.shipped(folder), partial(records.shipped_weights, folder=folder))


def _source(folder: Path) -> Origin:
    if (folder / manifest.MANIFEST).is_file():
        return _shipped(folder)
    if not any(folder.glob("*.safetensors")):
        raise RecordError(
            f"{folder} holds no {manifest.MANIFEST} and no finished stack; name a folder that `cot2 collect --out` "
            "wrote, or a store."
        )
    return _store(folder)


def _store(folder: Path | None = None) -> Origin:
    def weights(run_id: str) -> dict[str, Weight]:
        stack, place = store.finished(folder)[run_id]
        return stack.weights(place)

    return Origin(finished.tables(folder), weights)


def _chosen(stem: str, specs: Sequence[Run], origins: Sequence[Origin]) -> dict[str, Origin]:
    """The origin that each run is taken from."""
    kept = {spec.id for spec in specs}
    chosen: dict[str, Origin] = {}
    for origin in origins:
        for run_id in kept.intersection(origin.tables[0]["id"]):
            chosen.setdefault(run_id, origin)
    if not chosen:
        raise RecordError(f"nothing to collect: no finished run of {stem} is in {paths.store()}.")
    return chosen


def _report(stem: str, specs: Sequence[Run], before: set[str], replaced: Sequence[str], weightless: set[str]) -> None:
    shapes, kept = {spec.shape() for spec in specs}, {spec.id for spec in specs}
    stored = [stack.specs[place] for stack, place in store.finished().values()]
    outside = [spec for spec in stored if spec.id not in kept and spec.shape() in shapes]
    notes = {
        f"replaced in the records of {stem}": len(replaced),
        f"dropped from the records: no longer in the sweep of {stem}": len(before - kept),
        f"left in the store: like runs of {stem}, but not in its sweep": len(outside),
        "without weights where they were taken from (--replace takes them from the store)": len(weightless),
    }
    for what, count in notes.items():
        if count:
            print(f"{count} runs {what}")
