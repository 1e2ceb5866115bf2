"""The published ProsQA questions (COCONUT's JSON files) as a task.

A file is a list of questions, each with `edges` between node numbers, `idx_to_symbol`, `root`, `target`, `neg_target`
and the `steps` of one shortest way. Node numbers give the order in which a graph grew; with `naming="age"` they become
the names. A file sorts edges by the node that they enter, so that age shows even where names do not. We shuffle them.
"""

import hashlib
import json
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from cot2lib.errors import SpecError, brief
from cot2lib.kit.files import fetched
from cot2lib.tasks.prosqa import SIZES, ProsQA
from cot2lib.tasks.reachability import MOST_HOPS, Graphs

NAMES = 28  # as many nodes as a published graph may have
FIELDS = ("idx_to_symbol", "edges", "steps", "root", "target", "neg_target")
OPTIONS = {"naming", "grammar", "frontier", "seed", "deal", "padding_counts", "waiting"}
ADDRESS = "https://raw.githubusercontent.com/facebookresearch/coconut/main/data/{}"
CHECKSUMS = {"prosqa_valid.json": "c74e0de24f1e90ec48b1a993e6458a7be4caeef3928f5104e3c2e45d689a5249"}


@dataclass(frozen=True)
class PublishedProsQA(ProsQA):
    """Questions of a file, made by `published`; the seed shuffles edges and options.

    The path is no part of a run's id, the checksum of the file is. Raises SpecError for a file that is missing, no
    list of questions, or another one than the checksum says.
    """

    names: int = NAMES
    hops: int | None = None
    path: str = field(default="", compare=False)
    sha256: str = ""
    fewest = 1  # a model may answer them all

    @property
    def name(self) -> str:
        return f"ProsQA, {', '.join([Path(self.path).name, *self.name_suffixes])}"

    @property
    def graphs(self) -> Graphs:
        graphs = _read(self.path, self.sha256, self.seed)
        if len(graphs.hops) != self.inputs:
            raise SpecError(f"inputs={self.inputs}: {self.path} has {len(graphs.hops)} questions; leave it out.")
        return graphs


def published(path: str | Path, **options) -> PublishedProsQA:
    """The task of a file, with some of `OPTIONS`; raises SpecError for others and as `PublishedProsQA`."""
    if others := set(options) - OPTIONS:
        raise SpecError(f"{', '.join(sorted(others))}: a file settles that; leave it out.")
    content = _content(path)
    sha256 = hashlib.sha256(content).hexdigest()
    return PublishedProsQA(path=str(path), sha256=sha256, inputs=len(_questions(path, content)), **options)


def fetch(name: str = "prosqa_valid.json") -> Path:
    """Download a published file into the user's cache and check it; needs the extra `graphs`.

    Raises SpecError for a file without a known checksum, without pooch, or without a connection.
    """
    if name not in CHECKSUMS:
        raise SpecError(f"{name}: checksums are known of {', '.join(CHECKSUMS)}; give the path of another file.")
    return fetched(ADDRESS.format(name), CHECKSUMS[name], "and give its path")


def _content(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise SpecError(
            f"{path} cannot be read ({error.strerror}); give the path of a published ProsQA file, or what "
            "cot2lib.tasks.published.fetch() returns, which downloads one."
        ) from error


def _questions(path: str | Path, content: bytes) -> list[dict]:
    try:
        questions = [{name: question[name] for name in FIELDS} for question in json.loads(content)]
        nodes, edges, steps = (max(len(question[name]) for question in questions) for name in FIELDS[:3])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise SpecError(f"{path} is no published ProsQA file ({brief(error)}); download it again.") from error
    if nodes > SIZES[NAMES].most or edges > SIZES[NAMES].edges or steps > MOST_HOPS:
        raise SpecError(f"{path}: prompts have no room for {nodes} nodes, {edges} edges or {steps} steps.")
    return questions


@lru_cache(maxsize=8)
def _read(path: str, sha256: str, seed: int) -> Graphs:
    content = _content(path)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise SpecError(f"{path} is not the file that this task was made of (sha256 {sha256[:12]}...).")
    questions, rng = _questions(path, content), np.random.default_rng([seed, 3])
    column = lambda name: torch.tensor([question[name] for question in questions])
    edges = torch.full((len(questions), SIZES[NAMES].edges, 2), -1)
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
