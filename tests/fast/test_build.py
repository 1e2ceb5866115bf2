"""The fused engine's library: when it is built, where it is kept, and what happens where it cannot be."""

import re
import subprocess
import sys

import pytest

from cot2lib import fast

pytestmark = pytest.mark.skipif(not any(map(fast.shutil.which, fast.COMPILERS)), reason="no compiler")


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A copy of the source that was not built yet, in a folder of its own."""
    copy = tmp_path / "engine.cpp"
    copy.write_text('// nothing of it is left\nextern "C" long scratch() { return 7; }\n')
    monkeypatch.setattr(fast, "SOURCE", copy)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    fast.library.cache_clear()
    yield copy
    fast.library.cache_clear()


def libraries(source):
    return sorted((source.parent / "__pycache__").glob("*"))


def test_both_languages_name_the_same_fields():
    text = fast.SOURCE.read_text()
    kinds = [kind for kind in vars(fast).values() if hasattr(kind, "_fields")]
    assert len(kinds) == 9
    for kind in kinds:
        body = re.search(rf"struct {kind.__name__} {{(.*?)(?:}};|\n\n)", text, re.DOTALL)[1]
        declared = re.sub(r"//.*|<[^>]*>|= \d+", "", body)
        names = [name for part in declared.split(";") for name in re.findall(r"(\w+)\s*(?:,|$)", part.strip())]
        assert tuple(names) == kind._fields


def test_a_source_is_built_once_and_anew_when_it_is_edited(elsewhere, capsys):
    assert fast.library().scratch() == 7 and "compiling" in capsys.readouterr().out
    (first,) = libraries(elsewhere)
    fast.library.cache_clear()
    assert fast.library().scratch() == 7 and capsys.readouterr().out == ""
    elsewhere.write_text(elsewhere.read_text().replace("7", "8"))
    fast.library.cache_clear()
    assert fast.library().scratch() == 8 and len(libraries(elsewhere)) == 2 and first in libraries(elsewhere)


@pytest.mark.parametrize("kept", ["home", "nowhere"])
def test_a_package_that_cannot_be_written(elsewhere, monkeypatch, kept):
    (elsewhere.parent / "__pycache__").write_text("a file")
    if kept == "nowhere":
        (elsewhere.parent / "home").write_text("a file")
    assert fast.library().scratch() == 7
    assert len([*elsewhere.parent.glob("home/.cache/cot2/engine-*.so")]) == (kept == "home")


ASKED = """
from pathlib import Path
from cot2lib import fast
fast.SOURCE = Path("engine.cpp").resolve()
print(fast.library().scratch())
"""


def test_two_processes_that_build_at_once(elsewhere):
    options = dict(text=True, cwd=elsewhere.parent, stdout=subprocess.PIPE)
    both = [subprocess.Popen([sys.executable, "-c", ASKED], **options) for _ in "ab"]
    assert [process.communicate()[0].split()[-1] for process in both] == ["7", "7"]
    assert len(libraries(elsewhere)) == 1, "what was made on the way is gone"


@pytest.mark.parametrize(
    "compilers, cxx, says",
    [((), "", "no C++ compiler is found"), ((), "false --flag", "false: "), (("c++",), "no-such-compiler", None)],
    ids=["none", "broken", "another"],
)
def test_a_compiler_is_needed(elsewhere, monkeypatch, compilers, cxx, says):
    monkeypatch.setattr(fast, "COMPILERS", compilers)
    monkeypatch.setenv("CXX", cxx)
    if says is None:
        assert fast.library().scratch() == 7
        return
    with pytest.raises(OSError, match=re.escape(says)):
        fast.library()
