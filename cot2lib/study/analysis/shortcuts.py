"""ProntoQA as the paper reads it, with edges moved so that rules without a search no longer answer it.

Two such rules tell the concept before the chain's end from the one before the other property: an edge enters it, and
it leads elsewhere too (see `cot2lib.tasks.prontoqa`). Here the other concept gets such edges as well. They are taken
from elsewhere in the graph, so a prompt keeps its length and a question its answer. One entry blocks neither rule: it
says what a model loses by a moved edge alone.
"""

from dataclasses import dataclass

import torch

from cot2lib.tasks import ProntoQA
from cot2lib.tasks.prontoqa import APART, BESIDE, CHAIN, LAST, LEAF, OF_BESIDE
from cot2lib.tasks.reachability import Graphs

Edge = tuple[int, int]  # from a node to a node

LED_TO, LEADING = "the other concept is led to", "the other concept leads on"
BOTH, NEITHER = "both", "neither, another edge moved"
MOVED: dict[str, dict[Edge, Edge]] = {
    LED_TO: {(BESIDE[0], LEAF): (LEAF, APART)},
    LEADING: {(BESIDE[0], LEAF): (APART, LEAF)},
    BOTH: {(BESIDE[0], LEAF): (LEAF, APART), (BESIDE[1], OF_BESIDE[1]): (APART, OF_BESIDE[1])},
    NEITHER: {(CHAIN[4], LAST): (LEAF, LAST)},
}


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
