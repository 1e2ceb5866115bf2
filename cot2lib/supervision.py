"""Hindsight top-B targets (paper, section 3.1, eq. csft-graph-supervision).

The B best trajectories of an input, by the score F of their last state, are averaged step by step: alpha*_t(g) is the
share of them that stand in state g after step t; the last step is one-hot on the answer. Nothing is enumerated:
counting paths forward from the start and backward from the kept final states gives the shares in
O(steps x states x branches) per input. A budget among more than 2^53 trajectories needs shared ties.

The paper does not say which of equally good trajectories B cuts off. `ties` does:

* `"minus-first"`: final states in the task's order of preference, then trajectories in order of their branches (for
  MNNS minus before plus), as the public code for `1 < B < |T|`;
* `"plus-first"`: the same with the last branch first, as the public code for B = 1;
* `"shared"`: the trajectories tied at the cut share what is left of B evenly.

B = 1 is discrete chain of thought, `B = |T|` all states of complete trajectories; there ties do not matter.
"""

import math
import os
from contextlib import suppress
from functools import lru_cache
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit.frozen import as_int
from cot2lib.tasks import Rows, Task
from cot2lib.thoughts import inverse_cdf

Ties = Literal["minus-first", "plus-first", "shared"]
TIES = get_args(Ties)
EXACT_COUNTS, GIB = 2**53, 2**30
CHUNK = 512  # inputs counted together, so that the counts stay in cache

Mass = Float[Tensor, "input state"]
Children = Int[Tensor, "input state branch"]


def hindsight_targets(
    task: Task, budget: int | None = None, ties: str = "minus-first", rows: Rows = slice(None)
) -> Float[Tensor, "input step vocab"]:
    """Soft targets alpha*_1..alpha*_m in float64; after an input's answer all entries are 0.

    Args:
        task: a task with a graph of states.
        budget: B, how many trajectories to keep; None for all that `Task.frontier` names, on graphs walks that end
            early too. An input with fewer keeps what it has.
        ties: which of equally good trajectories are kept when B cuts a group of them.
        rows: which inputs, all by default.
    """
    check_budget(task, budget, ties)
    chosen = torch.arange(task.size)[rows]
    check_targets_fit(task, len(chosen))
    shares = torch.cat([trajectory_shares(task, budget, ties, chunk) for chunk in chosen.split(CHUNK)])
    targets = torch.zeros(len(chosen), task.steps, task.vocab_size, dtype=torch.float64)
    targets[:, :, task.state_ids] = shares  # (input, step, state)
    return with_answers(task, targets, chosen)


def with_answers(
    task: Task, targets: Float[Tensor, "input step vocab"], rows: Int[Tensor, " input"]
) -> Float[Tensor, "input step vocab"]:
    """Distributions of thoughts as targets: the answer at an input's last step, 0 after it."""
    last = (steps_of(task, rows) - 1)[:, None]  # (input, 1)
    targets = targets * (torch.arange(task.steps) < last)[..., None]
    return targets.index_put_((torch.arange(len(rows)), last[:, 0], task.answer_ids[rows]), targets.new_ones(()))


def steps_of(task: Task, rows: Rows = slice(None)) -> Int[Tensor, " input"]:
    """Number of output tokens of each given input."""
    lengths = torch.full((task.size,), task.steps) if task.lengths is None else task.lengths
    return lengths[rows]


def check_budget(task: Task, budget: int | None, ties: str) -> None:
    """Raise SpecError for a budget or tie rule that `task` cannot be supervised with."""
    most = task.most_trajectories
    if ties not in TIES:
        raise SpecError(f"ties={ties!r}: choose one of {', '.join(TIES)}.")
    if budget is not None and not 1 <= as_int("budget", budget) <= most:
        raise SpecError(f"budget B={budget}: an input has {most} trajectories; choose 1..|T|.")
    cuts = budget is not None and budget < most
    if cuts and ties != "shared" and most > EXACT_COUNTS:
        raise SpecError(f"ties={ties!r} needs exact counts, but there are more than 2^53 trajectories; use 'shared'.")


def check_targets_fit(task: Task, inputs: int) -> None:
    """Raise SpecError if the targets of so many inputs, made in float64 and copied once, are beyond this machine."""
    needed, memory = 2 * 8 * inputs * task.steps * task.vocab_size, math.inf
    with suppress(AttributeError, ValueError, OSError):  # where the machine does not say what it has
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > memory:
        has = f"{needed // GIB} GiB, more than this machine's {memory // GIB}"
        raise SpecError(f"targets of {inputs} inputs take {has}; ask for fewer inputs or a shorter task.")


