"""Trigonometric embedding tables: their rows, and training that starts from them or leaves them alone."""

import math
from functools import partial

import pytest
import torch
from builders import SUMS as TASK
from builders import short as of_sixty
from hypothesis import given
from hypothesis import strategies as st

from cot2lib.model.trigonometric import SCALE, frequencies, trigonometric_table
from cot2lib.tasks import MNNS
from cot2lib.training.fused import preferred
from cot2lib.training.supervised import SupervisedTrainer, build_stack

TRIGONOMETRIC = ("cosine", "cosine, frozen")
short = partial(of_sixty, profile="paper", layers=1, heads=1, steps=20, dropout=0.1, weight_decay=0.1)


def table_of(task, d_model):
    return trigonometric_table(task.numbers, task.kinds, d_model)


# The table


@given(st.integers(0, 3), st.integers(0, 9), st.integers(1, 4), st.integers(2, 12))
def test_rows_are_distinct_and_of_one_length(low, above, length, pairs):
    task = MNNS(low, low + above, length, inputs=1)
    table = table_of(task, 2 * pairs).double()
    assert table.shape == (task.vocab_size, 2 * pairs)
    assert torch.allclose(
        table.norm(dim=1), torch.tensor(SCALE * math.sqrt(2 * pairs), dtype=torch.float64), atol=1e-6
    )
    apart = torch.cdist(table, table) + torch.eye(len(table))
    assert apart.min() > 1e-3


def test_numbers_and_kinds_follow_the_tokens():
    for task in (TASK, MNNS(), MNNS(11, 19, 5)):
        named = [token[1:] if token[0] in "DS" else str(place) for place, token in enumerate(task.tokens)]
        assert task.numbers.tolist() == [int(name) for name in named]
        assert task.kinds.tolist() == [{"D": 1, "S": 2}.get(token[0], 0) for token in task.tokens]


def test_entries_by_hand():
    """Sum 3 of 31 states, three pairs: frequencies 1 and 15 of the number, then kind 2 of 3."""
    row = table_of(TASK, 6)[TASK.state_id(3)] / (SCALE * math.sqrt(2))
    angles = [2 * math.pi * 3 / 31, 2 * math.pi * 15 * 3 / 31, 2 * math.pi * 2 / 3]
    expected = [*map(math.cos, angles), *map(math.sin, angles)]
    assert row.tolist() == pytest.approx(expected, abs=1e-6)


def test_frequencies_span_half_the_period():
    assert frequencies(4, 9).tolist() == [1, 2, 3, 4]
    assert frequencies(3, 73).tolist() == [1, 18, 36] and frequencies(1, 73).tolist() == [1]


# Training


def test_stacks_start_from_the_table_and_otherwise_as_learned_ones():
    stacks = {
        name: build_stack([short(embedding=name, seed=seed) for seed in (42, 43)]).state_dict()
        for name in ("learned", *TRIGONOMETRIC)
    }
    for name in TRIGONOMETRIC:
        differing = {part for part, value in stacks[name].items() if not torch.equal(value, stacks["learned"][part])}
        assert differing == {"transformer.wte.weight"}
        assert torch.equal(stacks[name]["transformer.wte.weight"], table_of(TASK, 16).expand(2, -1, -1))


@pytest.mark.parametrize("engine", [lambda trainer: trainer, preferred], ids=["torch", "fused"])
def test_a_frozen_table_stays_to_the_bit_and_a_free_one_does_not(engine):
    """Neither gradients nor weight decay reach it; everything else trains."""
    for name in TRIGONOMETRIC:
        trainer = engine(SupervisedTrainer([short(embedding=name), short(embedding=name, seed=43, lr=1e-3)]))
        before = {part: value.clone() for part, value in trainer.stack.state_dict().items()}
        trainer.advance(20)
        after = trainer.stack.state_dict()
        same = {part for part in after if torch.equal(before[part], after[part])}
        assert same == ({"transformer.wte.weight"} if name == "cosine, frozen" else set())
