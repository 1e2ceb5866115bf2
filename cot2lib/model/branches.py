"""Rollouts that share their prompt, laid out as one sequence.

First come the shared positions, then step by step one position of every branch. A branch sees the shared positions
and its own. Counted along a branch, positions are what they were in a sequence of its own. So the prompt is
computed once, forward and backward, and attention is one product per prompt and not one per rollout.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor


@dataclass(frozen=True)
class Branches:
    """Layout of `count` sequences that share their first `shared` positions."""

    shared: int = 0
    count: int = 1

    def depth(self, place: int) -> int:
        """Position, along its branch, of a place in the layout."""
        return place if place < self.shared else self.shared + (place - self.shared) // self.count

    def laid_out(self, x: Shaped[Tensor, "*lead depth d"]) -> Shaped[Tensor, "*lead place d"]:
        """Copy the entry of each depth to all places of that depth."""
        shared, own = x[..., : self.shared, :], x[..., self.shared :, None, :]
        return torch.cat([shared, own.expand(*own.shape[:-2], self.count, -1).flatten(-3, -2)], -2)

    def depths(self, places: int, device: torch.device | None = None) -> Int[Tensor, " place"]:
        """Position, along its branch, of each of the first `places`."""
        deep = torch.arange(self.depth(places - 1) + 1, device=device)
        return self.laid_out(deep[:, None])[:places, 0]

    def blocked(self, queries: Int[Tensor, " query"], keys: Int[Tensor, " key"]) -> Bool[Tensor, "query key"]:
        """Keys that queries must not see, later ones and keys of other branches."""
        ahead = keys - queries[:, None]
        return (ahead > 0) | ((keys >= self.shared) & (ahead % self.count != 0))


ONE = Branches()  # one plain sequence
