"""Nothing that records, sweeps or chapters say moves unseen (`goldens.py`)."""

import difflib

import pytest
from goldens import GOLDEN, HERE, alike, thinned

FILES = [pytest.param(name, marks=[pytest.mark.pages] * name.endswith(".txt")) for name in GOLDEN]


@pytest.mark.parametrize("name", FILES)
def test_nothing_moves_unseen(name):
    """Those of chapters are compared once `make book` has executed them."""
    golden, now = (HERE / name).read_text().splitlines(), GOLDEN[name]().splitlines()
    if len(golden) == len(now) and all(alike(*pair) for pair in zip(golden, now)):
        return
    moved = "\n".join(list(difflib.unified_diff(golden, now, "golden", "now", lineterm="", n=0))[:40])
    pytest.fail(f"{name} has moved; if that is meant, `make results` writes it anew:\n{moved}", pytrace=False)


def test_no_golden_file_is_left_over():
    assert {path.name for path in HERE.iterdir() if path.suffix in (".csv", ".txt")} == {*GOLDEN}


def test_a_moved_number_or_word_is_seen():
    assert alike("a 1.0001 [2, 3]", "a 1.0002 [2, 3]")
    assert not alike("a 1.001", "a 1.01") and not alike("a 1", "b 1") and not alike("a 1", "a 1 2")
    long = "x,y\n" + "\n".join(f"{n},{n}" for n in range(1000))
    assert thinned(long).splitlines()[1] == "1000 lines" and len(thinned(long).splitlines()) <= 122
