"""Collect a chapter's finished runs into the shipped records."""

from collections.abc import Sequence
from pathlib import Path

from cot2lib.errors import SpecError
from cot2lib.runs import collect as merge
from cot2lib.runs import records
from cot2lib.study import gsm8k_runs, measured, sweeps


def collect(
    chapter: str, profile: str, sources: Sequence[Path] = (), folder: Path | None = None, replace: bool = False
) -> list[Path]:
    """Merge the finished runs of a chapter; of `gsm8k` those are preferred to what is shipped.

    Args:
        chapter, profile: whose runs.
        sources, folder, replace: see `cot2lib.runs.collect.collect`.

    Returns the files written. Raises RecordError as there; SpecError for a chapter without runs.
    """
    if chapter == "gsm8k":
        table = gsm8k_runs.collect(profile, sources)
        shipped = records.ship_table(f"gsm8k.{profile}.evaluations", table, folder)
        return [shipped, *gsm8k_runs.ship_models(profile, folder)]
    if chapter in measured.TABLES:
        raise SpecError(f"{chapter} is measured on models: `cot2 measure {chapter}`.")
    specs = sweeps.of_chapter(chapter, profile)
    shipping = {spec for spec in specs if sweeps.ships_weights(chapter, spec)}
    options = dict(sources=sources, folder=folder, replace=replace, half=chapter in sweeps.HALF)
    return merge.collect(f"{chapter}.{profile}", specs, with_weights=shipping, **options)
