"""GSM8K's problems (OpenAI's `train.jsonl` and `test.jsonl`), from a folder or downloaded once."""

import json
from pathlib import Path

from cot2lib.errors import SpecError, brief
from cot2lib.kit.files import fetched
from cot2lib.llm import answers
from cot2lib.llm.stories import Story

ADDRESS = "https://raw.githubusercontent.com/openai/grade-school-math/master/grade_school_math/data/{}"
FILES = {"training": "train.jsonl", "new numbers": "test.jsonl"}  # by the names of our own parts
CHECKSUMS = {  # SHA-256 of the published files
    "train.jsonl": "17f347dc51477c50d4efb83959dbb7c56297aba886e5544ee2aaed3024813465",
    "test.jsonl": "3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14",
}


def load(part: str, folder: str | Path | None = None) -> list[Story]:
    """The problems of a part, "training" or "new numbers" (the test set), of a folder; None downloads them."""
    name, remedy = FILES[part], "and name its folder by `--data`"
    address = ADDRESS.format(name)
    path = fetched(address, CHECKSUMS[name], remedy) if folder is None else Path(folder) / name
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # U+2028 ends no line
        return [_problem(**json.loads(line)) for line in lines if line]
    except OSError as error:
        raise SpecError(f"{path}: {error.strerror}; download {address} {remedy}.") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise SpecError(f"{path} is damaged ({brief(error)}); download {address} {remedy}.") from error


def _problem(question: str, answer: str) -> Story:
    number = answers.number(answer)
    if number is None:
        raise ValueError(f"no number after {answer[-20:]!r}")
    return Story(question, answer, number)
