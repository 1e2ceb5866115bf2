"""GSM8K's files."""

import json

import pytest

from cot2lib.errors import SpecError
from cot2lib.llm import gsm8k

LINES = [
    {"question": "Two hens lay 3 eggs each. How many?", "answer": "2*3=<<2*3=6>>6 eggs.\n#### 6"},
    {"question": "A house costs $1,000 and rises by $200.", "answer": "It is $1,200.\n#### 1,200"},
]


def files(folder, lines=LINES):
    for name in ("train.jsonl", "test.jsonl"):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return folder


def test_load_has_numbers_and_parts(tmp_path):
    """A strange space ends no line."""
    files(tmp_path)
    (tmp_path / "test.jsonl").write_text('{"question": "a\u2028b", "answer": "#### 1"}\n', encoding="utf-8")
    found = gsm8k.load("training", tmp_path)
    assert [story.answer for story in found] == [6.0, 1200.0]
    assert found[0].text == LINES[0]["question"] and found[0].chain == LINES[0]["answer"]
    assert [story.text for story in gsm8k.load("new numbers", tmp_path)] == ["a\u2028b"]


@pytest.mark.parametrize(
    "content",
    [
        "7",
        '{"question": "tru',
        '{"question": "?"}',
        '{"question": "?", "answer": ["#### 6"]}',
        '{"question": "?", "answer": "none"}',
    ],
    ids=lambda content: content[:40],
)
def test_load_names_what_is_no_problem(tmp_path, content):
    files(tmp_path)
    (tmp_path / "train.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(SpecError, match=r"train\.jsonl is damaged \(.*\); download https") as raised:
        gsm8k.load("training", tmp_path)
    assert len(str(raised.value)) < 600 and "\n" not in str(raised.value)


def test_load_downloads_the_published_file(tmp_path, monkeypatch):
    """With the checksum of its own part; `tests/tasks/test_published.py` says what a download does."""
    asked = []
    monkeypatch.setattr(gsm8k, "fetched", lambda *given: asked.append(given[:2]) or files(tmp_path) / "test.jsonl")
    assert len(gsm8k.load("new numbers")) == 2
    assert asked == [(gsm8k.ADDRESS.format("test.jsonl"), gsm8k.CHECKSUMS["test.jsonl"])]
