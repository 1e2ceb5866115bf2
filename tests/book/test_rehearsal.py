"""`cot2 rehearse`: every step on a CPU, small; what it leaves behind, and what happens when it is called again."""

import json
import os
import subprocess
import sys
import tarfile
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch

from cot2lib import runs
from cot2lib.errors import DeviceError, RecordError, SpecError
from cot2lib.runs import records
from cot2lib.specs.profiles import spec
from cot2lib.study.book import rehearsal
from cot2lib.study.book.collect import collect
from cot2lib.study.costs import Variant
from cot2lib.study.speed import draw, record, rehearsed
from cot2lib.tasks import MNNS

pytestmark = pytest.mark.usefixtures("unchecked")
ROOT = Path(__file__).parents[2]
TESTS = rehearsal._tests
TINY = [spec("cot2", "paper", task=MNNS(1, 3, 3), d_model=8, layers=1, heads=1, seed=s, steps=20) for s in (42, 43)]


@pytest.fixture
def small(monkeypatch, store):
    """Steps that take no time: two small runs, no chapter, and turns of one step."""
    monkeypatch.setattr(rehearsal, "chosen_runs", lambda name: TINY if name == "one" else refuse(name))
    monkeypatch.setattr(rehearsal, "_chapters", lambda every: [])
    monkeypatch.setattr(rehearsal, "_tests", lambda _: [{"said": "none"}])
    monkeypatch.setattr(rehearsed, "ROUNDS", 1)
    monkeypatch.setattr(rehearsed, "SIZES", {"cpu": (1, 2)})
    monkeypatch.setattr(rehearsed, "REWARD_SIZES", {"cpu": (1,)})
    return store.parent / "out"


@pytest.fixture
def instant(monkeypatch):
    """Turns that only wait, for tests of what becomes of a step."""
    turns = [Variant(name, 1, lambda: time.sleep(0.001), 1) for name in (rehearsed.BASELINE, "stack of 1")]
    for name in rehearsed.WAYS:
        monkeypatch.setitem(rehearsed.WAYS, name, lambda device: turns)


def refuse(name):
    raise SpecError(f"runs {name!r}: choose one, missing, or a chapter.")


def test_every_step_is_taken_told_and_collected(small, capsys):
    assert rehearsal.rehearse("cpu", small) == 0
    said = capsys.readouterr().out
    for place, step in enumerate(("machine", "tests", "training", "reward", "decoding", "runs"), start=1):
        assert f"{place} of 6, {step}: " in said
    assert "machine: about 1 s" in said and "runs: 2 runs by the authors' recipe in 1 stacks, about" in said
    table = records.shipped_table("rehearsal.cpu.measured", small)
    assert set(table["step"]) == {"machine", "tests", "training", "reward", "decoding", "runs"}
    timed = table[table["what"].notna()]
    assert set(timed["what"]) == {"training", "reward", "decoding"} and (timed["rate"] > 0).all()
    assert (timed.groupby("what")["times"].first() == 1).all(), "the loop is the yardstick"
    assert {"device", "torch", "commit", "date"} <= set(table) and (table["verdict"] == "ok").all()
    rows = records.shipped(small)[0]
    assert set(rows["id"]) == {run.id for run in TINY}
    report = (small / "cpu.md").read_text()
    assert "# Rehearsal on cpu" in report and "## Training" in report and "Hugging Face loop" in report
    assert "2 runs" in report and report.count("\n## ") == 6


def test_called_again_it_does_nothing_twice(small, instant, capsys, monkeypatch):
    rehearsal.rehearse("cpu", small)
    first = records.shipped_table("rehearsal.cpu.measured", small)
    capsys.readouterr()
    with monkeypatch.context() as patch:
        for name in rehearsed.WAYS:
            patch.setitem(rehearsed.WAYS, name, lambda device: pytest.fail("timed twice"))
        assert rehearsal.rehearse("cpu", small) == 0
    assert capsys.readouterr().out.count(": known\n") == 6
    pd.testing.assert_frame_equal(first, records.shipped_table("rehearsal.cpu.measured", small))
    monkeypatch.setattr(
        rehearsal, "provenance", lambda device: {"device": "x", "torch": "y", "commit": "z", "date": ""}
    )
    monkeypatch.setitem(rehearsed.WAYS, "training", lambda device: (_ for _ in ()).throw(RuntimeError("again")))
    assert rehearsal.rehearse("cpu", small) == 1, "another commit takes the steps again"


