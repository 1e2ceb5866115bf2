"""Files that are whole or absent: atomic writes, and tensors with JSON beside them."""

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from cot2lib.errors import RecordError

META = "cot2"


def write_atomic(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary neighbour of `path`, then move it there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    part = Path(name)
    try:
        write(part)
        part.chmod(0o644)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def save_tensors(path: Path, tensors: Mapping[str, torch.Tensor], meta: dict) -> None:
    """Write tensors and JSON metadata as one safetensors file, atomically.

    Raises:
        RecordError: if it cannot be written, say to a full disk.
    """
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    try:
        write_atomic(path, lambda part: save_file(whole, part, metadata={META: json.dumps(meta)}))
    except (SafetensorError, OSError) as error:
        raise RecordError(f"{path} cannot be written ({error}); make room or choose another folder.") from error


def load_meta(path: Path) -> dict:
    """The metadata of a file of `save_tensors`.

    Raises:
        RecordError: if the file is truncated, unreadable or not one of ours.
    """
    return _read(path, lambda file: None)[1]


def load_tensors(path: Path, prefix: str = "") -> tuple[dict[str, torch.Tensor], dict]:
    """Tensors whose names start with `prefix` (removed), and the metadata; raises as `load_meta`."""
    names = lambda file: [name for name in list(file.keys()) if name.startswith(prefix)]
    return _read(path, lambda file: {name[len(prefix) :]: file.get_tensor(name) for name in names(file)})


def _read(path: Path, take: Callable) -> tuple:
    try:
        with safe_open(path, framework="pt") as file:
            meta = json.loads((file.metadata() or {})[META])
            if not isinstance(meta, dict):
                raise KeyError(META)
            return take(file), meta
    except FileNotFoundError as error:
        raise RecordError(f"{path} does not exist.") from error
    except (SafetensorError, OSError, KeyError, json.JSONDecodeError) as error:
        raise RecordError(
            f"{path} is truncated or was not written by cot2lib ({type(error).__name__}); "
            "delete it or put back a whole copy."
        ) from error
