"""Minimum Non-Negative Sum with inputs of several lengths, at places that differ from input to input.

The paper trains on inputs of one length, which always stand at the same places. Here a model has to find where its
digits end. Every prompt has up to `places` tokens `<PAD>` before it, which the model sees. Inputs shorter than the
longest are few. They are all trained on: accuracy is that of inputs of the full length.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.tasks.mnns import ARROW, BOS, MNNS, PAD
from cot2lib.tasks.task import TRAIN_SHARE

MOST_DIGITS = 62  # whose trajectories an integer counts
SHIFTS = 5  # part of the seed of the places


@dataclass(frozen=True)
class MNNSLengths(MNNS):
    """The task for `shortest` to `length` digits.

    Args:
        shortest: digits of the shortest inputs.
        places: by how many places a prompt may be shifted; `seed` draws for each input by how many it is.
    """

    shortest: int = 2
    places: int = 4

    def __post_init__(self):
        super().__post_init__()
        if not 1 <= self.shortest <= self.length:
            raise SpecError(f"shortest={self.shortest}: choose 1..{self.length}, the digits of the longest inputs.")
        if self.low < 1 or self.inputs is not None or self.places < 0:
            raise SpecError(
                f"low={self.low}, inputs={self.inputs}, places={self.places}: inputs of several lengths need digits "
                "above 0, all inputs, and places of 0 or more."
            )
        if self.length > MOST_DIGITS:
            raise SpecError(f"length={self.length}: inputs of several lengths have at most {MOST_DIGITS} digits.")

    @property
    def _counts(self) -> list[int]:
        return [(self.high - self.low + 1) ** length for length in range(self.shortest, self.length + 1)]

    @property
    def name(self) -> str:
        return f"MNNS {self.shortest}-{self.length} x {self.low}-{self.high}"

    @property
    def size(self) -> int:
        return sum(self._counts)

    @property
    def positions(self) -> int:
        return self.places + super().positions

    @property
    def train_size(self) -> int:
        return self.size - self._counts[-1] + int(TRAIN_SHARE * self._counts[-1])

    @property
    def reads(self) -> Bool[Tensor, "step token"] | None:
        """None, because a step's own digit stands at another place in each input."""
        return None

    @cached_property
    def lengths(self) -> Int[Tensor, " input"]:
        return torch.arange(self.shortest, self.length + 1).repeat_interleave(torch.tensor(self._counts))

    @property
    def trajectories(self) -> Int[Tensor, " input"]:
        return 2**self.lengths

    @cached_property
    def digits(self) -> Int[Tensor, "input length"]:
        values = range(self.low, self.high + 1)
        parts = [
            torch.tensor(list(itertools.product(values, repeat=length)))
            for length in range(self.shortest, self.length + 1)
        ]
        return torch.cat([torch.nn.functional.pad(part, (0, self.length - part.shape[1])) for part in parts])

    @cached_property
    def shifts(self) -> Int[Tensor, " input"]:
        drawn = np.random.default_rng([self.seed, SHIFTS]).integers(0, self.places + 1, self.size)
        return torch.from_numpy(drawn)

    @property
    def padding(self) -> Int[Tensor, " input"]:
        return self.places - self.shifts + self.length - self.lengths

    def prompt(self, arrow: bool = True, pauses: int = 0) -> Int[Tensor, "input token"]:
        """Token ids of every input; the tokens before `<BOS>` are `<PAD>`, of which the model sees the last ones."""
        arrows = torch.full((self.size, int(arrow) + pauses), ARROW)
        lead = self.padding + self.shifts  # tokens before BOS
        place = torch.arange(self.places + 1 + self.length) - lead[:, None]  # (input, token), 0 at BOS
        tokens = self.digits.gather(1, (place - 1).clamp(0, self.length - 1)) + self.digit_id(0)
        tokens = torch.where(place == 0, BOS, torch.where(place < 0, PAD, tokens))
        return torch.cat([tokens, arrows], 1)

    def split(self, seed: int) -> Bool[Tensor, " input"]:
        """Train mask: all shorter inputs, and of the longest those that `MNNS` of this length trains on."""
        longest = MNNS(self.low, self.high, self.length).split(seed)
        return torch.cat([torch.ones(self.size - len(longest), dtype=torch.bool), longest])
