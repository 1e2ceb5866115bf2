"""Targets of other definitions, and how far they are from those of all walks."""

from pathlib import Path

import pandas as pd

from cot2lib import supervision
from cot2lib.study.graph_facts import INPUTS, mean
from cot2lib.tasks import ProntoQA, ProsQA
from cot2lib.tasks.published import published
from cot2lib.tasks.task import FRONTIERS


def frontier_distances(path: Path) -> pd.DataFrame:
    """Mean total variation between targets of each definition and those of "walks", hop by hop."""
    tasks = {
        "ProsQA, published": lambda frontier: published(path, frontier=frontier),
        "ProsQA, 19 names": lambda frontier: ProsQA(inputs=INPUTS, frontier=frontier),
        "ProntoQA": lambda frontier: ProntoQA(inputs=INPUTS, frontier=frontier),
    }
    return pd.DataFrame([row for name, make in tasks.items() for row in _distances(name, make)])


def _distances(name: str, make) -> list[dict]:
    main = make("walks")
    hops, targets = main.graphs.hops, supervision.hindsight_targets(main)
    rows = []
    for frontier in FRONTIERS[1:]:
        apart = (supervision.hindsight_targets(make(frontier)) - targets).abs().sum(-1) / 2  # (input, step)
        means = {f"hop {t}": mean(apart[hops >= t, t - 1]) for t in range(1, int(hops.max()) + 1)}
        rows.append({"task": name, "targets": frontier, **means})
    return rows
