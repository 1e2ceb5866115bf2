"""The core without the study, and records in a folder that the environment names."""

import os
import shutil
import subprocess
import sys

from builders import ROOT

from cot2lib.kit import paths
from cot2lib.runs import records

NOTHING_SHIPPED = """
from cot2lib.kit import paths
from cot2lib.runs import records
assert not paths.records().exists()
assert all(table.empty for table in records.shipped())
assert records.shipped_weights("0" * 12) is None and records.shipped_table("training").empty
"""
TRAINS = """
from cot2lib import runs
from cot2lib.specs.profiles import spec
from cot2lib.tasks import MNNS
tiny = spec("cot2", "quick", task=MNNS(1, 5, 3), d_model=16, steps=30, evaluate_every=30, batch=16)
assert runs.run([tiny], engine="torch")["id"].tolist() == [tiny.id]  # the copy would compile the other one anew
"""
READS = f"""
import os
os.environ["COT2_RECORDS"] = {str(ROOT / "cot2lib" / "study" / "records")!r}
assert len(records.shipped()[0]) > 100
"""


def test_the_core_alone_trains_and_reads_the_records_that_it_is_told_of(tmp_path):
    ignored = shutil.ignore_patterns("study", "__pycache__")
    shutil.copytree(ROOT / "cot2lib", tmp_path / "cot2lib", ignore=ignored)
    kept = {name: value for name, value in os.environ.items() if name != "COT2_RECORDS"}
    there = {"PYTHONPATH": str(tmp_path), "COT2_STORE": str(tmp_path / "store")}
    program = [sys.executable, "-c", NOTHING_SHIPPED + TRAINS + READS]
    found = subprocess.run(program, cwd=tmp_path, env=kept | there, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


def test_records_are_looked_for_when_they_are_read(tmp_path, monkeypatch):
    """A notebook names its folder after the import; an empty name is none."""
    own = ROOT / "cot2lib" / "study" / "records"
    monkeypatch.setenv("COT2_RECORDS", str(tmp_path))
    assert paths.records() == tmp_path and records.shipped_runs().empty
    monkeypatch.setenv("COT2_RECORDS", "")
    assert paths.records() == own
    monkeypatch.delenv("COT2_RECORDS")
    assert paths.records() == own and len(records.stems(own)) > 10
