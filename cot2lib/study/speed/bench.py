"""`cot2 bench`: tables measured side by side in one process, as printed text; never a verdict of a test.

`train` times the paper's training step (batch 16, dropout, AdamW) of the main experiment's CoT2 model, written with
Hugging Face's model and a plain loop, batched over runs by `torch.func.vmap` and by JAX, and with our stack at several
sizes, eager, compiled and by the fused engine. Fed "self" it times the step through the model's own thoughts.
`sampling` times training on own thoughts beside teacher forcing, and the whole Pass@k of the paper's experiment.
`grpo` times steps of policy gradients, rollouts
and update, beside the same steps with Hugging Face's model. Variants take turns, so that a machine that speeds up or
slows down does so for all.
"""

from collections.abc import Callable

import pandas as pd
import torch

from cot2lib.errors import SpecError
from cot2lib.kit.provenance import device_name
from cot2lib.kit.timing import seconds, threads
from cot2lib.runs import load
from cot2lib.specs.profiles import spec
from cot2lib.study import passk
from cot2lib.study.costs import feeding_table
from cot2lib.study.speed import reward, training
from cot2lib.study.speed.variants import CPU, QUICK_ROUNDS, ROUNDS

FEW_SAMPLES = 28  # of a quick look at Pass@k


def measure(what: str, quick: bool = False, fed: str = "teacher") -> str:
    """One benchmark as printed text.

    Args:
        what: a key of `WHATS`.
        quick: whether to take fewer rounds and compile nothing.
        fed: whose thoughts are fed in `train`, "teacher" or "self".

    Raises:
        SpecError: for own thoughts in another benchmark.
    """
    if fed != "teacher" and what != "train":
        raise SpecError(f"fed={fed!r}: only the benchmark 'train' can be fed other thoughts than the teacher's.")
    with threads(1):
        tables = (WHATS[what] if fed == "teacher" else own)(quick, QUICK_ROUNDS if quick else ROUNDS)
    shown = [table.dropna(axis="columns", how="all").round(2).to_string(index=False) for table in tables]
    held = training.PEERS if (what, fed) == ("train", "teacher") else {}
    missing = [f"Left out: {reason}" for reason in training.left_out(held)] if what == "train" else []
    where = f"One core of {device_name(CPU)}, torch {torch.__version__}; medians of turns taken in alternation.\n"
    units = "`rate` of a run in a second, `times` the first row's or the stack's, `share` of `sgemm` (Gflop/s)."
    return "\n\n".join([where + units, *shown, *missing])


def train(quick: bool, rounds: int) -> list[pd.DataFrame]:
    """Training steps of the main model by every way, and the engine beside the stack as it grows."""
    steps = training.steps(rounds, compiled=not quick)
    sizes = list(training.GROWTH)[: 2 if quick else None]
    return [steps, training.growth(QUICK_ROUNDS, sizes, steps["sgemm"].iloc[0])]


def own(quick: bool, rounds: int) -> list[pd.DataFrame]:
    """Training steps of the main model through its own thoughts."""
    return [training.own_steps(rounds, compiled=not quick)]


def sampling(quick: bool, rounds: int) -> list[pd.DataFrame]:
    """Steps of self-feeding and COCONUT, and the seconds of one model's Pass@k."""
    samples = FEW_SAMPLES if quick else passk.SAMPLES
    return [feeding_table(rounds), pd.DataFrame({"samples": [samples], "seconds": pass_at_k_seconds(samples)})]


def pass_at_k_seconds(samples: int) -> float:
    """Seconds that the whole measurement of one shipped discrete model takes."""
    run = spec("discrete", d_model=24, layers=1, heads=1)
    model = load(run, missing="error")
    return seconds(lambda: passk.measure(model, [run], samples))


def grpo(quick: bool, rounds: int) -> list[pd.DataFrame]:
    """Prompts of policy gradients, rollouts and update, by the loop and by stacks."""
    return [reward.prompts(rounds, compiled=not quick)]


WHATS: dict[str, Callable[[bool, int], list[pd.DataFrame]]] = {one.__name__: one for one in (train, sampling, grpo)}
