"""The core without the study, and records in a folder that the environment names."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cot2lib.kit import paths
from cot2lib.runs import records

ROOT = Path(__file__).parents[2]
NOTHING_SHIPPED = """
from cot2lib.kit import paths
from cot2lib.runs import records
assert not paths.records().exists()
assert all(table.empty for table in records.shipped())
assert records.shipped_weights("0" * 12) is None and records.shipped_table("training") is None
"""
TRAINS = """
from cot2lib import runs
from cot2lib.specs.profiles import spec
from cot2lib.tasks import MNNS
tiny = spec("cot2", "quick", task=MNNS(1, 5, 3), d_model=16, steps=30, evaluate_every=30, batch=16)
assert runs.run([tiny], engine="torch")["id"].tolist() == [tiny.id]  # the copy would compile the other one anew
"""


@pytest.fixture
def core(tmp_path):
    """A copy of the package without the study."""
    shutil.copytree(ROOT / "cot2lib", tmp_path / "cot2lib", ignore=shutil.ignore_patterns("study", "__pycache__"))
    return tmp_path


def output(folder, program, **environment):
    kept = {name: value for name, value in os.environ.items() if name != "COT2_RECORDS"}
    found = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(folder), "COT2_STORE": str(folder / "store")} | environment,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


def test_the_core_alone_trains_and_finds_nothing_shipped(core):
    output(core, NOTHING_SHIPPED + TRAINS)


@pytest.mark.thorough
def test_the_core_alone_reads_the_records_that_it_is_told_of(core):
    program = "from cot2lib.runs import records; print(len(records.shipped()[0]))"
    told = ROOT / "cot2lib" / "study" / "records"
    assert int(output(core, program, COT2_RECORDS=str(told))) > 100


def test_records_are_looked_for_when_they_are_read(tmp_path, monkeypatch):
    """A notebook names its folder after the import."""
    monkeypatch.setenv("COT2_RECORDS", str(tmp_path))
    assert records.shipped_runs().empty
    monkeypatch.delenv("COT2_RECORDS")
    assert len(records.stems(paths.records())) > 10


def test_the_package_reads_its_own_records_unless_told_otherwise(tmp_path):
    program = "from cot2lib.kit import paths; print(paths.records())"
    own = str(ROOT / "cot2lib" / "study" / "records")
    assert output(ROOT, program) == output(ROOT, program, COT2_RECORDS="") == own
    assert output(ROOT, program, COT2_RECORDS=str(tmp_path)) == str(tmp_path)
