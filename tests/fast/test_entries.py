"""Entries of the fused engine: each is compiled once, for all that is trained and evaluated, in a process of its own.

`make test` runs it beside its first chapters, so that later tests and chapters find compiled code.
"""

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from builders import SMALLER_SUMS, rewarded

from cot2lib import runs
from cot2lib.specs.profiles import spec
from cot2lib.targets import Apart, DrawnState, Frontier
from cot2lib.thoughts import Dirichlet

fast = pytest.importorskip("cot2lib.fast")
from numba import config  # noqa: E402


def twice(number):
    return 2 * number


def short(**options):
    shape = dict(task=SMALLER_SUMS, d_model=16, layers=1, heads=1)
    return spec(**shape, steps=4, evaluate_every=4, warmup=1, **options)


def test_every_entry_has_one_signature(store, nothing_shipped):
    plain, dropped = short(), short(profile_name="paper", dropout=0.1)
    apart = replace(plain, supervision=replace(plain.supervision, targets=Apart(DrawnState(), Frontier())))
    fed = [short(method="coconut"), short(self_fed_from=0.5)]
    runs.run([plain, dropped, apart, *fed, rewarded(), rewarded(thought=Dirichlet(4.0))], device="cpu")
    entries = (fast.step.train, fast.forward.decode, fast.own.train_own, fast.reward.reward)
    assert {entry.__name__: len(entry.signatures) for entry in entries} == {entry.__name__: 1 for entry in entries}
    assert not any(entry.stats.cache_misses for entry in entries)  # no process calls what it compiled


def test_no_two_functions_of_the_engine_have_one_name():
    """Of one name and one number, the first that is loaded would serve for both."""
    modules = (fast.attention, fast.forward, fast.kernels, fast.own, fast.reward, fast.rows, fast.rules, fast.step)
    compiled = {value.py_func for module in modules for value in vars(module).values() if hasattr(value, "py_func")}
    names = [f"{function.__module__}.{function.__qualname__}" for function in compiled]
    assert len(names) == len(set(names)) > 50


TRAINED = """
from cot2lib import run, spec
from cot2lib.runs import store
from cot2lib.tasks import MNNS
one = spec(seed=42, task=MNNS(1, 4, 2), d_model=16, layers=1, heads=1, steps=200, evaluate_every=100, warmup=10)
run([one], device="cpu")
stack, place = store.finished()[one.id]
print(hash(tuple(weight.numpy().tobytes() for weight in stack.weights(place).values())))
"""


@pytest.mark.thorough
def test_a_process_that_finds_nothing_compiled_trains_to_the_same_bits(tmp_path):
    made = []
    for name in "ab":
        environment = os.environ | {"COT2_COMMIT": "test", "PYTHONHASHSEED": "0"}
        environment |= {"NUMBA_CACHE_DIR": str(tmp_path), "COT2_STORE": str(tmp_path / name)}
        made.append(subprocess.check_output([sys.executable, "-c", TRAINED], text=True, env=environment).split()[-1])
    assert made[0] == made[1]


DOUBLED = """
import sys, time
from cot2lib.fast.entries import entry_point

@entry_point
def twice(number):
    return 2 * number

if "compile_here" in sys.orig_argv[-1]:
    print(file=open("compiled", "a"))
    time.sleep(1)
"""


def test_of_two_processes_that_ask_at_once_one_compiles(tmp_path):
    (tmp_path / "doubled.py").write_text(DOUBLED)
    command = [sys.executable, "-c", "from doubled import twice; print(twice(4))"]
    options = dict(text=True, cwd=tmp_path, env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)})
    options |= dict(stdout=subprocess.PIPE)
    both = [subprocess.Popen(command, **options) for _ in "ab"]
    short, long = sorted((process.communicate()[0] for process in both), key=len)
    assert short == "8\n" and len((tmp_path / "compiled").read_text()) == 1
    assert long.startswith("compiling `twice` of the fused engine") and long.count("\n") == 2
    assert subprocess.run(command, **options).stdout == "8\n", "it is compiled"


@pytest.mark.parametrize("name, value", [("CHILD", "raise SystemExit(1)"), ("sys.executable", "/no/such/python")])
def test_without_a_child_an_entry_is_compiled_all_the_same(monkeypatch, tmp_path, name, value):
    monkeypatch.setattr(f"cot2lib.fast.entries.{name}", value)
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    doubled = fast.entries.entry_point(twice)
    assert doubled(4) == 8 and len(doubled.stats.cache_misses) == 1
