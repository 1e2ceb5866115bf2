"""What the thoughts of policy-gradient runs hold, before and after: how many tokens, and how much of it is of use.

A run's step distributions are taken as its own sampler visits them on its held-out inputs. Of the states
that a trajectory can be in after a step, those are *on the way* from which the right answer can still be
reached. The paper has entropies alone.
"""

from collections.abc import Sequence

import pandas as pd
import torch
from jaxtyping import Bool
from torch import Tensor

from cot2lib.data import stack_data
from cot2lib.decode import rules
from cot2lib.evaluation import rollouts
from cot2lib.model import GPT2Stack
from cot2lib.specs import GRPOSpec
from cot2lib.supervision import TrajectoryGraph, backward_counts, forward_counts

LEAST = 0.01  # weight from which a token counts as held
PERCENT = 100.0
COLUMNS = ("support", "reachable", "on_the_way")


def states(task: TrajectoryGraph) -> tuple[Bool[Tensor, "input step vocab"], Bool[Tensor, "input step vocab"]]:
    """Tokens of states that a trajectory can be in after each step, and those from which the answer is in reach."""
    graph = [task.children(step, slice(None)) for step in range(task.steps)]
    final = (task.state_ids == task.answer_ids[:, None]).double()
    there = torch.stack(forward_counts(graph, task.states, task.start)[1:], 1) > 0
    leads = torch.stack(backward_counts(graph, final)[1:], 1) > 0
    return tuple(_as_tokens(task, mask) for mask in (there, there & leads))


def _as_tokens(task: TrajectoryGraph, mask: Bool[Tensor, "input step state"]) -> Bool[Tensor, "input step vocab"]:
    tokens = torch.zeros(*mask.shape[:2], task.vocab_size, dtype=torch.bool)
    tokens[:, :, task.state_ids] = mask
    return tokens


def measure(start: GPT2Stack, trained: GPT2Stack, specs: Sequence[GRPOSpec]) -> pd.DataFrame:
    """One row per run, moment and step of runs of one shape.

    Columns: `id`; `when`, "before" or "after"; `step`; `support`, tokens of at least 1 % weight; `reachable` and
    `on_the_way`, the weight (%) on such states; all of them means over held-out inputs.

    Args:
        start, trained: the runs' models before and after, in order.
        specs: the runs.
    """
    parts = [_moment(stack, specs).assign(when=when) for when, stack in (("before", start), ("after", trained))]
    return pd.concat(parts, ignore_index=True)[["id", "when", "step", *COLUMNS]]


@torch.no_grad()
def _moment(stack: GPT2Stack, specs: Sequence[GRPOSpec]) -> pd.DataFrame:
    spec, data = specs[0], stack_data([spec.asked for spec in specs], stack.device)
    reachable, on_the_way = (mask.to(stack.device) for mask in states(spec.task))
    means = torch.zeros(len(specs), spec.outputs, len(COLUMNS), dtype=torch.float64, device=stack.device)
    steps = rules(spec.thought, spec.outputs)
    for index, real, rollout in rollouts(stack, data, [spec.seed for spec in specs], steps):
        weights = rollout.logits.double().softmax(-1)
        held = [weights >= LEAST, PERCENT * weights * reachable[index], PERCENT * weights * on_the_way[index]]
        found = torch.stack([part.sum(-1) for part in held], -1)
        means += (found * real[..., None, None]).sum(1) / data.held_out.real.sum(1)[:, None, None]
    rows = [(spec.id, step) for spec in specs for step in range(1, spec.outputs + 1)]
    return pd.DataFrame(rows, columns=["id", "step"]).join(pd.DataFrame(means.flatten(0, 1).cpu(), columns=COLUMNS))
