"""This machine, and the limit that its ways to train are held against: the best matrix product, in the same turns."""

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch.utils.flop_counter import FlopCounterMode

from cot2lib.kit.provenance import device_name
from cot2lib.study.costs import Variant, timed
from cot2lib.training.trainer import StackTrainer

ROUNDS, QUICK_ROUNDS = 15, 3
BASELINE = "Hugging Face loop"
CPU = torch.device("cpu")
SIDE = 1024  # of the matrices that are multiplied


def beside_the_limit(variants: Sequence[Variant], rounds: int, flops: float) -> pd.DataFrame:
    """Ways in turns (`cot2lib.study.costs.timed`), the first of them the yardstick, beside the best matrix product.

    Columns besides: `sgemm`, the product's rate (Gflop/s); `share`, the percentage of it that a way does.

    Args:
        variants: the ways.
        rounds: turns of each.
        flops: of matrix products in our step, or prompt, of one run.
    """
    ours, theirs = torch.rand(SIDE, SIDE), np.random.default_rng(0).random((SIDE, SIDE), np.float32)
    products = [Variant("product, torch", 1, lambda: ours @ ours, 2 * SIDE**3)]
    with _one_thread() as held:
        products += [Variant("product, NumPy", 1, lambda: theirs @ theirs, 2 * SIDE**3)] * held
        rows = timed([*variants, *products], rounds)
    of_products = rows["variant"].isin([one.variant for one in products])
    sgemm = rows["rate"][of_products].max()
    return rows[~of_products].assign(share=100 * flops * rows["rate"] / sgemm, sgemm=sgemm / 1e9)


@contextmanager
def _one_thread() -> Iterator[bool]:
    """Whether NumPy's products are held to one thread inside the block."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield "1" in (os.environ.get("OPENBLAS_NUM_THREADS"), os.environ.get("OMP_NUM_THREADS"))
        return
    with threadpool_limits(1):
        yield True


def named() -> str:
    """This machine and its torch."""
    return f"one core of {device_name(CPU)}, torch {torch.__version__}"


def step_flops(trainer: StackTrainer) -> float:
    """Matrix product flop of one training step, forward and backward."""
    with FlopCounterMode(display=False) as counter:
        trainer.take_step()
    return float(counter.get_total_flops())


def peak_memory(turn: Callable[[], object]) -> float:
    """Peak resident memory of the process over one turn, in GiB (Linux only, else NaN)."""
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5")
        turn()
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 2**20
    except OSError:
        return float("nan")
