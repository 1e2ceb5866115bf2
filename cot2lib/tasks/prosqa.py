"""ProsQA: which one of two nodes without a way on is reached from the root?

Graphs grow as COCONUT's appendix describes: nodes come one by one, each chooses parents among the nodes before it,
deeper ones more likely, and mostly such that it stays a descendant of one root alone. The question names one of two
roots, a leaf that this root reaches and the other root does not (the target), and a leaf for which it is the reverse.

Where we differ from the published data: both leaves have equally many parents and depths that differ by at most one,
edges come in random order, and options in either order, so that the leaves' degrees do not give the answer away. Depth
still gives it away in part, because the target is more often the deeper leaf (`cot2 measure questions` tests models
where both are equally deep). The published graphs have 3 to 6 hops. We take four by default, their commonest number;
`hops=None` gives the whole range, and a `mixture` sets the share of every number of hops, beyond six too. A new node
that drew no parent draws again in nine of ten cases, so that sources are about as many as in the published graphs.
"""

import hashlib
import json
import math
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from cot2lib.errors import SpecError, brief
from cot2lib.kit.files import fetched
from cot2lib.tasks.reachability import MOST_HOPS, Graphs, Reachability, token


class Size(NamedTuple):
    """Nodes that a graph may have, and its most edges."""

    least: int
    most: int
    edges: int


SIZES = {19: Size(13, 19, 32), 28: Size(18, 28, 54), 60: Size(40, 60, 120)}  # by the number of names
AT_ONCE = 4096  # graphs that grow together
EMPTY_BATCHES = 8  # batches that may give fewer questions than one each
FEWEST_HOPS = 3
USUAL_HOPS = 4  # up to here graphs of a mixture grow as all others do
PARENTS = 1.5  # mean of the Poisson law of a node's parents, before a node without any draws again
REDRAWN = 0.9  # share of nodes without parents that draw again
NEAR = 0.35  # the share of new nodes that keep to descendants of one root; as many keep to the other's
UNREACHED = 99  # hops to a node that is not reached; more than any graph has


@dataclass(frozen=True)
class ProsQA(Reachability):
    """The task with `names` names.

    Args:
        inputs: number of graphs, the held-out ones included.
        names: 19, which the paper's vocabulary can hold, 28 as in the published graphs, or 60.
        hops: of the shortest way to the target; None for 3 to 6, or for a mixture.
        mixture: share of questions of 3, 4, ... hops; () leaves it to the graphs. Above four hops its graphs grow
            longer chains, because deep nodes are chosen as parents more often.
        naming, grammar, frontier, seed, waiting: see `cot2lib.tasks.reachability`.
    """

    inputs: int = 18_886
    names: int = 19
    hops: int | None = 4
    mixture: tuple[float, ...] = ()
    roles = 2

    def __post_init__(self):
        super().__post_init__()
        if self.names not in SIZES:
            raise SpecError(f"names={self.names}: choose {', '.join(map(str, SIZES))}.")
        if self.hops is not None and not FEWEST_HOPS <= self.hops <= MOST_HOPS:
            raise SpecError(f"hops={self.hops}: choose {FEWEST_HOPS} to {MOST_HOPS}, or None for all of them.")
        if self.mixture and (self.hops is not None or min(self.mixture) < 0 or not math.isclose(sum(self.mixture), 1)):
            raise SpecError(f"mixture={self.mixture}, hops={self.hops}: give shares that add up to 1, and hops=None.")

    @property
    def name(self) -> str:
        hops = f"{FEWEST_HOPS}-{self.most_hops}" if self.hops is None else self.hops
        shares = [f"shares {'/'.join(f'{share:g}' for share in self.mixture)}"] if self.mixture else []
        more = [f"{self.inputs} graphs"] if self.inputs != ProsQA.inputs else []
        return f"ProsQA, {', '.join([f'{self.names} names', f'{hops} hops', *shares, *self.name_suffixes, *more])}"

    @property
    def most_hops(self) -> int:
        return FEWEST_HOPS - 1 + len(self.mixture) if self.mixture else self.hops or MOST_HOPS

    @property
    def lengths(self) -> Int[Tensor, " input"] | None:
        """Number of outputs of each graph, its hops and the answer; None where all have the same."""
        return None if self.hops or self.waiting is not None else self.graphs.hops + 1

    @property
    def graphs(self) -> Graphs:
        return grown(self.inputs, self.names, self.hops, self.mixture, self.seed)

    @property
    def most_edges(self) -> int:
        return SIZES[self.names].edges

    @property
    def answer_ids(self) -> Int[Tensor, " input"]:
        return self.state_ids[self.options[:, 0]]

    @property
    def _shown(self) -> Int[Tensor, "input 2"]:
        turned = torch.from_numpy(np.random.default_rng([self.seed, 1]).random(self.size) < 0.5)
        return torch.where(turned[:, None], self.options.flip(1), self.options) + self.state_ids[0]

    @property
    def asked(self) -> Int[Tensor, "input 3"]:
        return torch.cat([self._shown, self.state_ids[self.root][:, None]], 1)

    @property
    def reads(self) -> Bool[Tensor, "step token"] | None:
        """Edges for each hop, root for the first, options for the answer; None in sentences or if lengths differ."""
        if self.lengths is not None or not self.pairs:
            return None
        edges = self.graphs.edges.shape[1]  # which the two options and the root follow
        needed = torch.zeros(self.steps, edges + 3, dtype=torch.bool)
        needed[:-1, :edges] = True
        needed[0, edges + 2] = True
        needed[-1, edges : edges + 2] = True
        return needed

    @property
    def asked_in_words(self) -> Int[Tensor, "input 5"]:
        """`C in F or E`."""
        one, other = self._shown.unbind(1)
        word = lambda text: torch.full_like(one, token(text))
        return torch.stack([self.state_ids[self.root], word("in"), one, word("or"), other], 1)


