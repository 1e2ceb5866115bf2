"""`pytest --nbval` keeps what it executed, so that the book can be built without executing the chapters once more."""

import time

import pytest

from cot2lib.study import chapters

# What takes longest begins first. The first chapter compiles the fused engine, the others that train come later.
LONGEST = (
    "csft",
    "grpo_mts",
    "grpo_dirichlet",
    "ledger",
    "policy_ratio",
    "budget",
    "prosqa",
    "sampling",
    "capacity",
    "construction",
)
BEGAN = pytest.StashKey[float]()


def pytest_collection_modifyitems(items):
    """Sort chapters by what they take; cells stay in order."""
    rank = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(LONGEST)))


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
