"""Hindsight top-B targets (paper, section 3.1, eq. csft-graph-supervision).

The B best trajectories of an input, by the score F of their last state, are averaged step by step:
alpha*_t(g) is the share of them that stand in state g after step t; the last step is one-hot on
the answer. Nothing is enumerated: counting paths forward from the start and backward from the
kept final states gives the exact shares in O(steps x states) per input, at any length.

The paper does not say which of equally good trajectories B cuts off. `ties` does:

* `"minus-first"`: final states in the task's order of preference, then trajectories by their first
  branch first (for MNNS the minus sign), as the public code for 1 < B < |T|;
* `"plus-first"`: the same with the last branch first, as the public code for B = 1;
* `"shared"`: the trajectories tied at the cut share what is left of B evenly; no order enters.

B = 1 is discrete chain of thought, B = |T| all reachable states; there ties do not matter.
"""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.errors import SpecError

TIES = ("minus-first", "plus-first", "shared")
EXACT_COUNTS = 2**53
CHUNK = 512  # inputs counted together, so that the counts stay in cache

Mass = Float[Tensor, "input state"]


@runtime_checkable
class TrajectoryGraph(Protocol):
    """What a task tells about its trajectories (see `cot2lib.tasks.mnns.MNNS` for the meaning)."""

    steps: int
    states: int
    start: int
    trajectories: int
    vocab_size: int

    state_ids: Tensor
    score: Tensor
    preference: Tensor
    answer_ids: Tensor

    def children(self, step: int, rows: slice | Tensor) -> Tensor: ...


def hindsight_targets(
    task: TrajectoryGraph, budget: int | None = None, ties: str = "minus-first", rows: slice | Tensor = slice(None)
) -> Float[Tensor, "input step vocab"]:
    """Soft targets alpha*_1..alpha*_m in float64.

    Args:
        task: a task with a graph of states.
        budget: B, how many trajectories to keep; None for all of them.
        ties: which of equally good trajectories are kept when B cuts a group of them.
        rows: which inputs; for long tasks ask batch by batch.

    Raises:
        SpecError: if B is below 1 or above |T|, `ties` is unknown, or an ordered tie rule would
            need path counts above 2^53.
    """
    check_budget(task, budget, ties)
    answers = task.answer_ids[rows]
    chosen = torch.arange(len(task.answer_ids))[rows]
    shares = torch.cat([trajectory_shares(task, budget, ties, chunk) for chunk in chosen.split(CHUNK)])
    targets = torch.zeros(len(answers), task.steps, task.vocab_size, dtype=torch.float64)
    targets[:, :-1, task.state_ids] = shares[:, :-1]
    targets[torch.arange(len(answers)), -1, answers] = 1.0
    return targets


def check_budget(task: TrajectoryGraph, budget: int | None, ties: str) -> None:
    """Raise ValueError for a budget or tie rule that `task` cannot be supervised with."""
    if ties not in TIES:
        raise SpecError(f"ties={ties!r}: choose one of {', '.join(TIES)}.")
    if budget is not None and not 1 <= budget <= task.trajectories:
        raise SpecError(f"budget B={budget}: an input has {task.trajectories} trajectories; choose 1..|T|.")
    cuts = budget is not None and budget < task.trajectories
    if cuts and ties != "shared" and task.trajectories > EXACT_COUNTS:
        raise SpecError(f"ties={ties!r} needs exact counts, but there are more than 2^53 trajectories; use 'shared'.")


def trajectory_shares(
    task: TrajectoryGraph, budget: int | None, ties: str, rows: slice | Tensor = slice(None)
) -> Float[Tensor, "input step state"]:
    """Share of the kept trajectories in each state after each step 1..m (the last step not yet one-hot)."""
    graph = [task.children(step, rows) for step in range(task.steps)]
    forward = forward_counts(graph, task.states, task.start)
    finals = forward[-1]
    kept = task.trajectories if budget is None else budget
    groups = task.score if ties == "shared" else task.preference
    shares = share_of_group(finals, groups, kept)
    whole = shares if ties == "shared" else shares.floor()
    backward = backward_counts(graph, whole)
    counts = torch.stack([f * b for f, b in zip(forward[1:], backward[1:])], dim=1)
    if ties != "shared":
        cut = (shares > 0) & (shares < 1)
        left = (finals * shares * cut).sum(1).round()
        counts += first_paths(graph, cut.double(), left, task.start, last_first=ties == "plus-first")
    return counts / kept


def forward_counts(graph: list[Tensor], states: int, start: int) -> list[Mass]:
    """Number of paths from the start to each state, after steps 0..m."""
    counts = torch.zeros(len(graph[0]), states, dtype=torch.float64)
    counts[:, start] = 1.0
    layers = [counts]
    for children in graph:
        layers.append(spread(layers[-1], children))
    return layers


def backward_counts(graph: list[Tensor], final: Mass) -> list[Mass]:
    """Weight `final` summed over all continuations of each state, after steps 0..m."""
    layers = [final]
    for children in reversed(graph):
        layers.append(layers[-1][:, None].expand(-1, children.shape[1], -1).gather(2, children).sum(-1))
    return layers[::-1]


def spread(mass: Mass, children: Int[Tensor, "input state branch"]) -> Mass:
    """Send the mass of each state along every branch."""
    return torch.zeros_like(mass).scatter_add(
        1, children.flatten(1), mass[:, :, None].expand(children.shape).flatten(1)
    )


def share_of_group(finals: Mass, groups: Int[Tensor, " state"], kept: int) -> Mass:
    """Which share of the paths ending in each state the best `kept` paths hold, best groups first."""
    index = groups.expand(len(finals), -1)
    sizes = torch.zeros(len(finals), int(groups.max()) + 1, dtype=finals.dtype).scatter_add(1, index, finals)
    before = sizes.cumsum(1) - sizes
    share = ((kept - before) / sizes.clamp(min=1.0)).clamp(0.0, 1.0)
    return share.gather(1, index)


def first_paths(
    graph: list[Tensor], final: Mass, left: Float[Tensor, " input"], start: int, last_first: bool
) -> Float[Tensor, "input step state"]:
    """Counts per step of the first `left` paths, in branch order, that end in the `final` states.

    Those paths are whole subtrees hanging off one path, walked here from the start: a branch that
    fits into what is left is taken whole, the first one that does not is walked into.
    """
    backward = backward_counts(graph, final)
    whole = torch.zeros_like(final)
    here = torch.full((len(left),), start)
    counts = []
    for step, children in enumerate(graph):
        whole, here, left = _descend(whole, here, left, children, backward[step + 1], last_first)
        counts.append(whole * backward[step + 1])
        counts[-1].scatter_add_(1, here[:, None], left[:, None])
    return torch.stack(counts, dim=1)


def _descend(whole, here, left, children, continuations, last_first):
    """One step of `first_paths`: subtrees taken whole, the state walked into, and what is left for it."""
    whole = spread(whole, children)
    branches = children.gather(1, here[:, None, None].expand(-1, 1, children.shape[2]))[:, 0]
    chosen = torch.zeros_like(left, dtype=torch.bool)
    for branch in branches.flip(1).unbind(1) if last_first else branches.unbind(1):
        size = continuations.gather(1, branch[:, None])[:, 0]
        fits = ~chosen & (size <= left)
        whole.scatter_add_(1, branch[:, None], fits[:, None].to(whole.dtype))
        left = torch.where(fits, left - size, left)
        enter = ~chosen & ~fits
        here = torch.where(enter, branch, here)
        chosen |= enter
    return whole, here, left
