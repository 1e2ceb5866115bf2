"""A folder of shipped files, and its manifest of checksums, which is the one thing that is switched.

New files are staged beside the old ones under other names. Then the manifest is replaced, in one atomic step. Then
the staged files are moved to their own names. Whoever reads asks the manifest what a file must hold and takes it from
under its own name or, if the move has not happened yet, from under the staged one. Files that leave the folder go the
other way: under a staged name before the switch, removed after it. A writer that is killed at any point leaves a
folder that reads as before or as after; the next writer moves or removes what was left.
One writer at a time: two that write the same folder at once lose entries of one.
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
STAGED = ".staged"
CHECKSUM = "checksum"  # older versions wrote one of the manifest itself
PLAIN = re.compile(r"[\w-][\w.-]*")  # a name without folders that is neither hidden nor '..'
RECORD = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+\.(csv|xz|csv\.xz|safetensors)")  # <chapter>.<profile>.<what>.<ending>


def listed(folder: Path) -> dict[str, str]:
    """Checksums of the shipped files by name; empty if nothing is shipped."""
    text = _bytes(folder / MANIFEST)
    entries = {} if text is None else _parsed(folder / MANIFEST, text)
    try:
        _check_all_listed(folder, entries)
    except RecordError:
        if _bytes(folder / MANIFEST) == text:
            raise
        return listed(folder)  # a writer has just switched it
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


def _check_all_listed(folder: Path, entries: Mapping[str, str]) -> None:
    there = os.listdir(folder) if folder.is_dir() else []
    if others := sorted(name for name in there if name not in entries and RECORD.fullmatch(name)):
        raise RecordError(
            f"{folder / others[0]} is not listed by the {MANIFEST} beside it; put the manifest back from git, or move "
            "the file out of this folder."
        )


def _write(folder: Path, entries: Mapping[str, str]) -> None:
    text = json.dumps(dict(sorted(entries.items())), indent=1) + "\n"
    write_atomic(folder / MANIFEST, lambda path: path.write_text(text))


def content(folder: Path, name: str) -> tuple[Path, bytes]:
    """The place and bytes of a shipped file, which are those that were shipped."""
    path, checksum = folder / name, listed(folder)[name]
    # the staged file may move to its own name between two looks, so look there again
    for place in (path, _staged(path), path):
        if (found := _bytes(place)) is not None and _sum(found) == checksum:
            return place, found
    if path.exists():
        raise RecordError(f"{path} is truncated or changed since it was collected; put it back from git.")
    raise RecordError(f"{path} is missing; put it back from git or run `cot2 collect` again.")


def replace(files: Mapping[str, Callable[[Path], object]], folder: Path, owned: Sequence[str] = ()) -> list[Path]:
    """Write files and switch the manifest to them at once; returns the files written.

    Names that are `owned` by these files as a whole, and not among them, are removed.
    """
    for name in files:
        _check_name(name, folder)
    folder.mkdir(parents=True, exist_ok=True)
    _settle(folder)
    known = {name: checksum for name, checksum in listed(folder).items() if name not in owned}
    for name, write in files.items():
        staged = _staged(folder / name)
        write_atomic(staged, write)
        known[name] = _sum(staged.read_bytes())
    for name in set(owned) - set(files):
        if (folder / name).exists():
            os.replace(folder / name, _staged(folder / name))
    _write(folder, known)
    _settle(folder)
    return [folder / name for name in files]


def _settle(folder: Path) -> None:
    """Move the staged files that the manifest lists to their own names, and remove the others."""
    entries = listed(folder)
    for staged in folder.glob(f".*{STAGED}"):
        name = staged.name.removeprefix(".").removesuffix(STAGED)
        if entries.get(name) == _sum(staged.read_bytes()):
            os.replace(staged, folder / name)
        else:
            staged.unlink(missing_ok=True)


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _staged(path: Path) -> Path:
    return path.with_name(f".{path.name}{STAGED}")


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _check_name(name: str, where: Path) -> None:
    if not PLAIN.fullmatch(name):
        raise RecordError(f"{where} lists {name!r}, which is no plain file name; put the manifest back from git.")
