"""Where things are, whatever the working directory."""

import os
from pathlib import Path

PACKAGE = Path(__file__).parent.parent
RECORDS = PACKAGE / "study" / "records"


def checkout() -> Path | None:
    """Root of the repository if the package runs from one."""
    root = PACKAGE.parent
    return root if (root / "pyproject.toml").exists() else None


def store() -> Path:
    """Folder of finished stacks and checkpoints: $COT2_STORE, else build/runs of the checkout, else a cache."""
    if configured := os.environ.get("COT2_STORE"):
        return Path(configured)
    root = checkout()
    return root / "build" / "runs" if root else Path.home() / ".cache" / "cot2" / "runs"
