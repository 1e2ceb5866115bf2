"""What computation makes of a statement of the paper."""

from typing import NamedTuple


class Verdict(NamedTuple):
    """Whether a statement holds as printed, and whether it holds under a condition, to be read after "holds if"."""

    printed: bool
    corrected: bool = False
    condition: str = ""

    @property
    def text(self) -> str:
        """`holds`, `holds if ...` or `refuted`."""
        if self.printed:
            return "holds"
        return f"holds if {self.condition}" if self.corrected else "refuted"
