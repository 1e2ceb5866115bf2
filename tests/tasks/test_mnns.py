import itertools

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cot2lib.tasks import MNNS

tasks = st.builds(
    lambda low, span, length: MNNS(low, low + span, length), st.integers(0, 12), st.integers(0, 4), st.integers(1, 5)
)


def smallest(digits):
    sums = (sum(s * d for s, d in zip(signs, digits)) for signs in itertools.product((1, -1), repeat=len(digits)))
    return min(total for total in sums if total >= 0)


def test_public_layout():
    task = MNNS()
    assert task.vocab_size == 89
    assert task.tokens[:7] == ("<PAD>", "<BOS>", "<EOS>", "->", "+", "-", "D0")
    assert task.tokens[task.state_id(-36)] == "S-36" and task.tokens[task.state_id(36)] == "S36"
    assert task.state_id(36) == 88 and task.positions == 11
    assert task.tokens[15] == "D9" and MNNS(5, 13, 5).tokens[19] == "D13"
    row = (task.digits == torch.tensor([2, 1, 4, 7])).all(1).nonzero()[0, 0]
    assert [task.tokens[i] for i in task.prompts[row]] == ["<BOS>", "D2", "D1", "D4", "D7", "->"]


def test_split_is_the_public_codes():
    task = MNNS()
    assert [int(task.split(seed).sum()) for seed in range(42, 47)] == [5253, 5187, 5258, 5289, 5222]


def test_split_never_divides_a_multiset():
    task = MNNS()
    mask = task.split(42)
    sides = {}
    for row, side in zip(task.digits.sort(1).values.tolist(), mask.tolist()):
        assert sides.setdefault(tuple(row), side) == side
    assert len(sides) == 495 and sum(sides.values()) == 396


@given(tasks)
@settings(deadline=None, max_examples=40)
def test_answers_are_the_smallest_signed_sums(task):
    for digits, answer in list(zip(task.digits.tolist(), task.answers.tolist()))[:: max(1, len(task.digits) // 40)]:
        assert answer == smallest(digits)


@given(tasks)
@settings(deadline=None, max_examples=40)
def test_every_sum_has_a_token(task):
    sums = task.signed_sums()
    assert int(sums.abs().max()) <= task.bound
    ids = [task.state_id(int(s)) for s in torch.unique(sums)]
    assert [task.tokens[i] for i in ids] == [f"S{s}" for s in torch.unique(sums).tolist()]
    assert task.state_ids[task.start] == task.state_id(0)


def test_sampled_inputs_are_distinct_and_repeatable():
    task = MNNS(length=20, inputs=500, seed=3)
    assert len(torch.unique(task.digits, dim=0)) == 500
    assert torch.equal(task.digits, MNNS(length=20, inputs=500, seed=3).digits)
    assert not torch.equal(task.digits, MNNS(length=20, inputs=500, seed=4).digits)
    every = MNNS(3, 5, 3)
    few = MNNS(3, 5, 3, inputs=27)
    assert torch.equal(torch.unique(few.digits, dim=0), every.digits) and not torch.equal(few.digits, every.digits)
