"""Inputs of several lengths at places that differ."""

import torch

from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import MNNS, MNNSLengths
from cot2lib.tasks.mnns import PAD

TASK = MNNSLengths(1, 3, 3, shortest=1, places=2)


def test_inputs_are_those_of_each_length():
    alone = [MNNS(1, 3, length) for length in (1, 2, 3)]
    assert TASK.size == 3 + 9 + 27 and TASK.name == "MNNS 1-3 x 1-3"
    for length, task in enumerate(alone, 1):
        rows = TASK.lengths == length
        assert torch.equal(TASK.digits[rows][:, :length], task.digits) and (TASK.digits[rows][:, length:] == 0).all()
        assert torch.equal(TASK.answers[rows], task.answers), "a sum of zeros changes no answer"


def test_targets_are_those_of_each_length():
    targets, start = hindsight_targets(TASK), 0
    for length in (1, 2, 3):
        alone = MNNS(1, 3, length, max_sum=9)
        found = targets[start : start + alone.size]
        assert torch.allclose(found[:, :length], hindsight_targets(alone)) and not found[:, length:].any()
        start += alone.size


def test_a_prompt_is_shifted_by_what_the_model_sees():
    """Behind the padding stand as many `<PAD>` as its shift, then the input as `MNNS` has it."""
    prompts = TASK.prompt()
    assert TASK.shifts.unique().tolist() == [0, 1, 2] and prompts.shape[1] == 2 + 1 + 3 + 1
    for row, (prompt, padding) in enumerate(zip(prompts.tolist(), TASK.padding.tolist())):
        shift, length = int(TASK.shifts[row]), int(TASK.lengths[row])
        digits = [f"D{digit}" for digit in TASK.digits[row, :length].tolist()]
        assert [TASK.tokens[i] for i in prompt[padding:]] == ["<PAD>"] * shift + ["<BOS>", *digits, "->"]
        assert set(prompt[:padding]) <= {PAD}
    assert torch.equal(TASK.prompt(arrow=False), prompts[:, :-1])
    assert prompts.shape[1] + 3 <= TASK.positions


def test_the_longest_inputs_are_held_out_as_without_the_others():
    train = TASK.split(5)
    assert train[TASK.lengths < 3].all() and torch.equal(train[TASK.lengths == 3], MNNS(1, 3, 3).split(5))
    whole = MNNSLengths()
    assert whole.train_size == 81 + 729 + MNNS().train_size
