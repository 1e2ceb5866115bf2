"""How a chapter's claims are decided: those about runs without a record are left out, not failed."""

from collections.abc import Callable, Mapping

import pandas as pd


class NotRecorded(LookupError):
    """A claim is about runs that have no record."""


def part(rows: pd.DataFrame, **columns) -> pd.DataFrame:
    """The rows whose columns have these values.

    Raises:
        NotRecorded: if there are none.
    """
    found = rows
    for name, value in columns.items():
        found = found[found[name] == value]
    if found.empty:
        raise NotRecorded(columns)
    return found


def by_recipe(found: Mapping[str, Mapping[str, bool]]) -> dict[str, bool]:
    """The claims that were decided for each recipe, with the recipe beside them."""
    return {f"{claim} ({name})": holds for name, claims in found.items() for claim, holds in claims.items()}


def decided(claims: Mapping[str, Callable[[], object]]) -> dict[str, bool]:
    """Which claims hold, of those whose runs have records."""
    found = {}
    for claim, holds in claims.items():
        try:
            found[claim] = bool(holds())
        except NotRecorded:
            continue
    return found