def trajectory_shares(
    task: Task, budget: int | None, ties: str, rows: Rows = slice(None)
) -> Float[Tensor, "input step state"]:
    """Share of the kept trajectories in each state after each step 1..m (the last step not yet one-hot)."""
    graph, start = graph_of(task, rows), per_input(task.start, rows)
    forward = forward_counts(graph, task.states, start)
    if budget is None and task.frontier != "complete":
        return walk_shares(forward, uniform=task.frontier == "nodes")
    finals = forward[-1]  # (input, state)
    kept = kept_count(task, budget, rows)
    groups = task.score if ties == "shared" else task.preference
    shares = kept_fraction(finals, groups if groups.ndim == 1 else groups[rows], kept)
    whole = shares if ties == "shared" else shares.floor()
    backward = backward_counts(graph, whole)
    counts = torch.stack([f * b for f, b in zip(forward[1:], backward[1:])], dim=1)  # (input, step, state)
    if ties != "shared":
        cut = (shares > 0) & (shares < 1)
        left = (finals * shares * cut).sum(1).round()
        counts += first_paths(graph, cut.double(), left, start, last_first=ties == "plus-first")
    return counts / (kept[..., None] if isinstance(kept, Tensor) else kept)


def walk_shares(forward: list[Mass], uniform: bool) -> Float[Tensor, "input step state"]:
    """Share of all walks of 1..m steps in each state, or uniform shares of the states that they reach."""
    walks = torch.stack(forward[1:], dim=1)  # (input, step, state)
    reached = (walks > 0).double() if uniform else walks
    return reached / reached.sum(-1, keepdim=True)


def kept_count(task: Task, budget: int | None, rows: Rows) -> float | Float[Tensor, "input 1"]:
    """How many trajectories B keeps, for all inputs or for each; a float, because 2^m may need more than 64 bits."""
    if not isinstance(task.trajectories, Tensor):
        return float(task.trajectories if budget is None else budget)
    there = task.trajectories[rows].double()[:, None]
    return there if budget is None else there.clamp(max=budget)


def per_input(value: int | Int[Tensor, " all"], rows: Rows) -> int | Int[Tensor, " input"]:
    """A member of a task for the given inputs."""
    return value[rows] if isinstance(value, Tensor) else value


def graph_of(task: Task, rows: Rows) -> list[Children]:
    """Children of every step; an input that has answered stays where it is."""
    graph = [task.children(step, rows) for step in range(task.steps)]
    if task.lengths is not None:
        for step, children in enumerate(graph):
            stay = torch.full_like(children[:1], -1)
            stay[..., 0] = torch.arange(task.states)
            graph[step] = torch.where((task.lengths[rows] <= step)[:, None, None], stay, children)
    return graph


def forward_counts(graph: list[Children], states: int, start: int | Int[Tensor, " input"]) -> list[Mass]:
    """Number of paths from the start to each state, after steps 0..m."""
    counts = torch.zeros(len(graph[0]), states, dtype=torch.float64)
    counts[torch.arange(len(counts)), start] = 1.0
    layers = [counts]
    for children in graph:
        layers.append(push_mass(layers[-1], children))
    return layers


def backward_counts(graph: list[Children], final: Mass) -> list[Mass]:
    """Weight `final` summed over all continuations of each state, after steps 0..m."""
    layers = [final]
    for children in reversed(graph):
        beyond = layers[-1][:, None].expand(-1, children.shape[1], -1)  # (input, state, state)
        layers.append((beyond.gather(2, children.clamp(min=0)) * (children >= 0)).sum(-1))
    return layers[::-1]


def drawn_paths(
    task: Task, rows: Int[Tensor, " input"], draws: Float[Tensor, "input path step"]
) -> Int[Tensor, "input path step"]:
    """States of complete trajectories, drawn uniformly from all of an input: one for each row of uniform draws.

    A trajectory is walked from the start and takes each branch in proportion to its number of continuations.
    """
    graph, start, onward = graph_of(task, rows), per_input(task.start, rows), continuations(task)
    here = (torch.zeros(len(rows), dtype=torch.int64) + start)[:, None].expand(draws.shape[:2])  # (input, path)
    states = []
    for step, children in enumerate(graph):
        branches = children.gather(1, here[..., None].expand(-1, -1, children.shape[2]))  # (input, path, branch)
        ways = onward[step + 1][rows[:, None, None], branches.clamp(min=0)] * (branches >= 0)
        here = branches.gather(2, inverse_cdf(ways, draws[..., step : step + 1]))[..., 0]
        states.append(here)
    return torch.stack(states, dim=-1)


