"""Answers of language models that never thought in continuous tokens, when they do, and of the chapter's own.

Each model answers stories with its greedy tokens, with sampled ones, and after a few thoughts: the whole distribution
(the base rule) or the mean of K samples of it (MTS). Greedy tokens follow a thought, so only thoughts are random.
"""

import importlib.util
from collections.abc import Callable

import numpy as np
import pandas as pd
from torch import nn

from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.fields import positive
from cot2lib.kit.provenance import resolve_device
from cot2lib.kit.random import Site
from cot2lib.llm import answers, policy, runs
from cot2lib.llm.policy import Asked, PolicyRecipe, greedy
from cot2lib.llm.responses import Plan, Prompts, respond
from cot2lib.llm.settings import SMALL, SMOLLM2, STORIES, LanguageRun, WarmStart
from cot2lib.llm.stories import Story, stories
from cot2lib.runs import records
from cot2lib.study.gsm8k.runs import small
from cot2lib.thoughts import MTS, Base

LIMIT = 40  # discrete tokens of an answer
THOUGHTS = 4
KS = (1, 3, 6, 12)
SAMPLES = 2  # responses to a problem, where anything is drawn
SEED = 42  # of all draws
PUT = (  # what the table asks
    *(dict(model=SMALL, sums=sums, problems=300) for sums in (2, 4, 6)),
    *(dict(model=SMOLLM2, sums=sums, problems=32, shots=4, limit=24) for sums in (1, 2)),
)
COLUMNS = ["model", "sums", "decoding", "samples", "problems", "accuracy", "passed", "verified", "length", "cut"]


def responses(
    model: nn.Module, tokenizer: Callable, told: list[Story], k: int, thoughts: int, limit: int, seed: int
) -> pd.DataFrame:
    """A row for each story: its answer, the tokens of each thought, and the text; greedy but for the thoughts."""
    asked = Asked.of(told)
    plan = greedy(MTS(k), thoughts, limit, policy.end_tokens(model, tokenizer))
    made = respond(model, Prompts.of(tokenizer, asked.texts), plan, random.run_keys([seed], Site.ROLLOUT))
    drawn = [[]] * len(told) if made.actions is None else made.actions.tolist()  # (response, thought, draw)
    names = lambda tokens: "{" + " ".join(sorted(tokenizer.convert_ids_to_tokens(tokens))) + "}"
    thoughts_told = [" ".join(map(names, each)) for each in drawn]
    columns = {"story": asked.texts, "answer": asked.answers, "thoughts": thoughts_told}
    return pd.DataFrame(columns | {"written": made.texts(tokenizer)})


def decodings(ends: tuple[int, ...], limit: int) -> dict[str, tuple[Plan, int]]:
    """All ways of the table by name, for a model whose responses end with one of `ends`; and how many samples."""
    return {
        "greedy tokens": (greedy(Base(), 0, limit, ends), 1),
        "sampled tokens": (Plan(Base(), 0, limit, ends=ends), SAMPLES),
        "base": (greedy(Base(), THOUGHTS, limit, ends), 1),
        **{f"MTS, K = {k}": (greedy(MTS(k), THOUGHTS, limit, ends), SAMPLES) for k in KS},
    }


def measure(profile: str) -> pd.DataFrame:
    """`of_model` for the small model and SmolLM2.

    Raises:
        SpecError: for the paper profile, or if a package is missing.
        RecordError: if the small model's warm start is damaged.
    """
    if profile != "quick":
        raise SpecError(f"decodings under {profile!r}: the paper has none of models as they are; choose 'quick'.")
    if importlib.util.find_spec("math_verify") is None:
        raise SpecError("package 'math-verify' is missing: install it with `pip install math-verify`.")
    return pd.concat([of_model(**asked) for asked in PUT], ignore_index=True)


def of_model(
    model: str,
    data: str = STORIES,
    sums: int = 2,
    problems: int = 64,
    shots: int = 0,
    limit: int = LIMIT,
    device: str = "auto",
) -> pd.DataFrame:
    """A row for each decoding: shares of right answers, of problems with one among its responses, and lengths.

    Args:
        model: "small", "smollm2", a name on the hub or a folder.
        data: "stories", "gsm8k", or a folder with GSM8K's files.
        sums: of a story, if it is about stories.
        problems: how many.
        shots: solved stories shown before each, of up to as many sums.
        limit: most discrete tokens.
        device: "auto", "cpu" or "cuda".

    Raises:
        SpecError: if the model or the problems cannot be had.
        DeviceError: for a device that is not there.
    """
    positive(sums=sums, problems=problems, limit=limit)
    start = small()[0].start if model == SMALL else WarmStart(sums=sums)  # whose stories are shown
    run = LanguageRun(PolicyRecipe(1, 1, 2, 1e-4, limit), start, model, data, shots=shots, held_out=problems)
    where = resolve_device(device)
    weights, tokenizer = runs.loaded(run)
    if data == STORIES:
        told = stories(problems, sums, "new numbers", run.start.seed)
        asked = Asked.of(told, runs.form(run, tokenizer))
    else:
        asked = runs.asked(run, tokenizer, "new numbers")
    weights = weights.to(where)
    ways = decodings(policy.end_tokens(weights, tokenizer), limit)
    rows = [{"decoding": name} | _answered(weights, tokenizer, asked, *way) for name, way in ways.items()]
    return pd.DataFrame(rows).assign(model=model, data=data, sums=sums if data == STORIES else None)


def _answered(model: nn.Module, tokenizer: Callable, asked: Asked, plan: Plan, samples: int) -> dict:
    """Shares of problems that one way of decoding answers; by math-verify too, where it is installed."""
    keys = random.run_keys([SEED], Site.DECODE)
    texts, told = policy.texts_of(model, tokenizer, asked, plan, keys, samples)
    right = policy.scores(texts, asked).double().numpy()
    shares = {"accuracy": right.mean(), "passed": right.any(1).mean()}
    if importlib.util.find_spec("math_verify"):
        shares["verified"] = np.mean([*map(answers.verified, texts, np.repeat(asked.answers, samples).tolist())])
    return {"samples": samples, "problems": len(right), **shares, **told}


def shipped(profile: str) -> pd.DataFrame:
    """The table that `cot2 collect decodings` has shipped; empty where there is none."""
    return records.shipped_rows(f"decodings.{profile}.measured", COLUMNS)
