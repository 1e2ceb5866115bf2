"""The place of this process in an array of tasks, read from the variables that schedulers set.

A scheduler gives each task an index; some also say where the indices begin and end. For the others, and for a part of
an array that is queued again, `COT2_ARRAY=FIRST-LAST` says so. It is the range that the whole array was queued with.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from cot2lib.errors import SpecError

ARRAY = "COT2_ARRAY"
RANGE = re.compile(r"(\d+)-(\d+)")


@dataclass(frozen=True)
class Scheduler:
    """Variables that a scheduler sets for a task of an array.

    Attributes:
        name: as its users call it.
        index: of the task.
        first, last: of the array.
        count: of tasks.
    """

    name: str
    index: str
    first: str = ""
    last: str = ""
    count: str = ""


SLURM = "SLURM_ARRAY_TASK"
SCHEDULERS = (
    Scheduler("Slurm", f"{SLURM}_ID", f"{SLURM}_MIN", f"{SLURM}_MAX", f"{SLURM}_COUNT"),
    Scheduler("PBS", "PBS_ARRAY_INDEX"),
    Scheduler("PBS", "PBS_ARRAYID"),  # Torque
    Scheduler("SkyPilot", "SKYPILOT_JOB_RANK", count="SKYPILOT_NUM_JOBS"),
    Scheduler("Kubernetes", "JOB_COMPLETION_INDEX"),
)
NAMES = tuple(dict.fromkeys(scheduler.name for scheduler in SCHEDULERS))


def place(environ: Mapping[str, str]) -> tuple[int, int]:
    """The place of this task in its array, from 0, and the number of tasks.

    Raises:
        SpecError: outside an array of `SCHEDULERS`, where the array's range is unknown or has gaps, or for an index
            outside it.
    """
    scheduler = next((one for one in SCHEDULERS if one.index in environ), None)
    if scheduler is None:
        known = f"{', '.join(NAMES[:-1])} or {NAMES[-1]}"
        raise SpecError(f"--shard auto: this is no task of an array of {known}; write --shard K/N, say 1/8.")
    index = _number(environ, scheduler.index)
    first, last = _given(environ[ARRAY]) if environ.get(ARRAY) else _told(scheduler, environ)
    if not first <= index <= last:
        raise SpecError(
            f"--shard auto: the index {index} of {scheduler.name} is outside the array {first}-{last}; queue the "
            f"array with the range that {ARRAY} says."
        )
    return index - first, last - first + 1


def _given(text: str) -> tuple[int, int]:
    """The range that a user states."""
    found = RANGE.fullmatch(text)
    if not found or int(found[1]) > int(found[2]):
        raise SpecError(f"{ARRAY}={text}: write FIRST-LAST, say 0-7 for an array of eight tasks.")
    return int(found[1]), int(found[2])


def _told(scheduler: Scheduler, environ: Mapping[str, str]) -> tuple[int, int]:
    """The range that a scheduler states; it begins at 0 or 1 and has no gap, or tasks may have been queued again."""
    remedy = f"set {ARRAY}=FIRST-LAST to the range of the whole array, say 0-7"
    if scheduler.count not in environ:
        raise SpecError(f"--shard auto: {scheduler.name} does not say how many tasks the array has; {remedy}.")
    count = _number(environ, scheduler.count)
    first = _number(environ, scheduler.first) if scheduler.first else 0
    last = _number(environ, scheduler.last) if scheduler.last else first + count - 1
    if first > 1 or last - first + 1 != count:
        raise SpecError(f"--shard auto: the {count} tasks of {scheduler.name} are a part of an array; {remedy}.")
    return first, last


def _number(environ: Mapping[str, str], name: str) -> int:
    text = environ.get(name, "")
    if not re.fullmatch(r"\d+", text):
        raise SpecError(f"--shard auto: {name}={text!r} is no index; write --shard K/N, say 1/8.")
    return int(text)
