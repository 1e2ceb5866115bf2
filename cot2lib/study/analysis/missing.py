"""What a chapter was asked to draw and nobody has recorded, said in one sentence a profile."""

from collections.abc import Callable, Mapping, Sequence

from cot2lib import runs
from cot2lib.specs import Run
from cot2lib.study.report import recipe


def not_recorded(
    requests: Mapping[str, Sequence[Run]], name: Callable[[Run], str], retrained: str | None = None
) -> list[str]:
    """One sentence per profile that lacks a record of what is asked for: what it is, and the remedy.

    Args:
        requests: runs by profile.
        name: what a run is called, whatever its seed.
        retrained: the profile that is read from the local store, as in `runs.by_profile`.
    """
    sentences = []
    for profile, specs in requests.items():
        rows = runs.recorded(list(dict.fromkeys(specs)), retrain=profile == retrained)
        known = set(rows["id"]) if len(rows) else set()
        absent = [run for run in specs if run.id not in known]
        if absent:
            what = ("" if known else "any of these runs: ") + _named(absent, specs, name)
            sentences.append(not_drawn(profile, f"there is no record of {what}"))
    return sentences


def not_drawn(profile: str, why: str) -> str:
    """That something of a profile is missing from the figures, and the remedy."""
    return (
        f'**Not drawn, {recipe(profile)}**: {why}; set `profile = "{profile}"` and `retrain = True` to make it here.'
    )


def _named(absent: Sequence[Run], specs: Sequence[Run], name: Callable[[Run], str]) -> str:
    """Runs by name, with their seeds where other seeds are there."""
    told = []
    for label in dict.fromkeys(map(name, absent)):
        missing, wanted = ({run.seed for run in part if name(run) == label} for part in (absent, specs))
        which = "" if missing == wanted else f" (seed {', '.join(map(str, sorted(missing)))})"
        told.append(label + which)
    return "; ".join(told)
