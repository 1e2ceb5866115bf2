"""Benchmarks are run small: what they print must be whole; how fast it is, no test says."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from cot2lib import bench, overhead
from cot2lib.errors import SpecError
from cot2lib.model import Cache, GPT2Stack


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
    monkeypatch.setattr(bench, "_steps", lambda trainer: seen.append(trainer.phase) or (lambda: None))
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


def test_decoding_table():
    printed = bench.decoding(quick=True)
    assert "mixture / projection" in printed and "150000" in printed


def test_a_continuous_step_is_timed_beside_a_discrete_one():
    table = overhead.measured(16, 1, 2, (20, 4000), rounds=2)
    assert list(table["v"]) == [20, 4000] and (table["d"] == 16).all()
    assert (table.drop(columns="longer step (%)") > 0).all(axis=None)


def test_timed_models_share_their_weights_and_do_the_products():
    stacks = overhead.equal_stacks(16, 1, 2, (20, 40))
    assert stacks[20].transformer.wte.weight.shape == (1, 20, 16)
    tables = [stack.transformer.wte.weight.data_ptr() for stack in stacks.values()]
    assert tables[0] == tables[1] and stacks[20].shape["vocab_size"] == 20
    past = Cache()
    stacks[20].hidden(torch.rand(1, 1, 3, 16), cache=past)
    parts = {name: part() for name, part in overhead._parts(stacks[20], past).items()}
    assert parts["projection"].shape == (1, 1, 1, 20)
    assert {parts[name].shape for name in ("mixture", "rows", "discrete", "continuous")} == {(1, 1, 1, 16)}
    assert past.length == 3, "every turn starts from the same cache"


def test_too_few_vocabularies_to_time():
    for vocabularies in ((), (100, 8)):
        with pytest.raises(SpecError, match="at least 16 tokens"):
            overhead.measured(16, 1, 2, vocabularies)


def test_counts_of_a_step():
    small = {step.name: step for step in overhead.MODELS}["GPT-2 small"]
    assert small.projection == small.mixture == 2 * 50257 * 768
    assert small.blocks == 12 * (2 * 12 * 768**2 + 2 * 2 * 1024 * 768)
    assert small.over_blocks == pytest.approx(50257 / (12 * 12 * 768 + 2 * 12 * 1024))
    assert small.over_discrete == pytest.approx(small.mixture / (small.blocks + small.projection))
    with pytest.raises(SpecError, match="sizes of at least one"):
        overhead.Step("none", 0, 32, 2)


def test_counts_agree_with_torchs_counter():
    """Blocks at a context that attention really has, the query itself included."""
    stack = GPT2Stack(1, 50, 20, 16, 2, 2)
    past = Cache()
    stack.hidden(torch.rand(1, 1, 7, 16), cache=past)
    step = overhead.Step("small", 50, 16, 2, context=8)
    assert _flops(lambda: stack.hidden(torch.rand(1, 1, 1, 16), cache=past.copy())) == step.blocks
    assert _flops(lambda: stack.logits(torch.rand(1, 1, 1, 16))) == step.projection
    assert _flops(lambda: stack.mix(torch.rand(1, 1, 1, 50))) == step.mixture


def _flops(work):
    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops()


def test_what_holds_of_the_overhead():
    assert overhead.equals_projection() and overhead.is_dominated()
    assert not overhead.is_dominated(overhead.SMALL), "a narrow model with a large vocabulary: not dominated"
    table = overhead.counted()
    assert (table["mixture (Mflop)"] == table["projection (Mflop)"]).all()