def test_a_kill_loses_the_step_alone(small, instant, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setitem(rehearsed.WAYS, "reward", lambda device: (_ for _ in ()).throw(KeyboardInterrupt))
        rehearsal.rehearse("cpu", small)
    assert set(records.shipped_table("rehearsal.cpu.measured", small)["step"]) == {"machine", "tests", "training"}
    monkeypatch.setitem(rehearsed.WAYS, "training", lambda device: pytest.fail("timed twice"))
    assert rehearsal.rehearse("cpu", small) == 0


def test_a_step_that_fails_is_told_and_tried_again(small, instant, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setitem(rehearsed.WAYS, "training", lambda device: (_ for _ in ()).throw(RuntimeError("no room")))
        assert rehearsal.rehearse("cpu", small) == 1
    assert "verdict failed, said RuntimeError: no room" in capsys.readouterr().out
    assert "no room" in (small / "cpu.md").read_text() and records.shipped(small)[0].shape[0] == 2, "the rest is done"
    assert rehearsal.rehearse("cpu", small) == 0


def test_what_is_not_installed_is_left_out(small, monkeypatch, capsys):
    here = rehearsal.find_spec
    monkeypatch.setattr(
        rehearsal, "find_spec", lambda name: None if name in ("pytest", "transformers") else here(name)
    )
    assert rehearsal.rehearse("cpu", small) == 0
    said = capsys.readouterr().out
    assert said.count("verdict left out") == 3 and said.count("said transformers not installed here") == 3
    assert TESTS(rehearsal.Rehearsal(torch.device("cpu"), small.parent, small, "one")) == [
        {"verdict": "left out", "said": "pytest not installed here"}
    ]


def test_failing_tests_are_told(small, monkeypatch, tmp_path):
    (tmp_path / "tests" / "training").mkdir(parents=True)
    (tmp_path / "tests" / "training" / "test_cuda.py").write_text(
        "import pytest\npytestmark = pytest.mark.cuda\ndef test_a():\n    assert 1 == 2\ndef test_b():\n    pass\n"
    )
    monkeypatch.setattr(rehearsal.paths, "checkout", lambda: tmp_path)
    row = TESTS(rehearsal.Rehearsal(torch.device("cpu"), small.parent, small, "one"))[0]
    assert row["verdict"] == "failed" and row["said"].startswith("1 passed, 0 skipped, 1 failed")


def test_a_chapter_that_fails_is_told_with_its_memory(small, monkeypatch):
    done = rehearsal._run(
        [sys.executable, "-c", "x = bytearray(300 << 20); print('ran'); print('TypeError: no'); exit(3)"]
    )
    assert done.status == 3 and done.last == "TypeError: no" and 0.25 < done.gib < 2
    monkeypatch.setattr(rehearsal, "_run", lambda command: replace(done, status=1))
    row = rehearsal._chapter(rehearsal.Rehearsal(torch.device("cpu"), small.parent, small, "one"), "tasks")[0]
    assert row == {"chapter": "tasks", "memory": done.gib, "verdict": "failed", "said": "TypeError: no"}


def test_sets_of_runs():
    assert [run.id for run in rehearsal.chosen_runs("one")] == [
        spec("cot2", "paper", d_model=16, layers=1, heads=1).id
    ]
    missing = rehearsal.chosen_runs("missing")
    assert not len(runs.recorded(missing)) and all(run.recipe.batch in (16, 64) for run in missing)
    assert len(rehearsal.chosen_runs("sampling")) == 10
    with pytest.raises(SpecError, match="runs 'all': choose one, missing, or a chapter of csft"):
        rehearsal.rehearse("cpu", chosen="all")


def test_the_fastest_stack_is_chosen():
    timed = pd.DataFrame(
        {"variant": ["Hugging Face loop", "stack of 1", "stack of 64", "stack of 256"], "runs": [1, 1, 64, 256]}
    ).assign(rate=[1e9, 10.0, 500.0, 400.0])
    assert rehearsed.best_stack(timed) == 64


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_and_an_old_torch_are_named(monkeypatch):
    with pytest.raises(DeviceError, match="torch sees no CUDA device"):
        rehearsal.rehearse("cuda")
    monkeypatch.setattr(torch, "__version__", "2.4.1+cpu")
    with pytest.raises(DeviceError, match=r"torch 2\.4\.1\+cpu is too old; install 2\.11 or later"):
        rehearsal.rehearse("cpu")


def test_what_was_rehearsed_ships_and_is_drawn(small, tmp_path, monkeypatch):
    rehearsal.rehearse("cpu", small)
    folder = tmp_path / "records"
    assert [path.name for path in collect("rehearsal", "quick", [small], folder)] == ["rehearsal.cpu.measured.csv"]
    with pytest.raises(RecordError, match="name the folder that `cot2 rehearse` wrote with --source"):
        collect("rehearsal", "quick", [], folder)
    table = records.shipped_table("rehearsal.cpu.measured", folder)
    monkeypatch.setattr(record.records, "shipped_table", lambda name: table if "cpu" in name else None)
    rows = record.rehearsals()
    assert set(rows["on"]) == {"CPU"} and set(rows["way"]) == {"fused", "stack", "others"}
    ladders = draw.ladders(rows).figure.axes
    assert all("Hugging Face loop" in {name.get_text() for name in axis.get_yticklabels()} for axis in ladders)
    assert len(ladders) == 3
    assert "times the loop" in draw.table(rows) and len(draw.table(rows)) == len(rows)


def test_the_shipped_rehearsal_is_whole():
    rows = record.rehearsals()
    assert {"training", "reward", "decoding"} == set(rows["what"]) and (rows["rate"] > 0).all()


@pytest.mark.thorough
def test_it_ends_in_an_unpacked_archive_without_git_and_after_a_kill(tmp_path):
    """As on a machine that is lent: no .git, no installed package, and once more after a kill."""
    archive = tmp_path / "archive.tar"
    subprocess.run(["git", "-C", ROOT, "archive", "-o", archive, "HEAD"], check=True)
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "there", filter="data")
    environment = os.environ | {"COT2_COMMIT": "thorough", "COT2_STORE": str(tmp_path / "store" / "runs")}
    command = [sys.executable, "-m", "cot2lib", "rehearse", "--device", "cpu"]
    call = lambda: subprocess.Popen(
        command, cwd=tmp_path / "there", env=environment, stdout=subprocess.PIPE, text=True
    )
    first, began = call(), time.monotonic()
    for line in first.stdout:
        if "reward:" in line:
            break
    first.kill()
    first.wait()
    second = call()
    said = second.communicate()[0]
    assert second.returncode == 0 and said.count(": known\n") == 3, said
    out = tmp_path / "store" / "rehearsal" / "cpu" / "out"
    assert "thorough" in (out / "cpu.md").read_text() and json.loads((out / "manifest.json").read_text())
    assert time.monotonic() - began < 3600
