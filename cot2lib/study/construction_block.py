"""The block of the paper's construction for MNNS, trained from random weights (the remark beside the construction).

The paper says that training according to its construction reaches perfect accuracy, and gives no details. This is
one reading. The block has the construction's parts and sizes: n digits, an arrow and a zero as tokens, contents of
2^(n+1) trigonometric coordinates beside one-hot positions; one attention, a router on what it attends to, n bilinear
experts W3(W1 z_prev * W2 z_curr) and an expert that reads off through a sigmoid and a softmax; n + 1 passes. The
embeddings are fixed, all weights are drawn at random and trained on the exact shares of the partial sums after each
digit and, at the last pass, on the answer, through a softmax tied to the embeddings.

Where it differs from the paper's construction: numbers stand at several frequencies and sums have no slots of their
own, since weights that nobody sets know of none; positions cycle as there, under a causal mask.
`FEEDS` says what a pass hands to the next. The construction hands on its output itself; chain of thought with
continuous tokens a mixture of embeddings, in training that of the targets.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import product

import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.model.trigonometric import circles, frequencies
from cot2lib.specs.profiles import SEEDS
from cot2lib.supervision import trajectory_shares
from cot2lib.tasks import MNNS

FEEDS = ("output", "mixture")
RATES = (1e-3, 3e-3, 1e-2)  # learning rates tried
STEPS, BATCH, WARM_UP, EVALUATIONS = 2000, 64, 50, 10
DECIMALS = 6


def targets(task: MNNS) -> Float[Tensor, "input passes state"]:
    """Shares of all signed partial sums after each digit, then the answer."""
    answer = torch.nn.functional.one_hot(task.answers + task.start, task.states)
    return torch.cat([trajectory_shares(task, None, "shared"), answer[:, None]], dim=1).float()


class ExpertStack(nn.Module):
    """Construction-shaped blocks, one for each seed, side by side; a pass hands on its `feed`, one of `FEEDS`.

    Weights are normal with variance one over the number of inputs.
    """

    def __init__(self, task: MNNS, seeds: Sequence[int], feed: str = "output"):
        super().__init__()
        self.experts, self.feed = task.length, feed
        content, places = 2 ** (task.length + 1), task.length + 2
        sums = torch.arange(-task.bound, task.bound + 1)[:, None]
        turns = sums * frequencies(content // 2, task.states) / task.states
        table = (circles(turns) / math.sqrt(content / 2)).float()  # embeddings, of length one
        width, inner, slots = content + places, 2 * content, 2**task.length
        shapes = {
            "attend": (width, width), "value": (width, width), "route": (width, self.experts + 1),
            "previous": (width, self.experts * inner), "current": (width, self.experts * inner),
            "write": (self.experts * inner, content),
            "cosine": (width, slots), "sine": (width, slots), "emit": (2 * slots, content),
        }  # fmt: skip
        for site, (name, shape) in enumerate(shapes.items()):
            draws = random.normal(random.run_keys(seeds, Site.INIT, site), math.prod(shape))
            inputs = inner if name == "write" else shape[0]  # one expert writes at a time
            self.register_parameter(name, nn.Parameter((draws / math.sqrt(inputs)).view(-1, *shape).float()))
        self.register_buffer("table", table)
        self.register_buffer("positions", torch.eye(places))

    def prompts(self, digits: Int[Tensor, "run batch digit"]) -> Float[Tensor, "run batch token width"]:
        """Digits, an arrow without content, and the number 0, each with its position."""
        zero = len(self.table) // 2
        contents = self.table[torch.cat([digits, torch.zeros_like(digits[..., :2])], dim=-1) + zero]
        contents[..., -2, :] = 0.0
        return torch.cat([contents, self.positions.expand(*digits.shape[:2], -1, -1)], dim=-1)

    def forward(
        self, tokens: Float[Tensor, "run batch token width"], query: Float[Tensor, "run batch width"]
    ) -> Float[Tensor, "run batch content"]:
        """One pass: the block's output after its last token `query`."""
        scores = (tokens @ (query @ self.attend)[..., None]).transpose(-1, -2)
        seen = (scores.softmax(-1) @ tokens)[..., 0, :] @ self.value
        routed = (seen @ self.route).softmax(-1)
        products = ((query @ self.previous) * (seen @ self.current)).unflatten(-1, (self.experts, -1))
        summed = (products * routed[..., :-1, None]).flatten(-2) @ self.write
        return summed + routed[..., -1:] * self.read_off(query)

    def read_off(self, query: Float[Tensor, "run batch width"]) -> Float[Tensor, "run batch content"]:
        """The last expert: cosines filtered by the sign of their sines, the largest chosen, both emitted."""
        sines = query @ self.sine
        kept = (query @ self.cosine) * sines.sigmoid()
        chosen = kept.softmax(-1)
        return torch.cat([chosen * kept, chosen * sines], dim=-1) @ self.emit

    def roll(
        self, digits: Int[Tensor, "run batch digit"], teacher: Float[Tensor, "run batch passes state"] | None = None
    ) -> Float[Tensor, "run batch passes state"]:
        """Logits of every pass; with a `teacher`, mixtures handed on are its shares and not the block's own."""
        tokens, logits = self.prompts(digits), []
        for step in range(self.experts + 1):
            written = self(tokens, tokens[..., -1, :])
            logits.append(math.sqrt(self.table.shape[1]) * written @ self.table.T)
            if self.feed == "mixture":
                weights = logits[-1].softmax(-1) if teacher is None else teacher[:, :, step]
                written = weights @ self.table
            place = self.positions[step].expand(*written.shape[:-1], -1)
            tokens = torch.cat([tokens, torch.cat([written, place], dim=-1)[:, :, None]], dim=2)
        return torch.stack(logits, dim=2)


