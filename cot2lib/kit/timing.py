"""Fair timing: turns taken in alternation, on a given number of threads."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch

Name = TypeVar("Name")


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch work with `count` CPU threads inside, and with as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def seconds(turn: Callable[[], object]) -> float:
    """How long one call takes."""
    began = time.perf_counter()
    turn()
    return time.perf_counter() - began


def in_turns(turns: Mapping[Name, Callable[[], object]], rounds: int) -> dict[Name, list[float]]:
    """Seconds of every turn, round after round; a first round warms up and is not counted.

    In alternation, a machine that speeds up or slows down does so for all.
    """
    taken: dict[Name, list[float]] = {name: [] for name in turns}
    for round_ in range(rounds + 1):
        for name, turn in turns.items():
            spent = seconds(turn)
            if round_:
                taken[name].append(spent)
    return taken


def ratio(own: Sequence[float], base: Sequence[float]) -> float:
    """Median over rounds of own / base."""
    return statistics.median(mine / theirs for mine, theirs in zip(own, base, strict=True))
