"""A folder of shipped files, and its manifest of checksums, which says what each of them must hold.

Files are replaced one by one, each whole, and the manifest last. A writer that is killed between them leaves files
that the manifest does not fit: readers name them, and git has the old ones, the local store what makes the new ones.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cot2lib.errors import RecordError
from cot2lib.kit.files import write_atomic

MANIFEST = "manifest.json"
CHECKSUM = "checksum"  # older versions wrote one of the manifest itself
PLAIN = re.compile(r"[\w-][\w.-]*")  # a name without folders that is neither hidden nor '..'
RECORD = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+\.(csv|xz|csv\.xz|safetensors)")  # <chapter>.<profile>.<what>.<ending>


def listed(folder: Path) -> dict[str, str]:
    """Checksums of the shipped files by name; empty if nothing is shipped."""
    path = folder / MANIFEST
    entries = _parsed(path, path.read_bytes()) if path.exists() else {}
    there = os.listdir(folder) if folder.is_dir() else []
    if others := sorted(name for name in there if name not in entries and RECORD.fullmatch(name)):
        raise RecordError(
            f"{folder / others[0]} is not listed by the {MANIFEST} beside it; put the manifest back from git, or move "
            "the file out of this folder."
        )
    return entries


def _parsed(path: Path, text: bytes) -> dict[str, str]:
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path} is not valid JSON; put it back from git.") from error
    if not isinstance(entries, dict) or not all(isinstance(checksum, str) for checksum in entries.values()):
        raise RecordError(f"{path} is not a list of checksums that `cot2 collect` wrote; put it back from git.")
    entries.pop(CHECKSUM, None)
    for name in entries:
        _check_name(name, path)
    return entries


def content(folder: Path, name: str) -> tuple[Path, bytes]:
    """The place and bytes of a shipped file, which are those that were shipped."""
    path, checksum = folder / name, listed(folder)[name]
    if not path.exists():
        raise RecordError(f"{path} is missing; put it back from git or run `cot2 collect` again.")
    if _sum(found := path.read_bytes()) != checksum:
        raise RecordError(f"{path} is truncated or changed since it was collected; put it back from git.")
    return path, found


def replace(files: Mapping[str, Callable[[Path], object]], folder: Path, owned: Sequence[str] = ()) -> list[Path]:
    """Write files, then the manifest; returns the files written.

    Names that are `owned` by these files as a whole, and not among them, are removed.
    """
    for name in files:
        _check_name(name, folder)
    entries = {name: checksum for name, checksum in listed(folder).items() if name not in owned}
    for name, write in files.items():
        write_atomic(folder / name, write)
        entries[name] = _sum((folder / name).read_bytes())
    for name in set(owned) - set(files):
        (folder / name).unlink(missing_ok=True)
    text = json.dumps(dict(sorted(entries.items())), indent=1) + "\n"
    write_atomic(folder / MANIFEST, lambda path: path.write_text(text))
    return [folder / name for name in files]


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _check_name(name: str, where: Path) -> None:
    if not PLAIN.fullmatch(name):
        raise RecordError(f"{where} lists {name!r}, which is no plain file name; put the manifest back from git.")
