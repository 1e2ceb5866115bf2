"""Arrays of shards on Slurm: the real submitit over programs that stand for Slurm's, since CI has none."""

import os
import stat
import subprocess
import sys
import time

import pytest

from cot2lib import cli
from cot2lib.errors import SpecError
from cot2lib.kit import paths
from cot2lib.study.book import cluster

pytest.importorskip("submitit")

SBATCH = """#!/bin/bash
# Runs the tasks of an array one after the other, once submitit has been told their number.
script="${@: -1}"
cp "$script" "$FAKE_SLURM/script.sh"
last=$(sed -n 's/^#SBATCH --array=0-\\([0-9]*\\).*/\\1/p' "$script")
for task in $(seq 0 "$last"); do
  SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=$task SLURM_JOB_ID=$((7 + task)) SLURM_JOB_NUM_NODES=1 SLURM_NTASKS=1 \\
    SLURM_NODEID=0 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_JOB_NODELIST=here bash "$FAKE_SLURM/script.sh"
done > "$FAKE_SLURM/said" 2>&1 &
echo "Submitted batch job 7"
"""
SRUN = """#!/bin/bash
while [[ "$1" == -* ]]; do
  if [[ "$1" == --output || "$1" == --error ]]; then shift; fi
  shift
done
exec "$@"
"""


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A folder of such programs in front of the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("sbatch", SBATCH), ("srun", SRUN)):
        (folder / name).write_text(text)
        (folder / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_SLURM", str(tmp_path))
    return tmp_path


def until(done):
    """Wait for something that processes elsewhere do."""
    for _ in range(240):
        if done():
            return
        time.sleep(0.25)
    raise AssertionError("the tasks have not run")


def test_each_task_runs_its_command_whatever_becomes_of_the_others(slurm):
    commands = [["false"], [sys.executable, "-c", f"open({str(slurm / 'out')!r}, 'w').write('a')"]]
    jobs = cluster.submit(commands, slurm / "logs", {"timeout_min": 5, "slurm_partition": "short"}, "cot2-csft")
    until(lambda: (slurm / "out").exists() and (slurm / "out").read_text() == "a")
    assert [job.job_id for job in jobs] == ["7_0", "7_1"]
    script = (slurm / "script.sh").read_text()
    for flag in ("--array=0-1", "--partition=short", "--time=5", "--job-name=cot2-csft", "--requeue", "--signal=USR2"):
        assert f"#SBATCH {flag}" in script


def test_a_task_is_queued_again_as_it_is():
    task = cluster.Task(("true",))
    again = task.checkpoint()
    assert again.function is task and task() is None
    with pytest.raises(subprocess.CalledProcessError):
        cluster.Task(("false",))()


def test_the_command_queues_every_shard_once(slurm, store, monkeypatch, capsys):
    queued = []

    class Job:
        job_id = "7_0"

    monkeypatch.setattr(cluster, "submit", lambda *given: queued.append(given) or [Job()] * len(given[0]))
    asked = ["slurm", "csft", "--shards", "3", "--where", "seed=42", "--device", "cuda", "--slurm", "gpus_per_node=1"]
    assert cli.main(asked) == 0
    [(commands, folder, options, name)] = queued
    told = ["run", "csft", "--profile", "quick", "--device", "cuda", "--engine", "auto", "--where", "seed=42"]
    assert [command[:3] for command in commands] == [[sys.executable, "-m", "cot2lib"]] * 3
    assert [command[3:] for command in commands] == [[*told, "--shard", f"{k}/3"] for k in (1, 2, 3)]
    assert folder == paths.store() / "slurm" and options == {"gpus_per_node": 1} and name == "cot2-csft"
    assert "3 tasks queued as 7" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, names",
    [
        (["--shards", "0"], "--shards"),
        (["--slurm", "timeout_min"], "write NAME=VALUE"),
        (["--slurm", "timeout_minutes=5"], "are refused: Unknown executor 'timeout'"),
        (["--slurm", "slurm_partition=nope"], "'nope'} are refused: sbatch: error: no such partition"),
        (["--where", "seed=7"], "leaves no run"),
    ],
)
def test_a_bad_request_is_one_sentence(slurm, store, capsys, arguments, names):
    (slurm / "bin" / "sbatch").write_text("#!/bin/bash\necho 'sbatch: error: no such partition' >&2\nexit 1\n")
    assert cli.main(["slurm", "csft", *arguments]) == 2
    *before, said = capsys.readouterr().err.splitlines()
    assert names in said and (not before or "sbatch" in said), "Slurm's own words come before"


def test_what_is_missing_is_named(slurm, monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(SpecError, match=r"pip install 'cot2lib\[slurm\]'"):
        cluster.submit([["true"]], slurm, {})
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SpecError, match="sbatch is not here"):
        cluster.submit([["true"]], slurm, {})
