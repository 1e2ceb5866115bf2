"""The verdict of a computation on a statement of the paper."""

from typing import NamedTuple


class Verdict(NamedTuple):
    """Whether a statement holds as printed, and whether it holds as corrected.

    `condition` says what the correction assumes. It is read after "holds if".
    """

    printed: bool
    corrected: bool = False
    condition: str = ""

    @property
    def text(self) -> str:
        """The verdict in words: `holds`, `holds if ...` or `refuted`."""
        if self.printed:
            return "holds"
        return f"holds if {self.condition}" if self.corrected else "refuted"
