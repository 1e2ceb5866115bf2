"""The identities that the book shows beside its equations; the chapters include these functions as they stand here."""

from itertools import product

import torch
from torch.nn import functional

from cot2lib.losses import soft_nll
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import MNNS


def test_full_budget_is_every_signed_sum():
    """B = |T|: a thought's target is the share of all signed sums in each state, listed here one by one."""
    task = MNNS(1, 9, 4)
    targets = hindsight_targets(task)  # (input, step, vocab)
    for row in (0, 1234, 6560):
        for step in (1, 2, 3):
            expected = torch.zeros(task.vocab_size, dtype=torch.float64)
            for signs in product((-1, 1), repeat=step):
                total = sum(sign * int(digit) for sign, digit in zip(signs, task.digits[row]))
                expected[task.state_id(total)] += 0.5**step
            assert torch.allclose(targets[row, step - 1], expected)


def test_csft_on_one_path_is_sft():
    """B = 1: the targets are one-hot, and the loss is the cross-entropy of the path's tokens."""
    task = MNNS(1, 4, 3)
    targets = hindsight_targets(task, 1)[None]  # (run, input, step, vocab)
    path = targets.argmax(-1)
    logits = torch.randn(targets.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = functional.cross_entropy(logits.flatten(0, 2), path.flatten(), reduction="none")
    assert torch.allclose(soft_nll(logits, targets).flatten(), expected)
