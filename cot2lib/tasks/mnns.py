"""Minimum Non-Negative Sum (paper, section 3.1.1): sign a list of digits so that the sum is the smallest >= 0.

Sequences follow the public code's discrete chain: `<BOS> D D D D ->`, then one sum token per step; the last one is the
answer. The vocabulary is six special tokens, D0..D9 (more if a digit is larger), and sums: S-36..S36, in all 89
tokens, for four digits of 1..9. The paper's list lacks `<PAD>`, `+`, `-` and D0; ours has them so that ids and
parameter counts match the public code.

Where we differ: the sums always reach `high * length`. The paper's S=40 for five digits of 5..13 covers the optimal
path but not all partial sums of the full-budget targets. The public code drops the others without a word; here a
smaller S is an error.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit.frozen import Bound, Count, Natural, as_int
from cot2lib.tasks.task import TRAIN_SHARE, Rows, Task

SPECIALS = ("<PAD>", "<BOS>", "<EOS>", "->", "+", "-")
PAD, BOS, EOS, ARROW = range(4)
ENUMERABLE = 10**5
LONGEST = 1000  # digits: of longer inputs a float64 cannot count the 2^m trajectories


@dataclass(frozen=True)
class MNNS(Task):
    """The task for `length` digits between `low` and `high` (both included).

    Args:
        low, high: digit range, 0 <= low <= high.
        length: digits per input, also the number m of output tokens.
        inputs: None for every input (at most 10^5), else how many distinct ones to sample, by `seed`.
        max_sum: S, the largest `|sum|` of the vocabulary; None for high * length, the least possible.
    """

    low: int = 1
    high: int = 9
    length: Annotated[int, Bound("at least", 1), Bound("at most", LONGEST)] = 4
    inputs: Count | None = None
    seed: Natural = 0
    max_sum: int | None = None
    eos_id = EOS

    def __post_init__(self):
        super().__post_init__()
        if not 0 <= self.low <= self.high:
            raise SpecError(f"digits {self.low}..{self.high}: need 0 <= low <= high.")
        if self.inputs is None and self.distinct > ENUMERABLE:
            kinds = f"{self.high - self.low + 1}^{self.length}"
            raise SpecError(
                f"{kinds} inputs of {self.length} digits {self.low}..{self.high} are too many to enumerate "
                f"(limit {ENUMERABLE}); pass inputs=N to sample N distinct ones."
            )
        if self.inputs is not None and self.inputs > self.distinct:
            raise SpecError(f"inputs={self.inputs}: choose at most {self.distinct}, the number of distinct inputs.")
        if self.max_sum is not None and self.max_sum < self.high * self.length:
            raise SpecError(
                f"max_sum={self.max_sum} loses targets: partial sums of {self.length} digits up to {self.high} reach "
                f"{self.high * self.length}; pass at least that or leave max_sum out."
            )

    @property
    def distinct(self) -> int:
        """Number of distinct inputs of the digit range."""
        return (self.high - self.low + 1) ** self.length

    @property
    def name(self) -> str:
        return f"MNNS {self.length} x {self.low}-{self.high}"

    @property
    def size(self) -> int:
        return self.distinct if self.inputs is None else self.inputs

    @property
    def steps(self) -> int:
        return self.length

    @property
    def trajectories(self) -> int | Int[Tensor, " input"]:
        """Number of sign assignments of one input."""
        return 2**self.length

    @property
    def bound(self) -> int:
        """S, where sums run from -S to S."""
        return self.high * self.length if self.max_sum is None else self.max_sum

    @property
    def digit_tokens(self) -> int:
        return max(9, self.high) + 1

    @property
    def vocab_size(self) -> int:
        return len(SPECIALS) + self.digit_tokens + 2 * self.bound + 1

    @property
    def positions(self) -> int:
        """BOS, digits, arrow, m outputs, EOS."""
        return 2 * self.length + 3

    # Tokens

    def state_id(self, value: int) -> int:
        """Vocabulary index of a (partial) sum; SpecError if it is no whole number of -S..S."""
        if abs(as_int("sum", value)) > self.bound:
            raise SpecError(f"sum {value} is outside the vocabulary's {-self.bound}..{self.bound}.")
        return len(SPECIALS) + self.digit_tokens + self.bound + value

    @property
    def tokens(self) -> tuple[str, ...]:
        digits = (f"D{d}" for d in range(self.digit_tokens))
        sums = (f"S{s}" for s in range(-self.bound, self.bound + 1))
        return (*SPECIALS, *digits, *sums)

    @property
    def numbers(self) -> Int[Tensor, " token"]:
        """A digit's or sum's value, a special token's index."""
        specials, digits = torch.arange(len(SPECIALS)), torch.arange(self.digit_tokens)
        return torch.cat([specials, digits, torch.arange(-self.bound, self.bound + 1)])

    @property
    def kinds(self) -> Int[Tensor, " token"]:
        """Special (0), digit (1) or sum (2)."""
        sizes = torch.tensor([len(SPECIALS), self.digit_tokens, self.states])
        return torch.arange(3).repeat_interleave(sizes)

    @cached_property
    def digits(self) -> Int[Tensor, "input length"]:
        """All inputs in lexicographic order, or the sampled ones in the order in which they were drawn."""
        if self.inputs is None:
            return torch.tensor(list(itertools.product(range(self.low, self.high + 1), repeat=self.length)))
        generator, base = np.random.default_rng(self.seed), self.high - self.low + 1
        if self.distinct <= ENUMERABLE:
            codes = generator.permutation(self.distinct)[: self.inputs]
            places = base ** np.arange(self.length)[::-1]
            return torch.from_numpy(codes[:, None] // places % base + self.low)
        rows = np.empty((0, self.length), dtype=np.int64)
        while len(rows) < self.inputs:
            drawn = generator.integers(self.low, self.high + 1, size=(self.inputs, self.length))
            rows = np.concatenate([rows, drawn])
            rows = rows[np.sort(np.unique(rows, axis=0, return_index=True)[1])]
        return torch.from_numpy(rows[: self.inputs])

    @cached_property
    def prompts(self) -> Int[Tensor, "input token"]:
        """`<BOS> D ... D ->`."""
        return self.prompt()

    @property
    def reads(self) -> Bool[Tensor, "step token"] | None:
        """Each step's own digit, after `<BOS>`."""
        return torch.eye(self.length, 1 + self.length, dtype=torch.bool).roll(1, 1)

    def prompt(self, arrow: bool = True, pauses: int = 0) -> Int[Tensor, "input token"]:
        """Token ids of every input; `arrow=False` omits the arrow, as the authors' CoT2 code; `pauses` adds more."""
        filled = lambda token, columns: torch.full((self.size, columns), token)
        arrows = filled(ARROW, int(arrow) + pauses)
        return torch.cat([filled(BOS, 1), self.digits + len(SPECIALS), arrows], dim=1)

    @cached_property
    def answers(self) -> Int[Tensor, " input"]:
        """The smallest non-negative signed sum of each input."""
        # computed for one order of its digits
        one = torch.empty(int(self.classes.max()) + 1, dtype=torch.int64)
        one[self.classes] = torch.arange(self.size)
        reached = torch.zeros(len(one), self.states, dtype=torch.bool)
        reached[:, self.start] = True
        for step in range(self.length):
            lower, upper = self.children(step, one).unbind(-1)
            reached = reached.gather(1, lower) | reached.gather(1, upper)
        return reached[:, self.start :].to(torch.int8).argmax(dim=1)[self.classes]

    @property
    def answer_ids(self) -> Int[Tensor, " input"]:
        return self.answers + self.state_id(0)

    @cached_property
    def classes(self) -> Int[Tensor, " input"]:
        """Multiset of each input's digits, numbered by first appearance, as in the authors' code."""
        numbers: dict[tuple[int, ...], int] = {}
        keys = (tuple(row) for row in self.digits.sort(dim=1).values.tolist())
        return torch.tensor([numbers.setdefault(key, len(numbers)) for key in keys])

    # The graph of partial sums

    @property
    def states(self) -> int:
        """The sums -S..S."""
        return 2 * self.bound + 1

    @property
    def start(self) -> int:
        """The sum 0."""
        return self.bound

    @property
    def state_ids(self) -> Int[Tensor, " state"]:
        return torch.arange(self.states) + self.state_id(-self.bound)

    def children(self, step: int, rows: Rows = slice(None)) -> Int[Tensor, "input state branch"]:
        """States that follow each state when digit `step` is subtracted (branch 0) or added (1), clamped to -S..S."""
        digit = self.digits[rows, step][:, None, None] * torch.tensor([-1, 1])
        return (torch.arange(self.states)[None, :, None] + digit).clamp(0, self.states - 1)

    @property
    def mirror(self) -> Int[Tensor, " state"]:
        """-s of each sum s, because a walk to one, with every sign reversed, is a walk to the other."""
        return torch.arange(self.states).flip(0)

    @cached_property
    def score(self) -> Int[Tensor, " state"]:
        """The paper's F of a final state, the absolute sum."""
        return torch.arange(-self.bound, self.bound + 1).abs()

    @cached_property
    def preference(self) -> Int[Tensor, " state"]:
        """The public code's order, by absolute sum, the non-negative one first."""
        sums = torch.arange(-self.bound, self.bound + 1)
        return 2 * sums.abs() + (sums < 0)

    def signed_sums(self) -> Int[Tensor, "input trajectory step"]:
        """Every trajectory's partial sums, in minus-first order of signs."""
        signs = torch.tensor(list(itertools.product((-1, 1), repeat=self.length)))
        return (signs * self.digits[:, None]).cumsum(-1)


@dataclass(frozen=True)
class MNNSLengths(MNNS):
    """The task for `shortest` to `length` digits, at positions that differ from input to input.

    The paper's inputs have one length and the same positions. Here a model has to find where its digits end:
    `seed` draws how many tokens `<PAD>`, at most `places`, precede each prompt, and the model sees them. All shorter
    inputs, which are few, are trained on, so the accuracy counts inputs of the full length.
    """

    shortest: Count = 2
    places: Natural = 4

    def __post_init__(self):
        super().__post_init__()
        if self.low < 1 or self.inputs is not None or self.shortest > self.length:
            raise SpecError(
                f"low={self.low}, inputs={self.inputs}, shortest={self.shortest}: several lengths need low >= 1, "
                "inputs=None and shortest <= length."
            )

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
    def reads(self) -> None:
        """None, because the positions of a step's own digit differ from input to input."""
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
        lengths = range(self.shortest, self.length + 1)
        parts = [torch.tensor(list(itertools.product(values, repeat=length))) for length in lengths]
        return torch.cat([torch.nn.functional.pad(part, (0, self.length - part.shape[1])) for part in parts])

    @cached_property
    def shifts(self) -> Int[Tensor, " input"]:
        return torch.from_numpy(np.random.default_rng([self.seed, 5]).integers(0, self.places + 1, self.size))

    @property
    def padding(self) -> Int[Tensor, " input"]:
        return self.places - self.shifts + self.length - self.lengths

    def prompt(self, arrow: bool = True, pauses: int = 0) -> Int[Tensor, "input token"]:
        """Token ids of every input; the model sees the last `shifts` of the tokens `<PAD>` before `<BOS>`."""
        arrows = torch.full((self.size, int(arrow) + pauses), ARROW)
        lead = self.padding + self.shifts  # tokens before BOS
        place = torch.arange(self.places + 1 + self.length) - lead[:, None]  # (input, token), 0 at BOS
        tokens = self.digits.gather(1, (place - 1).clamp(0, self.length - 1)) + len(SPECIALS)
        tokens = torch.where(place == 0, BOS, torch.where(place < 0, PAD, tokens))
        return torch.cat([tokens, arrows], 1)

    def split(self, seed: int) -> Bool[Tensor, " input"]:
        """Train mask: all shorter inputs, and the longest ones that `MNNS` of this length trains on."""
        longest = MNNS(self.low, self.high, self.length).split(seed)
        return torch.cat([torch.ones(self.size - len(longest), dtype=torch.bool), longest])
