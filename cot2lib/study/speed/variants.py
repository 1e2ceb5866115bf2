"""The limit that ways to train are held against on this machine: the best matrix product, in the same turns."""

from collections.abc import Sequence
from contextlib import nullcontext
from importlib.util import find_spec

import numpy as np
import pandas as pd
import torch
from torch.utils.flop_counter import FlopCounterMode

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
    products, one_thread = [Variant("product, torch", 1, lambda: ours @ ours, 2 * SIDE**3)], nullcontext()
    if find_spec("threadpoolctl"):  # else NumPy would take every core
        from threadpoolctl import threadpool_limits

        products.append(Variant("product, NumPy", 1, lambda: theirs @ theirs, 2 * SIDE**3))
        one_thread = threadpool_limits(1)
    with one_thread:
        rows = timed([*variants, *products], rounds)
    ways, limits = rows[: len(variants)], rows[len(variants) :]
    sgemm = limits["rate"].max()
    return ways.assign(share=100 * flops * ways["rate"] / sgemm, sgemm=sgemm / 1e9)


def step_flops(trainer: StackTrainer) -> float:
    """Matrix product flop of one training step, forward and backward."""
    with FlopCounterMode(display=False) as counter:
        trainer.take_step()
    return float(counter.get_total_flops())
