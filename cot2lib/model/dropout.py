"""Dropout multipliers of a stack: keyed, so that a run does not depend on what it was stacked with."""

from collections.abc import Sequence

from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.kit import random

Scales = Float[Tensor, "run _"] | None  # multipliers of one site, one row of lanes for each run; None: all one


def drop(x: Float[Tensor, "run ..."], scales: Scales) -> Float[Tensor, "run ..."]:
    return x if scales is None else x * scales.view(x.shape)


class Dropout:
    """Dropout multipliers of one training step, drawn forward pass by forward pass.

    Args:
        keys: the step's key of each run.
        counter: `random.counters` of enough draws for the longest pass.
        probability: of a zero.
    """

    def __init__(self, keys: Int[Tensor, " run"], counter: Int[Tensor, " draw"], probability: float):
        self.keys, self.counter, self.probability = keys, counter, probability
        self.passes = 0

    def scales(self, lanes: Sequence[int]) -> Sequence[Scales]:
        """The next pass's multipliers, (run, lanes of the site) for each site."""
        keys = random.fold(self.keys, self.passes) if self.passes else self.keys
        self.passes += 1
        counter = self.counter[: -(-sum(lanes) // random.LANES)]
        scales = random.dropout_scales(keys, counter, self.probability)
        return scales[:, : sum(lanes)].split(list(lanes), dim=1)
