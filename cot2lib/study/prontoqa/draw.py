"""Tables of the chapter `prontoqa`."""

import pandas as pd

from cot2lib.study import frame, show
from cot2lib.study.graph_facts import MOVED
from cot2lib.study.graph_tests import RENAMED, SEEN, UNSEEN
from cot2lib.tasks.prontoqa import HOPS, READINGS


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
