"""Minimum Non-Negative Sum (paper, section 3.1.1): sign a list of digits so that the sum is the smallest >= 0.

Sequences follow the public code: `<BOS> D D D D ->` then one sum token per step, the last of which
is the answer. The vocabulary is its layout too: six special tokens, D0..D9 (more if a digit is
larger), and S-S..S+S, 89 tokens for four digits of 1..9. The paper's own list has no `<PAD> + -`
and no D0; unused tokens are kept so that token ids and parameter counts match.

Where we differ: the sums always reach `high * length`. The paper gives S=40 for five digits of 5..13, which covers the
optimal path but not all the partial sums of the full-budget targets. The public code then drops some silently; here a
smaller S is an error.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit.frozen import Count, Natural, as_int
from cot2lib.tasks.task import Rows, Task

SPECIALS = ("<PAD>", "<BOS>", "<EOS>", "->", "+", "-")
PAD, BOS, EOS, ARROW = range(4)
ENUMERABLE = 10**5
LONGEST = 1000  # digits: of longer inputs a float64 cannot count the 2^m trajectories


@dataclass(frozen=True)
class MNNS(Task):
    """The task for `length` digits between `low` and `high` (both included).

    Args:
        low, high: digit range, 0 <= low <= high.
        length: digits per input; also the number m of output tokens.
        inputs: None for every input (at most 10^5), else how many distinct ones to sample.
        seed: what the sample depends on.
        max_sum: S, largest `|sum|` the vocabulary holds; None for high * length, the least possible.
    """

    low: int = 1
    high: int = 9
    length: Count = 4
    inputs: Count | None = None
    seed: Natural = 0
    max_sum: int | None = None
    eos_id = EOS

    def __post_init__(self):
        super().__post_init__()
        if not 0 <= self.low <= self.high:
            raise SpecError(f"digits {self.low}..{self.high}: need 0 <= low <= high.")
        if self.length > LONGEST:
            raise SpecError(f"length={self.length}: trajectories can be counted for up to {LONGEST} digits.")
        if self.inputs is None and self.total > ENUMERABLE:
            kinds = f"{self.high - self.low + 1}^{self.length}"
            raise SpecError(
                f"{kinds} inputs of {self.length} digits {self.low}..{self.high} are too many to enumerate "
                f"(limit {ENUMERABLE}); pass inputs=N to sample N distinct ones."
            )
        if self.inputs is not None and self.inputs > self.total:
            raise SpecError(f"inputs={self.inputs}: there are {self.total} distinct inputs; choose 1..{self.total}.")
        if self.max_sum is not None and self.max_sum < self.high * self.length:
            raise SpecError(
                f"max_sum={self.max_sum} silently loses targets: partial sums of {self.length} digits up to "
                f"{self.high} reach {self.high * self.length}; pass at least that or leave max_sum out."
            )

    # Sizes

    @property
    def total(self) -> int:
        return (self.high - self.low + 1) ** self.length

    @property
    def name(self) -> str:
        return f"MNNS {self.length} x {self.low}-{self.high}"

    @property
    def size(self) -> int:
        return self.total if self.inputs is None else self.inputs

    @property
    def steps(self) -> int:
        return self.length

    @property
    def trajectories(self) -> int | Int[Tensor, " input"]:
        """Sign assignments `|T| = 2^m` of one input."""
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
        """Longest sequence, of BOS, digits, arrow, m outputs, EOS."""
        return 2 * self.length + 3

    # Tokens

    def state_id(self, total: int) -> int:
        """Vocabulary index of a (partial) sum. Raises SpecError if the sum is no whole number of -S..S."""
        if abs(as_int("sum", total)) > self.bound:
            raise SpecError(f"sum {total} is outside the vocabulary's {-self.bound}..{self.bound}.")
        return len(SPECIALS) + self.digit_tokens + self.bound + total

    def digit_id(self, digit: int) -> int:
        """Vocabulary index of an input digit. Raises SpecError if the vocabulary has no such digit."""
        if not 0 <= as_int("digit", digit) < self.digit_tokens:
            raise SpecError(f"digit {digit} is outside the vocabulary's 0..{self.digit_tokens - 1}.")
        return len(SPECIALS) + digit

    @property
    def tokens(self) -> tuple[str, ...]:
        digits = (f"D{d}" for d in range(self.digit_tokens))
        sums = (f"S{s}" for s in range(-self.bound, self.bound + 1))
        return (*SPECIALS, *digits, *sums)

    @property
    def numbers(self) -> Int[Tensor, " token"]:
        """The number that each token is, a digit's or sum's value, a special token's place."""
        specials, digits = torch.arange(len(SPECIALS)), torch.arange(self.digit_tokens)
        return torch.cat([specials, digits, torch.arange(-self.bound, self.bound + 1)])

    @property
    def kinds(self) -> Int[Tensor, " token"]:
        """Whether each token is special (0), a digit (1) or a sum (2)."""
        sizes = torch.tensor([len(SPECIALS), self.digit_tokens, self.states])
        return torch.arange(3).repeat_interleave(sizes)

    # Data

    @cached_property
    def digits(self) -> Int[Tensor, "input length"]:
        """All inputs in lexicographic order, or the sampled ones in the order they were drawn."""
        if self.inputs is None:
            values = range(self.low, self.high + 1)
            return torch.tensor(list(itertools.product(values, repeat=self.length)))
        return torch.from_numpy(self._sample(self.inputs))

    def _sample(self, count: int) -> np.ndarray:
        """`count` distinct inputs: a shuffle where they can be listed, else rejection of repeats."""
        generator = np.random.default_rng(self.seed)
        base = self.high - self.low + 1
        if self.total <= ENUMERABLE:
            codes = generator.permutation(self.total)[:count]
            places = base ** np.arange(self.length)[::-1]
            return codes[:, None] // places % base + self.low
        rows = np.empty((0, self.length), dtype=np.int64)
        while len(rows) < count:
            drawn = generator.integers(self.low, self.high + 1, size=(count, self.length))
            rows = np.concatenate([rows, drawn])
            rows = rows[np.sort(np.unique(rows, axis=0, return_index=True)[1])]
        return rows[:count]

    @cached_property
    def prompts(self) -> Int[Tensor, "input token"]:
        """`<BOS> D ... D ->`, as the paper has it."""
        return self.prompt()

    @property
    def reads(self) -> Bool[Tensor, "step token"] | None:
        """Each step's own digit, behind `<BOS>`."""
        return torch.eye(self.length, 1 + self.length, dtype=torch.bool).roll(1, 1)

    def prompt(self, arrow: bool = True, pauses: int = 0) -> Int[Tensor, "input token"]:
        """Token ids of every input; without the arrow as in the public CoT2 code, or with `pauses` further ones."""
        filled = lambda token, columns: torch.full((self.size, columns), token)
        arrows = filled(ARROW, int(arrow) + pauses)
        return torch.cat([filled(BOS, 1), self.digits + self.digit_id(0), arrows], dim=1)

    @cached_property
    def answers(self) -> Int[Tensor, " input"]:
        """The smallest non-negative signed sum of each input; computed for one order of its digits."""
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
        """Multiset of digits each input belongs to, numbered by first appearance; a split never divides one (as in the
        authors' code)."""
        numbers: dict[tuple[int, ...], int] = {}
        keys = (tuple(row) for row in self.digits.sort(dim=1).values.tolist())
        return torch.tensor([numbers.setdefault(key, len(numbers)) for key in keys])

    # The graph of partial sums, as `cot2lib.supervision` reads it

    @property
    def states(self) -> int:
        """States a trajectory can be in, the sums -S..S."""
        return 2 * self.bound + 1

    @property
    def start(self) -> int:
        """State every trajectory starts from, the sum 0."""
        return self.bound

    @property
    def state_ids(self) -> Int[Tensor, " state"]:
        return torch.arange(self.states) + self.state_id(-self.bound)

    def children(self, step: int, rows: Rows = slice(None)) -> Int[Tensor, "input state branch"]:
        """States that follow each state when digit `step` is subtracted (branch 0) and added (branch 1).

        Sums that no trajectory can hold yet are clamped to -S..S.
        """
        digit = self.digits[rows, step][:, None, None] * torch.tensor([-1, 1])
        return (torch.arange(self.states)[None, :, None] + digit).clamp(0, self.states - 1)

    @property
    def mirror(self) -> Int[Tensor, " state"]:
        """-s of each sum s, since with every sign turned round, a walk to one is a walk to the other."""
        return torch.arange(self.states).flip(0)

    @cached_property
    def score(self) -> Int[Tensor, " state"]:
        """The paper's F of a final state, which is `|sum|` and to be small."""
        return torch.arange(-self.bound, self.bound + 1).abs()

    @cached_property
    def preference(self) -> Int[Tensor, " state"]:
        """Final states in the public code's order, by `|sum|`, the non-negative one first."""
        sums = torch.arange(-self.bound, self.bound + 1)
        return 2 * sums.abs() + (sums < 0)

    def signed_sums(self) -> Int[Tensor, "input trajectory step"]:
        """Every trajectory's partial sums, in minus-first order of signs; for up to 16 digits.

        Raises SpecError for longer tasks, whose 2^m trajectories are better counted (`cot2lib.supervision`).
        """
        if self.length > 16:
            raise SpecError(f"2^{self.length} trajectories are too many to list; use supervision.hindsight_targets.")
        signs = torch.tensor(list(itertools.product((-1, 1), repeat=self.length)))
        return (signs * self.digits[:, None]).cumsum(-1)
