"""What becomes of the paper's theoretical statements when they are computed: as printed, and as corrected.

Every entry checks its statement anew, by the same functions that the theory chapters call; nothing is
looked up. The proofs stand in those chapters.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Statement:
    """A statement of the paper that computation settles.

    Attributes:
        printed: whether it holds as the paper has it.
        corrected: whether it holds under `condition`.
        condition: what has to be added, to be read after "holds if".
        test: the file whose tests fail if the verdict is wrong.
    """

    printed: Callable[[], bool]
    test: str
    corrected: Callable[[], bool] | None = None
    condition: str = ""

    @cached_property
    def verdict(self) -> str:
        """`holds`, `holds if ...` or `refuted`."""
        if self.printed():
            return "holds"
        return f"holds if {self.condition}" if self.corrected is not None and self.corrected() else "refuted"


STATEMENTS: dict[str, Statement] = {}
