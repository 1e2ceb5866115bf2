import json
import runpy
import shutil
import sys
from pathlib import Path

import pytest

from cot2lib.errors import DeviceError, SpecError
from cot2lib.kit import paths
from cot2lib.study import chapters

ROOT = Path(__file__).parents[2]


def cell(source, **metadata):
    return {
        "cell_type": "code",
        "id": f"c{abs(hash(source)) % 10**8}",
        "metadata": metadata,
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A checkout with chapters of our making."""
    (tmp_path / "notebooks").mkdir()
    monkeypatch.setattr(paths, "checkout", lambda: tmp_path)

    def write(name, *sources, parameters="seeds = [1]\nprofile = 'quick'\nlr = 0.1\nretrain = False"):
        cells = [cell(parameters, tags=["parameters"]), *map(cell, sources)]
        kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
        notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
        (tmp_path / "notebooks" / f"{name}.ipynb").write_text(json.dumps(notebook))

    return write, tmp_path


def outputs(path: Path) -> str:
    cells = json.loads(path.read_text())["cells"]
    return "".join("".join(o.get("text", "")) for c in cells for o in c.get("outputs", []))


def test_execute_gives_a_kernel_that_does_not_begin_a_second_one(repository, capsys, monkeypatch):
    write, _ = repository
    write("a", "print(1)")
    calls = []

    def begins(fails):
        def execute(source, target, **options):
            calls.append(source)
            if len(calls) <= fails:
                raise RuntimeError("Kernel didn't respond in 60 seconds")
            shutil.copy(source, target)

        return execute

    for fails, status in ((1, 0), (2, 1)):
        calls.clear()
        monkeypatch.setattr("papermill.execute_notebook", begins(fails))
        assert chapters.execute() == status and len(calls) == 2
    assert "Kernel didn't respond" in capsys.readouterr().out


def test_execute_runs_all_chapters_and_reports_failures(repository, capsys):
    """Two side by side; one fails in a cell, and the kernel of one dies."""
    write, root = repository
    write("a_good", "print('seeds', seeds)")
    write("b_bad", "raise ValueError('the claim is broken')")
    write("c_dead", "import os; os._exit(1)")
    (root / "build" / "executed").mkdir(parents=True)
    (root / "build" / "executed" / "b_bad.ipynb").write_text("old")
    status = chapters.execute(parameters={"seeds": "[4, 5]"}, workers=2)
    printed = capsys.readouterr().out
    executed = root / "build" / "executed"
    assert status == 1 and "1 of 3 chapters executed" in printed
    assert "ValueError: the claim is broken" in printed and "DeadKernelError" in printed
    assert "seeds [4, 5]" in outputs(executed / "a_good.ipynb")
    assert (executed / "b_bad.ipynb").read_text() == "old", "a failed chapter leaves what was there"
    assert sorted(path.name for path in executed.iterdir()) == ["a_good.ipynb", "b_bad.ipynb"]
    made = json.loads((executed / "a_good.ipynb").read_text())["metadata"]
    assert made["cot2"]["parameters"] == {"seeds": [4, 5], "profile": "quick", "lr": 0.1, "retrain": False}
    assert "papermill" not in made and made["cot2"]["commit"]


@pytest.mark.parametrize(
    "given, names",
    [
        ({"sedes": "[1]"}, "has no parameter 'sedes'; it has seeds, profile, lr, retrain"),
        ({"seeds": "4"}, r"seeds=4 should be like its default \[1\]"),
        ({"lr": "fast"}, "lr=fast"),
        ({"seeds": "[]"}, r"seeds=\[\] is empty; give at least one value"),
        ({"seeds": "[7, 8, 7]"}, r"a: seeds=\[7, 8, 7\] names 7 twice"),
        ({"profile": "slow"}, "profile 'slow' is unknown; choose one of paper, quick"),
    ],
)
def test_execute_refuses_parameters_before_anything_runs(repository, given, names):
    write, root = repository
    write("a", "print(1)")
    with pytest.raises(SpecError, match=names):
        chapters.execute(["a"], given)
    assert not (root / "build").exists()


def test_checked_reads_values_of_the_defaults_types_and_only_digits_may_repeat(repository):
    write, root = repository
    write("a", parameters="digits = [2, 1]\nprofile = 'quick'\nlr = 0.1\nretrain = False")
    given = {"lr": "1", "profile": "paper", "retrain": "True", "digits": "[2, 2]"}
    found = chapters.checked(root / "notebooks" / "a.ipynb", given)
    assert found == {"lr": 1, "profile": "paper", "retrain": True, "digits": [2, 2]}


def test_check_calls_a_list_that_papermill_gave_as_text_so():
    """As `-p` gives it: it looks like what is asked for."""
    known = chapters.EVERYWHERE | chapters.PARAMETERS["csft"]
    with pytest.raises(SpecError, match=r"csft: seeds is text; give papermill -y 'seeds: \[42, 43\]' instead of -p"):
        chapters.check("csft", known | {"seeds": "[42, 43]"})


def test_execute_refuses_chapters_that_cannot_run(repository, monkeypatch):
    write, root = repository
    write("a", parameters="device = 'auto'")
    with pytest.raises(DeviceError, match="device='abacus' is unknown"):
        chapters.execute(["a"], {"device": "abacus"})
    source = root / "notebooks" / "a.ipynb"
    monkeypatch.setitem(sys.modules, "papermill", None)
    assert "pip install 'cot2lib[book]'" in chapters._execute(source, root / "out.ipynb", {})[0]
    source.write_text(source.read_text().replace('"parameters"', '"other"'))
    with pytest.raises(SpecError, match="0 cells tagged 'parameters'"):
        chapters.execute(["a"])
    monkeypatch.setattr(paths, "checkout", lambda: None)
    with pytest.raises(SpecError, match="clone it"):
        chapters.execute()


@pytest.fixture
def on_gpu(repository, monkeypatch):
    """What `make gpu` calls, over chapters of our making."""
    main = runpy.run_path(str(ROOT / "release" / "gpu.py"))["main"]
    monkeypatch.setitem(main.__globals__, "OUT", repository[1] / "out")
    monkeypatch.setenv("COT2_COMMIT", "here")
    monkeypatch.setenv("COT2_STORE", str(repository[1] / "runs"))
    return main


def test_chapters_on_a_gpu_have_a_line_each_and_only_a_failed_one_is_executed_again(repository, on_gpu, capsys):
    for name, source in (("bad", "1 / 0"), ("good", "print(1)")):
        repository[0](name, source, parameters="device = 'auto'\nretrain = False")
    for said in (" ok ", " ok, executed before "):
        assert on_gpu("device=cpu") == 1
        bad, good = capsys.readouterr().out.splitlines()
        assert "ZeroDivisionError: division by zero" in bad and bad.endswith(" 0.0 GiB") and said in good
    assert on_gpu("device=cpu", "retrain=True") == 1
    assert "before" not in capsys.readouterr().out, "other parameters are another run"


def test_without_papermill_chapters_on_a_gpu_are_left_out(on_gpu, capsys, monkeypatch):
    monkeypatch.setitem(on_gpu.__globals__, "find_spec", lambda name: None)
    assert on_gpu() == 0 and "the chapters are left out" in capsys.readouterr().out
