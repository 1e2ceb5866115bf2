"""The paper's training step: Hugging Face's model in a plain loop beside our stack, eager and compiled."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
import torch

from cot2lib.kit.timing import in_turns, ratio, threads
from cot2lib.losses import soft_nll
from cot2lib.runs import sgemm_rate
from cot2lib.specs.profiles import spec
from cot2lib.study.analysis.costs import STEPS, steps_of
from cot2lib.study.bench import machine
from cot2lib.study.bench.machine import BASELINE, CPU
from cot2lib.training.data import stack_data
from cot2lib.training.supervised import SupervisedTrainer

SIZES = (1, 16, 64)


@dataclass
class Variant:
    """Something that takes training steps.

    Attributes:
        name: how the table calls it.
        runs: runs that one step trains.
        turn: takes `STEPS` steps.
        peak: peak memory of the process during its first turn, in GiB; NaN where unknown.
    """

    name: str
    runs: int
    turn: Callable[[], None]
    peak: float = float("nan")


def train(quick: bool = False) -> str:
    """The benchmark as printed text: machine, table, and what the numbers are."""
    with threads(1):
        table, flops, sgemm = train_table(rounds=machine.rounds(quick), compiled=not quick)
    return (
        f"Training step of CoT2, 2 layers, 2 heads, d=32, batch 16, dropout .1; {machine.named()}.\n"
        f"One step of one run is {flops / 1e6:.1f} Mflop of matrix products; sgemm here {sgemm / 1e9:.0f} Gflop/s. "
        f"Medians of turns taken in alternation.\n\n{table.round(2).to_string(index=False)}"
    )


def train_table(rounds: int, compiled: bool) -> tuple[pd.DataFrame, float, float]:
    """Speed of every variant; the flop of one run's step; the machine's measured sgemm rate."""
    variants = [hugging_face_variant(), *(stack_variant(runs, False) for runs in SIZES)]
    if compiled:
        variants += [stack_variant(runs, True) for runs in SIZES]
    for variant in variants:
        variant.turn()  # compile and allocate
        variant.peak = machine.peak_memory(variant.turn)
    sgemm = []
    turns = {variant.name: variant.turn for variant in variants}
    taken = in_turns(turns | {"sgemm": lambda: sgemm.append(sgemm_rate(CPU, repeats=1))}, rounds)
    each = {v.name: [spent / (STEPS * v.runs) for spent in taken[v.name]] for v in variants}
    flops, rate = machine.step_flops(SupervisedTrainer([spec("cot2", "paper")])), statistics.median(sgemm)
    rows = [_row(variant, each, flops, rate) for variant in variants]
    return pd.DataFrame(rows), flops, rate


def _row(variant: Variant, each: dict[str, list[float]], flops: float, rate: float) -> dict:
    """A variant's row from everybody's seconds per step of one run, round by round."""
    median = statistics.median(each[variant.name])
    return {
        "variant": variant.name,
        "run-steps/s": round(1 / median),
        "times the loop": ratio(each[BASELINE], each[variant.name]),
        "share of sgemm (%)": 100 * flops / median / rate,
        "peak memory (GiB)": variant.peak,
        "minutes per paper run": median * spec("cot2", "paper").recipe.steps / 60,
    }


def stack_variant(runs: int, compiled: bool) -> Variant:
    """Our stacked trainer with `runs` runs."""
    trainer = SupervisedTrainer([spec("cot2", "paper", seed=42 + r) for r in range(runs)], compile=compiled)
    return Variant(f"stack of {runs}{', compiled' if compiled else ''}", runs, steps_of(trainer))


def hugging_face_variant() -> Variant:
    """The same model, loss and optimiser the usual way: one model, one batch, fused AdamW."""
    from transformers import GPT2Config, GPT2LMHeadModel

    run = spec("cot2", "paper")
    data, task = stack_data([run], "cpu"), run.task
    config = GPT2Config(
        vocab_size=task.vocab_size,
        n_positions=task.positions,
        n_embd=32,
        n_layer=2,
        n_head=2,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = GPT2LMHeadModel(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    batches = data.order([run.seed], 0, STEPS, run.recipe.batch)[0]
    table = model.transformer.wte.weight

    def turn() -> None:
        for index in batches:
            prompts, outputs = data.prompts[index], data.outputs[0, index]
            inputs = torch.cat([model.transformer.wte(prompts), outputs[:, :-1] @ table], dim=1)
            logits = model(inputs_embeds=inputs).logits[:, -outputs.shape[1] :]
            optimizer.zero_grad()
            soft_nll(logits[None], outputs[None]).sum(-1).mean().backward()
            optimizer.step()

    return Variant(BASELINE, 1, turn)
