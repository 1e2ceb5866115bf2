"""Which distributions a softmax over d-dimensional embeddings can show. This has no counterpart in the paper.

The paper's packing bound asks how well superpositions z_S can be told apart. Continuous supervision asks something
else of d: that softmax(E h), for some hidden state h, comes close to the target. Uniform mass on every subset of B of
the v > B states can be shown to any precision if and only if d >= min(2B, v-1).

Sufficient: take the embeddings (x, x^2, ..., x^2B) of distinct numbers x. The logits -c prod_{i in S} (x - x_i)^2 are
affine in them, zero on S and negative elsewhere. Adding the polynomial through the ln alpha_i gives any weights alpha
on S.

Necessary: among v >= d+2 points some d+2 have an affine dependence (Radon). One side of it has at most d/2 + 1 points.
A subset of B > d/2 states cannot be shown if it holds this side and not all of the other.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from cot2lib.kit import random
from cot2lib.kit.random import Site

Points = Float[Tensor, "target state"]

SHARPNESS = 1e3  # the factor c of the squared product; the interpolating part is small beside it


def divergence(points: Points, logits: Points) -> Float[Tensor, " target"]:
    """KL(alpha || softmax(logits)) of each target alpha, in nat. Rounding never makes it negative."""
    kl = torch.special.xlogy(points, points) - torch.where(points > 0, points * logits.log_softmax(-1), 0.0)
    return kl.sum(-1).clamp(min=0.0)


def polynomial_logits(nodes: Float[Tensor, " state"], points: Points) -> Points:
    """Logits that show a target and are polynomials in the nodes, of degree twice the size of its support.

    Args:
        nodes: a whole number for each state. Two different nodes then differ by at least one. States that share a
            node must share their weight.
        points: targets over the states.
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


def fitted_divergence(points: Points, d: int, steps: int = 300, lr: float = 0.3) -> float:
    """Mean KL(alpha || softmax(E h)) after fitting E and one free h for each target, in nat.

    Adam fits both in float64 from normal starts, with a step size that falls to zero on a cosine. The result is an
    upper bound of the least divergence that d allows.
    """
    targets, states = points.shape
    draws = random.normal(random.run_keys([0], Site.INIT), (states + targets) * d)[0]
    parts = draws.split([states * d, targets * d])
    table, hidden = (part.view(-1, d).clone().requires_grad_() for part in parts)  # (state, d), (target, d)
    optimizer = torch.optim.Adam([table, hidden], lr=lr, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        logits = hidden @ table.T  # (target, state)
        loss = (logits.logsumexp(-1) - (points * logits).sum(-1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return float(divergence(points, hidden.detach() @ table.detach().T).mean())
