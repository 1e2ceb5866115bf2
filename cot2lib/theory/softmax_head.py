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
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site

Points = Float[Tensor, "target state"]


def least_dimension(vocab: int, budget: int) -> int:
    """min(2B, v-1): the least d at which uniform mass on every B-subset of v states can be shown.

    Raises:
        SpecError: unless 1 <= B < v.
    """
    if not 1 <= budget < vocab:
        raise SpecError(f"budget={budget}: choose 1 <= B < v = {vocab}.")
    return min(2 * budget, vocab - 1)


def divergence(points: Points, logits: Points) -> Float[Tensor, " target"]:
    """KL(alpha || softmax(logits)) of each target alpha, in nat. Rounding never makes it negative."""
    kl = torch.special.xlogy(points, points) - torch.where(points > 0, points * logits.log_softmax(-1), 0.0)
    return kl.sum(-1).clamp(min=0.0)


def polynomial_logits(nodes: Float[Tensor, " state"], points: Points, sharpness: float = 1e3) -> Points:
    """Logits that show a target and are polynomials in the nodes, of degree twice the size of its support.

    Args:
        nodes: a whole number for each state. Two different nodes then differ by at least one. States that share a
            node must share their weight.
        points: targets over the states.
        sharpness: the factor c of the squared product. The interpolating part is small beside it.
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
    return (interpolated - sharpness * product.square())[:, which]


def moment_embeddings(vocab: int, budget: int) -> Float[Tensor, "state d"]:
    """Moment embeddings of dimension d = 2B: polynomials up to degree 2B at v Chebyshev nodes.

    The basis is orthonormal, because that basis rounds best.
    """
    angles = torch.pi * (torch.arange(vocab, dtype=torch.float64) + 0.5) / vocab
    return (angles[:, None] * torch.arange(1, 2 * budget + 1)).cos() * (2 / vocab) ** 0.5


def shown_gaps(vocab: int, subsets: Int[Tensor, "subset member"]) -> Float[Tensor, " subset"]:
    """Least logit on a subset minus the largest logit off it, for `moment_embeddings` in float64.

    The hidden state is that of the squared product, scaled to a largest product of one. The gap is positive in exact
    arithmetic. Where it is not, it is smaller than the rounding error.
    """
    embeddings = moment_embeddings(vocab, subsets.shape[1])
    nodes = (torch.pi * (torch.arange(vocab, dtype=torch.float64) + 0.5) / vocab).cos()
    product = (nodes[:, None] - nodes[subsets][:, None]).square().prod(-1)  # (subset, state)
    logits = -(product / product.amax(1, keepdim=True)) @ embeddings @ embeddings.T
    on = torch.zeros_like(logits, dtype=torch.bool).scatter(1, subsets, True)
    return logits.masked_fill(~on, torch.inf).amin(1) - logits.masked_fill(on, -torch.inf).amax(1)


def hidden_subset(embeddings: Float[Tensor, "state d"], budget: int) -> Int[Tensor, " member"]:
    """A B-subset that these embeddings cannot show, from Radon's dependence of the first d+2 states.

    Raises:
        SpecError: if d >= min(2B, v-1), where such a subset need not exist.
    """
    vocab, d = embeddings.shape
    if d >= least_dimension(vocab, budget):
        raise SpecError(f"d={d}: from {least_dimension(vocab, budget)} on every {budget}-subset can be shown.")
    system = torch.cat([embeddings[: d + 2], torch.ones(d + 2, 1, dtype=embeddings.dtype)], dim=1)  # (d + 2, d + 1)
    dependence = torch.linalg.svd(system.T).Vh[-1]
    sides = [dependence > 0, dependence < 0]
    inside, outside = sorted((side.nonzero()[:, 0] for side in sides), key=len)
    spare = [i for i in range(vocab) if i != int(outside[0]) and i not in inside.tolist()]
    return torch.tensor([*inside.tolist(), *spare[: budget - len(inside)]])


def least_divergence(
    points: Points, embeddings: Float[Tensor, "state d"], steps: int = 200
) -> Float[Tensor, " target"]:
    """KL(alpha || softmax(E h)) at the best h of each target, in nat. The problem is convex; L-BFGS solves it."""
    hidden = torch.zeros(len(points), embeddings.shape[1], dtype=embeddings.dtype, requires_grad=True)
    optimizer = torch.optim.LBFGS([hidden], max_iter=steps, line_search_fn="strong_wolfe", tolerance_change=1e-14)

    def loss() -> Float[Tensor, ""]:
        optimizer.zero_grad()
        total = divergence(points, hidden @ embeddings.T).sum()
        total.backward()
        return total

    optimizer.step(loss)
    return divergence(points, hidden.detach() @ embeddings.T)


def fitted_divergence(points: Points, d: int, seed: int = 0, steps: int = 300, lr: float = 0.3) -> float:
    """Mean KL(alpha || softmax(E h)) after fitting E and one free h for each target, in nat.

    Adam fits both in float64 from normal starts, with a step size that falls to zero on a cosine. The result is an
    upper bound of the least divergence that d allows.
    """
    targets, states = points.shape
    draws = random.normal(random.run_keys([seed], Site.INIT), (states + targets) * d)[0]
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
