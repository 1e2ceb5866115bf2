"""All of the paper's runs on one device (`make gpu WHOLE=1`), rehearsed on a CPU with ten runs of four steps."""

import runpy
from dataclasses import replace

import pandas as pd
import pytest
from builders import ROOT

from cot2lib.kit import paths
from cot2lib.runs import store as stores
from cot2lib.specs import profiles
from cot2lib.study import frame, sweeps
from cot2lib.training.trainer import StackTrainer

WHOLE = runpy.run_path(str(ROOT / "release" / "whole.py"))


def test_the_same_command_goes_on_after_a_kill_and_judges_the_ledger(tmp_path, monkeypatch):
    paper = profiles.TABLE["numbers"]["paper"]
    short = {name: replace(row, epochs=None, most_steps=4, evaluations=2) for name, row in paper.items()}
    monkeypatch.setitem(profiles.TABLE["numbers"], "paper", short)
    monkeypatch.setattr(frame, "planned_runs", frame.planned_runs.__wrapped__)  # whose cache has other recipes
    rewarded = lambda profile: sweeps.sampled(profile, d_models=(24,), ks=(3,), one_split=True)
    starts = lambda profile: [run.start for run in rewarded(profile)]
    chapters = {"csft": sweeps.Chapter((starts,)), "grpo_mts": sweeps.Chapter((rewarded,))}
    monkeypatch.setattr(sweeps, "CHAPTERS", chapters)
    shipped = {path: path.stat().st_mtime_ns for path in paths.records().iterdir()}
    for name in ("COT2_STORE", "COT2_RECORDS"):  # which it sets
        monkeypatch.setenv(name, "")
    monkeypatch.setitem(WHOLE["main"].__globals__, "OUT", tmp_path)
    monkeypatch.setitem(WHOLE["main"].__globals__, "judged", lambda: pd.DataFrame({"group": []}))  # takes seconds
    monkeypatch.setattr(stores, "pause", lambda spent: -1)
    advance, taken = StackTrainer.advance, []

    def killed(trainer, steps):
        taken.append((trainer.looks_first, trainer.progress.step))  # reward looks first
        if len(taken) == 4:
            raise KeyboardInterrupt
        advance(trainer, steps)

    monkeypatch.setattr(StackTrainer, "advance", killed)
    with pytest.raises(KeyboardInterrupt):
        WHOLE["main"]("cpu", chapters="csft,grpo_mts")
    WHOLE["main"]("cpu", chapters="csft,grpo_mts")
    assert taken == [(False, 0), (False, 2), (True, 0), (True, 2), (True, 2)]
    assert paths.records() == tmp_path / "records"
    seeds = WHOLE["judged"]()["seeds"]
    assert seeds["grpo-mts-d24-k3"] == 5 and "grpo-mts-d24-k6" not in seeds
    assert shipped == {path: path.stat().st_mtime_ns for path in shipped}


def test_verdicts_that_differ_are_named(capsys):
    ledgers = ({"a": "agrees", "b": "agrees", "c": "differs"}, {"a": "differs", "c": "differs"})
    WHOLE["compare"](*(pd.DataFrame({"group": pd.Series(groups)}) for groups in ledgers))
    said = capsys.readouterr().out
    assert said.startswith("2 of 3 verdicts are given by both sets of records; 1 of them differ.")
    assert [line.split() for line in said.splitlines()[2:3]] == [["a", "agrees", "differs"]]
