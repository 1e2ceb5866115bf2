"""Pass@k and Maj@k of trained models (paper, fig. pass-k), from many samples of every validation input at once.

Discrete CoT samples every token at a temperature; CoT2 thinks deterministically and samples only the
answer token, so that its Pass@k is exact: 1 - (1-p)^k with p the answer's probability. The paper
repeats k fresh samples ten times for each k; here the same number of samples is drawn once per input
and the unbiased estimator gives every k. The authors' discrete sampling keeps only the 50 likeliest
tokens (a default of the library it calls), which `top_k=TOP_K` reproduces; their CoT2 curve is one
greedy accuracy drawn as a line.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib.decode import at_last, decode, rules
from cot2lib.errors import RecordError, SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.metrics import maj_at_k, pass_at_k
from cot2lib.model import GPT2Stack
from cot2lib.runs import records
from cot2lib.specs import RunSpec
from cot2lib.specs.profiles import PROFILES
from cot2lib.study import sweeps
from cot2lib.study.report import PERCENT
from cot2lib.thoughts import Discrete
from cot2lib.training.data import StackData, stack_data
from cot2lib.training.evaluation import rollouts

TEMPERATURES = (0.0, 0.4, 0.8, 1.0)
TOP_K = 50
MOST = 14  # largest k
SAMPLES = 140  # per input: ten times the largest k, as many as the paper draws
INPUTS_AT_ONCE = 8  # sampled together; part of the draws' keys

Stacks = Mapping[str, tuple[GPT2Stack, Sequence[RunSpec]]]  # trained models by what they are called
Tables = dict[str, pd.DataFrame]  # Pass@k by profile


def measure(
    stack: GPT2Stack,
    specs: Sequence[RunSpec],
    samples: int = SAMPLES,
    most: int = MOST,
    kept: Sequence[int | None] | None = None,
) -> pd.DataFrame:
    """Pass@k and Maj@k (%) of runs of one shape, at the paper's temperatures.

    Columns: `id`, `temperature`, `top_k` (0 for none), `k`, `pass_at_k`, `maj_at_k` (empty where not measured).

    Args:
        stack, specs: the models and their runs.
        samples: of every input, where the chain is sampled.
        most: largest k.
        kept: of how many of the likeliest tokens a chain is sampled, None for all of them; by default both `TOP_K`
            and all.

    Raises:
        SpecError: for fewer samples than the largest k.
    """
    if samples < most:
        raise SpecError(f"samples={samples}: Pass@k up to k = {most} needs at least {most} samples.")
    data = stack_data(specs, stack.device)
    if specs[0].thought == Discrete():
        measured = _discrete(stack, data, specs, samples, most, kept or (None, TOP_K))
    else:
        measured = _continuous(stack, data, specs, most)
    return pd.concat([part.assign(id=specs[place].id) for place, part in measured], ignore_index=True)


def _discrete(
    stack: GPT2Stack,
    data: StackData,
    specs: Sequence[RunSpec],
    samples: int,
    most: int,
    kept: Sequence[int | None],
) -> Iterator[tuple[int, pd.DataFrame]]:
    for temperature in TEMPERATURES:
        for top_k in kept if temperature else (None,):
            rule = Discrete(temperature, top_k)
            counts = answer_counts(stack, data, specs, rule, samples if temperature else 1)
            for place, mine in enumerate(counts):
                yield place, _at_every_k(mine, temperature, top_k, most)


def _at_every_k(counts: Int[Tensor, "input answer"], temperature: float, top_k: int | None, most: int) -> pd.DataFrame:
    """Both measures for k = 1..most from counts of the sampled answers, the right one first."""
    correct, total = counts[:, 0].numpy(), int(counts[0].sum())
    rows = []
    for k in range(1, most + 1):
        drawn = k if temperature else min(k, total)  # without temperature one sample is all
        passed, majority = pass_at_k(correct, total, drawn).mean(), maj_at_k(counts.numpy(), drawn).mean()
        rows.append({"k": k, "pass_at_k": PERCENT * passed, "maj_at_k": PERCENT * majority})
    return pd.DataFrame(rows).assign(temperature=temperature, top_k=top_k or 0)


def _continuous(
    stack: GPT2Stack, data: StackData, specs: Sequence[RunSpec], most: int
) -> Iterator[tuple[int, pd.DataFrame]]:
    for temperature in TEMPERATURES:
        for place, chance in enumerate(answer_chances(stack, data, specs, temperature)):
            passed = [PERCENT * float((1 - (1 - chance) ** k).mean()) for k in range(1, most + 1)]
            table = pd.DataFrame({"k": range(1, most + 1), "pass_at_k": passed})
            yield place, table.assign(temperature=temperature, top_k=0)


@torch.no_grad()
def answer_counts(
    stack: GPT2Stack, data: StackData, specs: Sequence[RunSpec], rule: Discrete, samples: int
) -> list[Int[Tensor, "input answer"]]:
    """How often each answer was sampled for each validation input of each run: the right one first, then the rest
    of the vocabulary that was ever sampled."""
    steps, keys = rules(rule, specs[0].outputs, rule), random.run_keys([s.seed for s in specs], Site.DECODE)
    parts = []
    for chunk, index in enumerate(data.held_out.index.split(INPUTS_AT_ONCE, dim=1)):
        prompts, padding = data.prompts[index], data.padding_of(index)
        last = data.last_of(index)
        made = decode(stack, prompts, steps, random.fold(keys, chunk), padding, samples, last=last).answers
        parts.append(made.view(len(specs), index.shape[1], samples))
    answers = torch.cat(parts, dim=1)
    return [_tally(answers[r][real], data.answers[data.held_out.index[r][real]]) for r, real in _real(data)]


def _tally(answers: Int[Tensor, "input sample"], right: Int[Tensor, " input"]) -> Int[Tensor, "input answer"]:
    tokens, place = torch.unique(torch.cat([right, answers.flatten()]), return_inverse=True)
    first, rest = place[: len(right)], place[len(right) :].view(answers.shape)
    counts = torch.zeros(len(right), len(tokens), dtype=torch.int64).scatter_add(1, rest, torch.ones_like(rest))
    correct = counts.gather(1, first[:, None])
    return torch.cat([correct, counts.scatter(1, first[:, None], 0)], dim=1)


@torch.no_grad()
def answer_chances(
    stack: GPT2Stack, data: StackData, specs: Sequence[RunSpec], temperature: float
) -> list[Float[Tensor, " input"]]:
    """Probability of the right answer for each validation input of each run, if only the answer is sampled."""
    parts, steps = [], rules(specs[0].thought, specs[0].outputs)
    for index, _, made in rollouts(stack, data, [spec.seed for spec in specs], steps):
        logits = at_last(made.logits, made.last)[:, :, 0].double()
        if temperature:
            chances = (logits / temperature).softmax(-1).gather(-1, data.answers[index][..., None])[..., 0]
        else:
            chances = (logits.argmax(-1) == data.answers[index]).double()
        parts.append(chances)
    chances = torch.cat(parts, dim=1)
    return [chances[r][real] for r, real in _real(data)]


def _real(data: StackData) -> Iterator[tuple[int, Bool[Tensor, " input"]]]:
    return enumerate(data.held_out.real)


def shipped(profile: str) -> pd.DataFrame:
    """The shipped table of `measure` under a profile, empty if there is none."""
    return records.shipped_rows(f"sampling.{profile}.passk", ["id", "temperature", "top_k", "k", "pass_at_k"])


# Tables of several profiles


def checked(top_k: int, ks: Sequence[int], temperature: float) -> None:
    """Raise SpecError for parameters that nothing was measured with."""
    if top_k not in (0, TOP_K):
        raise SpecError(f"top_k={top_k}: measured are 0 (all tokens) and {TOP_K}.")
    if not ks or not all(1 <= k <= MOST for k in ks):
        raise SpecError(f"ks={list(ks)}: give numbers of samples from 1 to {MOST}.")
    if temperature not in TEMPERATURES[1:]:
        raise SpecError(f"temperature {temperature}: measured are {', '.join(map(str, TEMPERATURES[1:]))}.")


def by_profile(profile: str, stacks: Stacks, measured_here: bool = False) -> Tables:
    """Pass@k of some models, the shipped one or measured here, and of the other profiles where all seeds are shipped.

    Columns of `measure`, `method` and `seed`; the paper's profile first.

    Raises:
        RecordError: if those of `profile` are neither shipped nor to be measured.
    """
    specs = [spec for _, group in stacks.values() for spec in group]
    tables = {name: shipped(name) for name in PROFILES}
    if measured_here:
        tables[profile] = pd.concat([measure(*model) for model in stacks.values()], ignore_index=True)
    elif absent := {spec.id for spec in specs} - set(tables[profile]["id"]):
        raise RecordError(
            f"no Pass@k of run {min(absent)} is recorded under {profile}; make it with `cot2 run sampling --profile "
            f"{profile}` and `cot2 collect sampling --profile {profile}`, or ask with retrain=True."
        )
    seeds = list(dict.fromkeys(spec.seed for spec in specs))
    wanted = {name: specs if name == profile else sweeps.small(name, seeds) for name in tables}
    return {
        name: with_runs(table, wanted[name])
        for name, table in tables.items()
        if {spec.id for spec in wanted[name]} <= set(table["id"])
    }


def with_runs(table: pd.DataFrame, specs: Sequence[RunSpec]) -> pd.DataFrame:
    """The rows of some runs, with their method and seed."""
    known = {spec.id: spec for spec in specs}
    table = table[table["id"].isin(known)]
    return table.assign(method=[known[i].method for i in table["id"]], seed=[known[i].seed for i in table["id"]])


def curves_at(
    table: pd.DataFrame, temperature: float, top_k: int, column: str = "pass_at_k"
) -> dict[str, pd.DataFrame]:
    """Pass@k (%) of both methods at a temperature: a row per k, a column per seed."""
    at = table[np.isclose(table["temperature"], temperature)]
    kept = {"CoT2": 0, "discrete CoT": top_k if temperature else 0}
    chosen = {name: at[(at["method"] == name) & (at["top_k"] == k)] for name, k in kept.items()}
    return {name: part.pivot(index="k", columns="seed", values=column) for name, part in chosen.items()}


def greedy(table: pd.DataFrame) -> pd.Series:
    """Accuracy (%) of one greedy CoT2 trace, by seed."""
    return curves_at(table, 0.0, 0)["CoT2"].loc[1]


def temperatures_of(*tables: pd.DataFrame) -> list[float]:
    """Temperatures that were measured."""
    return sorted({float(t) for table in tables for t in table["temperature"].unique()})
