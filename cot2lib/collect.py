"""Move results from the local store into the shipped records."""

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from cot2lib import paths, records, store, sweeps
from cot2lib.errors import RecordError


def collect(
    chapter: str, profile: str, sources: Sequence[Path] = (), folder: Path | None = None, replace: bool = False
) -> list[Path]:
    """Merge what is shipped, `sources` (folders that `collect` wrote elsewhere) and the local store.

    Args:
        chapter, profile: whose runs.
        sources: more folders of records, say from another machine.
        folder: where to write, the package's records by default.
        replace: let results that are newer to this folder take the place of shipped ones.

    Returns the files written. Raises RecordError if there is nothing to collect or a file is unreadable.
    """
    folder = folder or paths.RECORDS
    specs = sweeps.sweep(chapter, profile)
    kept = {spec.id for spec in specs}
    known = [records.shipped(folder)]
    new = [*(records.shipped(source) for source in sources), records.stored()]
    rows, curves = records.choose(records.join([*new, *known] if replace else [*known, *new]), kept)
    if rows.empty:
        raise RecordError(f"nothing to collect: no finished run of {chapter} under {profile} in {paths.store()}.")
    order = [spec.id for spec in specs if spec.id in set(rows["id"])]
    rows = rows.set_index("id").loc[order].reset_index()
    curves = curves.set_index("id").loc[order].reset_index()
    wanted = [s.id for s in specs if s.id in set(order) and sweeps.ships_weights(chapter, s)]
    weights = {run_id: found for run_id in wanted if (found := _weights(run_id, [folder, *sources], replace))}
    return records.ship(f"{chapter}.{profile}", (rows, curves), weights, folder)


def _weights(run_id: str, folders: Sequence[Path], replace: bool) -> dict[str, Tensor] | None:
    stored = store.finished().get(run_id)
    local = [stored[0].weights(stored[1])] if stored else []
    shipped = [found for folder in folders if (found := records.shipped_weights(run_id, folder))]
    return next(iter([*local, *shipped] if replace else [*shipped, *local]), None)
