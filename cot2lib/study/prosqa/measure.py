"""Facts about questions of ProsQA, rules that answer without a search, and a model's thoughts about one."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib import runs
from cot2lib.errors import SpecError
from cot2lib.specs import RunSpec
from cot2lib.study.graph_tests import Test, answered
from cot2lib.study.report import PERCENT
from cot2lib.tasks import ProsQA
from cot2lib.tasks.reachability import Reachability
from cot2lib.tasks.variants import ancestors, degrees, depths, mean, with_none

DEEPER, ANCESTORS = "farther from the nearest source", "more ancestors"  # rules that say more than chance


def guesses(task: ProsQA) -> dict[str, float]:
    """How often (%) rules without a search from the root find the target of two options; ties count half."""
    found = {}
    for name, look in looks(task).items():
        target, other = look.gather(1, task.options).unbind(1)
        found[name] = PERCENT * (mean(target > other) + mean(target == other) / 2)
    return found


def looks(task: ProsQA) -> dict[str, Float[Tensor, "input name"] | Int[Tensor, "input name"]]:
    """By rule a value of every name: of two options the rule takes the one that has more of it."""
    into, out = degrees(task)
    place = torch.arange(task.names).expand(task.size, -1)
    return {
        "fewer parents": -into,
        "younger": torch.zeros_like(into).scatter(1, task.name_of, place),
        "higher name": place,
        "parents with more parents": _of_parents(task, into),
        "parents with fewer children": -_of_parents(task, out),
        DEEPER: depths(task),
        ANCESTORS: ancestors(task),
    }


def _of_parents(task: Reachability, values: Int[Tensor, "input name"]) -> Float[Tensor, "input name"]:
    """Mean of a value over the parents of each name; 0 without any."""
    start, end = task.ends
    wide = with_none(values)
    total = torch.zeros_like(wide).scatter_add(1, end, wide.gather(1, start))[:, :-1]
    return total / degrees(task)[0].clamp(min=1)


def thoughts(spec: RunSpec, task: ProsQA, row: int) -> Float[np.ndarray, "hop state"]:
    """The thoughts of a run after each hop of one question, by names.

    Raises:
        SpecError: for a question that the task does not have.
        RecordError: if the run's weights are neither shipped nor stored.
    """
    if not 0 <= row < task.size:
        raise SpecError(f"question={row}: the test has questions 0..{task.size - 1}.")
    rollout = answered(runs.load(spec, missing="error"), spec, Test("one", task, torch.tensor([row])))
    return rollout.weights[0, 0, :-1, task.state_ids].numpy()
