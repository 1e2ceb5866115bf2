"""Turns alternate, and threads come back."""

import pytest
import torch

from cot2lib.kit.timing import in_turns, ratio, seconds, threads


def test_turns_alternate_and_the_first_round_is_not_counted():
    order = []
    taken = in_turns({name: lambda name=name: order.append(name) for name in "ab"}, rounds=2)
    assert order == list("ababab") and [len(spent) for spent in taken.values()] == [2, 2]
    assert all(spent >= 0 for spent in taken["a"])


def test_ratio_is_a_median_over_rounds():
    assert ratio([2.0, 30.0, 3.0], [1.0, 10.0, 3.0]) == 2.0
    with pytest.raises(ValueError):
        ratio([1.0], [1.0, 2.0])


def test_seconds():
    assert 0 <= seconds(lambda: None) < 1


def test_threads_come_back_even_after_an_error():
    before = torch.get_num_threads()
    with pytest.raises(RuntimeError), threads(before + 1):
        assert torch.get_num_threads() == before + 1
        raise RuntimeError
    assert torch.get_num_threads() == before
