"""The number that a response gives, and the reward for it.

That is what follows the last mark `####`, or else the last number of the text. Training and tables go by it.
`verified` asks the package math-verify instead, so that a table can say what the choice of a parser does.
"""

import logging
import re
from collections.abc import Sequence

from cot2lib.errors import SpecError
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


def is_right(text: str, answer: float | int) -> bool:
    """Whether a response gives the answer, by `number`."""
    return number(text) == answer


def rewards(texts: Sequence[str], answers: Sequence[float | int]) -> list[float]:
    """1 for a right response, 0 for any other.

    Raises:
        SpecError: if there is not one answer for each text.
    """
    if len(texts) != len(answers):
        raise SpecError(f"{len(texts)} responses for {len(answers)} answers; give one each.")
    return [float(is_right(text, answer)) for text, answer in zip(texts, answers)]


def verified(text: str, answer: float | int) -> bool:
    """Whether a response gives the answer, by the package math-verify, which reads fractions and LaTeX too.

    Raises:
        SpecError: without that package.
    """
    try:
        from math_verify import parse, verify
    except ImportError as error:
        raise SpecError("package 'math-verify' is missing: install it with `pip install math-verify`.") from error
    logging.getLogger("math_verify").setLevel(logging.ERROR)  # it warns of each call without a timeout
    exact = str(int(answer)) if answer == int(answer) else repr(answer)
    return verify(parse(exact, parsing_timeout=None), parse(text, parsing_timeout=None), timeout_seconds=None)
