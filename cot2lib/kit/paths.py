"""Folders, found from the package and the environment, whatever the working directory.

`records` is the one folder of shipped records that the core reads. An absent folder reads as "nothing shipped"
(`cot2lib.runs.records`), so the core also works without the study.
"""

import os
from pathlib import Path

PACKAGE = Path(__file__).parent.parent


def records() -> Path:
    """Folder of shipped records: $COT2_RECORDS, else the study's."""
    return Path(os.environ.get("COT2_RECORDS") or PACKAGE / "study" / "records")


def checkout() -> Path | None:
    """Root of the repository, or None if the package does not run from one."""
    root = PACKAGE.parent
    return root if (root / "pyproject.toml").exists() else None


def store() -> Path:
    """Folder of finished stacks and checkpoints: $COT2_STORE, else build/runs of the checkout, else a cache."""
    if configured := os.environ.get("COT2_STORE"):
        return Path(configured)
    root = checkout()
    return root / "build" / "runs" if root else Path.home() / ".cache" / "cot2" / "runs"
