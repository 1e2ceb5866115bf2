"""This machine's abilities: processors and memory; and processes that end with their parent."""

import multiprocessing
import os
import threading
from multiprocessing.connection import wait

from cot2lib.errors import SpecError

PER_PROCESSOR = 4  # processes for each processor at most: with a GPU they mostly wait for it
GIB = 2**30


def check_count(name: str, count: int) -> None:
    """Raise SpecError for a number of processes or threads below 1, or far beyond the processors that are here."""
    if count < 1:
        raise SpecError(f"{name} {count}: need at least one.")
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if count > PER_PROCESSOR * processors:
        raise SpecError(
            f"{name} {count}: this machine has {processors} processors; choose at most {PER_PROCESSOR} for each."
        )


def check_room(what: str, needed: int, remedy: str) -> None:
    """Raise SpecError if something needs more bytes than this machine has memory, where that is known."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return
    if needed > memory:
        raise SpecError(f"{what} take {needed // GIB} GiB, more than this machine's {memory // GIB}; {remedy}.")


def end_with_parent() -> None:
    """Let this process, if `multiprocessing` has started it, end when its parent does, however that ends."""
    parent = multiprocessing.parent_process()

    def end() -> None:
        wait([parent.sentinel] if parent else [])
        os._exit(1)

    if parent:
        threading.Thread(target=end, daemon=True).start()
