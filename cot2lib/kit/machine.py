"""Processes that end with their parent."""

import multiprocessing
import os
import threading
from multiprocessing.connection import wait


def end_with_parent() -> None:
    """Let this process, if `multiprocessing` has started it, end when its parent does, however that ends."""
    parent = multiprocessing.parent_process()

    def end() -> None:
        wait([parent.sentinel] if parent else [])
        os._exit(1)

    if parent:
        threading.Thread(target=end, daemon=True).start()
