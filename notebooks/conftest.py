"""`pytest --nbval` keeps what it executed, so that the book can be built without executing the chapters once more."""

import os
import time

import pytest

from cot2lib.study import chapters

# The test compiles the fused engine. Until that is done the other worker has chapters that train little.
# After them, what takes longest begins first.
ORDER = (
    "test_entries",
    "ledger",
    "sampling",
    "capacity",
    "policy_ratio",
    "construction",
    "extend",
    "csft",
    "grpo_dirichlet",
    "grpo_mts",
    "prosqa",
    "budget",
)
BEGAN = pytest.StashKey[float]()

if "PYTEST_XDIST_WORKER" in os.environ:  # kernels side by side: their threads would wait for each other
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_collection_modifyitems(items):
    """Sort chapters, and the test that runs beside them; cells stay in order."""
    rank = {name: place for place, name in enumerate(ORDER)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(ORDER)))


def pytest_runtest_setup(item):
    """A chapter begins with its first cell."""
    item.parent.stash.setdefault(BEGAN, time.perf_counter())


def pytest_runtest_teardown(item, nextitem):
    """After the last cell of a chapter: its executed copy, if no cell failed."""
    chapter = item.parent
    if nextitem is not None and nextitem.parent is chapter:
        return
    cells = [cell.test_outputs for cell in item.session.items if cell.parent is chapter]
    if all(outputs is not None and all(out["output_type"] != "error" for out in outputs) for outputs in cells):
        chapters.keep(chapter.path, cells, time.perf_counter() - chapter.stash[BEGAN])
