import os
import subprocess
import sys

import pandas as pd
import pytest

from cot2lib import cli, paper


def cot2(*arguments, **environment):
    """A command as a user types it."""
    return subprocess.run(
        [sys.executable, "-m", "cot2lib", *arguments], capture_output=True, text=True, env=os.environ | environment
    )


def test_list_shows_every_sweep():
    out = cot2("list")
    assert out.returncode == 0 and out.stderr == ""
    lines = [line.split()[:3] for line in out.stdout.splitlines()]
    assert ["csft", "paper", "45"] in lines and ["csft", "quick", "45"] in lines


def test_ledger_writes_every_claim(tmp_path):
    out = cot2("ledger", "--csv", str(tmp_path / "ledger.csv"))
    assert out.returncode == 0, out.stderr
    table = pd.read_csv(tmp_path / "ledger.csv")
    assert tuple(table.columns) == paper.COLUMNS and len(table) == 2 * len(paper.claims())


def test_run_trains_into_the_store_and_collect_packs_it(tmp_path, monkeypatch, capsys):
    from test_runs import SPECS

    from cot2lib import sweeps

    monkeypatch.setenv("COT2_STORE", str(tmp_path / "store"))
    monkeypatch.setitem(sweeps.SWEEPS, "tiny", lambda profile: SPECS)
    assert cli.main(["run", "tiny", "--where", "method=CoT2", "--device", "cpu"]) == 0
    assert "2 of 2 runs of tiny under quick are recorded or stored." in capsys.readouterr().out
    assert cli.main(["run", "tiny", "--shard", "2/2"]) == 0
    assert cli.main(["collect", "tiny", "--out", str(tmp_path / "out")]) == 0
    assert "tiny.quick.runs.csv" in capsys.readouterr().out
    assert len(pd.read_csv(tmp_path / "out" / "tiny.quick.runs.csv")) == 3


@pytest.mark.parametrize(
    "arguments, names",
    [
        (["run", "nowhere"], "chapter 'nowhere' has no runs; chapters with runs: csft"),
        (["run", "csft", "--profile", "slow"], "profile 'slow' is unknown; choose one of paper, quick"),
        (["run", "csft", "--where", "d_model=33"], "d_model is one of 16, 24, 32"),
        (["run", "csft", "--where", "width=3"], "write FIELD=VALUE with a field of method"),
        (["run", "csft", "--shard", "3/2"], "--shard 3/2"),
        (["run", "csft", "--device", "abacus"], "device='abacus' is unknown"),
        (["collect", "csft", "--profile", "slow"], "profile 'slow'"),
        (["chapters", "nowhere"], "chapter 'nowhere' does not exist; chapters:"),
        (["chapters", "csft", "-p", "sedes", "[1]"], "csft has no parameter 'sedes'; it has profile"),
    ],
)
def test_bad_requests_are_one_sentence_and_exit_2(arguments, names):
    out = cot2(*arguments)
    assert out.returncode == 2 and out.stdout == ""
    assert out.stderr.startswith("cot2: ") and out.stderr.count("\n") == 1 and names in out.stderr


def test_cuda_that_is_not_there():
    out = cot2("run", "csft", "--device", "cuda", CUDA_VISIBLE_DEVICES="")
    assert out.returncode == 2 and "torch sees no CUDA device here; choose device='cpu'" in out.stderr


def test_run_needs_no_book_tools():
    """On a bare GPU machine there is no papermill, no Sphinx, no transformers."""
    block = (
        "import sys\n"
        "for name in ('papermill', 'sphinx', 'jupyter_book', 'transformers', 'nbformat', 'matplotlib', 'seaborn'):\n"
        "    sys.modules[name] = None\n"
        "from cot2lib import cli, collect, runs, supervised\n"
        "raise SystemExit(cli.main(['list']))\n"
    )
    out = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
