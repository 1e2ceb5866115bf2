"""How many superpositions fit into d dimensions, and which of them a task needs.

The source is the appendix "Discussion on Budget-Embedding Dimension Tradeoff". A superposition z_S is the mean of the
unit embeddings e_i over a set S of B of the v states. A *margin* is half the least distance between two of them. The
paper packs a ball of radius delta around every z_S into the ball of radius 1 + delta. It concludes
d = Omega(B ln(v/B)) for a fixed margin delta.

Differences from the paper:
1. Its inequality is right, for equal weights, at every margin that is possible. But no margin above
   sqrt(2v/(v-1))/(2B) is possible (`largest_margin`). A fixed margin therefore allows only small budgets, and the
   conclusion loses a factor ln B.
2. Two more bounds stand next to the paper's formula: the exact volumes that it is rounded from (`volume_dimension`),
   and a sharper one that packs around the mean of all superpositions (`centred_dimension`).
3. The hindsight targets of a task are far fewer than the subsets (`distinct_targets`). They are functions of a few
   digits and hold at most 2^(m-1) states at a time.

Continuous supervision asks something else of d: that softmax(E h), for some hidden state h, comes close to the target.
The paper has no counterpart of this. Uniform mass on every subset of B of the v > B states can be shown to any
precision if and only if d >= min(2B, v-1); the chapter on capacity proves it. 2B suffice because the logits
-c prod_{i in S} (x - x_i)^2 are affine in the embeddings (x, x^2, ..., x^2B) of distinct numbers x, zero on S and
negative elsewhere; adding the polynomial through the ln alpha_i gives any weights alpha on S.
"""

import math
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import Task

Points = Float[Tensor, "target state"]
Embeddings = Float[Tensor, "*draw state d"]

STATES = 73  # sums -36..36 of four digits 1-9
PAPER_BUDGETS = (1, 4, 8, 16)  # of the paper's experiment on d
MOST = 60  # states up to which the paper's inequalities are tried
EXCESS = np.geomspace(1e-3, 1e3, 2001)  # values of tau - 1 that the centred bound tries
GRID = 1e-9  # far below the distance of two targets, so that rounding to it merges only equal ones
CLOSEST = 2000  # pairs that the ascent looks at
RATE = 0.03  # of the ascent
REFRESH = 25  # steps between two searches for the closest pairs
FIRST_SHARPNESS, LAST_SHARPNESS = 10.0, 300.0  # of the soft minimum, in units of 1 / least distance
SHARPNESS = 1e3  # the factor c of the squared product; the interpolating part is small against it


# The packing bound


def log_subsets(vocab: int, budget: int) -> float:
    """ln C(v, B), from the exact integer."""
    return math.log(math.comb(vocab, budget))


def log_subsets_below(vocab: int, budget: int) -> float:
    """B ln(v/B). It is at most ln C(v, B), because each of the B factors (v-i)/(B-i) of C(v, B) is at least v/B."""
    return budget * math.log(vocab / budget)


def largest_margin(vocab: int, budget: int) -> float:
    """delta_max = sqrt(2v/(v-1))/(2B). No embeddings in the unit ball have a larger margin for all subsets of B."""
    return math.sqrt(2 * vocab / (vocab - 1)) / (2 * budget)


def paper_dimension(vocab: int, budget: int, margin: float) -> float:
    """The paper's least d at a possible margin: B ln(v/B) / ln(2/delta)."""
    return log_subsets_below(vocab, budget) / math.log(2 / margin)


def volume_dimension(vocab: int, budget: int, margin: float) -> float:
    """Least d by exact volumes at a possible margin: ln C(v, B) / ln((1 + delta)/delta)."""
    return log_subsets(vocab, budget) / math.log1p(1 / margin)


def centred_dimension(vocab: int, budget: int, margin: float) -> float:
    """Least d by volumes around the mean of all superpositions, at a possible margin.

    The mean squared distance of z_S from its mean is at most s^2 = (v-B)/(B(v-1)). By Markov's inequality all but a
    share 1/tau of the balls lie within the radius sqrt(tau) s + delta. So (1 - 1/tau) C(v, B) <=
    (1 + sqrt(tau) s / delta)^d for every tau > 1. The bound takes the best tau.
    """
    spread, tau = math.sqrt((vocab - budget) / (budget * (vocab - 1))), 1 + EXCESS
    counted = log_subsets(vocab, budget) + np.log1p(-1 / tau)
    return float((counted / np.log1p(np.sqrt(tau) * spread / margin)).max())


def fixed_margin_is_possible(margin: float = 0.1) -> bool:
    """Whether the paper's premise holds: this one margin is possible at every budget."""
    return margin <= largest_margin(STATES, max(PAPER_BUDGETS))


