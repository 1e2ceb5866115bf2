"""A chapter's checks: sentences that compare, each with what must hold, under the table that it speaks of.

At the shipped parameters a check that does not hold ends the chapter, and so does one whose runs are not there. With
other parameters it prints whether it holds, and nothing fails: what was found need not be so there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cot2lib.errors import CoT2Error
from cot2lib.study import chapters

Holds = bool | np.bool_ | pd.Series | pd.DataFrame | Sequence["Holds"]
NOBODY = "there are no such runs"
HOLDS, FAILS, OTHERWISE, OPEN = WORDS = "holds", "FAILS", "not with these parameters", "cannot be said"


@dataclass(frozen=True)
class Check:
    """The checks of one chapter; what fails raises if the chapter runs with its parameters as `shipped`."""

    shipped: bool

    def __call__(self, sentence: str, holds: Holds | Callable[[], Holds]) -> None:
        """Say whether a sentence holds: of every entry of `holds`, where there are several, and never of none.

        An error of a function that gives them means that the runs are not there. Raises AssertionError if the sentence
        does not hold at the shipped parameters.
        """
        found, why = decided(holds)
        word = HOLDS if found else OPEN if why else FAILS if self.shipped else OTHERWISE
        print(f"{word}: {sentence}{why and f' ({why})'}")
        assert found or not self.shipped, f"{sentence}{why and f': {why}'}"


def begin(chapter: str, given: dict) -> Check:
    """The checks of a chapter, from the notebook's globals; raises SpecError for a parameter it cannot run with."""
    return Check(chapters.check(chapter, given))


def decided(holds: Holds | Callable[[], Holds]) -> tuple[bool, str]:
    """Whether something holds, and why that cannot be decided, if so; TypeError for what is neither true nor false."""
    try:
        found = entries(holds() if callable(holds) else holds)
    except (LookupError, AttributeError, CoT2Error) as lacking:  # `None` stands for a gap without runs
        return False, f"{NOBODY}: {lacking}"
    return all(found), ""


def entries(holds: Holds) -> list[bool]:
    """Every entry of what must hold; raises LookupError where it, or a part of it, has none."""
    if isinstance(holds, bool | np.bool_):
        return [bool(holds)]
    parts = holds.to_numpy().ravel() if isinstance(holds, pd.Series | pd.DataFrame) else holds
    if not isinstance(parts, list | tuple | np.ndarray):
        raise TypeError(f"{holds!r} is neither true nor false; give a comparison.")
    if not len(parts):
        raise LookupError("an empty selection")
    return [entry for part in parts for entry in entries(part)]
