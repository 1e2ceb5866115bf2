"""Evaluations of language models that were trained by reward, as shipped or from the local store.

A row is one evaluation of one run by one decoding; rows of the decoding `TRAINING` are the rewards of parts of the
training instead.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from torch import nn

from cot2lib.errors import RecordError
from cot2lib.kit import paths, random
from cot2lib.kit.random import Site
from cot2lib.llm import policy, runs
from cot2lib.llm.policy import Asked, greedy
from cot2lib.llm.responses import Prompts, respond
from cot2lib.llm.settings import LanguageRun
from cot2lib.llm.stories import Story
from cot2lib.runs import records
from cot2lib.study.gsm8k.runs import LIMITS, small, word_problems
from cot2lib.study.report import Text, bullets
from cot2lib.thoughts import MTS

MADE = ("device", "threads", "python", "torch", "cot2lib", "commit", "date", "seconds")
COLUMNS = [
    "id", "model", "data", "sums", "method", "longest", "continuous", "k", "lr", "enter", "seed", "step", "decoding",
    "accuracy", "length", "thoughts", "cut", *MADE,
]  # fmt: skip
TOKENS, THOUGHTS, SAMPLED, TRAINING = "tokens", "thoughts", "sampled", "training"  # decodings
SPANS = 8  # parts of a training
WHEN = ("before", "after")  # policy gradients
MODELS = "gsm8k.quick.models"


def collect(profile: str, sources: Sequence[Path] = ()) -> pd.DataFrame:
    """Evaluations of all finished runs of a profile, those of the store beside those that are shipped.

    Args:
        profile: whose.
        sources: other stores, say from a machine with a GPU.

    Raises:
        RecordError: if none is there.
    """
    known, stores = shipped(profile), [None, *sources]
    held = {
        run: runs.finished(run, folder)
        for folder in reversed(stores)
        for run in word_problems(profile)
        if runs.is_finished(run, folder)
    }
    if known.empty and not held:
        raise RecordError(f"no run of gsm8k under {profile} is finished; `cot2 llm train --profile {profile}` trains.")
    ids = {run.id for run in word_problems(profile)} - {run.id for run in held}
    kept = known[known["id"].isin(ids)]
    fresh = [_table(run, said) for run, said in held.items()]
    return pd.concat([part for part in (kept, *fresh) if len(part)], ignore_index=True)


def _table(run: LanguageRun, held: dict) -> pd.DataFrame:
    """Evaluations and training of a finished run."""
    table = pd.concat([pd.DataFrame(held["evaluations"]), _trained(pd.DataFrame(held["log"]))], ignore_index=True)
    columns = {name: value for name, value in run.columns().items() if name != "steps"}
    made = {name: held[name] for name in MADE}
    return pd.DataFrame({"id": run.id, **columns}, index=table.index).join(table).assign(**made)


def _trained(log: pd.DataFrame) -> pd.DataFrame:
    """The log in `SPANS` parts: means of each, at its last step."""
    part = (log["step"] - 1) * SPANS // len(log)
    means = log.drop(columns="step").groupby(part).mean().rename(columns={"reward": "accuracy"})
    return means.assign(step=log["step"].groupby(part).max(), decoding=TRAINING)


def shown() -> LanguageRun:
    """The run whose model the chapter lets answer: of the shortest limit, with thoughts."""
    return next(run for run in small() if run.longest == min(LIMITS) and run.recipe.thoughts)


def ship_models(profile: str, folder: Path | None = None) -> list[Path]:
    """Ship the weights of the shown run and of its start, in half precision, if the store has them."""
    run = shown()
    if profile != "quick" or not runs.is_finished(run):
        return []
    pair = dict(zip(WHEN, runs.weights(run)))
    tensors = {f"{when}.{name}": value.half() for when, part in pair.items() for name, value in part.items()}
    return [records.ship_tensors(MODELS, tensors, {"run": run.id}, folder)]


def shown_model(when: str, stored: bool = False) -> tuple[nn.Module, Callable]:
    """The model that the chapter shows, "before" or "after" its policy gradients, and its tokenizer.

    Args:
        when: which.
        stored: take it from the local store and not from what is shipped.

    Raises:
        RecordError: if it is not there, damaged, or of another run.
    """
    run = shown()
    model, tokenizer = runs.small(run.start)
    if stored:
        held, path = runs.weights(run)[WHEN.index(when)], paths.store()
    else:
        held, meta, path = records.shipped_tensors(MODELS, f"{when}.")
        if meta.get("run") != run.id:
            raise RecordError(f"{path} holds models of run {meta.get('run')}, not of {run.id}; collect gsm8k again.")
    return runs.put(model, {name: value.float() for name, value in held.items()}, path), tokenizer


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


def shipped(profile: str) -> pd.DataFrame:
    """The table that `cot2 collect gsm8k` has shipped; without rows where there is none."""
    return records.shipped_rows(f"gsm8k.{profile}.evaluations", COLUMNS)


def drawn(wanted: Sequence[LanguageRun], profile: str, stored: bool = False) -> pd.DataFrame:
    """Evaluations of some runs of a profile.

    Args:
        wanted: the runs.
        profile: theirs.
        stored: whether those of the local store count too.

    Raises:
        RecordError: if none of them has a record.
    """
    table = collect(profile) if stored else shipped(profile)
    found = table[table["id"].isin([run.id for run in wanted])]
    if found.empty:
        seeds = ", ".join(map(str, sorted({run.seed for run in word_problems(profile)})))
        raise RecordError(
            f"no run of gsm8k under {profile} with these seeds (of {seeds}) is recorded; {_made(profile)}."
        )
    return found


def _made(profile: str) -> str:
    return f"`cot2 llm train --profile {profile} && cot2 collect gsm8k --profile {profile}` makes it"


def absent(table: pd.DataFrame, wanted: Sequence[LanguageRun], profile: str) -> Text | None:
    """One sentence where runs have no record: how many, and the remedy."""
    lacking = len(wanted) - table["id"].nunique()
    said = f"**Not drawn**: {lacking} of {len(wanted)} runs have no record; {_made(profile)}."
    return bullets([said]) if lacking else None


def ends(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each run: accuracies, lengths and shares of cut responses before and after its training.

    `accuracy` is of responses as they are rewarded, `greedy` of greedy tokens, after thoughts where the run learnt to
    think. `start_accuracy` and `start_greedy` are those of the model before training, which has no thoughts: its
    tokens may take up the whole limit, as in the run of discrete chain of thought of the same limit and seed.
    """
    cell, what = ["model", "longest", "seed"], ["accuracy", "length", "cut"]
    greedy = table.rename(columns={"accuracy": "greedy"}).drop(columns=["length", "cut"])
    own = np.where(table["continuous"] > 0, THOUGHTS, TOKENS)
    found = _last(greedy[table["decoding"] == own])
    found = found.join(_last(table[table["decoding"] == SAMPLED]).set_index("id")[what], on="id")
    untrained = (table["step"] == 0) & (table["continuous"] == 0)
    sampled = table[untrained & (table["decoding"] == SAMPLED)].set_index(cell)[what]
    plain = greedy[untrained & (table["decoding"] == TOKENS)].set_index(cell)["greedy"]
    return found.join(sampled.add_prefix("start_"), on=cell).join(plain.rename("start_greedy"), on=cell)


def _last(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of each run's last step."""
    return table[table["step"] == table.groupby("id")["step"].transform("max")].reset_index(drop=True)
