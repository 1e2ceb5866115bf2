"""Superpositions that a decoder must tell apart, and the margins that embeddings keep between them.

The source is the appendix "Discussion on Budget-Embedding Dimension Tradeoff".

Difference from the paper: its packing argument asks for every subset of B of the v states. The hindsight targets of a
task are far fewer (`distinct_targets`). They are functions of a few digits and hold at most 2^(m-1) states at a time.
A *margin* is half the least distance between the mixtures E^T alpha of two different targets.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import Task

Points = Float[Tensor, "target state"]
Embeddings = Float[Tensor, "*draw state d"]

GRID = 1e-9  # far below the distance of two targets, so that rounding to it merges only equal ones
CLOSEST = 2000  # pairs that the ascent looks at
RATE = 0.03  # of the ascent
REFRESH = 25  # steps between two searches for the closest pairs
FIRST_SHARPNESS, LAST_SHARPNESS = 10.0, 300.0  # of the soft minimum, in units of 1 / least distance
ROWS_TOGETHER = 2048  # of a distance matrix; bounds the memory


def distinct_targets(task: Task, budget: int, ties: str, steps: slice = slice(0, -1)) -> Points:
    """The different targets alpha*_t over all inputs, as weights of the states; by default of all thoughts."""
    targets = hindsight_targets(task, budget, ties)[:, steps, task.state_ids]  # (input, step, state)
    return GRID * torch.unique((targets.flatten(0, 1) / GRID).round(), dim=0)


def affine_rank(points: Points) -> int:
    """Dimension of the smallest affine subspace that holds all points."""
    return int(torch.linalg.matrix_rank(points - points.mean(0)))


def random_embeddings(seeds: int, states: int, d: int) -> Float[Tensor, "draw state d"]:
    """Independent uniform directions on the unit sphere for each state, one draw for each of the seeds 0, 1, ..."""
    draws = random.normal(random.run_keys(range(seeds), Site.INIT), states * d)
    return F.normalize(draws.view(seeds, states, d), dim=-1)


def margins(points: Points, embeddings: Embeddings) -> Float[Tensor, "*draw"]:
    """Half the least distance between the mixtures of two points, for each draw of the embeddings."""
    return least_distance(points.to(embeddings.dtype) @ embeddings) / 2


def least_distance(vectors: Float[Tensor, "*draw point d"]) -> Float[Tensor, "*draw"]:
    """Least distance between two of the vectors, for each draw."""
    count = vectors.shape[-2]
    least = []
    for first in range(0, count, ROWS_TOGETHER):
        rows = torch.arange(first, min(first + ROWS_TOGETHER, count))
        distances = torch.cdist(vectors[..., rows, :], vectors)  # (*draw, row, point)
        distances[..., rows - first, rows] = torch.inf
        least.append(distances.flatten(-2).amin(-1))
    return torch.stack(least).amin(0)


def spread_embeddings(points: Points, start: Float[Tensor, "state d"], steps: int = 200) -> Float[Tensor, "state d"]:
    """Unit embeddings whose margin gradient ascent has widened, from `start`.

    Adam maximises a soft minimum of the closest pairs' distances, which sharpens from step to step. The closest pairs
    are looked up every 25 steps. The result shows a margin that is possible; a wider one may exist.
    """
    free = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([free], lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(steps):
        unit = F.normalize(free, dim=-1)
        mixed = points @ unit  # (target, d)
        if step % REFRESH == 0:
            one, other, least = _closest_pairs(mixed.detach())
        distances = (mixed[one] - mixed[other]).square().sum(-1).clamp(min=1e-18).sqrt()
        sharpness = FIRST_SHARPNESS * (LAST_SHARPNESS / FIRST_SHARPNESS) ** (step / steps) / least
        loss = torch.logsumexp(-sharpness * distances, 0) / sharpness
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return F.normalize(free.detach(), dim=-1)


def _closest_pairs(mixed: Float[Tensor, "target d"]) -> tuple[Int[Tensor, " pair"], Int[Tensor, " pair"], float]:
    one, other = torch.triu_indices(len(mixed), len(mixed), 1)
    distances = torch.cdist(mixed, mixed)[one, other]
    nearest = distances.topk(min(CLOSEST, len(distances)), largest=False)
    return one[nearest.indices], other[nearest.indices], max(float(nearest.values[0]), 1e-6)
