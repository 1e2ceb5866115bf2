"""Arrays of shards on Slurm: the real submitit over programs that stand for Slurm's, since CI has none."""

import os
import shutil
import stat
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from cot2lib import cli
from cot2lib.errors import SpecError
from cot2lib.kit import machine, paths
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


def writes(path, text):
    return [sys.executable, "-c", f"open({str(path)!r}, 'a').write({text!r})"]


def test_each_task_runs_its_command_whatever_becomes_of_the_others(slurm):
    commands = [writes(slurm / "out", "a"), ["false"], writes(slurm / "out", "b")]
    jobs = cluster.submit(commands, slurm / "logs", {"timeout_min": 5, "slurm_partition": "short"}, "cot2-csft")
    until(lambda: (slurm / "out").exists() and (slurm / "out").read_text() == "ab")
    assert [job.job_id for job in jobs] == ["7_0", "7_1", "7_2"]
    script = (slurm / "script.sh").read_text()
    for flag in ("--array=0-2", "--partition=short", "--time=5", "--job-name=cot2-csft", "--requeue", "--signal=USR2"):
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


def test_a_small_machine_submits_to_large_nodes(slurm, store, monkeypatch, capsys):
    """Shards are no processes of this machine, and threads are counted where they run."""
    queued = []
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: {0})
    monkeypatch.setattr(
        cluster, "submit", lambda commands, *_: queued.extend(commands) or [SimpleNamespace(job_id="7")]
    )
    assert cli.main(["slurm", "grpo_mts", "--shards", "200", "--threads", "64"]) == 0
    assert len(queued) == 200 and queued[0][queued[0].index("--threads") + 1] == "64"
    assert cli.main(queued[0][3:]) == 2
    assert "--threads 64: this machine has 1 processors" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, names",
    [
        (["nowhere"], "chapter 'nowhere' has no runs"),
        (["csft", "--shards", "0"], "--shards"),
        (["csft", "--slurm", "timeout_min"], "write NAME=VALUE"),
        (["csft", "--slurm", "timeout_minutes=5"], "are refused: Unknown executor 'timeout'"),
        (["csft", "--slurm", "timeout_min=1.5"], "'timeout_min': 1.5} are refused"),
        (["csft", "--device", "gpu"], "argument --device: invalid choice: 'gpu'"),
        (["csft", "--engine", "fast"], "argument --engine: invalid choice: 'fast'"),
        (["csft", "--threads", "-3"], "--threads"),
        (["csft", "--where", "seed=7"], "leaves no run"),
    ],
)
def test_a_bad_request_is_one_sentence(slurm, store, capsys, arguments, names):
    assert cli.main(["slurm", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and names in said and not (slurm / "script.sh").exists()


def test_what_slurm_refuses_is_one_sentence(slurm, store, capsys):
    (slurm / "bin" / "sbatch").write_text("#!/bin/bash\necho 'sbatch: error: no such partition' >&2\nexit 1\n")
    assert cli.main(["slurm", "csft", "--slurm", "slurm_partition=nope"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]  # Slurm's own words come before
    assert "{'slurm_partition': 'nope'} are refused: sbatch: error: no such partition" in said


def test_a_task_may_be_queued_again_a_thousand_times(slurm, monkeypatch):
    executor = cluster._executor(slurm)
    assert executor._executor.max_num_timeout == 1000
    assert cluster.parsed(["a=5", "b=1.5", "c=x"]) == {"a": 5, "b": 1.5, "c": "x"}


def test_what_is_missing_is_named(slurm, store, monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(SpecError, match=r"pip install 'cot2lib\[slurm\]'"):
        cluster.submit([["true"]], slurm, {})
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SpecError, match="sbatch is not here"):
        cluster.submit([["true"]], slurm, {})


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("sinfo") is None, reason="needs Slurm")
def test_on_a_real_cluster(tmp_path):
    if subprocess.run(["sinfo", "-h"], capture_output=True, text=True).stdout.count("idle") == 0:
        pytest.skip("no node of the cluster is idle")
    cluster.submit([writes(tmp_path / name, "a") for name in "xy"], tmp_path / "logs", {"timeout_min": 2, "mem_gb": 1})
    until(lambda: (tmp_path / "x").exists() and (tmp_path / "y").exists())
