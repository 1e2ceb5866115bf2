"""The thoughts of policy-gradient runs, before and after: how many tokens they hold, and how much of it is of use.

A run's own sampler visits step distributions on its held-out inputs; their entropies are also measured under base
decoding. A state that a trajectory can be in after a step is *on the way* if the right answer can still be reached
from it. The paper has entropies alone.
"""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from cot2lib import runs
from cot2lib.decode import rules
from cot2lib.errors import RecordError
from cot2lib.model import GPT2Stack
from cot2lib.specs import GRPOSpec, by_shape
from cot2lib.study import measured
from cot2lib.study.report import PERCENT
from cot2lib.supervision import as_tokens, backward_counts, forward_counts
from cot2lib.tasks import Task
from cot2lib.thoughts import Base, Rule
from cot2lib.training.data import stack_data
from cot2lib.training.evaluation import rollouts

LEAST = 0.01  # weight from which a token counts as held
COLUMNS = ("support", "reachable", "on_the_way", "base_entropy")


def states(task: Task) -> tuple[Bool[Tensor, "input step vocab"], Bool[Tensor, "input step vocab"]]:
    """Tokens of states that a trajectory can be in after each step, and those from which the answer is in reach."""
    graph = [task.children(step, slice(None)) for step in range(task.steps)]
    final = (task.state_ids == task.answer_ids[:, None]).double()
    there = torch.stack(forward_counts(graph, task.states, task.start)[1:], 1) > 0
    leads = torch.stack(backward_counts(graph, final)[1:], 1) > 0
    return tuple(as_tokens(task, mask) for mask in (there, there & leads))


def contents(specs: Sequence[GRPOSpec], retrain: bool = False) -> pd.DataFrame:
    """`measure` of trained runs of one shape; raises RecordError if the weights of one are not here."""
    start = runs.load_stack([spec.start for spec in specs], missing="error")
    return measure(start, runs.load_stack(specs, missing="error", retrain=retrain), specs)


def measure(start: GPT2Stack, trained: GPT2Stack, specs: Sequence[GRPOSpec]) -> pd.DataFrame:
    """One row per run, moment and step of runs of one shape, whose models before and after are given in order.

    Columns: `id`; `when`, "before" or "after"; `step`; `support`, tokens of at least 1 % weight; `reachable` and
    `on_the_way`, the weight (%) on such states; `base_entropy`, nats under base decoding; all of them means over
    held-out inputs.
    """
    parts = [_moment(stack, specs).assign(when=when) for when, stack in (("before", start), ("after", trained))]
    return pd.concat(parts, ignore_index=True)[["id", "when", "step", *COLUMNS]]


@torch.no_grad()
def _moment(stack: GPT2Stack, specs: Sequence[GRPOSpec]) -> pd.DataFrame:
    spec, data = specs[0], stack_data([spec.asked for spec in specs], stack.device)
    outputs = spec.supervision.output_steps(spec.task.steps)
    masks = [mask[:, outputs].to(stack.device) for mask in states(spec.task)]
    seeds, real = [spec.seed for spec in specs], data.held_out.real.sum(1)[:, None, None]

    def means(rule: Rule, measures: Callable) -> Float[Tensor, "run step measure"]:
        """Means over held-out inputs of sums over the vocabulary, under a rule's step distributions."""
        total = 0.0
        for index, counts, rollout in rollouts(stack, data, seeds, rules(rule, spec.outputs)):
            parts = measures(index, rollout.logits.double().softmax(-1))
            found = torch.stack([part.sum(-1) for part in parts], -1).double()  # (run, batch, step, measure)
            total = total + (found * counts[..., None, None]).sum(1) / real
        return total

    held = lambda index, weights: [weights >= LEAST, *(PERCENT * weights * mask[index] for mask in masks)]
    own, base = means(spec.thought, held), means(Base(), lambda index, weights: [torch.special.entr(weights)])
    rows = [(one.id, step + 1) for one in specs for step in outputs]
    columns = pd.DataFrame(torch.cat([own, base], -1).flatten(0, 1).cpu(), columns=COLUMNS)
    return pd.DataFrame(rows, columns=["id", "step"]).join(columns)


def base_entropies(held: pd.DataFrame) -> pd.DataFrame:
    """Entropies (nat) of `measure` under base decoding by `id`: `entropy_t` after training, `entropy_t_before` it."""
    names = "entropy_" + held["step"].astype(str) + held["when"].map({"before": "_before", "after": ""})
    return held.assign(name=names).pivot(index="id", columns="name", values="base_entropy")


def of_runs(requests: Mapping[str, Sequence[GRPOSpec]], retrained: str | None = None) -> pd.DataFrame:
    """`measure` of each profile's runs as far as there are any; those of `retrained` are measured here.

    RecordError if none was measured, or what was trained here is not there.
    """
    tables = []
    for profile, specs in requests.items():
        if profile == retrained:
            tables += [contents(group, retrain=True) for group in by_shape(specs)]
        else:
            table = measured.read("thoughts", profile)
            tables.append(table[table["id"].isin([spec.id for spec in specs])])
    found = pd.concat([table for table in tables if len(table)] or tables)
    if found.empty and (asked := [run for specs in requests.values() for run in specs]):
        raise RecordError(
            f"no measure of what the thoughts of run {asked[0].id} (seed {asked[0].seed}) hold; ask with retrain=True."
        )
    return found
