"""How often language models that never thought in continuous tokens are right when they do.

Each model answers stories with its greedy tokens, with sampled ones, and after a few thoughts: the whole distribution
(the base rule) or the mean of K samples of it (MTS). Greedy tokens follow a thought, so only thoughts are random.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from jaxtyping import Bool
from torch import Tensor, nn

from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.llm import answers, policy, runs
from cot2lib.llm.policy import PolicyRecipe, greedy
from cot2lib.llm.responses import Plan
from cot2lib.llm.settings import SMALL, SMOLLM2, LanguageRun, WarmStart
from cot2lib.metrics import pass_at_k
from cot2lib.runs import records
from cot2lib.study.word_problems import small
from cot2lib.thoughts import MTS, Base, Discrete

LIMIT = 40  # discrete tokens of an answer
THOUGHTS = 4
KS = (1, 3, 6, 12)
TEMPERATURES = (0.4, 1.0)
SAMPLES = 4  # responses to a problem, where anything is drawn
PROBLEMS = {SMALL: 300, SMOLLM2: 100}
SUMS = {SMALL: (2, 4, 6), SMOLLM2: (1, 2)}


@dataclass(frozen=True)
class Decoding:
    """One way to respond.

    Attributes:
        name: how tables call it.
        plan: what responses are made of.
        samples: responses to a problem.
    """

    name: str
    plan: Plan
    samples: int


def decodings(ends: tuple[int, ...]) -> Iterator[Decoding]:
    """All ways of the table, for a model whose responses end with one of `ends`."""
    yield Decoding("greedy tokens", greedy(Base(), 0, LIMIT, ends), 1)
    for heat in TEMPERATURES:
        yield Decoding(f"tokens, T = {heat:g}", Plan(Base(), 0, LIMIT, Discrete(heat), ends), SAMPLES)
    yield Decoding("base", greedy(Base(), THOUGHTS, LIMIT, ends), 1)
    for k in KS:
        yield Decoding(f"MTS, K = {k}", greedy(MTS(k), THOUGHTS, LIMIT, ends), SAMPLES)


def measure(profile: str) -> pd.DataFrame:
    """A row for each model, number of sums and decoding; accuracies in shares, by both parsers.

    Raises:
        SpecError: for a profile without such models, or if a package is missing.
    """
    start = small()[0].start
    rows = []
    for name in PROBLEMS:
        run = LanguageRun(PolicyRecipe(1, 1, 2, 1e-4, LIMIT), start, model=name, held_out=PROBLEMS[name])
        model, tokenizer = runs.loaded(run)
        for sums in SUMS[name]:
            rows += [{"model": name, "sums": sums} | row for row in _rows(run, model, tokenizer, sums)]
    return pd.DataFrame(rows)
