"""Tables of the chapter `prontoqa`."""

from collections.abc import Sequence

import pandas as pd

from cot2lib import runs
from cot2lib.specs import RunSpec
from cot2lib.study import frame, graphs, show
from cot2lib.study.graph_tests import RENAMED, SEEN, UNSEEN
from cot2lib.tasks.prontoqa import HOPS, READINGS
from cot2lib.tasks.variants import MOVED, NEITHER


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
