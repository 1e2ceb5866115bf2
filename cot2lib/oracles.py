"""Oracles of a task's graph: which states walks reach, and which states lead to a final one.

Interventions on thoughts ask them (`cot2lib.thoughts.Edited`). Path counts forward from the start and backward from
the final state give both exactly, for each input; nothing is enumerated. Steps are counted from 0 at the start to m at
the answer, so the thought that a rule makes at `State.step` t stands after t + 1. `mirrored` adds to a set of states
those that a task's symmetry puts beside them (`Task.mirror`).
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from cot2lib.supervision import backward_counts, forward_counts, graph_of, per_input
from cot2lib.tasks import Task


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
    """A set of states and the mirror of each; the set itself where a task has no symmetry."""
    return states if task.mirror is None else states | states[..., task.mirror]