def train(
    feed: str, rate: float, seeds: Sequence[int] = SEEDS, steps: int = STEPS, task: MNNS = MNNS()
) -> Iterator[pd.DataFrame]:
    """Train blocks with Adam, the rate falling to zero along a cosine; yields a row per seed at every evaluation.

    Columns: `seed`, `step`, `loss` (of the step's batch), `accuracy` and `seen`: shares of right answers on the
    validation and on the training inputs of the seed's split, each block fed its own outputs or mixtures.
    """
    stack, aims = ExpertStack(task, seeds, feed), targets(task)
    masks = torch.stack([task.split(seed) for seed in seeds])
    keys = [random.run_keys([seed], Site.ORDER) for seed in seeds]  # each run has an endless stream of shuffles
    streams = [random.stream(key, mask.nonzero()[:, 0], 0, steps * BATCH) for key, mask in zip(keys, masks)]
    order = torch.stack(streams).view(len(seeds), steps, BATCH)
    optimizer = torch.optim.Adam(stack.parameters())
    for step in range(steps):
        warm = min(1.0, (step + 1) / WARM_UP)
        optimizer.param_groups[0]["lr"] = rate * warm * (1 + math.cos(math.pi * step / steps)) / 2
        batch = order[:, step]
        logits = stack.roll(task.digits[batch], aims[batch])
        losses = -(aims[batch] * logits.log_softmax(-1)).sum((-1, -2)).mean(-1)
        optimizer.zero_grad()
        losses.sum().backward()
        optimizer.step()
        if (step + 1) % max(1, steps // EVALUATIONS) == 0 or step + 1 == steps:
            right = answered(stack, task)
            held_out, seen = ((right & part).sum(1) / part.sum(1) for part in (~masks, masks))
            columns = {"loss": losses.tolist(), "accuracy": held_out.tolist(), "seen": seen.tolist()}
            yield pd.DataFrame({"seed": seeds, "step": step + 1} | columns).round(DECIMALS)


@torch.no_grad()
def answered(stack: ExpertStack, task: MNNS) -> Bool[Tensor, "run input"]:
    """Which inputs each block answers right, among all sums."""
    every = task.digits.expand(len(stack.route), -1, -1)
    return stack.roll(every)[:, :, -1].argmax(-1) - task.start == task.answers


def measure() -> pd.DataFrame:
    """Training curves of every feed, learning rate and seed: columns `feed`, `lr` and those of `train`."""
    tried = product(FEEDS, RATES)
    parts = [found.assign(feed=feed, lr=rate) for feed, rate in tried for found in train(feed, rate)]
    return pd.concat(parts, ignore_index=True)


def last_steps(blocks: pd.DataFrame) -> pd.DataFrame:
    """Closing rows of the block's training curves, one for each feed, learning rate and seed."""
    return blocks[blocks["step"] == blocks["step"].max()]


def best_rates(blocks: pd.DataFrame) -> pd.DataFrame:
    """The block's training curves at each feed's best learning rate, by mean closing accuracy."""
    means = last_steps(blocks).groupby(["feed", "lr"])["accuracy"].mean().unstack()
    return blocks[blocks["lr"] == blocks["feed"].map(means.idxmax(axis=1))]
