"""Shapes and types are checked in every test where beartype is installed (it is not on a bare GPU machine)."""

import importlib.util
import os
from pathlib import Path

import jaxtyping
import pytest
import torch

os.environ.setdefault("HF_HUB_OFFLINE", "1")
if importlib.util.find_spec("beartype"):
    from jaxtyping import install_import_hook

    # A checked call costs tens of microseconds, so modules without a shape are left alone. So are compiled functions:
    # Numba checks their types, and takes no wrapped ones.
    root = Path(__file__).parent.parent
    shaped = [path for path in (root / "cot2lib").rglob("*.py") if "from jaxtyping import" in path.read_text()]
    names = [".".join(path.relative_to(root).with_suffix("").parts) for path in shaped]
    install_import_hook([name for name in names if not name.startswith("cot2lib.fast")], "beartype.beartype")

torch.set_num_threads(1)

# What takes longest begins first, so that no worker is left with it.
LONGEST = (
    "test_site.py", "test_fused.py", "test_cli.py", "test_shipped.py", "test_supervised.py",
    "test_construction.py", "test_runs.py", "test_exact.py", "test_sampling.py", "test_grpo.py",
)  # fmt: skip


def pytest_addoption(parser):
    parser.addoption("--build", action="store_true", help="build the book before the tests of its pages")


def pytest_collection_modifyitems(items):
    """Sort files by what they take; tests of a file stay in order."""
    rank = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(LONGEST)))


@pytest.fixture(scope="module")
def unchecked():
    """Shapes are not checked: for files that train long, by functions that other files check."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def store(tmp_path, monkeypatch):
    """An empty local store."""
    monkeypatch.setenv("COT2_STORE", str(tmp_path / "store"))
    return tmp_path / "store"


@pytest.fixture
def nothing_shipped(tmp_path, monkeypatch):
    """A package without records."""
    monkeypatch.setenv("COT2_RECORDS", str(tmp_path / "records"))
    return tmp_path / "records"
