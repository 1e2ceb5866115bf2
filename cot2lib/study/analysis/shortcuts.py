"""ProntoQA as the paper reads it, with edges moved so that rules about the concept before the property are of no use.

An edge enters the concept before the chain's end, and three leave it. The concept before the other property has one
edge in all (see `cot2lib.tasks.prontoqa`). Here it gets such edges too. They are taken from the sides of the chain, so
a prompt keeps its length and a question its answer. One entry moves the same edges elsewhere and blocks no rule: it
says what a model loses by moved edges alone. Rules that look further back still answer these questions; the longest of
them is a search from the property. The control of two halves excludes them all.
"""

from dataclasses import dataclass

import torch

from cot2lib.tasks import ProntoQA
from cot2lib.tasks.prontoqa import APART, BESIDE, LEAF, OF_BESIDE
from cot2lib.tasks.reachability import Graphs

Edge = tuple[int, int]  # from a node to a node

ENTERING = {(BESIDE[2], OF_BESIDE[2]): (OF_BESIDE[2], APART)}
LEAVING = {(BESIDE[0], LEAF): (APART, LEAF), (BESIDE[1], OF_BESIDE[1]): (APART, OF_BESIDE[1])}
ASIDE = {
    (BESIDE[0], LEAF): (OF_BESIDE[2], LEAF),
    (BESIDE[1], OF_BESIDE[1]): (LEAF, OF_BESIDE[1]),
    (BESIDE[2], OF_BESIDE[2]): (OF_BESIDE[2], OF_BESIDE[1]),
}

LED_TO, LEADING = "the other concept is led to", "the other concept leads on"
BOTH, NEITHER = "both", "neither, the same edges moved"
MOVED: dict[str, dict[Edge, Edge]] = {LED_TO: ENTERING, LEADING: LEAVING, BOTH: ENTERING | LEAVING, NEITHER: ASIDE}


@dataclass(frozen=True)
class Blocked(ProntoQA):
    """Questions of `ProntoQA` under the paper's reading, with the edges of one entry of `MOVED` replaced.

    Args:
        rule: which entry.
    """

    rule: str = BOTH

    @property
    def graphs(self) -> Graphs:
        graphs = super().graphs
        edges = graphs.edges  # (input, edge, 2)
        for old, new in MOVED[self.rule].items():
            edges = torch.where((edges == torch.tensor(old)).all(-1, keepdim=True), torch.tensor(new), edges)
        return graphs._replace(edges=edges)
