"""Commands as an array of Slurm tasks, through submitit (the extra `slurm`).

A task runs one command, say a shard of a chapter's runs. Where Slurm preempts it, or its time is over, it is queued
again as it was, up to a thousand times. The runs themselves go on from their last checkpoint. Submitit's local
executor is not used, since it has no queue; `cot2 run --workers` is the pool for one machine.
"""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cot2lib.errors import SpecError

DEFAULTS = {"timeout_min": 60, "slurm_additional_parameters": {"requeue": True}}  # submitit's own limit is 5 minutes
MOST_TIMES = 1000  # that submitit queues a task again


@dataclass(frozen=True)
class Task:
    command: tuple[str, ...]

    def __call__(self) -> None:
        """Run it; an error ends the task as failed."""
        subprocess.run(self.command, check=True)

    def checkpoint(self):
        """The task that submitit queues again: the same one."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def submit(commands: Sequence[Sequence[str]], folder: Path, options: Mapping[str, object], name: str = "cot2") -> list:
    """Queue an array with one task for each command; returns submitit's jobs.

    Args:
        commands: what the tasks run, from the current folder.
        folder: where submitit keeps scripts and logs; every node sees it.
        options: of submitit's executor, say `timeout_min`, `gpus_per_node`, `slurm_partition`.
        name: of the array.

    Raises:
        SpecError: without submitit or Slurm, or for an option that one of them refuses.
    """
    if shutil.which("sbatch") is None:
        raise SpecError("sbatch is not here: submit from a machine of the cluster, or use `cot2 run --workers`.")
    try:
        import submitit
        from submitit.core.utils import FailedJobError
    except ImportError:
        raise SpecError("package 'submitit' is missing: install it with `pip install 'cot2lib[slurm]'`.") from None
    executor = submitit.AutoExecutor(folder=folder, cluster="slurm", slurm_max_num_timeout=MOST_TIMES)
    try:
        executor.update_parameters(name=name, **(DEFAULTS | dict(options)))
        with executor.batch():
            return [executor.submit(Task(tuple(command))) for command in commands]
    except (AssertionError, FailedJobError, NameError, TypeError, ValueError) as error:
        first = next(iter(str(error).splitlines()), "unknown")
        raise SpecError(f"the options {dict(options)} are refused: {first}") from None


def parsed(options: Sequence[str]) -> dict[str, object]:
    """NAME=VALUE pairs as options of submitit; what reads as a whole number becomes one.

    Raises:
        SpecError: for one without a name or a value.
    """
    given: dict[str, object] = {}
    for option in options:
        name, _, value = option.partition("=")
        if not name or not value:
            raise SpecError(f"--slurm {option}: write NAME=VALUE, say timeout_min=60.")
        given[name] = int(value) if value.isdigit() else value
    return given