@cache
def bound_holds_at_possible_margins() -> bool:
    """Whether the paper's inequalities hold at possible margins, for all 1 <= B < v <= `MOST`.

    The inequalities are B ln(v/B) <= ln C(v, B), and that the paper's least d is never above that of exact volumes.
    The margins are the largest one, its half and its tenth.
    """
    return all(
        log_subsets_below(v, b) <= log_subsets(v, b) + 1e-12
        and paper_dimension(v, b, margin) <= volume_dimension(v, b, margin) + 1e-12
        for v in range(3, MOST + 1)
        for b in range(1, v)
        for margin in largest_margin(v, b) * np.array([1.0, 0.5, 0.1])
    )


def most_asked_for() -> float:
    """The largest d that the paper's formula asks for, over the budgets and all possible margins."""
    return max(paper_dimension(STATES, budget, largest_margin(STATES, budget)) for budget in PAPER_BUDGETS)


# The targets of a task


def distinct_targets(task: Task, budget: int, ties: str) -> Points:
    """The different targets alpha*_t of all thoughts over all inputs, as weights of the states."""
    targets = hindsight_targets(task, budget, ties)[:, :-1, task.state_ids]  # (input, step, state)
    return GRID * torch.unique((targets.flatten(0, 1) / GRID).round(), dim=0)


def random_embeddings(seeds: int, states: int, d: int) -> Float[Tensor, "draw state d"]:
    """Independent uniform directions on the unit sphere for each state, one draw for each of the seeds 0, 1, ..."""
    draws = random.normal(random.run_keys(range(seeds), Site.INIT), states * d)
    return F.normalize(draws.view(seeds, states, d), dim=-1)


def margins(points: Points, embeddings: Embeddings) -> Float[Tensor, "*draw"]:
    """Half the least distance between the mixtures of two points, for each draw of the embeddings."""
    mixed = points.to(embeddings.dtype) @ embeddings  # (*draw, target, d)
    least = [F.pdist(one).min() for one in mixed.view(-1, *mixed.shape[-2:])]
    return torch.stack(least).view(mixed.shape[:-2]) / 2


def spread_embeddings(points: Points, start: Float[Tensor, "state d"], steps: int = 200) -> Float[Tensor, "state d"]:
    """Unit embeddings whose margin gradient ascent has widened, from `start`.

    Adam maximises a soft minimum of the closest pairs' distances, which sharpens from step to step. The closest pairs
    are looked up every 25 steps. The result shows a margin that is possible; a wider one may exist.
    """
    free = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([free], lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    pairs = torch.triu_indices(len(points), len(points), 1)
    for step in range(steps):
        unit = F.normalize(free, dim=-1)
        mixed = points @ unit  # (target, d)
        if step % REFRESH == 0:
            distances = torch.cdist(mixed.detach(), mixed.detach())[*pairs]
            nearest = distances.topk(min(CLOSEST, len(distances)), largest=False)
            (one, other), least = pairs[:, nearest.indices], max(float(nearest.values[0]), 1e-6)
        near = (mixed[one] - mixed[other]).square().sum(-1).clamp(min=1e-18).sqrt()
        sharpness = FIRST_SHARPNESS * (LAST_SHARPNESS / FIRST_SHARPNESS) ** (step / steps) / least
        loss = torch.logsumexp(-sharpness * near, 0) / sharpness
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return F.normalize(free.detach(), dim=-1)


# Which distributions a softmax over d-dimensional embeddings can show


def divergence(points: Points, logits: Points) -> Float[Tensor, " target"]:
    """KL(alpha || softmax(logits)) of each target alpha, in nat. Rounding never makes it negative."""
    kl = torch.special.xlogy(points, points) - torch.where(points > 0, points * logits.log_softmax(-1), 0.0)
    return kl.sum(-1).clamp(min=0.0)


def polynomial_logits(nodes: Float[Tensor, " state"], points: Points) -> Points:
    """Logits that show a target and are polynomials in the nodes, of degree twice the size of its support.

    A state has a whole number as its node, so two nodes differ by at least one. States that share a node must share
    their weight.
    """
    places, which = nodes.unique(return_inverse=True)
    first = torch.zeros(len(places), dtype=torch.int64).scatter(0, which, torch.arange(len(nodes)))
    weights, members = points[:, first].topk(int((points[:, first] > 0).sum(1).max()))  # (target, member)
    on, same = weights > 0, torch.eye(weights.shape[1], dtype=torch.bool)
    gaps = places[None, :, None] - places[members][:, None]  # (target, node, member)
    product = torch.where(on[:, None], gaps, 1.0).prod(-1)  # (target, node)
    between = torch.where(same, 1.0, places[members][:, :, None] - places[members][:, None])  # (target, member, other)
    factors = torch.where((on[:, None] & ~same)[:, None], gaps[:, :, None] / between[:, None], 1.0)
    # Lagrange's polynomial through ln alpha at the members: (target, node, member, other) -> (target, node)
    interpolated = (factors.prod(-1) * torch.where(on, weights, 1.0).log()[:, None]).sum(-1)
    return (interpolated - SHARPNESS * product.square())[:, which]
