"""ProntoQA: does a chain of concepts lead from an entity to a property?

All questions that we drew from the published generator at five hops have one shape: an entity with two facts, five
concepts in a chain, a property at its end, and further concepts and properties that lead off the chain. One
more concept, which nothing leads to, has an edge to the property in question. Names, the order of edges and signs are
all that differs, so the shape is written down here: 26 nodes and 25 edges (24 unless the reading is "sign").

The paper's text and the published task differ in the question. Both readings are here, and a control of our own:

* `reading="reachable"`: whether the property is reached, as the paper says. In the published graphs it always is. Here
  the concept that nothing leads to has a property of its own, which half of the questions name. No edge is negative.
* `reading="sign"`: the published task. The property is always reached, the edges to it from the chain and from the
  other concept have opposite signs, and the answer says whether the chain's edge has the sign of the question.
* `reading="twins"`: as the first reading, on two halves of the same shape, each with a chain of its own. The question
  names the end of either. Nothing but the way from the entity tells one end from the other. The other readings need no
  chain: under "reachable" it is enough to see whether an edge enters the concept before the property, under "sign" to
  take the sign of the edge from the concept that an edge enters.

Where the answer is "no", under the first and third reading, the discrete chain of thought ends in the property that
the entity's chain leads to. Names by age would give the answer away, so they are drawn once or fresh.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.tasks.reachability import Graphs, Reachability, token

READINGS = ("reachable", "sign")
TWINS = "twins"  # our control
HOPS = 6  # edges from the entity to the property
NEGATIVE = 0.31  # of edges to properties: with the two last ones 4.1 of 12, as published

# Nodes: the entity, the chain (its end is the property), further concepts and properties, and what is apart.
ENTITY, CHAIN, END = 0, (1, 2, 3, 4, 5), 6
BESIDE = (7, 8, 9, 10, 11, 12)  # a sibling of each node of the chain, and of its end
OF_CHAIN, OF_BESIDE = (13, 14, 15, 16), (17, 18, 19, 20, 21)  # properties
LEAF, LAST, APART, OTHER = 22, 23, 24, 25

CONCEPTS = [
    (ENTITY, CHAIN[0]), (ENTITY, BESIDE[0]), *pairwise(CHAIN), *zip(CHAIN, BESIDE[1:]), (CHAIN[4], LAST),
    (BESIDE[0], LEAF),
]  # fmt: skip
PROPERTIES = [*zip(CHAIN, OF_CHAIN), *zip(BESIDE, OF_BESIDE)]

# A half of the control: each node of a chain leads to the next one and to a sibling of it.
HALF = [*pairwise((ENTITY, *CHAIN, END)), *zip((ENTITY, *CHAIN), BESIDE)]
HALF_NODES = 13


class Questions(NamedTuple):
    """Graphs, whose first option is the end of the chain, and what is asked about them."""

    graphs: Graphs
    yes: Bool[Tensor, " input"]  # whether the answer is True
    negated: Bool[Tensor, " input"]  # whether the question says "not in"


@dataclass(frozen=True)
class ProntoQA(Reachability):
    """The task at six hops, which the generator calls five.

    Args:
        inputs: number of questions, the held-out ones included.
        reading: "reachable", "sign" or "twins" (`cot2lib.tasks.prontoqa`).
        naming, grammar, frontier, seed: see `cot2lib.tasks.reachability`.
    """

    inputs: int = 10_000
    reading: Literal["reachable", "sign", "twins"] = "reachable"
    names, most_hops = 26, HOPS
    most_edges = len(CONCEPTS) + len(PROPERTIES) + 3
    question_tokens = 4

    def __post_init__(self):
        super().__post_init__()
        if self.naming == "age":
            raise SpecError("naming='age': all questions of ProntoQA have one shape; choose 'once' or 'fresh'.")

    @property
    def name(self) -> str:
        return f"ProntoQA, {', '.join([self.reading, *self.name_suffixes])}"

    @property
    def roles(self) -> int:
        return 3 if self.reading == "sign" else 2

    @property
    def _questions(self) -> Questions:
        return _questions(self.inputs, self.reading, self.seed)

    @property
    def graphs(self) -> Graphs:
        return self._questions.graphs

    @property
    def answer_ids(self) -> Int[Tensor, " input"]:
        return torch.where(self._questions.yes, token("True"), token("False"))

    @property
    def asked(self) -> Int[Tensor, "input 3"]:
        """The property, the chain's end or what is apart (under `sign` always the end), the verb, and the entity."""
        other = (~self._questions.yes & (self.reading != "sign")).long()[:, None]
        verb = torch.where(self._questions.negated, token("not in"), token("in"))
        return torch.stack([self.state_ids[self.options.gather(1, other)[:, 0]], verb, self.state_ids[self.root]], 1)

    @property
    def asked_in_words(self) -> Int[Tensor, "input 4"]:
        """`C in F .`, or `C not in F .`."""
        return torch.cat([self.asked.flip(1), torch.full((self.size, 1), token("."))], 1)


@lru_cache(maxsize=8)
def _questions(inputs: int, reading: str, seed: int) -> Questions:
    rng = np.random.default_rng([seed, 2])
    sign, yes = reading == "sign", rng.permutation(inputs) % 2 == 0
    shape, other = _shape(reading)
    edges, negative = np.repeat(np.array(shape)[None], inputs, 0), np.zeros((inputs, len(shape)), bool)
    if sign:
        negative[:, len(CONCEPTS) :] = rng.random((inputs, len(shape) - len(CONCEPTS))) < NEGATIVE
        negative[:, -1] = ~negative[:, -2]
    negated = (negative[:, -2] == yes) if sign else np.zeros(inputs, bool)
    order = rng.random(negative.shape).argsort(1)
    full = lambda value: torch.full((inputs,), value)
    graphs = Graphs(
        edges=torch.from_numpy(np.take_along_axis(edges, order[..., None], 1)),
        negative=torch.from_numpy(np.take_along_axis(negative, order, 1)),
        nodes=full(OTHER + 1),
        hops=full(HOPS),
        root=full(ENTITY),
        options=torch.stack([full(END), full(other)], 1),
    )
    return Questions(graphs, torch.from_numpy(yes), torch.from_numpy(negated))


def _shape(reading: str) -> tuple[list[tuple[int, int]], int]:
    if reading == TWINS:
        twin = [(start + HALF_NODES, end + HALF_NODES) for start, end in HALF]
        return [*HALF, *twin], END + HALF_NODES
    sign = reading == "sign"
    asked = [*[(LAST, OTHER)] * sign, (CHAIN[-1], END), (APART, END if sign else OTHER)]
    return [*CONCEPTS, *PROPERTIES, *asked], OTHER
