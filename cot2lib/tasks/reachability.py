# mypy: disable-error-code="empty-body"
"""Questions about directed graphs: which of two nodes, or whether one node, is reached from a root.

ProsQA and ProntoQA share this: how nodes get names, how a question is written as tokens, and which states a trajectory
walks. A state is a name. An input asks for one thought for each hop from the root (or as `waiting` says), then for the
answer.

The paper leaves most of this open. Our choices are fields, so that their effect can be measured:

* `naming`: "age" names a node by its place in the order in which the graph grew, as the official files do, so that
  names hint at how deep a node lies. "once" draws names for every graph once, "fresh" draws them anew at every visit.
* `grammar`: "pairs" has one position for an edge: the sum of the embeddings of the node that it leaves and of the node
  that it enters, where the first kind has tokens of its own. "sentences" writes prompts as the paper does, four tokens
  an edge. Outputs are one token a hop in both.
* `frontier`: which walks the targets of the full budget average. "walks": at thought t all walks of t hops from the
  root, also those that end before the last hop; a node weighs as many walks as reach it. "nodes": the same nodes,
  uniformly. "complete": walks of all hops alone, as the paper's equation has it to the letter.
* `waiting`: how many thoughts every question has. A walk that has ended stays where it is. None gives a question as
  many thoughts as it has hops, so that a model also has to notice when to answer.

The paper counts 31 tokens. The words of its grammar leave room for 19 names if both tasks share one vocabulary.
Published graphs have up to 28 nodes.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.frozen import Natural
from cot2lib.kit.random import Site
from cot2lib.tasks.task import Averaged, Rows, Task, needed

SPECIALS = (
    "<PAD>", "<EOS>", "->", "Description", "{", "}", ".", "in", "not in", "or", "Question", "Steps", "Answer", "True",
    "False",
)  # fmt: skip
PAD, EOS, ARROW = range(3)
Naming = Literal["age", "once", "fresh"]
NAMINGS = get_args(Naming)
HELD_OUT = 1000  # graphs that are never trained on, at most a fifth
MOST_HOPS = 6


def token(word: str) -> int:
    """Id of a word that is no name."""
    return SPECIALS.index(word)


class Graphs(NamedTuple):
    """Questions by the numbers of their nodes, in the order in which each graph grew."""

    edges: Int[Tensor, "graph edge 2"]  # from, to; -1 after the last one
    negative: Bool[Tensor, "graph edge"]  # which edges say "not in"
    nodes: Int[Tensor, " graph"]  # number of nodes
    hops: Int[Tensor, " graph"]
    root: Int[Tensor, " graph"]  # where walks start
    options: Int[Tensor, "graph 2"]  # where the discrete chain ends, and another node that a question may ask for


@dataclass(frozen=True)
class Reachability(Task):
    """The base of tasks about graphs.

    `seed` draws the graphs; another `deal` gives the same graphs other names. Prompts differ in their number of
    edges. Positions count from a prompt's first token, so that question and outputs have other positions in every
    prompt; with `padding_counts` they have the same ones.
    """

    naming: Naming = "fresh"
    grammar: Literal["pairs", "sentences"] = "pairs"
    frontier: Averaged = "walks"
    seed: Natural = 0
    deal: Natural = 0
    padding_counts: bool = False
    waiting: int | None = None
    eos_id = EOS
    full_budget = math.inf
    fewest = 10  # questions; some are held out
    question_tokens = 5  # between the braces of the question

    def __post_init__(self):
        super().__post_init__()
        if self.size < self.fewest:
            raise SpecError(f"inputs={self.size}: need at least {self.fewest} questions.")
        if self.waiting is not None and self.waiting < self.most_hops:
            raise SpecError(
                f"waiting={self.waiting}: some questions have {self.most_hops} hops; wait at least as long."
            )

    # What a subclass gives

    @needed
    def inputs(self) -> int: ...  # number of questions
    @needed
    def graphs(self) -> Graphs: ...  # all questions
    @needed
    def names(self) -> int: ...  # how many; no graph has more nodes
    @needed
    def most_hops(self) -> int: ...  # of a question
    @needed
    def most_edges(self) -> int: ...  # of a graph
    @needed
    def roles(self) -> int: ...  # tokens of a name: a node, the start of an edge, the start of a negative edge
    @needed
    def asked(self) -> Int[Tensor, "input asked"]: ...  # what follows the edges in a prompt of pairs, the root last
    @needed
    def asked_in_words(self) -> Int[Tensor, "input asked"]: ...  # between the braces of a question in sentences

    # Sizes

    @property
    def size(self) -> int:
        return self.inputs

    @property
    def train_size(self) -> int:
        return self.size - min(HELD_OUT, self.size // 5)

    @property
    def steps(self) -> int:
        """A thought for each hop, or each of those to wait, and the answer."""
        return (self.most_hops if self.waiting is None else self.waiting) + 1

    @property
    def states(self) -> int:
        return self.names

    @property
    def pairs(self) -> bool:
        return self.grammar == "pairs"

    @property
    def vocab_size(self) -> int:
        return len(SPECIALS) + self.roles * self.names

    @property
    def positions(self) -> int:
        """Longest prompt that the grammar allows, an arrow, the most hops and the answer, and the end token."""
        question = 3 if self.pairs else 8 + self.question_tokens
        return self._edge_tokens * self.most_edges + question + 1 + max(MOST_HOPS, self.steps - 1) + 2

    @property
    def _edge_tokens(self) -> int:
        return 1 if self.pairs else 4

    # Names

    @property
    def state_ids(self) -> Int[Tensor, " state"]:
        return len(SPECIALS) + torch.arange(self.names)

    @property
    def renamed(self) -> Int[Tensor, "role name"] | None:
        return self.tokens_of_names if self.naming == "fresh" else None

    @property
    def tokens_of_names(self) -> Int[Tensor, "role name"]:
        return len(SPECIALS) + torch.arange(self.roles * self.names).view(self.roles, self.names)

    @property
    def tokens(self) -> tuple[str, ...]:
        marks = ("", "from ", "not from ")[: self.roles]
        return (*SPECIALS, *(f"{mark}N{name}" for mark in marks for name in range(self.names)))

    @cached_property
    def name_of(self) -> Int[Tensor, "input node"]:
        if self.naming == "age":
            return torch.arange(self.names).expand(self.size, -1)
        keys = random.fold(random.run_keys([self.seed], Site.NAMES), self.deal) + torch.arange(self.size)
        return random.permutations(random.fold(keys, 0), self.names)

    def named(self, nodes: Int[Tensor, "input ..."]) -> Int[Tensor, "input ..."]:
        """Names of some nodes of each graph; -1 stays."""
        names = self.name_of.gather(1, nodes.flatten(1).clamp(min=0)).view_as(nodes)
        return names.where(nodes >= 0, -1)

    @cached_property
    def edges(self) -> Int[Tensor, "input edge 2"]:
        return self.named(self.graphs.edges)

    @cached_property
    def root(self) -> Int[Tensor, " input"]:
        return self.named(self.graphs.root[:, None])[:, 0]

    @cached_property
    def options(self) -> Int[Tensor, "input 2"]:
        return self.named(self.graphs.options)

    @cached_property
    def ends(self) -> tuple[Int[Tensor, "input edge"], Int[Tensor, "input edge"]]:
        """Names of both ends of each edge; one beyond the last name where there is no edge."""
        there = self.edges.where(self.edges >= 0, self.names)
        return there[..., 0], there[..., 1]

    @property
    def name_suffixes(self) -> list[str]:
        """Words of the name in tables, the naming and each choice that is not the default."""
        waiting = [] if self.waiting is None else [f"{self.waiting} thoughts"]
        grammar = [self.grammar] if not self.pairs else []
        frontier = [self.frontier] if self.frontier != "walks" else []
        return [self.naming, *grammar, *frontier, *["padding counts"] * self.padding_counts, *waiting]

    # Prompts

    @property
    def padding(self) -> Int[Tensor, " input"]:
        return (self.graphs.edges[..., 0] < 0).sum(1) * self._edge_tokens

    def prompt(self, arrow: bool = True, pauses: int = 0) -> Int[Tensor, "input token"]:
        """The edges, then the question, the root last; in sentences as the paper writes it, up to the steps."""
        filled = lambda *words: torch.tensor([token(word) for word in words]).expand(self.size, -1)
        (start, end), negative = self.edges.clamp(min=0).unbind(-1), self.graphs.negative
        if self.pairs:  # an id for each edge: the token of its start in that role, and of its end (`GPT2Stack.embed`)
            tokens, opening = self.tokens_of_names, filled("->")[:, :0]
            edges = self.vocab_size * (1 + tokens[1 + negative.long(), start]) + tokens[0, end]  # (input, edge)
            question = self.asked
        else:  # `A in B .` for each edge
            verb, stop = torch.where(negative, token("not in"), token("in")), torch.full_like(start, token("."))
            edges = torch.stack([self.state_ids[start], verb, self.state_ids[end], stop], -1).flatten(1)
            opening = filled("Description", "{")
            question = torch.cat([filled("}", "Question", "{"), self.asked_in_words, filled("}", "Steps", "{")], 1)
        whole = torch.cat([opening, edges, question, filled("->").repeat(1, int(arrow) + pauses)], 1)
        # empty places of edges, which stand behind the edges, move to the left of all
        places = torch.arange(whole.shape[1])
        source = torch.where(places >= opening.shape[1] + edges.shape[1], places, places - self.padding[:, None])
        return whole.gather(1, source.clamp(min=0)).masked_fill(source < 0, PAD)

    # Walks

    @property
    def start(self) -> Int[Tensor, " input"]:
        return self.root

    @cached_property
    def _edge_rank(self) -> Int[Tensor, "input edge"]:
        """How many edges before this one leave the same node."""
        start = self.edges[..., 0]
        same = (start[:, :, None] == start[:, None, :]) & (start >= 0)[:, None, :]  # (input, edge, other)
        return same.tril(-1).sum(-1)

    def children(self, step: int, rows: Rows = slice(None)) -> Int[Tensor, "input state branch"]:
        """Nodes that the edges of each node enter; a walk stays from the last hop to the answer, or where it waits."""
        (start, end), degree = (part[rows] for part in self.ends), int(self._edge_rank.max()) + 1
        after = torch.full((len(start), (self.names + 1) * degree), -1)
        after.scatter_(1, start * degree + self._edge_rank[rows], end)
        after = after.view(len(start), -1, degree)[:, :-1]  # without where there is no edge
        stay = torch.full_like(after[:1], -1)
        stay[0, :, 0] = torch.arange(self.names)
        if self.waiting is None:
            still = (self.graphs.hops[rows] <= step)[:, None, None]
        else:
            still = (after < 0).all(2, keepdim=True) | (step >= self.waiting)
        return torch.where(still, stay, after)

    @cached_property
    def trajectories(self) -> Int[Tensor, " input"]:
        """Walks of all hops from the root, or of all thoughts where walks wait."""
        walks = torch.zeros(self.size, self.names + 1, dtype=torch.int64)
        walks[torch.arange(self.size), self.root] = 1
        start, end = self.ends
        childless = torch.ones_like(walks, dtype=torch.bool).scatter(1, start, False)
        for step in range(self.steps - 1):
            still = (self.graphs.hops <= step)[:, None] if self.waiting is None else childless
            leaving = walks.masked_fill(still, 0)
            walks = (walks - leaving).scatter_add(1, end, leaving.gather(1, start))
        return walks.sum(1)

    @cached_property
    def score(self) -> Int[Tensor, "input state"]:
        """0 for the node that the walks of the discrete chain end in, else 1."""
        return torch.ones(self.size, self.names, dtype=torch.int64).scatter(1, self.options[:, :1], 0)

    def split(self, seed: int) -> Bool[Tensor, " input"]:
        """All but `HELD_OUT` graphs, drawn by the seed."""
        order = random.permutations(random.run_keys([seed], Site.NAMES), self.size)[0]
        return torch.ones(self.size, dtype=torch.bool).scatter(0, order[self.train_size :], False)
