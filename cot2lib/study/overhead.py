"""What a continuous token costs beside a discrete one (paper, remark on the scalability of base CoT2 decoding).

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

import pandas as pd
import torch
from jaxtyping import Shaped
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from cot2lib.errors import SpecError
from cot2lib.kit.fields import typed
from cot2lib.kit.timing import in_turns, ratio
from cot2lib.model import Cache, GPT2Stack

VOCABULARIES = (100, 1_000, 10_000, 50_000, 150_000)
CONTEXT = 64  # positions in the cache of a timed step
ROWS = 16  # of the table that a sparse mixture sums
WEIGHT = 0.02  # of every timed model: time does not depend on it
WORK, MOST = 50_000_000, 10  # a turn repeats its part for so many flop, but at most so often
TABLE = "transformer.wte.weight"


@dataclass(frozen=True)
class Step:
    """One decoding step of a GPT-2 at batch 1; counts are of matrix products alone.

    Attributes:
        name: how tables call the model.
        vocab_size, d_model, layers: its shape; the MLP is four times as wide as the model.
        context: positions that its attention looks at, its own included.
    """

    name: str
    vocab_size: int
    d_model: int
    layers: int
    context: int = CONTEXT

    def __post_init__(self):
        typed(self)
        if min(self.vocab_size, self.d_model, self.layers, self.context) < 1:
            raise SpecError(f"{self}: a step needs sizes of at least one.")

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

    @property
    def over_blocks(self) -> float:
        """The mixture's flop over the blocks': above 1 the mixture is not dominated by them."""
        return self.mixture / self.blocks

    @property
    def over_discrete(self) -> float:
        """The mixture's flop over those of a discrete step."""
        return self.mixture / self.discrete


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


def counted(steps: Sequence[Step] = MODELS + SMALL) -> pd.DataFrame:
    """Flop of a step by part (millions), and what the mixture adds to the blocks and to a discrete step (%)."""
    return pd.DataFrame(
        [
            {
                "model": step.name,
                "blocks (Mflop)": step.blocks / 1e6,
                "projection (Mflop)": step.projection / 1e6,
                "mixture (Mflop)": step.mixture / 1e6,
                "mixture over blocks (%)": 100 * step.over_blocks,
                "mixture over discrete step (%)": 100 * step.over_discrete,
            }
            for step in steps
        ]
    )


def equals_projection(vocab: int = 89, d_model: int = 32) -> bool:
    """Whether the mixture needs exactly the projection's flop, as torch counts them: the paper's first half."""
    stack, counted = GPT2Stack(1, vocab, 1, d_model, 1, 1), []
    for product, width in ((stack.mix, vocab), (stack.logits, d_model)):
        with FlopCounterMode(display=False) as counter:
            product(torch.rand(1, 1, 1, width))
        counted.append(counter.get_total_flops())
    return 0 < counted[0] == counted[1]


def is_dominated(steps: Sequence[Step] = MODELS) -> bool:
    """Whether the blocks need more than the mixture: the paper's second half, true of GPT-2's shapes, not of all."""
    return all(step.over_blocks < 1 for step in steps)


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
    stacks, past, turns = equal_stacks(d_model, layers, heads, vocabularies), Cache(), {}
    stacks[vocabularies[0]].hidden(torch.rand(1, 1, CONTEXT, d_model), cache=past)
    repeats = {vocab: _repeats(Step("timed", vocab, d_model, layers)) for vocab in vocabularies}
    for vocab, stack in stacks.items():
        turns |= {(vocab, name): _repeated(part, repeats[vocab]) for name, part in _parts(stack, past).items()}
    taken, rows = in_turns(turns, rounds), []
    for vocab in vocabularies:
        part = lambda name, vocab=vocab: taken[vocab, name]
        rows.append(
            {
                "d": d_model,
                "v": vocab,
                "discrete step (ms)": 1000 * statistics.median(part("discrete")) / repeats[vocab],
                "mixture / projection": ratio(part("mixture"), part("projection")),
                f"{ROWS} rows / projection": ratio(part("rows"), part("projection")),
                "longer step (%)": 100 * (ratio(part("continuous"), part("discrete")) - 1),
            }
        )
    return pd.DataFrame(rows)


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


def _repeats(step: Step) -> int:
    """How often a turn repeats a part: short ones, so that they can be timed."""
    return max(1, min(MOST, WORK // step.discrete))


def _repeated(part: Part, times: int) -> Callable[[], None]:
    """`part` so many times in one turn."""

    def turn() -> None:
        for _ in range(times):
            part()

    return turn
