"""Entropies of thoughts under base decoding: by hand, and which ship."""

import numpy as np
import pandas as pd
import pytest
import torch
from builders import rewarded

from cot2lib import runs
from cot2lib.errors import RecordError
from cot2lib.runs import records
from cot2lib.study import measured, reward_runs, sweeps, thoughts_held
from cot2lib.training.supervised import build_stack


@torch.no_grad()
def scaled(stack, factor):
    for parameter in stack.parameters():
        parameter.mul_(factor)
    return stack


def test_entropies_before_and_after():
    """Models of zeros weigh all tokens alike; scaled weights sharpen what a model says."""
    specs = [rewarded(seed) for seed in (42, 43)]
    start = build_stack([one.start for one in specs])
    sharp = scaled(build_stack([one.start for one in specs]), 12.0)
    table = thoughts_held.measure(scaled(build_stack([one.start for one in specs]), 0.0), start, specs)
    assert list(table.columns) == ["id", "when", "step", "base_entropy"] and len(table) == 8
    by_when = table.set_index("when")["base_entropy"]
    assert np.allclose(by_when["before"], np.log(specs[0].task.vocab_size))
    sharper = thoughts_held.measure(start, sharp, specs).set_index("when")["base_entropy"]
    assert sharper["before"].tolist() == by_when["after"].tolist()
    assert sharper["before"].min() > sharper["after"].max()


def looked_into(monkeypatch, specs):
    assert reward_runs.looked_into is not specs  # imported before, so that other lists of runs stay
    monkeypatch.setattr(sweeps, "looked_into", lambda profile: specs)


def test_of_runs_reads_what_is_collected_and_names_what_is_missing(store, nothing_shipped, monkeypatch):
    one = rewarded()
    looked_into(monkeypatch, [one])
    with pytest.raises(RecordError, match=r"no trained weights of run .*; ask run or load with missing='train'"):
        measured.measure("thoughts")
    with pytest.raises(RecordError, match=r"\(seed 42\); ask with retrain=True"):
        thoughts_held.of_runs({"quick": [one]})
    runs.run([one])
    measured.measure("thoughts")
    table = thoughts_held.of_runs({"quick": [one]})
    here = thoughts_held.of_runs({"quick": [one]}, "quick")
    pd.testing.assert_frame_equal(table[here.columns], here, rtol=1e-6)


def test_collect_keeps_rows_of_models_that_are_not_here(store, nothing_shipped, monkeypatch):
    """Another machine has the weights of other runs."""
    one, other, dropped = (rewarded(seed) for seed in (42, 43, 44))
    runs.run([one])
    looked_into(monkeypatch, [one, other])  # of the other there are neither weights nor rows yet
    measured.measure("thoughts")
    first = measured.read("thoughts")
    elsewhere = [first.assign(id=spec.id, base_entropy=7.0, commit="elsewhere") for spec in (other, dropped)]
    records.ship_table("thoughts.quick.contents", pd.concat([first.assign(base_entropy=7.0), *elsewhere]))
    measured.measure("thoughts")
    after = measured.read("thoughts").groupby("id")
    assert set(after.groups) == {one.id, other.id}, "what no page asks for any more goes"
    assert after.get_group(one.id)["base_entropy"].tolist() == first["base_entropy"].tolist(), "measured again"
    assert set(after.get_group(other.id)["commit"]) == {"elsewhere"}
    assert set(after.get_group(other.id)["base_entropy"]) == {7.0}
