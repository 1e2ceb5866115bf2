"""Shards without a shared disk: stores of their own, kills at any write, and a merge that loses nothing."""

import os
import random
import signal
import sys

import pandas as pd
import pytest
import torch
from builders import short

from cot2lib import runs
from cot2lib.runs import collect, records
from cot2lib.runs import store as stores
from cot2lib.training import trainer

SEGMENT = 10  # steps between two checkpoints
DISK = ("open", "os.chmod", "os.remove", "os.rename", "tempfile.mkstemp")  # what Python tells of a write


@pytest.fixture(autouse=True)
def plain(nothing_shipped, monkeypatch):
    """Nothing shipped, a checkpoint after every segment, and one commit."""
    monkeypatch.setattr(stores, "pause", lambda spent: -1)
    monkeypatch.setattr(trainer, "SEGMENT", SEGMENT)
    monkeypatch.setenv("COT2_COMMIT", "test")


def two(steps):
    """A run for each of two shards."""
    return [short("cot2", seed, steps=steps, evaluate_every=steps // 2) for seed in (42, 43)]


def trains(specs, folder, shard, monkeypatch):
    monkeypatch.setenv("COT2_STORE", str(folder))
    runs.run(specs, shard=shard, device="cpu", engine="torch", stack=1)


def dies_at(folder, count):
    """Kill this process at a call that touches a folder, after so many others."""
    left = iter(range(count))

    def hook(event, arguments):
        touched = event in DISK and str(arguments[0]).startswith(str(folder))
        if touched and next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def killed(specs, folder, shard, count, monkeypatch):
    """Whether a worker in a process of its own was killed before its shard was done."""
    child = os.fork()
    if not child:
        try:
            dies_at(folder, count)
            trains(specs, folder, shard, monkeypatch)
        finally:
            os._exit(0 if sys.exc_info()[0] is None else 1)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended in (0, -signal.SIGKILL)
    return ended < 0 and stores.tables(folder)[0].empty


def collected(specs, folder, source, out, monkeypatch):
    """Rows, curves and weights of the records that a store and another as a source give."""
    monkeypatch.setenv("COT2_STORE", str(folder))
    collect.collect("tiny.quick", specs, with_weights=specs, sources=source, folder=out)
    rows, curves = records.shipped(out)
    weights = {spec.id: records.shipped_weights(spec.id, out) for spec in specs}
    return rows.drop(columns=["seconds", "date"]), curves, weights


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("kills", [12, pytest.param(200, marks=pytest.mark.thorough)])
def test_kills_over_two_stores_and_a_merge_lose_nothing(tmp_path, monkeypatch, kills):
    draw, done, specs = random.Random(kills), 0, two(20 * kills)
    stacks = {name: tmp_path / name for name in ("first", "second", "whole")}
    while done < kills:
        shard = done % 2
        done += killed(specs, stacks["second" if shard else "first"], (shard, 2), draw.randrange(3, 20), monkeypatch)
        assert all(stores.tables(stacks[name])[0].empty for name in ("first", "second")), (
            "more steps would see more kills"
        )
    assert list(tmp_path.glob(f"*/*{stores.CHECKPOINT}")), "something was kept on the way"
    trains(specs, stacks["first"], (0, 2), monkeypatch)
    trains(specs, stacks["second"], (1, 2), monkeypatch)
    trains(specs, stacks["whole"], (0, 1), monkeypatch)
    assert not set(stores.tables(stacks["first"])[0]["id"]) & set(stores.tables(stacks["second"])[0]["id"])
    parts = collected(specs, stacks["first"], [stacks["second"]], tmp_path / "merged", monkeypatch)
    whole = collected(specs, stacks["whole"], [], tmp_path / "plain", monkeypatch)
    assert len(parts[0]) == len(specs)
    for found, wanted in zip(parts[:2], whole[:2]):
        pd.testing.assert_frame_equal(found, wanted)
    for run, tensors in whole[2].items():
        assert all(torch.equal(parts[2][run][name], value) for name, value in tensors.items())
