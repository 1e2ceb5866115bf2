"""What a continuous token costs beside a discrete one, counted."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from cot2lib.model import Cache, GPT2Stack
from cot2lib.study import overhead


def test_counts_of_a_step():
    small = {step.name: step for step in overhead.MODELS}["GPT-2 small"]
    assert small.projection == small.mixture == 2 * 50257 * 768
    assert small.blocks == 12 * (2 * 12 * 768**2 + 2 * 2 * 1024 * 768)
    added = overhead.counted().set_index("model").loc["GPT-2 small"]
    assert added["mixture over blocks (%)"] == pytest.approx(100 * 50257 / (12 * 12 * 768 + 2 * 12 * 1024))
    over = small.mixture / (small.blocks + small.projection)
    assert added["mixture over discrete step (%)"] == pytest.approx(100 * over)


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
