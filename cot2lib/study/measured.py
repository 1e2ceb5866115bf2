"""What ships: finished runs that `cot2 collect` merges, and tables that `cot2 measure` makes on trained models."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from cot2lib.errors import RecordError, SpecError
from cot2lib.kit import paths
from cot2lib.kit.provenance import provenance, resolve_device
from cot2lib.runs import collect as merge
from cot2lib.runs import records
from cot2lib.runs.lookup import absent_message, weights
from cot2lib.specs import by_shape, profiles
from cot2lib.study import gsm8k_runs, sweeps


@dataclass(frozen=True)
class Measured:
    """A table that ships as the record `<name>.<profile>.<of>`; one without rows has its first `columns`, too.

    The function `measure` of the study gives it: of runs of one shape, which the function `runs` lists by profile, or
    of nothing, by the quick recipe.
    """

    of: str
    columns: str
    measure: str
    runs: str = ""


TESTED, EDITED = "id test asked hops inputs strict pair", "id edit dose inputs before right follows"
TABLES = {
    "sampling": Measured("passk", "id temperature top_k k pass_at_k", "sampling:of_runs", "sampling:models"),
    "experts": Measured("training", "feed lr seed step loss accuracy seen", "construction_block:measure"),
    "thoughts": Measured("contents", "id when step base_entropy", "thoughts_held:contents", "sweeps:looked_into"),
    "searched": Measured("tested", "id test inputs strict pair", "prontoqa:measure", "prosqa.runs:searched"),
    "votes": Measured("majority", "id temperature k pass_at_k maj_at_k", "graph_tests:votes", "prosqa.runs:polled"),
    "questions": Measured("tested", TESTED, "prosqa.questions:measure", "prosqa.runs:compared"),
    "edits": Measured("answers", EDITED, "controls.measure:edits", "controls.runs:thinking"),
    "reads": Measured("answers", EDITED, "controls.measure:steps", "controls.steps:asked"),
}


def read(name: str, profile: str = "quick") -> pd.DataFrame:
    """A table as it has shipped; without rows where none has."""
    table = TABLES[name]
    return records.shipped_table(f"{name}.{profile}.{table.of}", table.columns.split())


def measure(name: str, profile: str = "quick", folder: Path | None = None) -> Path:
    """Measure a table and write it into the records, or into a folder.

    Of trained models those are measured that are here; of the others the rows that ship stay. SpecError for a name or
    a profile of which nothing is measured, RecordError if no model is here.
    """
    if name not in TABLES:
        raise SpecError(f"{name!r} is not measured; choose one of {', '.join(TABLES)}.")
    table, profile = TABLES[name], profiles.profile(profile)
    runs = sweeps.function(table.runs)(profile) if table.runs else []
    if not runs and (table.runs or profile != "quick"):
        raise SpecError(f"nothing is measured for {name} under {profile!r}; choose the other profile.")
    here = [run for run in runs if weights(run.id) is not None]
    if runs and not here:
        raise RecordError(absent_message(runs, retrain=True, lacks="no trained weights"))
    rows = [sweeps.function(table.measure)(*group) for group in ([[part] for part in by_shape(here)] or [[]])]
    found = pd.concat(rows, ignore_index=True).assign(**provenance(resolve_device("cpu")))
    if others := {run.id for run in runs} - {run.id for run in here}:
        known = read(name, profile)
        found = pd.concat([known[known["id"].isin(others)], found], ignore_index=True)
    return records.ship_table(f"{name}.{profile}.{table.of}", found, folder or paths.records())


def collect(
    chapter: str, profile: str, sources: Sequence[Path] = (), folder: Path | None = None, replace: bool = False
) -> list[Path]:
    """Merge the finished runs of a chapter (`cot2lib.runs.collect.collect`); of `gsm8k` those are preferred to what is
    shipped.

    Returns the files written. Raises RecordError as there; SpecError for a chapter without runs.
    """
    if chapter == "gsm8k":
        table = gsm8k_runs.collect(profile, sources)
        shipped = records.ship_table(f"gsm8k.{profile}.evaluations", table, folder)
        return [shipped, *gsm8k_runs.ship_models(profile, folder)]
    if chapter in TABLES:
        raise SpecError(f"{chapter} is measured on models: `cot2 measure {chapter}`.")
    specs = sweeps.of_chapter(chapter, profile)
    shipping = {spec for spec in specs if sweeps.ships_weights(chapter, spec)}
    options = dict(sources=sources, folder=folder, replace=replace, half=chapter in sweeps.HALF)
    return merge.collect(f"{chapter}.{profile}", specs, with_weights=shipping, **options)
