import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pandas as pd
import pytest
import torch
from builders import SPECS

from cot2lib import cli
from cot2lib.study import sweeps
from cot2lib.study.book import ledger
from cot2lib.study.gsm8k_runs import word_problems


def test_run_list_and_collect(store, nothing_shipped, tmp_path, monkeypatch, capsys):
    """What is trained is listed as stored, then as recorded."""
    monkeypatch.setattr(sweeps, "CHAPTERS", {"tiny": sweeps.Chapter((lambda profile: SPECS,))})

    def says(*arguments):
        assert cli.main([*arguments]) == 0
        return capsys.readouterr().out

    said = says("run", "tiny", "--where", "method=CoT2", "--device", "cpu", "--engine", "torch")
    assert "2 of 2 runs of tiny under quick are recorded or stored." in said
    assert says("list").splitlines()[2].split() == ["tiny", "quick", "3", "0", "2"]
    says("run", "tiny", "--shard", "2/2", "--engine", "torch")
    assert "tiny.quick.runs.csv" in says("collect", "tiny", "--out", str(nothing_shipped))
    assert len(pd.read_csv(nothing_shipped / "tiny.quick.runs.csv")) == 3
    for path in store.iterdir():
        path.unlink()
    chapter, gsm8k = says("list").splitlines()[2::2]
    assert chapter.split() == ["tiny", "quick", "3", "3", "0"]
    assert gsm8k.split()[:3] == ["gsm8k", "quick", str(len(word_problems("quick")))]


def test_ledger_prints_and_writes_its_rows(tmp_path, monkeypatch, capsys):
    """What is printed has the words of pages."""
    claims = ("assumption-1", "dirichlet-discrete-1l")
    rows = pd.DataFrame([row for claim in claims for row in ledger.rows_of(claim, ledger.reading_records())])
    monkeypatch.setattr(ledger, "of_records", lambda: rows)
    assert cli.main(["ledger", "--csv", str(tmp_path / "ledger.csv")]) == 0
    assert pd.read_csv(tmp_path / "ledger.csv")["id"].tolist() == [claim for claim in claims for _ in range(2)]
    shown = capsys.readouterr().out
    assert all(word in shown for word in rows["group"]) and "reproduced" not in shown


def test_a_ledger_of_absent_records_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COT2_RECORDS", str(tmp_path / "typo"))
    assert cli.main(["ledger"]) == 2
    assert "typo, where no records are" in capsys.readouterr().err


REFUSED = {
    "llm train --model weights": "--model and --data are for the models of --profile paper",
    "run nowhere": "chapter 'nowhere' has no runs; chapters with runs: csft",
    "run csft --profile slow": "profile 'slow' is unknown; choose one of paper, quick",
    "run csft --where d_model=33": "d_model is one of 16, 24, 32",
    "run csft --where width=3": "write FIELD=VALUE with a field of task, method",
    "run csft --shard 3/2": "argument --shard: 3/2: write K/N",
    "run csft --shard auto": "argument --shard: auto: write K/N",
    "run csft --workers 0": "argument --workers: 0: need a whole number",
    "run csft --stack 1.5": "argument --stack: 1.5: need a whole number",
    "run csft --workers 2 --engine foo": "argument --engine: invalid choice: 'foo'",
    "run csft --device cuda:1": "argument --device: invalid choice: 'cuda:1'",
    "run csft --device cuda": "torch sees no CUDA device here; choose device='cpu'",
    "run": "the following arguments are required: chapter",
    "train": "invalid choice: 'train'",
    "collect csft --source typo": "typo holds no manifest.json and no finished stack; name a folder",
    "prosqa tests/data/prosqa_valid.json --csv /no/such/dir/x.csv": "/no/such/dir",
    "prosqa absent.json --csv /": "/: Is a directory; choose a path that can be read and written",
    "chapters ledger --out /dev/null/x": "/dev/null/x",
    "measure speed --out /dev/null/x": "/dev/null/x",
    "chapters nowhere": "chapter 'nowhere' does not exist; chapters:",
    "chapters ledger -p seeds '{[]: 1}'": "seeds={[]: 1} should be like its default [42",
    f"chapters ledger -p seeds {'[' * 5000}": "[[[ should be like its default [42",
    f"chapters ledger -p seeds {'~' * 9000}1": "~~~ should be like its default [42",
    f"chapters ledger -p seeds [{2**63}]": "ledger: seeds has 64 bits",
    "chapters grpo_mts -p live_lr 1e999": "grpo_mts: live_lr=inf: give a finite number",
}


