"""What both benchmarks share: ways in turns, the best matrix product beside them, options and the printed table."""

import argparse
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from torch.utils.flop_counter import FlopCounterMode

from cot2lib.kit.provenance import device_name
from cot2lib.kit.timing import in_turns
from cot2lib.training.fused import preferred
from cot2lib.training.trainer import SEGMENT, StackTrainer

BASELINE = "Hugging Face loop"
ROUNDS, QUICK_ROUNDS = 15, 3
STEPS = 6  # training steps in a turn
FUSED_STEPS = 100  # in a turn of the engine, which is called once for a segment
SIDE = 1024  # of the matrices that are multiplied


@dataclass
class Variant:
    """A way to do some work.

    Attributes:
        variant: how tables call it.
        runs: runs that are done side by side.
        turn: does `work` for each of them.
        work: steps or prompts of one run in a turn.
    """

    variant: str
    runs: int
    turn: Callable[[], object]
    work: float


def timed(variants: Sequence[Variant], rounds: int) -> pd.DataFrame:
    """A row for each way, in alternation: columns `variant`, `runs`, `rate`, `times`.

    `rate` is the work for one run in a second, a median over rounds; `times` how many times the first way's, a median
    over rounds of turns taken beside it.
    """
    taken = in_turns({one.variant: one.turn for one in variants}, rounds)
    rows, first = [], variants[0]
    for one in variants:
        own, base = ([spent / (of.work * of.runs) for spent in taken[of.variant]] for of in (one, first))
        times = statistics.median(theirs / mine for theirs, mine in zip(base, own))  # paired: both slow down together
        rows.append((one.variant, one.runs, 1 / statistics.median(own), times))
    return pd.DataFrame(rows, columns=["variant", "runs", "rate", "times"])


def steps_of(trainer: StackTrainer, steps: int) -> Callable[[], None]:
    """Takes so many training steps, the same ones each time it is called."""
    trainer.order[:] = trainer.data.order([s.seed for s in trainer.specs], 0, SEGMENT, trainer.recipe.batch)

    def turn() -> None:
        trainer.position.zero_()
        trainer.engine.take_steps(steps)

    return turn


def options(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, no compilation")
    return parser


def stack(trainer: StackTrainer, compiled: bool, work: int = 1) -> Variant:
    """Our stacked trainer; a step is so much work for one run."""
    runs = len(trainer.specs)
    name = f"stack of {runs}{', compiled' if compiled else ''}"
    return Variant(name, runs, steps_of(trainer, STEPS), STEPS * work)


def fused(trainer: StackTrainer, work: int = 1) -> list[Variant]:
    """The fused engine on one thread; nothing where it does not work."""
    runs, made = len(trainer.specs), preferred(trainer, 1)
    if made.engine.name == "torch":
        return []
    turn = steps_of(made, FUSED_STEPS)
    return [Variant(f"fused, {runs} runs", runs, turn, FUSED_STEPS * work)]


def step_flops(trainer: StackTrainer) -> float:
    """Matrix product flop of one training step, forward and backward."""
    with FlopCounterMode(display=False) as counter:
        trainer.take_step()
    return float(counter.get_total_flops())


def beside_the_limit(variants: Sequence[Variant], rounds: int, flops: float) -> pd.DataFrame:
    """Ways in turns (`timed`), the first of them the yardstick, beside the best matrix product.

    Columns besides: `sgemm`, the product's rate (Gflop/s); `share`, the percentage of it that a way does, whose work
    for one run is so many `flops` of matrix products.
    """
    one, other = torch.rand(2, SIDE, SIDE)
    rows = timed([*variants, Variant("product", 1, lambda: one @ other, 2 * SIDE**3)], rounds)
    ways, sgemm = rows[:-1], rows["rate"].iloc[-1]
    return ways.assign(share=100 * flops * ways["rate"] / sgemm, sgemm=sgemm / 1e9)


def show(table: pd.DataFrame) -> None:
    print(f"One core of {device_name(torch.device('cpu'))}, torch {torch.__version__}; medians of alternating turns.")
    print("`rate` of a run in a second, `times` the first row's, `share` (%) of `sgemm` (Gflop/s).\n")
    print(table.dropna(axis="columns", how="all").round(2).to_string(index=False))
