"""Collect a chapter's finished runs into the shipped records."""

from collections.abc import Sequence
from pathlib import Path

from cot2lib.errors import SpecError
from cot2lib.runs import collect as merge
from cot2lib.runs import records
from cot2lib.study import measured
from cot2lib.study.book import all_runs
from cot2lib.study.gsm8k import measure as language_runs


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
        table = language_runs.collect(profile, sources)
        shipped = records.ship_table(f"gsm8k.{profile}.evaluations", table, folder)
        return [shipped, *language_runs.ship_models(profile, folder)]
    if chapter in measured.TABLES:
        raise SpecError(f"{chapter} is measured on models: `cot2 measure {chapter}`.")
    specs = all_runs.sweep(chapter, profile)
    shipping = {spec for spec in specs if all_runs.ships_weights(chapter, spec)}
    options = dict(sources=sources, folder=folder, replace=replace, half=chapter in all_runs.HALF)
    return merge.collect(f"{chapter}.{profile}", specs, with_weights=shipping, **options)
