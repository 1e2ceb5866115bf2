"""The number that a response gives, and the reward for it.

That is what follows the last mark `####`, or else the last number of the text. Training and tables go by it.
"""

import re
from collections.abc import Sequence

from cot2lib.llm.stories import MARK

NUMBER = re.compile(r"[-\N{MINUS SIGN}]?\d[\d,]*(?:\.\d+)?")


def number(text: str) -> float | None:
    """The answer of a text, or None if it gives none."""
    _, marked, after = text.rpartition(MARK)
    found = NUMBER.findall(after)
    if not found:
        return None
    chosen = found[0] if marked else found[-1]
    return float(chosen.replace(",", "").replace("\N{MINUS SIGN}", "-"))


def rewards(texts: Sequence[str], answers: Sequence[float | int]) -> list[float]:
    """1 for a right response, 0 for any other."""
    return [float(number(text) == answer) for text, answer in zip(texts, answers, strict=True)]
