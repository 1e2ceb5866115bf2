"""What both benchmarks share: ways in turns, the best matrix product beside them, options and the printed table."""

import argparse
from collections.abc import Sequence

import pandas as pd
import torch
from torch.utils.flop_counter import FlopCounterMode

from cot2lib.kit.provenance import device_name
from cot2lib.study.costs import STEPS, Variant, steps_of, timed
from cot2lib.training.engines import preferred, unfit
from cot2lib.training.trainer import StackTrainer

BASELINE = "Hugging Face loop"
ROUNDS, QUICK_ROUNDS = 15, 3
FUSED_STEPS = 100  # in a turn of the engine, which is called once for a segment
SIDE = 1024  # of the matrices that are multiplied


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
    if unfit(trainer.specs[0]):
        return []
    runs, turn = len(trainer.specs), steps_of(preferred(trainer, 1), FUSED_STEPS)
    return [Variant(f"fused, {runs} runs", runs, turn, FUSED_STEPS * work)]


def step_flops(trainer: StackTrainer) -> float:
    """Matrix product flop of one training step, forward and backward."""
    with FlopCounterMode(display=False) as counter:
        trainer.take_step()
    return float(counter.get_total_flops())


def beside_the_limit(variants: Sequence[Variant], rounds: int, flops: float) -> pd.DataFrame:
    """Ways in turns (`cot2lib.study.costs.timed`), the first of them the yardstick, beside the best matrix product.

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
