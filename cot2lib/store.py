"""The local store: one file per finished stack, and one per stack in training.

A stack file holds the trained weights of its runs, their learning curves and where they were made.
Its name is the hash of its runs' ids, so the same request finds its checkpoint again. Files are
replaced atomically; a killed worker loses what it did since its last checkpoint and nothing else.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from torch import Tensor

from cot2lib import paths
from cot2lib.errors import RecordError, SpecError
from cot2lib.files import load_meta, load_tensors, save_tensors
from cot2lib.specs import from_data, to_data
from cot2lib.supervised import Progress, StackTrainer

FORMAT = 1
WEIGHTS = "weights."
OPTIMIZER = "optimizer."


@dataclass(frozen=True)
class StackFile:
    """A finished stack on disk: its runs, in order, what training recorded, and where it was made."""

    path: Path
    specs: tuple
    progress: Progress
    held_out: list[list[int]]
    provenance: dict

    def weights(self, run: int) -> dict[str, Tensor]:
        """Parameters of one run, without the run axis."""
        return {name: value[run] for name, value in load_tensors(self.path, WEIGHTS)[0].items()}


def stack_path(specs: Sequence, checkpoint: bool = False) -> Path:
    """Where the stack of these runs is kept."""
    name = hashlib.sha256(" ".join(spec.id for spec in specs).encode()).hexdigest()[:12]
    return paths.store() / f"{name}{'.checkpoint' if checkpoint else ''}.safetensors"


def save_finished(trainer: StackTrainer, provenance: dict) -> None:
    """Write the finished stack and remove its checkpoint."""
    save_tensors(stack_path(trainer.specs), _weights(trainer), _meta(trainer, provenance))
    stack_path(trainer.specs, checkpoint=True).unlink(missing_ok=True)


def save_checkpoint(trainer: StackTrainer, provenance: dict) -> None:
    """Write everything that training needs to go on."""
    optimizer = {OPTIMIZER + name: value for name, value in trainer.optimizer_tensors().items()}
    path = stack_path(trainer.specs, checkpoint=True)
    save_tensors(path, _weights(trainer) | optimizer, _meta(trainer, provenance))


def resume(trainer: StackTrainer) -> None:
    """Bring a fresh trainer to where its checkpoint stands, if it has one.

    Raises:
        RecordError: if the checkpoint is unreadable.
    """
    path = stack_path(trainer.specs, checkpoint=True)
    if not path.exists():
        return
    tensors, meta = load_tensors(path)
    part = lambda prefix: {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
    trainer.restore(part(WEIGHTS), part(OPTIMIZER), Progress(**meta["progress"]))


def finished_stacks() -> list[StackFile]:
    """Every finished stack in the store.

    Raises:
        RecordError: naming a file that is unreadable, truncated or foreign.
    """
    files = sorted(paths.store().glob("*.safetensors"))
    return [_read(p, p.stat().st_mtime_ns) for p in files if not p.name.endswith(".checkpoint.safetensors")]


def finished() -> dict[str, tuple[StackFile, int]]:
    """Every finished run in the store by id: its stack and its place there; raises as `finished_stacks`."""
    return {spec.id: (stack, place) for stack in finished_stacks() for place, spec in enumerate(stack.specs)}


@lru_cache(maxsize=512)
def _read(path: Path, changed: int) -> StackFile:
    meta = load_meta(path)
    if meta.get("format") != FORMAT:
        raise RecordError(f"{path} has format {meta.get('format')!r}, this version reads {FORMAT}; delete it.")
    try:
        specs = tuple(from_data(data) for data in meta["specs"])
    except SpecError as error:
        raise RecordError(f"{path} is not for this version: {error} Delete it.") from error
    return StackFile(path, specs, Progress(**meta["progress"]), meta["held_out"], meta["provenance"])


def _weights(trainer: StackTrainer) -> dict[str, Tensor]:
    return {WEIGHTS + name: value for name, value in trainer.stack.state_dict().items()}


def _meta(trainer: StackTrainer, provenance: dict) -> dict:
    return {
        "format": FORMAT,
        "specs": [to_data(spec) for spec in trainer.specs],
        "progress": asdict(trainer.progress),
        "held_out": trainer.data.held_out.sizes,
        "provenance": provenance,
    }