@lru_cache(maxsize=2)
def continuations(task: Task) -> list[Mass]:
    """How many ways go on to the end from each state of each input, after steps 0..m."""
    ones = torch.ones(CHUNK, task.states, dtype=torch.float64)
    chunks = torch.arange(task.size).split(CHUNK)
    counts = [backward_counts(graph_of(task, rows), ones[: len(rows)]) for rows in chunks]
    return [torch.cat(parts) for parts in zip(*counts)]


def push_mass(mass: Mass, children: Children) -> Mass:
    """Send the mass of each state along every branch."""
    sent = mass[:, :, None] * (children >= 0)  # (input, state, branch)
    return torch.zeros_like(mass).scatter_add(1, children.clamp(min=0).flatten(1), sent.flatten(1))


def kept_fraction(
    finals: Mass, groups: Int[Tensor, "*input state"], kept: float | int | Float[Tensor, "input 1"]
) -> Mass:
    """Share of the paths ending in each state that the best `kept` paths hold, best groups first."""
    index = groups.expand(len(finals), -1)
    sizes = torch.zeros(len(finals), int(groups.max()) + 1, dtype=finals.dtype).scatter_add(1, index, finals)
    before = sizes.cumsum(1) - sizes
    share = ((kept - before) / sizes.clamp(min=1.0)).clamp(0.0, 1.0)
    return share.gather(1, index)


def first_paths(
    graph: list[Children],
    final: Mass,
    left: Float[Tensor, " input"],
    start: int | Int[Tensor, " input"],
    last_first: bool,
) -> Float[Tensor, "input step state"]:
    """Counts per step of the first `left` paths, in branch order, that end in the `final` states.

    These paths are whole subtrees along one path, which is walked here from the start. A branch that fits into what is
    left is taken whole; the first one that does not is walked into.
    """
    backward = backward_counts(graph, final)
    whole = torch.zeros_like(final)
    here = torch.zeros(len(left), dtype=torch.int64) + start  # (input,)
    counts = []
    for step, children in enumerate(graph):
        onward = backward[step + 1]
        whole = push_mass(whole, children)
        branches = children.gather(1, here[:, None, None].expand(-1, 1, children.shape[2]))[:, 0]  # (input, branch)
        chosen = torch.zeros_like(left, dtype=torch.bool)
        for branch in branches.flip(1).unbind(1) if last_first else branches.unbind(1):
            there, state = branch >= 0, branch.clamp(min=0)
            size = onward.gather(1, state[:, None])[:, 0]
            fits = there & ~chosen & (size <= left)
            whole.scatter_add_(1, state[:, None], fits[:, None].to(whole.dtype))
            left = torch.where(fits, left - size, left)
            enter = there & ~chosen & ~fits
            here = torch.where(enter, state, here)
            chosen |= enter
        counts.append(whole * onward)
        counts[-1].scatter_add_(1, here[:, None], left[:, None])
    return torch.stack(counts, dim=1)


# States that a thought may have and states that an answer needs, for interventions. Steps count from 0 at the start to
# m at the answer, so the thought that a rule makes at `State.step` t stands after step t + 1.


def reachable(task: Task, step: int, rows: Int[Tensor, "*batch"]) -> Bool[Tensor, "*batch state"]:
    """States of each input that walks of `step` steps from its start reach."""
    inputs = rows.flatten()
    counts = forward_counts(graph_of(task, inputs), task.states, per_input(task.start, inputs))
    return (counts[step] > 0).view(*rows.shape, task.states)


def ancestors(
    task: Task, step: int, rows: Int[Tensor, "*batch"], final: Int[Tensor, "*batch"]
) -> Bool[Tensor, "*batch state"]:
    """States after `step` steps from which each input's walk can end in the state `final`."""
    inputs, end = rows.flatten(), final.flatten()[:, None]
    ends = torch.zeros(len(inputs), task.states, dtype=torch.float64).scatter_(1, end, 1.0)
    return (backward_counts(graph_of(task, inputs), ends)[step] > 0).view(*rows.shape, task.states)


def as_tokens(task: Task, states: Bool[Tensor, "*batch state"]) -> Bool[Tensor, "*batch vocab"]:
    tokens = torch.zeros(*states.shape[:-1], task.vocab_size, dtype=torch.bool)
    tokens[..., task.state_ids] = states
    return tokens


def mirrored(task: Task, states: Bool[Tensor, "*batch state"]) -> Bool[Tensor, "*batch state"]:
    """A set of states and the mirror of each, if the task has a symmetry."""
    return states if task.mirror is None else states | states[..., task.mirror]
