"""Pass@k and Maj@k of trained models (paper, fig. pass-k), from many samples of every validation input at once.

Discrete CoT samples every token at a temperature. CoT2 thinks deterministically and samples the answer token alone, so
that its Pass@k is exact: 1 - (1-p)^k with p the answer's probability. The paper repeats k fresh samples ten times for
each k. Here as many as for its largest k are drawn once per input, and the unbiased estimator gives every k. The
authors' discrete sampling keeps the 50 likeliest tokens (a default of the library that it calls), as `top_k=TOP_K`
does; their CoT2 curve is one horizontal line.
"""

from collections.abc import Sequence

import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.decode import at_last, decode, rules
from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.metrics import maj_at_k, pass_at_k
from cot2lib.model import GPT2Stack
from cot2lib.specs import RunSpec
from cot2lib.thoughts import Discrete
from cot2lib.training.data import StackData, stack_data
from cot2lib.training.evaluation import rollouts

TEMPERATURES = (0.0, 0.4, 0.8, 1.0)
TOP_K = 50
MOST = 14  # largest k
SAMPLES = 140  # per input: ten times the largest k, as many as the paper draws
INPUTS_AT_ONCE = 8  # sampled together; part of the draws' keys


def measure(
    stack: GPT2Stack,
    specs: Sequence[RunSpec],
    samples: int = SAMPLES,
    most: int = MOST,
    kept: Sequence[int | None] = (None, TOP_K),
) -> pd.DataFrame:
    """Pass@k and Maj@k (%) of runs of one shape, at the paper's temperatures.

    Columns: `id`, `temperature`, `top_k` (0 for none), `k`, `pass_at_k`, `maj_at_k` (empty where not measured).

    Args:
        samples: of every input, where the chain is sampled; SpecError if they are fewer than `most`.
        most: largest k.
        kept: values of `top_k` by which a chain is sampled, None for all tokens.
    """
    if samples < most:
        raise SpecError(f"samples={samples}: Pass@k up to k = {most} needs at least {most} samples.")
    data, parts = stack_data(specs, stack.device), []
    for temperature in TEMPERATURES:
        if specs[0].thought != Discrete():
            for spec, chance in zip(specs, answer_chances(stack, data, specs, temperature)):
                passed = [100 * float((1 - (1 - chance) ** k).mean()) for k in range(1, most + 1)]
                table = pd.DataFrame({"k": range(1, most + 1), "pass_at_k": passed})
                parts.append(table.assign(temperature=temperature, top_k=0, id=spec.id))
            continue
        for top_k in kept if temperature else (None,):
            rule = Discrete(temperature, top_k)
            counts = answer_counts(stack, data, specs, rule, samples if temperature else 1)
            for spec, mine in zip(specs, counts):
                parts.append(_at_every_k(mine, most).assign(temperature=temperature, top_k=top_k or 0, id=spec.id))
    return pd.concat(parts, ignore_index=True)


def _at_every_k(counts: Int[Tensor, "input answer"], most: int) -> pd.DataFrame:
    """Both measures for k = 1..most from counts of the sampled answers, the right one first."""
    correct, total = counts[:, 0].numpy(), int(counts[0].sum())
    rows = []
    for k in range(1, most + 1):
        drawn = min(k, total)  # without temperature one sample is all
        passed, majority = pass_at_k(correct, total, drawn).mean(), maj_at_k(counts.numpy(), drawn).mean()
        rows.append({"k": k, "pass_at_k": 100 * passed, "maj_at_k": 100 * majority})
    return pd.DataFrame(rows)


@torch.no_grad()
def answer_counts(
    stack: GPT2Stack, data: StackData, specs: Sequence[RunSpec], rule: Discrete, samples: int
) -> list[Int[Tensor, "input answer"]]:
    """How often each answer was sampled for each validation input of each run: the right one first, then the rest
    of the vocabulary that was ever sampled."""
    steps, keys = rules(rule, specs[0].outputs, rule), random.run_keys([s.seed for s in specs], Site.DECODE)
    parts = []
    for chunk, index in enumerate(data.held_out.index.split(INPUTS_AT_ONCE, dim=1)):
        padding, last = data.padding_of(index), data.last_of(index)
        made = decode(stack, data.prompts[index], steps, random.fold(keys, chunk), padding, samples, last=last).answers
        parts.append(made.view(len(specs), index.shape[1], samples))
    answers = torch.cat(parts, dim=1)
    held_out, tallies = data.held_out, []
    for mine, index, real in zip(answers, held_out.index, held_out.real):
        right = data.answers[index[real]]
        tokens, place = torch.unique(torch.cat([right, mine[real].flatten()]), return_inverse=True)
        first, rest = place[: len(right), None], place[len(right) :].view(len(right), samples)
        counts = torch.zeros(len(right), len(tokens), dtype=torch.int64).scatter_add(1, rest, torch.ones_like(rest))
        tallies.append(torch.cat([counts.gather(1, first), counts.scatter(1, first, 0)], dim=1))
    return tallies


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
    return [chances[r][real] for r, real in enumerate(data.held_out.real)]