class Forest(NamedTuple):
    """Graphs as they grow."""

    adjacency: Bool[np.ndarray, "graph from to"]
    depth: Int[np.ndarray, "graph node"]  # hops from the nearest source
    away: Int[np.ndarray, "graph root node"]  # hops from either root; `UNREACHED` where there is no way


@lru_cache(maxsize=8)
def grown(inputs: int, names: int, hops: int | None, mixture: tuple[float, ...], seed: int) -> Graphs:
    """Graphs with a question that degrees do not answer, the same for the same arguments; a mixture is shuffled."""
    if not mixture:
        return Graphs(*map(torch.from_numpy, _found(inputs, names, hops, np.random.default_rng([seed, 0]))))
    rng = np.random.default_rng([seed, 4])
    counts = np.diff(np.round(inputs * np.cumsum([0.0, *mixture]))).astype(int).tolist()
    parts = [
        _found(count, names, hops, rng, depth_power=max(1, hops - USUAL_HOPS + 1))
        for hops, count in enumerate(counts, FEWEST_HOPS)
        if count
    ]
    order = rng.permutation(inputs)
    return Graphs(*(torch.from_numpy(np.concatenate(field)[order]) for field in zip(*parts)))


def _found(
    inputs: int, names: int, hops: int | None, rng: np.random.Generator, depth_power: int = 1
) -> list[np.ndarray]:
    size, count = SIZES[names], 0
    found: list[tuple[np.ndarray, ...]] = []
    while count < inputs:
        if len(found) >= EMPTY_BATCHES and count < len(found):
            raise SpecError(
                f"{count} of {len(found) * AT_ONCE} graphs of {names} names have a question of {hops} hops; choose "
                "fewer hops or more names."
            )
        nodes = rng.integers(size.least, size.most + 1, AT_ONCE)
        forest = grow(rng, nodes, names, depth_power)
        found.append(_asked(rng, forest, nodes, hops, size.edges))
        count += len(found[-1][0])
    return [np.concatenate(part)[:inputs] for part in zip(*found)]


