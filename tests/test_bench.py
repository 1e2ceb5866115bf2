"""Benchmarks are run small: what they print must be whole; how fast it is, no test says."""

import pytest

from cot2lib import bench


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(bench, "STACK", 2)
    monkeypatch.setattr(bench, "STEPS", 1)
    monkeypatch.setattr(bench, "SIZES", (1, 2))


def test_feeding_table():
    table = bench.feeding_table(rounds=2).set_index("fed")
    assert table.loc["teacher forcing", "times teacher forcing"] == 1
    assert list(table.index)[1:] == ["self-feeding", "COCONUT, last stage", "COCONUT with zero slots, last stage"]
    assert (table["ms per run-step"] > 0).all()


def test_stages_are_timed_in_their_last_stage(monkeypatch):
    seen = []
    monkeypatch.setattr(bench, "_steps", lambda trainer: seen.append(trainer.own) or (lambda: None))
    monkeypatch.setattr(bench, "in_turns", lambda turns, rounds: {name: [1.0] for name in turns})
    bench.feeding_table(rounds=1)
    assert seen == [0, 3, 3, 3], "all thoughts are the model's own but for teacher forcing"


def test_train_table():
    pytest.importorskip("transformers")
    table, flops, sgemm = bench.train_table(rounds=1, compiled=False)
    assert list(table["variant"]) == [bench.BASELINE, "stack of 1", "stack of 2"]
    assert table["times the loop"].iloc[0] == 1 and flops > 1e6 and sgemm > 1e8
    assert (table["run-steps/s"] > 0).all()


def test_pass_at_k_is_timed_on_a_shipped_model():
    assert bench.pass_at_k_seconds(samples=14) > 0
