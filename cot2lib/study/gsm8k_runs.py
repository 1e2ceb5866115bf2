"""Trainings of language models that the chapter on word problems stands on, per profile, and their evaluations.

`paper` is the paper's table, on Qwen3-0.6B and GSM8K. `quick` is the same table on a small model and stories that are
made here, and SmolLM2 on stories of one sum. A row of evaluations is one evaluation of one run by one decoding, as
shipped or from the local store; rows of the decoding `TRAINING` are the rewards of parts of the training instead.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from cot2lib.errors import RecordError
from cot2lib.llm import runs
from cot2lib.llm.policy import PolicyRecipe
from cot2lib.llm.settings import GSM8K, SMOLLM2, LanguageRun, WarmStart
from cot2lib.runs import records
from cot2lib.specs import profiles
from cot2lib.specs.profiles import SEEDS

LIMITS = {40: 8, 32: 8, 24: 4, 16: 3}  # most tokens of a response, and the continuous ones that MTS has among them
PAPER_LIMITS = {160: 32, 128: 32, 96: 16, 80: 16}
BESIDE = dict(zip(LIMITS, PAPER_LIMITS)) | {limit: limit for limit in PAPER_LIMITS}  # the paper's limit, by ours
K = 4  # tokens that a thought is the mean of
QWEN, TESTED = "Qwen/Qwen3-0.6B", 1319  # and GSM8K's test problems
THREE = SEEDS[:3]
MADE = ("device", "threads", "python", "torch", "cot2lib", "commit", "date", "seconds")
COLUMNS = [
    "id", "model", "data", "sums", "method", "longest", "continuous", "k", "lr", "enter", "seed", "step", "decoding",
    "accuracy", "length", "thoughts", "cut", *MADE,
]  # fmt: skip
TOKENS, THOUGHTS, SAMPLED, TRAINING = "tokens", "thoughts", "sampled", "training"  # decodings
SPANS = 8  # parts of a training
WHEN = ("before", "after")  # policy gradients
MODELS = "gsm8k.quick.models"


def small() -> list[LanguageRun]:
    """The small model on stories of up to six sums, by limit; a start and a set of stories for each seed."""
    recipes = _recipes(LIMITS, steps=150, prompts=32, group=8, lr=3e-4, warmup=15)
    start, how = dict(sums=6, steps=3000), dict(held_out=300, evaluations=3)
    return [LanguageRun(r, WarmStart(**start, seed=seed), seed=seed, **how) for seed in THREE for r in recipes]


def pretrained() -> list[LanguageRun]:
    """SmolLM2 on stories of one sum; its last two layers are trained."""
    recipes = _recipes({24: 4}, steps=40, prompts=4, group=8, lr=1e-4)
    start = WarmStart(sums=1, problems=1000)
    how = dict(model=SMOLLM2, layers=2, shots=4, held_out=100, evaluations=1)
    return [LanguageRun(recipe, start, seed=seed, **how) for seed in THREE for recipe in recipes]


def of_paper() -> list[LanguageRun]:
    """The paper's table on three seeds; its 24 responses a step are read as six problems with four each."""
    recipes = _recipes(PAPER_LIMITS, steps=2000, prompts=6, group=4, lr=3e-6, by_token=True, decay=0.01)
    return [LanguageRun(r, model=QWEN, data=GSM8K, held_out=TESTED, seed=seed) for seed in THREE for r in recipes]


def _recipes(limits: Mapping[int, int], **options) -> list[PolicyRecipe]:
    """Discrete CoT and MTS at each limit; MTS has its continuous tokens within the limit, as in the paper."""
    return [
        PolicyRecipe(limit=limit - thoughts, thoughts=thoughts, k=K, **options)
        for limit, continuous in limits.items()
        for thoughts in (0, continuous)
    ]


PROFILES: dict[str, Callable[[], list[LanguageRun]]] = {
    "quick": lambda: [*small(), *pretrained()],
    "paper": of_paper,
}


def word_problems(profile: str = "quick") -> list[LanguageRun]:
    """All trainings of a profile; SpecError for an unknown one."""
    return PROFILES[profiles.profile(profile)]()


# Their evaluations


def shipped(profile: str) -> pd.DataFrame:
    """The table that `cot2 collect gsm8k` has shipped; without rows where there is none."""
    return records.shipped_table(f"gsm8k.{profile}.evaluations", COLUMNS)


def collect(profile: str, sources: Sequence[Path] = ()) -> pd.DataFrame:
    """Evaluations of all finished runs of a profile, those of the local and other stores before what is shipped.

    RecordError if none is there.
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
    fresh = [evaluations(run, said) for run, said in held.items()]
    return pd.concat([part for part in (kept, *fresh) if len(part)], ignore_index=True)


def evaluations(run: LanguageRun, held: dict) -> pd.DataFrame:
    """Evaluations of a finished run, and its training in `SPANS` parts: means of each, at its last step."""
    log = pd.DataFrame(held["log"])
    part = (log["step"] - 1) * SPANS // len(log)
    means = log.drop(columns="step").groupby(part).mean().rename(columns={"reward": "accuracy"})
    trained = means.assign(step=log["step"].groupby(part).max(), decoding=TRAINING)
    table = pd.concat([pd.DataFrame(held["evaluations"]), trained], ignore_index=True)
    made = {name: held[name] for name in MADE}
    return pd.DataFrame({"id": run.id, **run.columns()}, index=table.index).join(table).assign(**made)


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


def ends(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each run: accuracies before and after its training, and the length of responses after it.

    `accuracy` is of responses as they are rewarded, `greedy` of greedy tokens, after thoughts where the run learnt to
    think. `start_accuracy` and `start_greedy` are those of the model before training, which has no thoughts: its
    tokens may take up the whole limit, as in the run of discrete chain of thought of the same limit and seed.
    """
    cell = ["model", "longest", "seed"]
    greedy = table.rename(columns={"accuracy": "greedy"}).drop(columns="length")
    own = np.where(table["continuous"] > 0, THOUGHTS, TOKENS)
    last = lambda rows: rows[rows["step"] == rows.groupby("id")["step"].transform("max")].reset_index(drop=True)
    found = last(greedy[table["decoding"] == own])
    found = found.join(last(table[table["decoding"] == SAMPLED]).set_index("id")[["accuracy", "length"]], on="id")
    untrained = (table["step"] == 0) & (table["continuous"] == 0)
    sampled = table[untrained & (table["decoding"] == SAMPLED)].set_index(cell)["accuracy"]
    plain = greedy[untrained & (table["decoding"] == TOKENS)].set_index(cell)["greedy"]
    return found.join(sampled.rename("start_accuracy"), on=cell).join(plain.rename("start_greedy"), on=cell)