def grow(rng: np.random.Generator, nodes: np.ndarray, names: int, depth_power: int) -> Forest:
    """Graphs with the given numbers of nodes, of which 0 and 1 are the roots; parents weigh by a power of depth."""
    count, rows = len(nodes), np.arange(len(nodes))
    adjacency = np.zeros((count, names, names), bool)
    depth, away = np.zeros((count, names), int), np.full((count, 2, names), UNREACHED, np.int8)
    away[:, 0, 0] = away[:, 1, 1] = 0
    # numbers of parents 0..names - 1: Poisson's, but zero is drawn again with chance `REDRAWN`
    likely = np.array([PARENTS**k / math.factorial(k) for k in range(names)])
    likely[0] *= 1 - REDRAWN
    chances, weight = np.cumsum(likely / likely.sum()), depth_power * np.log1p(1.5 * np.arange(names))
    for new in range(2, names):
        reached = away[:, :, :new] < UNREACHED  # (graph, root, node)
        draw, wanted = rng.random(count), np.searchsorted(chances, rng.random(count))
        excluded = np.select([draw <= NEAR, draw <= 2 * NEAR], [1, 0], 2)  # root whose descendants are no parents
        free = np.where((excluded == 2)[:, None], True, ~reached[rows, np.minimum(excluded, 1)])
        keys = weight[depth[:, :new]] - np.log(-np.log(rng.random((count, new))))
        keys = np.where(free, keys, -np.inf)
        best = np.argsort(-keys, axis=1)
        chosen = np.zeros((count, new), bool)
        np.put_along_axis(chosen, best, np.arange(new) < wanted[:, None], 1)
        chosen &= free & (nodes > new)[:, None]
        adjacency[:, :new, new] = chosen
        nearest = np.where(chosen, depth[:, :new], UNREACHED).min(1)
        depth[:, new] = np.where(nearest < UNREACHED, nearest + 1, 0)
        away[:, :, new] = np.minimum(np.where(chosen[:, None], away[:, :, :new], UNREACHED).min(2) + 1, UNREACHED)
    return Forest(adjacency, depth, away)


def _asked(rng: np.random.Generator, forest: Forest, nodes: np.ndarray, hops: int | None, most_edges: int) -> tuple:
    """The fields of `Graphs` for the graphs with a fair question; it asks for the deepest target."""
    count, names = len(nodes), forest.depth.shape[1]
    rows = np.arange(count)
    root = rng.integers(0, 2, count)
    uniforms, shuffle = rng.random((2, count, names * names))
    mine, theirs = forest.away[rows, root].astype(int), forest.away[rows, 1 - root].astype(int)  # (graph, node)
    leaf = ~forest.adjacency.any(2) & (np.arange(names) < nodes[:, None])
    wanted = (mine == hops) if hops else (mine >= FEWEST_HOPS) & (mine <= MOST_HOPS)
    target, other = leaf & wanted & (theirs == UNREACHED), leaf & (theirs < UNREACHED) & (mine == UNREACHED)
    few = forest.adjacency.sum((1, 2)) <= most_edges
    able = np.flatnonzero(target.any(1) & other.any(1) & few)
    near, far = mine[able], theirs[able]
    degree = forest.adjacency[able].sum(1)  # of entering edges
    fair = (degree[:, :, None] == degree[:, None]) & (abs(near[:, :, None] - far[:, None]) <= 1)
    pairs = (target[able][:, :, None] & other[able][:, None] & fair).reshape(len(able), -1)  # target * names + other
    deepest = np.where(pairs, uniforms[able] + np.repeat(near, names, axis=1), -1)  # uniforms choose among several
    kept, chosen = able[pairs.any(1)], deepest.argmax(1)[pairs.any(1)]
    options = np.stack(np.divmod(chosen, names), 1)
    flat = forest.adjacency[kept].reshape(-1, names * names)
    order = np.argsort(np.where(flat, shuffle[kept], 2.0), axis=1)[:, :most_edges]  # -1 after the last edge
    there = np.take_along_axis(flat, order, 1)[..., None]
    edges = np.where(there, np.stack(np.divmod(order, names), 2), -1)  # (graph, edge, 2)
    return edges, np.zeros(edges.shape[:2], bool), nodes[kept], mine[kept, options[:, 0]], root[kept], options


