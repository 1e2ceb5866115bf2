"""Entropies of the thoughts of policy-gradient runs under base decoding, before and after; the paper prints them.

The shipped tables hold three more columns on what thoughts of the own sampler hold, which no page reads.
"""

from collections.abc import Mapping, Sequence

import pandas as pd
import torch

from cot2lib import runs
from cot2lib.decode import rules
from cot2lib.errors import RecordError
from cot2lib.model import GPT2Stack
from cot2lib.specs import GRPOSpec, by_shape
from cot2lib.study import measured
from cot2lib.thoughts import Base
from cot2lib.training.data import stack_data
from cot2lib.training.evaluation import rollouts


def contents(specs: Sequence[GRPOSpec], retrain: bool = False) -> pd.DataFrame:
    """`measure` of trained runs of one shape; raises RecordError if the weights of one are not here."""
    start = runs.load_stack([spec.start for spec in specs], missing="error")
    return measure(start, runs.load_stack(specs, missing="error", retrain=retrain), specs)


def measure(start: GPT2Stack, trained: GPT2Stack, specs: Sequence[GRPOSpec]) -> pd.DataFrame:
    """One row per run, moment and step of runs of one shape, whose models before and after are given in order.

    Columns: `id`; `when`, "before" or "after"; `step`; `base_entropy`, nats under base decoding, a mean over held-out
    inputs.
    """
    parts = [_moment(stack, specs).assign(when=when) for when, stack in (("before", start), ("after", trained))]
    return pd.concat(parts, ignore_index=True)[["id", "when", "step", "base_entropy"]]


@torch.no_grad()
def _moment(stack: GPT2Stack, specs: Sequence[GRPOSpec]) -> pd.DataFrame:
    spec, data = specs[0], stack_data([spec.asked for spec in specs], stack.device)
    outputs = spec.supervision.output_steps(spec.task.steps)
    seeds, real, total = [spec.seed for spec in specs], data.held_out.real.sum(1)[:, None], torch.zeros(())
    for _, counts, rollout in rollouts(stack, data, seeds, rules(Base(), spec.outputs)):
        entropies = torch.special.entr(rollout.logits.double().softmax(-1)).sum(-1)  # (run, batch, step)
        total = total + (entropies * counts[..., None]).sum(1) / real
    rows = [(one.id, step + 1) for one in specs for step in outputs]
    return pd.DataFrame(rows, columns=["id", "step"]).assign(base_entropy=total.flatten().cpu().numpy())


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
            f"no entropies of thoughts of run {asked[0].id} (seed {asked[0].seed}); ask with retrain=True."
        )
    return found
