"""What thoughts hold, against listed trajectories and by hand."""

import numpy as np
import pandas as pd
import pytest
import torch
from builders import rewarded

from cot2lib import runs
from cot2lib.errors import RecordError
from cot2lib.runs import records
from cot2lib.study import measured, reward_runs, sweeps, thoughts_held
from cot2lib.tasks import MNNS
from cot2lib.training.supervised import build_stack

TASK = MNNS(1, 4, 3)


@torch.no_grad()
def scaled(stack, factor):
    for parameter in stack.parameters():
        parameter.mul_(factor)
    return stack


def test_states_are_those_of_the_listed_trajectories():
    reachable, leading = thoughts_held.states(TASK)
    sums, answers = TASK.signed_sums(), TASK.answers
    for row in range(0, TASK.size, 7):
        for step in range(3):
            there = {int(s) for s in sums[row, :, step]}
            useful = {int(path[step]) for path in sums[row] if path[-1] == answers[row]}
            tokens = lambda chosen: {TASK.state_id(s) for s in chosen}
            assert set(reachable[row, step].nonzero()[:, 0].tolist()) == tokens(there)
            assert set(leading[row, step].nonzero()[:, 0].tolist()) == tokens(useful)


def test_measure_of_thoughts_that_weigh_all_tokens_alike():
    """Models of zeros are uniform: they hold every token, and each state has one share of the weight."""
    specs = [rewarded(seed) for seed in (42, 43)]
    stack = scaled(build_stack([one.start for one in specs]), 0.0)
    table = thoughts_held.measure(stack, stack, specs)
    assert list(table.columns) == ["id", "when", "step", "support", "reachable", "on_the_way", "base_entropy"]
    assert len(table) == 8 and np.allclose(table["base_entropy"], np.log(specs[0].task.vocab_size))
    vocab = specs[0].task.vocab_size
    assert (table["support"] == vocab).all()
    task = specs[0].task
    for one in specs:
        rows = table[(table["id"] == one.id) & (table["when"] == "after")]
        masks = [mask[~task.split(one.seed)].double().sum(-1).mean(0) for mask in thoughts_held.states(task)]
        for mask, column in zip(masks, ("reachable", "on_the_way")):
            assert rows[column].tolist() == pytest.approx((100 * mask / vocab).tolist())
    assert table.groupby("when")[["support", "reachable"]].mean().nunique().eq(1).all()


def test_measure_of_support_counts_tokens_above_one_percent(monkeypatch):
    one = rewarded()
    stack = scaled(build_stack([one.start]), 12.0)
    sharp = thoughts_held.measure(build_stack([one.start]), stack, [one]).set_index("when")
    for column in ("base_entropy", "support"):
        assert sharp.loc["before", column].min() > sharp.loc["after", column].max()
    monkeypatch.setattr(thoughts_held, "LEAST", 0.2)
    fewer, sharp = thoughts_held.measure(stack, stack, [one]), sharp.loc["after"].reset_index()
    fewer = fewer[fewer["when"] == "after"].reset_index()
    assert (fewer["support"] <= 5).all() and (fewer["support"] < sharp["support"]).any()
    assert fewer["reachable"].tolist() == sharp["reachable"].tolist()


def looked_into(monkeypatch, specs):
    assert reward_runs.looked_into is not specs  # imported before, so that other lists of runs stay
    monkeypatch.setattr(sweeps, "looked_into", lambda profile: specs)


def test_of_runs_reads_what_is_collected_and_names_what_is_missing(store, nothing_shipped, monkeypatch):
    one = rewarded()
    looked_into(monkeypatch, [one])
    with pytest.raises(RecordError, match=r"no trained weights of run .*; ask run or load with missing='train'"):
        measured.measure("thoughts")
    with pytest.raises(RecordError, match=r"\(seed 42\) hold; ask with retrain=True"):
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
    elsewhere = [first.assign(id=spec.id, reachable=7.0, commit="elsewhere") for spec in (other, dropped)]
    records.ship_table("thoughts.quick.contents", pd.concat([first.assign(reachable=7.0), *elsewhere]))
    measured.measure("thoughts")
    after = measured.read("thoughts").groupby("id")
    assert set(after.groups) == {one.id, other.id}, "what no page asks for any more goes"
    assert after.get_group(one.id)["reachable"].tolist() == first["reachable"].tolist(), "measured again"
    assert set(after.get_group(other.id)["commit"]) == {"elsewhere"}
    assert set(after.get_group(other.id)["reachable"]) == {7.0}