# Published questions

FIELDS = ("idx_to_symbol", "edges", "steps", "root", "target", "neg_target")
ADDRESS = "https://raw.githubusercontent.com/facebookresearch/coconut/main/data/prosqa_valid.json"
CHECKSUM = "c74e0de24f1e90ec48b1a993e6458a7be4caeef3928f5104e3c2e45d689a5249"


@dataclass(frozen=True)
class PublishedProsQA(ProsQA):
    """Published questions, of one of COCONUT's JSON files (`published`).

    A file is a list of questions, each with `edges` between node numbers, `idx_to_symbol`, `root`, `target`,
    `neg_target` and the `steps` of one shortest way. Node numbers give the order in which a graph grew; with
    `naming="age"` they become the names. A file sorts edges by the node that they enter, so that age shows even where
    names do not; here the seed shuffles edges and options. The path is no part of a run's id, the checksum of the file
    is. Raises SpecError for a file that is missing, no list of questions, or another one than the checksum says.
    """

    names: int = 28
    hops: int | None = None
    path: str = field(default="", compare=False)
    sha256: str = ""
    fewest = 1  # a model may answer them all

    @property
    def name(self) -> str:
        return f"ProsQA, {', '.join([Path(self.path).name, *self.name_suffixes])}"

    @property
    def graphs(self) -> Graphs:
        return _read(self.path, self.sha256, self.seed)


def published(path: str | Path, **options) -> PublishedProsQA:
    """The task of a file; options are fields of `Reachability`. Raises the errors of `PublishedProsQA`."""
    questions, sha256 = _questions(path)
    return PublishedProsQA(path=str(path), sha256=sha256, inputs=len(questions), **options)


def fetch() -> Path:
    """Download the published validation file into the user's cache and check it; needs the extra `graphs`."""
    return fetched(ADDRESS, CHECKSUM, "and give its path")


def _questions(path: str | Path) -> tuple[list[dict], str]:
    """The questions of a file, and its checksum."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise SpecError(
            f"{path} cannot be read ({error.strerror}); give the path of a published ProsQA file, or what "
            "cot2lib.tasks.prosqa.fetch() returns, which downloads one."
        ) from error
    try:
        questions = [{name: question[name] for name in FIELDS} for question in json.loads(content)]
        nodes, edges, steps = (max(len(question[name]) for question in questions) for name in FIELDS[:3])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise SpecError(f"{path} is no published ProsQA file ({brief(error)}); download it again.") from error
    if nodes > SIZES[28].most or edges > SIZES[28].edges or steps > MOST_HOPS:
        raise SpecError(f"{path}: prompts have no room for {nodes} nodes, {edges} edges or {steps} steps.")
    return questions, hashlib.sha256(content).hexdigest()


@lru_cache(maxsize=8)
def _read(path: str, sha256: str, seed: int) -> Graphs:
    (questions, found), rng = _questions(path), np.random.default_rng([seed, 3])
    if found != sha256:
        raise SpecError(
            f"{path} is not the file that this task was made of (sha256 {sha256[:12]}...); give that file."
        )
    column = lambda name: torch.tensor([question[name] for question in questions])
    edges = torch.full((len(questions), SIZES[28].edges, 2), -1)
    for row, question in enumerate(questions):
        shuffled = rng.permutation(np.array(question["edges"]))
        edges[row, : len(shuffled)] = torch.from_numpy(shuffled)
    return Graphs(
        edges=edges,
        negative=torch.zeros(edges.shape[:2], dtype=torch.bool),
        nodes=torch.tensor([len(question["idx_to_symbol"]) for question in questions]),
        hops=torch.tensor([len(question["steps"]) for question in questions]),
        root=column("root"),
        options=torch.stack([column("target"), column("neg_target")], 1),
    )
