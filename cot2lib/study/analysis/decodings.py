"""How often language models that never thought in continuous tokens are right when they do.

Each model answers stories with its greedy tokens, with sampled ones, and after a few thoughts: the whole distribution
(the base rule) or the mean of K samples of it (MTS). Greedy tokens follow a thought, so only thoughts are random.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from torch import nn

from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.llm import answers, policy, runs
from cot2lib.llm.policy import Asked, PolicyRecipe, greedy
from cot2lib.llm.responses import Plan
from cot2lib.llm.settings import SMALL, SMOLLM2, LanguageRun
from cot2lib.llm.stories import stories
from cot2lib.metrics import pass_at_k
from cot2lib.runs import records
from cot2lib.study.word_problems import small
from cot2lib.thoughts import MTS, Base, Discrete

LIMIT = 40  # discrete tokens of an answer
THOUGHTS = 4
KS = (1, 3, 6, 12)
TEMPERATURES = (0.4, 1.0)
SAMPLES = 4  # responses to a problem, where anything is drawn
PROBLEMS = {SMALL: 300, SMOLLM2: 64}
SHOTS = {SMALL: 0, SMOLLM2: 4}
SUMS = {SMALL: (2, 4, 6), SMOLLM2: (1, 2)}
SEED = 42  # of all draws
ANY = PolicyRecipe(1, 1, 2, 1e-4, LIMIT)  # a run needs one; nothing is trained
COLUMNS = ["model", "sums", "decoding", "samples", "problems", "accuracy", "passed", "verified", "length", "cut"]


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
    """A row for each model, number of sums and decoding: shares of right answers, by both parsers, and lengths.

    Raises:
        SpecError: for the paper profile, or if a package is missing.
        RecordError: if the small model's warm start is damaged.
    """
    if profile != "quick":
        raise SpecError(f"decodings under {profile!r}: the paper has none of models as they are; choose 'quick'.")
    rows = []
    for name, held_out in PROBLEMS.items():
        run = LanguageRun(ANY, small()[0].start, model=name, shots=SHOTS[name])
        model, tokenizer = runs.loaded(run)
        ways = list(decodings(policy.end_tokens(model, tokenizer)))
        for sums in SUMS[name]:
            told = stories(held_out, sums, "new numbers", run.start.seed)
            asked = Asked.of(told, runs.form(run, tokenizer))
            rows += [{"model": name, "sums": sums} | _row(way, model, tokenizer, asked) for way in ways]
    return pd.DataFrame(rows)


def _row(way: Decoding, model: nn.Module, tokenizer: Callable, asked: Asked) -> dict:
    """What one way of decoding makes of some problems."""
    texts, told = policy.texts_of(model, tokenizer, asked, way.plan, random.run_keys([SEED], Site.DECODE), way.samples)
    each = [answer for answer in asked.answers for _ in range(way.samples)]
    right = np.array(answers.rewards(texts, each)).reshape(-1, way.samples)
    verified = [answers.verified(text, answer) for text, answer in zip(texts, each)]
    passed = pass_at_k(right.sum(1), way.samples, way.samples).mean()
    shares = {"accuracy": right.mean(), "passed": passed, "verified": np.mean(verified)}
    return {"decoding": way.name, "samples": way.samples, "problems": len(right), **shares, **told}


def shipped(profile: str) -> pd.DataFrame:
    """The table that `cot2 collect decodings` has shipped; empty where there is none."""
    table = records.shipped_table(f"decodings.{profile}.measured")
    return pd.DataFrame(columns=COLUMNS) if table is None else table
