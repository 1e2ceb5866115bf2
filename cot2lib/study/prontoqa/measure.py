"""Rules that answer ProntoQA without a search."""

import pandas as pd
from jaxtyping import Bool, Int
from torch import Tensor

from cot2lib.study.report import PERCENT
from cot2lib.tasks import ProntoQA
from cot2lib.tasks.prontoqa import READINGS, TWINS
from cot2lib.tasks.reachability import token
from cot2lib.tasks.variants import MOVED, Blocked, ancestors, degrees, mean, with_none


def shortcuts_table() -> pd.DataFrame:
    """A row for each of the `shortcuts`, a column for each reading, for the control, and where edges are moved."""
    tasks = {reading: ProntoQA(reading=reading, naming="once") for reading in (*READINGS, TWINS)}
    tasks |= {rule: Blocked(naming="once", rule=rule) for rule in MOVED}
    table = pd.DataFrame({name: shortcuts(task) for name, task in tasks.items()})
    return table.rename_axis("the answer is yes if").reset_index()


def shortcuts(task: ProntoQA) -> dict[str, float]:
    """How often (%) rules without a search answer ProntoQA.

    All but the first look at the concepts before the property that is asked for. Where one of them is as the rule
    says, the answer is yes; under the sign reading, it is whether the sign of its edge is the question's.
    """
    into, out = degrees(task)
    start, end = task.ends
    asked = end == task.asked[:, :1] - task.state_ids[0]  # (input, edge)
    no = task.asked[:, 1] == token("not in")
    stands = (task.graphs.negative == no[:, None]) & asked if task.reading == "sign" else asked

    def has(counts: Int[Tensor, "input name"], least: int) -> Bool[Tensor, " input"]:
        return (stands & (with_none(counts).gather(1, start) >= least)).any(1)

    yes = {
        "the question says in": ~no,
        "something leads to the concept before the property": has(into, 1),
        "the concept before the property leads elsewhere too": has(out, 2),
        "it leads to two others or more": has(out, 3),
        "it has two ancestors or more": has(ancestors(task), 2),
    }
    return {name: PERCENT * mean(said == (task.answer_ids == token("True"))) for name, said in yes.items()}
