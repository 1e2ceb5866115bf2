"""The local store: one file per finished stack, and one per stack in training.

A stack file holds the trained weights of its runs, their learning curves and where they were made.
Its name is the hash of its runs' ids; what it holds stands in its metadata, so a later request finds
a checkpoint by the runs in it, whatever else it asks for. Files are replaced atomically; a killed
worker loses what it did since its last checkpoint and nothing else.
"""

import hashlib
import tempfile
from collections.abc import Container, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

from cot2lib.errors import RecordError, SpecError, brief
from cot2lib.kit import paths
from cot2lib.kit.files import Weight, check_finite, load_meta, load_tensors, save_tensors
from cot2lib.kit.frozen import UndefinedError
from cot2lib.specs import from_data, to_data, trained_once
from cot2lib.training.trainer import Progress, StackTrainer

FORMAT = 2
READ = (1, FORMAT)  # formats that are read alike
WEIGHTS = "weights."
OPTIMIZER = "optimizer."
CHECKPOINT = ".checkpoint.safetensors"


@dataclass(frozen=True)
class StackFile:
    """A stack on disk: its runs, in order, what training recorded, and where it was made."""

    path: Path
    specs: tuple
    progress: Progress
    held_out: list[list[int]]
    provenance: dict

    @cached_property
    def trainings(self) -> int:
        return len(trained_once(self.specs))

    def weights(self, run: int) -> dict[str, Weight]:
        """Parameters of one run, without the run axis."""
        tensors = load_tensors(self.path, WEIGHTS)[0]
        weights = {name: value[run] for name, value in tensors.items()}
        check_finite(weights, f"{self.path}, run {self.specs[run].id}")
        return weights


def stack_path(specs: Sequence, checkpoint: bool = False) -> Path:
    """The file of the stack of these runs."""
    name = hashlib.sha256(" ".join(spec.id for spec in specs).encode()).hexdigest()[:12]
    return paths.store() / f"{name}{CHECKPOINT if checkpoint else '.safetensors'}"


def prepare() -> None:
    """Make the store's folder."""
    try:
        paths.store().mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=paths.store()).close()
    except OSError as error:
        raise RecordError(
            f"the store {paths.store()} cannot be written to ({error.strerror}); set COT2_STORE to a folder that can."
        ) from error


def save_finished(trainer: StackTrainer, provenance: dict) -> None:
    """Write the finished stack, with weights and first losses of every run, and remove its checkpoint."""
    each = trainer.model_of
    weights = {name: value[each] for name, value in _weights(trainer).items()}
    losses = [trainer.progress.first_losses[model] for model in each]
    progress = replace(trainer.progress, first_losses=losses)
    save_tensors(stack_path(trainer.asked), weights, _meta(trainer, progress, provenance), checked=True)
    stack_path(trainer.asked, checkpoint=True).unlink(missing_ok=True)


def save_checkpoint(trainer: StackTrainer, provenance: dict) -> None:
    optimizer = {OPTIMIZER + name: value for name, value in trainer.optimizer_tensors().items()}
    path = stack_path(trainer.asked, checkpoint=True)
    save_tensors(path, _weights(trainer) | optimizer, _meta(trainer, trainer.progress, provenance))


def resume(trainer: StackTrainer) -> dict:
    """Bring a fresh trainer to where its checkpoint stands, if it has one.

    Returns the provenance of what was trained before, empty without a checkpoint.
    """
    path = stack_path(trainer.asked, checkpoint=True)
    if not path.exists():
        return {}
    tensors, meta = load_tensors(path)
    begun = _parse(path, meta)
    part = lambda prefix: {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
    try:
        if begun.specs != tuple(trainer.asked):
            raise ValueError("other runs")
        trainer.restore(part(WEIGHTS), part(OPTIMIZER), begun.progress)
    except (RuntimeError, LookupError, TypeError, ValueError) as error:
        raise RecordError(f"{path} does not fit its runs ({type(error).__name__}); delete it.") from error
    return begun.provenance


def begun(wanted: Container[str]) -> list[list]:
    """Runs of each checkpoint that holds some of the wanted ids and shares no run with one before it, by name.

    Checkpoints whose runs are all finished are removed.
    """
    stacks: list[list] = []
    taken: set[str] = set()
    done = finished()
    for path in sorted(paths.store().glob(f"*{CHECKPOINT}")):
        if not (specs := _checkpointed(path)):
            continue
        ids = {spec.id for spec in specs}
        if ids <= set(done):
            path.unlink(missing_ok=True)
        elif not ids & taken and any(run_id in wanted for run_id in ids):
            stacks.append(list(specs))
            taken |= ids
    return stacks


def _checkpointed(path: Path) -> tuple:
    """Runs of a checkpoint; none if another worker has just removed it, or if a class is not defined here."""
    try:
        return _parse(path, load_meta(path)).specs
    except UndefinedError:
        return ()
    except RecordError:
        if path.exists():
            raise
        return ()


def finished_files(folder: Path | None = None) -> list[tuple[Path, int]]:
    """Files of the finished stacks in a store, the local one by default, and when each was changed (ns)."""
    files = sorted((folder or paths.store()).glob("*.safetensors"))
    return [(path, _changed(path)) for path in files if not path.name.endswith(CHECKPOINT)]


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError as error:
        raise RecordError(f"{path} cannot be read ({error.strerror}); delete it or put back a whole copy.") from error


def finished(folder: Path | None = None) -> dict[str, tuple[StackFile, int]]:
    """Every finished run in a store by id: its stack and its place there; of runs that occur twice, the first.

    Stacks that a class of a reader is part of, which this process has not defined, are left out.
    """
    runs: dict[str, tuple[StackFile, int]] = {}
    for file in finished_files(folder):
        try:
            stack = read(*file)
        except UndefinedError:
            continue
        for place, spec in enumerate(stack.specs):
            runs.setdefault(spec.id, (stack, place))
    return runs


@lru_cache(maxsize=4096)
def read(path: Path, changed: int) -> StackFile:
    """One finished stack, parsed once per change of its file; raises as `finished`, and UndefinedError."""
    return _parse(path, load_meta(path))


def _parse(path: Path, meta: dict) -> StackFile:
    try:
        if meta.get("format") not in READ:
            raise RecordError(f"{path} has format {meta.get('format')!r}, this version reads {FORMAT}; delete it.")
        specs = tuple(from_data(data) for data in meta["specs"])
        if not specs or len(set(specs)) < len(specs):
            raise RecordError(f"{path} names no run, or one twice; delete it.")
        return StackFile(path, specs, Progress(**meta["progress"]), meta["held_out"], dict(meta["provenance"]))
    except UndefinedError:
        raise
    except SpecError as error:
        raise RecordError(
            f"{path} was made by another version: {error} Use that version, or move the file away."
        ) from error
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise RecordError(f"{path} is not a stack of this version ({brief(error)}); delete it.") from error


def _weights(trainer: StackTrainer) -> dict[str, Weight]:
    return {WEIGHTS + name: value for name, value in trainer.stack.state_dict().items()}


def _meta(trainer: StackTrainer, progress: Progress, provenance: dict) -> dict:
    return {
        "format": FORMAT,
        "specs": [to_data(spec) for spec in trainer.asked],
        "progress": asdict(progress),
        "held_out": [trainer.data.held_out.sizes[model] for model in trainer.model_of],
        "provenance": provenance,
    }
