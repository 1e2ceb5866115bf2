"""A release: one version everywhere, and a citation that is whole."""

import json
import runpy
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

import cot2lib

ROOT = Path(__file__).parents[2]
CITED = yaml.safe_load((ROOT / "CITATION.cff").read_text())
DATE = "2027-01-31"
version = SimpleNamespace(**runpy.run_path(str(ROOT / "release" / "version.py")))


@pytest.fixture
def tree(tmp_path):
    """A repository with the files that hold a version."""
    for name in {*version.PLACES, *version.DATES, version.LOG}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    git = lambda *words: subprocess.run(["git", "-C", tmp_path, *words], check=True, capture_output=True, text=True)
    git("init", "-q")
    git("config", "user.name", "A")
    git("config", "user.email", "a@b.c")
    git("add", "-A")
    git("commit", "-qm", "First")
    return tmp_path


def test_one_version_and_a_whole_citation():
    assert CITED["version"] == cot2lib.__version__ and cot2lib.__version__ in (ROOT / "CHANGELOG.md").read_text()
    assert {"title", "abstract", "date-released", "keywords", "license", "authors", "preferred-citation"} <= set(CITED)
    assert json.loads((ROOT / ".zenodo.json").read_text()) == {
        "creators": [{"name": CITED["authors"][0]["name"]}],
        "description": CITED["abstract"],
        "keywords": CITED["keywords"],
        "license": {"id": CITED["license"]},
        "publication_date": CITED["date-released"],
        "title": CITED["title"],
        "version": CITED["version"],
    }


def test_a_version_is_written_everywhere(tree):
    version.write(tree, "1.2.3", DATE)
    assert version.current(tree) == "1.2.3"
    cited, told = yaml.safe_load((tree / "CITATION.cff").read_text()), json.loads((tree / ".zenodo.json").read_text())
    assert (cited["version"], cited["date-released"]) == ("1.2.3", DATE)
    assert (told["version"], told["publication_date"]) == ("1.2.3", DATE)
    assert cited["cff-version"] == CITED["cff-version"], "the format's version is another"
    log = (tree / version.LOG).read_text()
    assert f"## [Unreleased]\n\n## [1.2.3] - {DATE}\n\n### Added" in log
    version.write(tree, "1.2.3", "2028-01-01")
    assert (tree / version.LOG).read_text() == log, "it is there already"


def test_a_release_is_committed_and_tagged_once(tree):
    version.begin(tree, "1.2.3")
    assert version.git(tree, "log", "-1", "--format=%s") == "Release 1.2.3"
    head = version.git(tree, "rev-parse", "HEAD")
    version.begin(tree, "1.2.3")  # as after a build that failed
    assert version.git(tree, "rev-parse", "HEAD") == head
    assert version.tag(tree) == "v1.2.3" and version.git(tree, "tag", "--list") == "v1.2.3"
    with pytest.raises(version.ReleaseError, match=r"v1\.2\.3 is tagged already; choose a later version"):
        version.begin(tree, "")


def test_what_cannot_be_released_is_one_sentence(tree):
    for given, says in (("1.2", "version 1.2: write three numbers"), ("0.0.9", "is below the present")):
        with pytest.raises(version.ReleaseError, match=says):
            version.begin(tree, given)
    assert not version.git(tree, "status", "--porcelain")
    (tree / version.LOG).write_text("mine")
    with pytest.raises(version.ReleaseError, match="the tree has changes; commit or stash them first"):
        version.begin(tree, "1.2.3")
    assert (tree / version.LOG).read_text() == "mine"
