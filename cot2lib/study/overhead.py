"""The cost of a continuous token beside a discrete one (paper, remark on the scalability of base CoT2 decoding).

A discrete step looks one row of the embedding table up; a continuous one multiplies the whole table,
z_t = E^T alpha_t. `Step` counts the products of one step, `measured` times them. The paper's first half
is exact: 2vd flop, as many as the output projection needs. That the rest of the model dominates them
depends on the shape: the product is v/(12Ld + 2NL) of what L layers need per token at context N.
Where alpha has only a few non-zero entries, B kept states or K sampled tokens, the product is a sum of that
many rows and v drops out.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd
import torch
from jaxtyping import Shaped
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from cot2lib.errors import SpecError
from cot2lib.kit.timing import in_turns, ratio
from cot2lib.model import Cache, GPT2Stack

VOCABULARIES = (100, 1_000, 10_000, 50_000, 150_000)
CONTEXT = 64  # positions in the cache of a timed step
ROWS = 16  # of the table that a sparse mixture sums
WEIGHT = 0.02  # of every timed model: time does not depend on it
WORK, MOST = 50_000_000, 10  # a turn repeats its part for so many flop, but at most so often
TABLE = "transformer.wte.weight"
PARTS = ("blocks", "projection", "mixture")  # of a step
COLUMNS = ["d", "v", "discrete step (ms)", "mixture / projection", f"{ROWS} rows / projection", "longer step (%)"]


@dataclass(frozen=True)
class Step:
    """One decoding step of a GPT-2 at batch 1, whose MLP is four times as wide as the model; counts are of products.

    Attributes:
        name: how tables call the model.
        vocab_size, d_model, layers: its shape.
        context: positions that its attention looks at, its own included.
    """

    name: str
    vocab_size: int
    d_model: int
    layers: int
    context: int = CONTEXT

    @property
    def projection(self) -> int:
        """Flop of the logits W h."""
        return 2 * self.vocab_size * self.d_model

    @property
    def mixture(self) -> int:
        """Flop of E^T alpha."""
        return 2 * self.d_model * self.vocab_size

    @property
    def blocks(self) -> int:
        """Flop of the transformer blocks: 12 d^2 weights a layer, and queries and values against the context."""
        return self.layers * (24 * self.d_model**2 + 4 * self.context * self.d_model)

    @property
    def discrete(self) -> int:
        """Flop of a step that feeds a token: blocks and projection."""
        return self.blocks + self.projection


MODELS = (
    Step("MNNS, 2 layers", 89, 32, 2, 9),
    Step("GPT-2 small", 50_257, 768, 12, 1024),
    Step("GPT-2 medium", 50_257, 1024, 24, 1024),
    Step("GPT-2 large", 50_257, 1280, 36, 1024),
    Step("GPT-2 XL", 50_257, 1600, 48, 1024),
)
SMALL = (
    Step("2 layers, d = 32, v = 150,000", 150_000, 32, 2),
    Step("12 layers, d = 768, v = 150,000", 150_000, 768, 12),
)


def counted() -> pd.DataFrame:
    """Flop of a step by part (millions), and what the mixture adds to the blocks and to a discrete step (%)."""
    steps = MODELS + SMALL
    parts = {f"{part} (Mflop)": [getattr(step, part) / 1e6 for step in steps] for part in PARTS}
    added = {
        "mixture over blocks (%)": [100 * step.mixture / step.blocks for step in steps],
        "mixture over discrete step (%)": [100 * step.mixture / step.discrete for step in steps],
    }
    return pd.DataFrame({"model": [step.name for step in steps]} | parts | added)


def equals_projection() -> bool:
    """Whether the mixture needs exactly the projection's flop, as torch counts them: the paper's first half."""
    vocab, d_model, found = 89, 32, []
    stack = GPT2Stack(1, vocab, 1, d_model, 1, 1)
    for product, width in ((stack.mix, vocab), (stack.logits, d_model)):
        given = torch.rand(1, 1, 1, width)
        with FlopCounterMode(display=False) as counter:
            product(given)
        found.append(counter.get_total_flops())
    return 0 < found[0] == found[1]


def is_dominated(steps: Sequence[Step] = MODELS) -> bool:
    """Whether the blocks need more than the mixture: the paper's second half, true of GPT-2's shapes, not of all."""
    return all(step.mixture < step.blocks for step in steps)


# Measured


@torch.no_grad()
def measured(
    d_model: int, layers: int, heads: int, vocabularies: Sequence[int] = VOCABULARIES, rounds: int = 5
) -> pd.DataFrame:
    """Times of one step's parts at batch 1 over vocabularies, of a model with a cache; ratios are medians over rounds.

    Columns: `d`, `v`, `discrete step (ms)`; over the projection's time that of the dense mixture and of one of 16
    rows; how much longer (%) a whole continuous step takes than a discrete one (blocks with a cache, projection, then
    arg max and a row, or softmax and mixture).

    Raises:
        SpecError: for no vocabulary, one below 16, or `heads` that do not divide `d_model`.
    """
    if not vocabularies or min(vocabularies) < ROWS:
        raise SpecError(f"vocabularies={list(vocabularies)}: give some, each of at least {ROWS} tokens.")
    stacks, past, rows = equal_stacks(d_model, layers, heads, vocabularies), Cache(), []
    stacks[vocabularies[0]].hidden(torch.rand(1, 1, CONTEXT, d_model), cache=past)
    for vocab, stack in stacks.items():
        repeats = max(1, min(MOST, WORK // Step("timed", vocab, d_model, layers).discrete))
        turns = {name: partial(_repeated, part, repeats) for name, part in _parts(stack, past).items()}
        taken = in_turns(turns, rounds)
        over = {name: ratio(taken[name], taken["projection"]) for name in ("mixture", "rows")}
        longer = 100 * (ratio(taken["continuous"], taken["discrete"]) - 1)
        spent = 1000 * statistics.median(taken["discrete"]) / repeats
        rows.append((d_model, vocab, spent, over["mixture"], over["rows"], longer))
    return pd.DataFrame(rows, columns=COLUMNS)


class Unfilled(GPT2Stack):
    """A stack that leaves its weights to others: drawing them takes long for a large one."""

    def initialise(self, seeds: Sequence[int]) -> None:
        """Nothing."""


def equal_stacks(d_model: int, layers: int, heads: int, vocabularies: Sequence[int]) -> dict[int, GPT2Stack]:
    """A model per vocabulary: all share their blocks and the first rows of one table."""
    stacks = {vocab: Unfilled(1, vocab, CONTEXT + 1, d_model, layers, heads) for vocab in vocabularies}
    shapes = {name: value.shape for name, value in stacks[max(vocabularies)].state_dict().items()}
    weights = {name: torch.full(shape, WEIGHT) for name, shape in shapes.items()}
    for vocab, stack in stacks.items():
        stack.load_state_dict(weights | {TABLE: weights[TABLE][:, :vocab]}, assign=True)
    return stacks


Part = Callable[[], Shaped[Tensor, "..."]]  # of a step, ready to be timed


def _parts(stack: GPT2Stack, past: Cache) -> dict[str, Part]:
    """Parts of a step after the positions in `past`, and whole steps, ready to be timed."""
    vocab, d_model = stack.shape["vocab_size"], stack.shape["d_model"]
    hidden, fed = torch.rand(2, 1, 1, 1, d_model)
    alpha = torch.rand(1, 1, 1, vocab).softmax(-1)
    chosen, shares = torch.randint(vocab, (1, 1, ROWS)), torch.full((1, 1, 1, ROWS), 1 / ROWS)
    logits = lambda: stack.logits(stack.hidden(fed, cache=past.copy()))
    return {
        "projection": lambda: stack.logits(hidden),
        "mixture": lambda: stack.mix(alpha),
        "rows": lambda: shares @ stack.embed(chosen),
        "discrete": lambda: stack.embed(logits()[:, :, 0].argmax(-1)[..., None]),
        "continuous": lambda: stack.mix(logits().softmax(-1)),
    }


def _repeated(part: Part, times: int) -> None:
    """One turn: `part` so many times, as short ones could not be timed."""
    for _ in range(times):
        part()
