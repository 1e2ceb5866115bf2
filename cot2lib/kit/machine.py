"""This machine's memory, and processes that end with their parent."""

import multiprocessing
import os
import threading
from multiprocessing.connection import wait

from cot2lib.errors import SpecError

GIB = 2**30


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
