"""Fair timing: turns are taken in alternation, on a given number of threads."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch

Name = TypeVar("Name")


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch use `count` CPU threads inside the block, and as many as before after it."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def seconds(turn: Callable[[], object]) -> float:
    """Duration of one call in seconds."""
    began = time.perf_counter()
    turn()
    return time.perf_counter() - began


def in_turns(turns: Mapping[Name, Callable[[], object]], rounds: int) -> dict[Name, list[float]]:
    """Seconds of every turn in every round. One more round comes first; it warms up and is not counted.

    The turns alternate, so a machine that speeds up or slows down does so for all of them.
    """
    taken: dict[Name, list[float]] = {name: [] for name in turns}
    for round_ in range(rounds + 1):
        for name, turn in turns.items():
            spent = seconds(turn)
            if round_:
                taken[name].append(spent)
    return taken


def ratio(own: Sequence[float], base: Sequence[float]) -> float:
    """Median of own / base over rounds. Pairing by round cancels what slows both down."""
    return statistics.median(mine / theirs for mine, theirs in zip(own, base, strict=True))
