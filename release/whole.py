"""Whether the files of a crate, or of shipped records, are what they were.

python release/whole.py FOLDER    # of an RO-Crate that a release wrote; needs nothing but Python
"""

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

METADATA, MANIFEST, CHECKSUM = "ro-crate-metadata.json", "manifest.json", "sha256"


class CrateError(Exception):
    """A reason why a crate cannot be made or believed, in one sentence."""


def listed(folder: Path) -> dict[str, str]:
    """Checksums by name of the records that a manifest lists.

    Raises:
        CrateError: for a record that is missing or not what the manifest says.
    """
    entries = json.loads((folder / MANIFEST).read_text())
    entries.pop("checksum", None)
    for name, wanted in entries.items():
        _compare(folder / name, wanted, "it was collected; put it back from git.")
    return entries


def _compare(path: Path, wanted: str, since: str) -> None:
    if not path.exists():
        raise CrateError(f"{path} is missing, which was there when {since}")
    if sha256(path) != wanted:
        raise CrateError(f"{path} has changed since {since}")


def sha256(path: Path) -> str:
    """The checksum of a file; of a folder, that of its files' checksums and names in order."""
    if path.is_dir():
        inside = sorted(part for part in path.rglob("*") if part.is_file())
        told = "".join(f"{sha256(part)}  {part.relative_to(path).as_posix()}\n" for part in inside)
        return hashlib.sha256(told.encode()).hexdigest()
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check(folder: Path) -> int:
    """How many files and folders of a crate are what it says.

    Raises:
        CrateError: naming one that is missing or has changed, or if there is no crate.
    """
    try:
        entities = json.loads((folder / METADATA).read_text())["@graph"]
    except (OSError, ValueError, LookupError, TypeError):
        raise CrateError(f"{folder} holds no readable {METADATA}; name the folder of a crate.") from None
    summed = {one["@id"]: one[CHECKSUM] for one in entities if CHECKSUM in one}
    for name, wanted in summed.items():
        _compare(folder / name, wanted, "the crate was written; take a whole copy.")
    return len(summed)


def reported(work: Callable[[], str]) -> int:
    """The exit status of some work on a crate, whose result or fault is printed."""
    try:
        print(work())
    except CrateError as error:
        print(f"crate: {error}", file=sys.stderr)
        return 2
    return 0


def main(folder: str) -> int:
    """Check a crate; returns the exit status."""
    return reported(lambda: f"{folder}: {check(Path(folder))} files are what the crate says")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
