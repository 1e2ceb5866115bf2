"""The chapter `prontoqa`: its tables, and rules that answer ProntoQA without a search."""

from collections.abc import Sequence

import pandas as pd
from jaxtyping import Bool, Int
from torch import Tensor

from cot2lib import runs
from cot2lib.specs import RunSpec
from cot2lib.study import frame, graphs, show
from cot2lib.study.graph_tests import RENAMED, SEEN, UNSEEN
from cot2lib.study.report import PERCENT
from cot2lib.tasks import ProntoQA
from cot2lib.tasks.prontoqa import HOPS, READINGS, TWINS
from cot2lib.tasks.reachability import token
from cot2lib.tasks.variants import MOVED, NEITHER, Blocked, ancestors, degrees, mean, with_none


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


def reached(tested: pd.DataFrame) -> pd.DataFrame:
    """Strict accuracies (%) by reading, dimension and method, and the last thought's share (%) on its frontier."""
    by = ["reading", "d_model", "method"]
    asked = frame.at(tested, test=[UNSEEN, SEEN, RENAMED])
    table = show.groups(asked, [*by, "test"])["strict"].agg(show.mean_of).unstack()
    thinking = asked[asked["test"] == UNSEEN].dropna(subset=f"frontier_{HOPS}")
    last = show.groups(thinking, by)[f"frontier_{HOPS}"].agg(show.mean_of)
    return show.headed(table.assign(**{"thought on its frontier": last.reindex(table.index)}))


def blocked(tested: pd.DataFrame) -> pd.DataFrame:
    """Strict accuracies (%) on unseen questions, as in training and where rules without a search are blocked."""
    asked = frame.at(tested, reading=READINGS[0], test=[UNSEEN, *MOVED])
    return show.cells(asked, ["d_model", "method"], "test", "strict", show.mean_of)


def concepts(specs: Sequence[RunSpec]) -> pd.DataFrame:
    """The recorded ones of some runs: accuracy (%) at the end, and after half of the steps (`half`).

    Where edges are moved that block no rule: strict accuracy (`moved`), and the last thought's share on its frontier
    (`kept`).
    """
    rows = graphs.described(frame.tidy(runs.recorded(specs)), specs)
    curves = frame.tidy(runs.curves([run for run in specs if run.id in set(rows["id"])]))
    middle = curves[curves["step"] * 2 == curves["steps"]].set_index("id")["accuracy"]
    asked = frame.at(graphs.tested(specs), test=NEITHER).set_index("id")
    found = {"half": middle, "moved": asked["strict"], "kept": asked[f"frontier_{HOPS}"]}
    return rows.assign(**{name: rows["id"].map(values) for name, values in found.items()})


def concepts_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each run of `concepts`."""
    cells = rows.sort_values(["reading", "method", "seed"])
    told = cells.assign(reading=[frame.called("reading", name) for name in cells["reading"]])
    words = {
        "half": "after half of the steps (%)",
        "last": "at the end (%)",
        "moved": "edges moved (%)",
        "kept": "last thought on its frontier then (%)",
    }
    return told[["reading", "method", "seed", *words]].rename(columns=words)