@pytest.mark.parametrize("typed", REFUSED, ids=lambda typed: typed[:60])
def test_bad_requests_are_one_sentence_and_exit_2(typed, monkeypatch, capsys):
    """In this process, which spares a start for each."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert cli.main(shlex.split(typed)) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("cot2: ") and said.err.count("\n") == 1
    assert REFUSED[typed] in said.err


def test_an_interrupt_is_one_sentence(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(ledger, "of_records", interrupted)
    assert cli.main(["ledger"]) == 130
    assert capsys.readouterr().err == "cot2: interrupted; what is finished, and the last checkpoints, are kept.\n"


def test_a_bad_request_as_typed():
    out = subprocess.run([sys.executable, "-m", "cot2lib", "run", "nowhere"], capture_output=True, text=True)
    assert out.returncode == 2 and out.stdout == ""
    assert out.stderr.startswith("cot2: chapter 'nowhere' has no runs") and out.stderr.count("\n") == 1


def test_a_reader_that_has_seen_enough_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    out = subprocess.run([sys.executable, "-m", "cot2lib", "list"], stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert out.returncode == 0 and out.stderr == ""


class Worker:
    """Stands for a process: notes its command and ends as it should."""

    commands: ClassVar[list] = []
    ends: ClassVar[list] = []

    def __init__(self, target, args):
        self.commands.append(args[0])
        self.exitcode = self.ends[len(self.commands) - 1]

    def done(self):
        pass

    start = join = terminate = done


@pytest.fixture
def workers(monkeypatch):
    monkeypatch.setattr(cli.multiprocessing, "get_context", lambda _: SimpleNamespace(Process=Worker))
    monkeypatch.setattr(Worker, "commands", [])
    return Worker


def test_workers_that_die_are_named(workers, monkeypatch, capsys):
    monkeypatch.setattr(Worker, "ends", [0, -9, 1])
    assert cli.main(["run", "csft", "--workers", "3", "--device", "cpu"]) == 2
    said = capsys.readouterr().err
    assert "worker 2 of 3 was killed (signal 9), worker 3 of 3 ended with status 1; the same command goes on" in said


def test_workers_share_their_shard(workers, monkeypatch):
    """Two machines with three workers each cover every stack once."""
    monkeypatch.setattr(Worker, "ends", [0] * 6)
    for shard in ("1/2", "2/2"):
        assert cli.main(["run", "csft", "--workers", "3", "--shard", shard, "--where", "d_model=32"]) == 0
    assert all(command[command.index("--where") :][:2] == ["--where", "d_model=32"] for command in Worker.commands)
    shares = [cli.shard(command[-1]) for command in Worker.commands]
    assert sorted(k for k, _ in shares) == list(range(6)) and {n for _, n in shares} == {6}


def _until(done):
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _running(pid):
    """Whether a process is there and not merely waiting to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _spawned(pid):
    """Processes that another has spawned and that have begun to work."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = [child for child in found if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text()]
    return [int(child) for child in found if len(list(Path(f"/proc/{child}/task").iterdir())) > 1]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found in /proc")
def test_workers_end_with_their_parent(tmp_path):
    command = [sys.executable, "-m", "cot2lib", "run", "csft", "--retrain", "--workers", "2", "--device", "cpu"]
    with subprocess.Popen(command, env=os.environ | {"COT2_STORE": str(tmp_path)}) as process:
        try:
            _until(lambda: len(_spawned(process.pid)) == 2)
            workers = _spawned(process.pid)
        finally:
            process.kill()
    try:
        _until(lambda: not any(map(_running, workers)))
    finally:
        for worker in filter(_running, workers):
            os.kill(worker, signal.SIGKILL)


def test_run_needs_no_book_tools():
    """On a bare GPU machine there is no papermill, no Sphinx, no transformers."""
    block = (
        "import sys\n"
        "for name in ('papermill', 'sphinx', 'jupyter_book', 'transformers', 'nbformat', 'matplotlib', 'seaborn'):\n"
        "    sys.modules[name] = None\n"
        "from cot2lib import cli, runs\nfrom cot2lib.study.measured import collect\n"
        "raise SystemExit(cli.main(['list']))\n"
    )
    out = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
