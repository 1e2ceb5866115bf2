"""Files that are whole or absent: atomic writes, tensors with JSON beside them, downloads."""

import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from jaxtyping import Shaped
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from cot2lib.errors import RecordError, SpecError

Weight = Shaped[Tensor, "..."]  # a parameter of a model
META = "cot2"
PART, ABANDONED_SECONDS = ".part", 3600  # how temporary files end; one as old as this has no writer any more


def write_atomic(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary neighbour of `path`, then move it there.

    Temporary files that killed writers left in this folder more than an hour ago are removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".*{PART}"):
        with suppress(FileNotFoundError):  # its writer has just moved it away
            if time.time() - left.stat().st_mtime > ABANDONED_SECONDS:
                left.unlink()
    handle, name = tempfile.mkstemp(PART, f".{path.name}.", path.parent)
    os.close(handle)
    part = Path(name)
    try:
        write(part)
        part.chmod(0o644)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def save_tensors(path: Path, tensors: Mapping[str, Weight], meta: dict) -> None:
    """Write tensors and JSON metadata as one safetensors file, atomically."""
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    try:
        write_atomic(path, lambda part: save_file(whole, part, metadata={META: json.dumps(meta)}))
    except (SafetensorError, OSError) as error:
        raise RecordError(f"{path} cannot be written ({error}); make room or choose another folder.") from error


def load_meta(path: Path) -> dict:
    """The metadata of a file of `save_tensors`."""
    return _read(path, lambda file: None)[1]


def load_tensors(path: Path, prefix: str = "") -> tuple[dict[str, Weight], dict]:
    """Tensors whose names start with `prefix` (removed), and the metadata; raises as `load_meta`."""
    names = lambda file: [name for name in list(file.keys()) if name.startswith(prefix)]
    return _read(path, lambda file: {name[len(prefix) :]: file.get_tensor(name) for name in names(file)})


def check_finite(tensors: Mapping[str, Weight], owner: str) -> None:
    """Raise RecordError if a tensor holds NaN or infinity; `owner` names whose tensors they are."""
    if bad := [name for name, tensor in tensors.items() if not tensor.isfinite().all()]:
        raise RecordError(f"{owner} has weights that are no numbers ({bad[0]}): its training diverged; leave it out.")


def _read(path: Path, take: Callable) -> tuple:
    try:
        with safe_open(path, framework="pt") as file:
            return take(file), json.loads((file.metadata() or {})[META])
    except FileNotFoundError as error:
        raise RecordError(f"{path} does not exist.") from error
    except (SafetensorError, OSError, KeyError, ValueError, RecursionError) as error:
        raise RecordError(
            f"{path} is truncated or was not written by cot2lib ({type(error).__name__}); "
            "delete it or put back a whole copy."
        ) from error


def fetched(address: str, sha256: str, remedy: str) -> Path:
    """A published file, downloaded once into the user's cache and checked."""
    try:
        import pooch
    except ImportError:
        raise SpecError("downloads need pooch: pip install 'cot2lib[graphs]'.") from None
    name = address.rpartition("/")[2]
    try:
        return Path(pooch.retrieve(address, f"sha256:{sha256}", name, pooch.os_cache("cot2"), progressbar=False))
    except (OSError, ValueError) as error:  # the latter for another checksum
        why = type(error).__name__ if isinstance(error, OSError) else "what is there is another file"
        raise SpecError(f"{name} cannot be had ({why}); download {address} {remedy}.") from error
