"""A task outside the package: inputs of two to four digits, each with a target and a start of its own.

The signed sum of the digits, counted from the start, is to come as close to the target as it can. Of two sums as close
the smaller is right.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor

from cot2lib import Task

PAD, BOS, EOS, ARROW, FIRST = range(5)
LONGEST = 4


@dataclass(frozen=True)
class Ragged(Task):
    """All inputs of two to four digits 1..high; the target is the last digit, the start the input's number mod 3."""

    high: int = 3

    @cached_property
    def inputs(self) -> list[tuple[int, ...]]:
        """Digits of every input."""
        digits = range(1, self.high + 1)
        return [row for length in range(2, LONGEST + 1) for row in itertools.product(digits, repeat=length)]

    @property
    def name(self) -> str:
        return f"ragged 1-{self.high}"

    @property
    def size(self) -> int:
        return len(self.inputs)

    @property
    def steps(self) -> int:
        return LONGEST

    @property
    def bound(self) -> int:
        return self.high * LONGEST + 2

    @property
    def states(self) -> int:
        return 2 * self.bound + 1

    @property
    def vocab_size(self) -> int:
        return FIRST + self.high + self.states

    @property
    def positions(self) -> int:
        return 2 * LONGEST + 3

    @property
    def eos_id(self) -> int:
        return EOS

    @cached_property
    def lengths(self) -> Int[Tensor, " input"]:
        return torch.tensor([len(row) for row in self.inputs])

    @cached_property
    def padding(self) -> Int[Tensor, " input"]:
        return LONGEST - self.lengths

    def prompt(self, arrow: bool = True, pauses: int = 0) -> Int[Tensor, "input token"]:
        rows = [
            [PAD] * (LONGEST - len(row)) + [BOS] + [FIRST + d - 1 for d in row] + [ARROW] * (arrow + pauses)
            for row in self.inputs
        ]
        return torch.tensor(rows)

    @cached_property
    def state_ids(self) -> Int[Tensor, " state"]:
        return torch.arange(self.states) + FIRST + self.high

    @cached_property
    def start(self) -> Int[Tensor, " input"]:
        return self.bound + torch.arange(self.size) % 3

    @cached_property
    def trajectories(self) -> Int[Tensor, " input"]:
        return 2**self.lengths

    @cached_property
    def score(self) -> Int[Tensor, "input state"]:
        sums, targets = torch.arange(-self.bound, self.bound + 1), torch.tensor([row[-1] for row in self.inputs])
        return 2 * (sums - targets[:, None]).abs() + (sums > targets[:, None])

    def children(self, step: int, rows: slice | Tensor = slice(None)) -> Int[Tensor, "input state branch"]:
        digits = torch.tensor([[*row, 0, 0][step] for row in self.inputs])[rows]
        signed = digits[:, None, None] * torch.tensor([-1, 1])
        return (torch.arange(self.states)[:, None] + signed).clamp(0, self.states - 1)

    @cached_property
    def answer_ids(self) -> Int[Tensor, " input"]:
        return torch.tensor([self.state_ids[self.ordered(row)[0][-1]] for row in range(self.size)])

    def ordered(self, row: int) -> list[list[int]]:
        """States of every trajectory of an input after each step, best first, minus signs first: by plain listing."""
        digits, start = self.inputs[row], int(self.start[row])
        walks = [
            [start + sum(s * d for s, d in zip(signs[:k], digits)) for k in range(1, len(digits) + 1)]
            for signs in itertools.product((-1, 1), repeat=len(digits))
        ]
        return sorted(walks, key=lambda walk: int(self.score[row, walk[-1]]))
