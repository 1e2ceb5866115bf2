"""The version of a release, wherever it stands, its changelog entry and its tag.

python release/version.py set 0.2.0    # from a clean tree: writes and commits it; again without effect
python release/version.py tag          # tags the commit that holds it; nothing is pushed
"""

import datetime
import re
import subprocess
import sys
from pathlib import Path

VERSION = re.compile(r"\d+\.\d+\.\d+")
MODULE, CITATION, LOG, ZENODO = "cot2lib/__init__.py", "CITATION.cff", "CHANGELOG.md", ".zenodo.json"
PLACES = {  # by file: what stands before the version
    MODULE: r'__version__ = "',
    CITATION: r"\nversion: ",
    ZENODO: r'"version": "',
}
DATES = {CITATION: r'date-released: "', ZENODO: r'"publication_date": "'}
UNRELEASED = "## [Unreleased]\n"


class ReleaseError(Exception):
    """What keeps a release from being made, in one sentence."""


def current(root: Path) -> str:
    return re.search(PLACES[MODULE] + r"([\d.]+)", (root / MODULE).read_text())[1]


def write(root: Path, version: str, date: str) -> None:
    """Write version and date into all files that hold them, unless the changelog has the version already."""
    if not VERSION.fullmatch(version):
        raise ReleaseError(f"version {version}: write three numbers, say 0.2.0.")
    numbers = lambda version: [int(part) for part in version.split(".")]
    if numbers(version) < numbers(current(root)):
        raise ReleaseError(f"version {version} is below the present {current(root)}; choose a later one.")
    log = (root / LOG).read_text()
    if f"\n## [{version}]" in log:
        return
    if UNRELEASED not in log:
        raise ReleaseError(f"{LOG} has no section {UNRELEASED.strip()}; say there what is new.")
    (root / LOG).write_text(log.replace(UNRELEASED, f"{UNRELEASED}\n## [{version}] - {date}\n", 1))
    for places, value, old in ((PLACES, version, VERSION.pattern), (DATES, date, r"\d{4}-\d\d-\d\d")):
        for name, before in places.items():
            text = re.sub(f"({before}){old}", rf"\g<1>{value}", (root / name).read_text())
            (root / name).write_text(text)


def git(root: Path, *arguments: str) -> str:
    """What git says; its own words in a ReleaseError if it fails."""
    done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise ReleaseError(f"git {arguments[0]} fails: {' '.join((done.stderr or done.stdout).split())}")
    return done.stdout.strip()


def begin(root: Path, version: str) -> None:
    """Write and commit a version, from a clean tree."""
    version = version or current(root)
    if git(root, "status", "--porcelain"):
        raise ReleaseError("the tree has changes; commit or stash them first.")
    if git(root, "tag", "--list", f"v{version}"):
        raise ReleaseError(f"v{version} is tagged already; choose a later version: make release VERSION=X.Y.Z.")
    write(root, version, datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"))
    if git(root, "status", "--porcelain"):
        git(root, "commit", "-qam", f"Release {version}")


def tag(root: Path) -> str:
    """Tag the present commit with its version; returns the tag."""
    version = current(root)
    git(root, "tag", "-a", f"v{version}", "-m", f"Release {version}")
    return f"v{version}"


def main(what: str = "", version: str = "") -> int:
    root = Path(__file__).parents[1]
    try:
        print({"set": lambda: begin(root, version) or current(root), "tag": lambda: tag(root)}[what]())
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
