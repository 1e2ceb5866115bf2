"""A release: one version everywhere, a citation that is whole, a crate that shows changes."""

import hashlib
import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import cot2lib
from cot2lib.kit import paths
from cot2lib.runs import manifest

ROOT = Path(__file__).parents[2]
CITED = yaml.safe_load((ROOT / "CITATION.cff").read_text())
DATE = "2027-01-31"


@pytest.fixture(scope="module")
def release():
    """The scripts of a release, by name."""
    sys.path.insert(0, str(ROOT / "release"))
    yield importlib.import_module
    sys.path.pop(0)


@pytest.fixture
def version(release):
    return release("version")


@pytest.fixture
def whole(release):
    return release("whole")


@pytest.fixture
def tree(version, tmp_path):
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


def test_the_citation_is_whole():
    assert {"title", "abstract", "version", "date-released", "keywords", "license", "authors"} <= set(CITED)
    assert str(CITED["version"]) == cot2lib.__version__ and len(CITED["keywords"]) > 3 and len(CITED["abstract"]) > 200
    paper = CITED["preferred-citation"]
    assert paper["type"] == "conference-paper" and len(paper["authors"]) == 6
    assert paper["url"] and paper["collection-title"]


def test_zenodo_is_told_what_the_citation_says():
    told = json.loads((ROOT / ".zenodo.json").read_text())
    assert told == {
        "creators": [{"name": CITED["authors"][0]["name"]}],
        "description": CITED["abstract"],
        "keywords": CITED["keywords"],
        "license": {"id": CITED["license"]},
        "publication_date": CITED["date-released"],
        "title": CITED["title"],
        "version": str(CITED["version"]),
    }


def test_a_version_is_written_everywhere(version, tree):
    version.write(tree, "1.2.3", DATE)
    assert version.current(tree) == "1.2.3"
    cited, told = yaml.safe_load((tree / "CITATION.cff").read_text()), json.loads((tree / ".zenodo.json").read_text())
    assert (
        (str(cited["version"]), cited["date-released"])
        == ("1.2.3", DATE)
        == tuple(told[name] for name in ("version", "publication_date"))
    )
    assert cited["cff-version"] == CITED["cff-version"], "the format's version is another"
    jobs = (tree / "deploy" / "kubernetes.yaml").read_text()
    assert jobs.count("cot2:1.2.3") == 2 and f"cot2:{cot2lib.__version__}" not in jobs
    log = (tree / version.LOG).read_text()
    assert f"## [Unreleased]\n\n## [1.2.3] - {DATE}\n\n### Added" in log
    version.write(tree, "1.2.3", "2028-01-01")
    assert (tree / version.LOG).read_text() == log, "it is there already"


def test_a_release_is_committed_and_tagged_once(version, tree):
    version.begin(tree, "1.2.3")
    assert version.git(tree, "log", "-1", "--format=%s") == "Release 1.2.3"
    head = version.git(tree, "rev-parse", "HEAD")
    version.begin(tree, "1.2.3")  # as after a build that failed
    assert version.git(tree, "rev-parse", "HEAD") == head
    assert version.tag(tree) == "v1.2.3" and version.git(tree, "tag", "--list") == "v1.2.3"
    with pytest.raises(version.ReleaseError, match=r"v1\.2\.3 is tagged already; choose a later version"):
        version.begin(tree, "")


@pytest.mark.parametrize(
    "given, says", [("1.2", "version 1.2: write three numbers"), ("0.0.9", "is below the present")]
)
def test_what_is_no_later_version_is_one_sentence(version, tree, given, says):
    with pytest.raises(version.ReleaseError, match=says):
        version.begin(tree, given)
    assert not version.git(tree, "status", "--porcelain")


def test_a_tree_with_changes_is_not_released(version, tree):
    (tree / version.LOG).write_text("mine")
    with pytest.raises(version.ReleaseError, match="the tree has changes; commit or stash them first"):
        version.begin(tree, "1.2.3")
    assert (tree / version.LOG).read_text() == "mine"


@pytest.fixture
def crate(tmp_path):
    """The smallest crate that has a checksum."""
    (tmp_path / "a.csv").write_text("a\n1\n")
    entity = {"@id": "a.csv", "@type": "File", "sha256": hashlib.sha256(b"a\n1\n").hexdigest()}
    (tmp_path / "ro-crate-metadata.json").write_text(json.dumps({"@graph": [{"@id": "./"}, entity]}))
    return tmp_path


def test_a_crate_shows_what_has_changed(whole, crate, capsys):
    assert whole.check(crate) == 1
    (crate / "a.csv").write_text("a\n2\n")
    assert whole.main(str(crate)) == 2
    assert capsys.readouterr().err == (
        f"crate: {crate / 'a.csv'} has changed since the crate was written; take a whole copy.\n"
    )
    (crate / "a.csv").unlink()
    with pytest.raises(whole.CrateError, match=r"a\.csv is missing, which was there when the crate was written"):
        whole.check(crate)
    with pytest.raises(whole.CrateError, match="holds no readable ro-crate-metadata"):
        whole.check(crate / "nowhere")


def test_a_changed_record_is_not_packed(whole, tmp_path):
    """And those that ship are what their manifest says."""
    assert len(whole.listed(paths.records())) == len(manifest.listed(paths.records()))
    (tmp_path / "a.csv").write_text("a")
    (tmp_path / whole.MANIFEST).write_text(json.dumps({"checksum": "0", "a.csv": hashlib.sha256(b"b").hexdigest()}))
    with pytest.raises(whole.CrateError, match=r"a\.csv has changed since it was collected; put it back from git"):
        whole.listed(tmp_path)


CRATE = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import crate
root, out = Path(sys.argv[2]), Path(sys.argv[3])
crate.write(root, out)
crate.validate(out)
print(crate.check(out))
data = json.loads((out / "ro-crate-metadata.json").read_text())
for entity in data["@graph"]:
    if entity["@id"] == "./":
        del entity["datePublished"]
(out / "ro-crate-metadata.json").write_text(json.dumps(data))
try:
    crate.validate(out)
except crate.CrateError:
    print("seen")
"""


@pytest.mark.thorough
def test_a_crate_is_valid_and_its_validator_sees_faults(release, tmp_path):
    python, root = release("tools").python("release"), tmp_path / "root"
    records = root / "cot2lib" / "study" / "records"
    records.mkdir(parents=True)
    (root / "_build" / "html").mkdir(parents=True)
    (root / "_build" / "html" / "index.html").write_text("<title>A</title>")
    (records / "a.quick.runs.csv").write_text("id\n")
    (records / "manifest.json").write_text(json.dumps({"a.quick.runs.csv": hashlib.sha256(b"id\n").hexdigest()}))
    for name in ("CITATION.cff", "LICENSE", "README.md"):
        shutil.copy(ROOT / name, root / name)
    command = [python, "-c", CRATE, ROOT / "release", root, tmp_path / "crate"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.split() == ["6", "seen"], done.stdout + done.stderr


@pytest.mark.thorough
def test_the_citation_is_valid(release):
    program = release("tools").python("release").with_name("cffconvert")
    valid = subprocess.run([program, "--validate"], cwd=ROOT, capture_output=True, text=True)
    assert not valid.returncode, valid.stdout + valid.stderr
    told = subprocess.run([program, "-f", "zenodo"], cwd=ROOT, capture_output=True, text=True)
    assert json.loads(told.stdout) == json.loads((ROOT / ".zenodo.json").read_text())
