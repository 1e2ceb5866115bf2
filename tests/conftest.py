"""What all tests share: an empty world, shape checks, the order of files, and no test that is skipped unseen in CI.

Shapes and types are checked in `test_contracts.py`, which passes through all of them, and in all of `make thorough`;
where beartype is installed (it is not on a bare GPU machine).
"""

import importlib.util
import os
from pathlib import Path

import jaxtyping
import pytest
import torch

os.environ.setdefault("HF_HUB_OFFLINE", "1")
if importlib.util.find_spec("beartype"):
    from jaxtyping import install_import_hook

    # A checked call costs tens of microseconds, so modules without a shape are left alone.
    root = Path(__file__).parent.parent
    shaped = [path for path in (root / "cot2lib").rglob("*.py") if "from jaxtyping import" in path.read_text()]
    names = [".".join(path.relative_to(root).with_suffix("").parts) for path in shaped]
    install_import_hook(names, "beartype.beartype")

torch.set_num_threads(1)
LONGEST = ("tests/test_contracts.py", "tests/notebooks/test_checks.py")  # a minute; the others less than 20 s


def pytest_configure(config):
    thorough = config.getoption("markexpr") == "thorough"
    jaxtyping.config.update("jaxtyping_disable", not thorough)
    if importlib.util.find_spec("hypothesis") and not thorough:
        from hypothesis import settings

        settings.register_profile("same", derandomize=True, deadline=None)  # a red run is red again
        settings.load_profile("same")


def pytest_collection_modifyitems(items):
    """Files that take longest begin first, so that no worker is left with one; tests of a file stay in order."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


def unseen(report):
    """Make a skipped test or file a failure where `CI` is set, since nobody reads there what was left out."""
    if os.environ.get("CI") and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} would be skipped here, and CI must run it: {report.longrepr[2]}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    return report if item.get_closest_marker("cuda") else unseen(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    return unseen((yield))


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
