"""What all benchmarks share: the loop they are held against, this machine, flop and memory of a step."""

import gc
from collections.abc import Callable
from pathlib import Path

import torch
from torch.utils.flop_counter import FlopCounterMode

from cot2lib.kit.provenance import device_name
from cot2lib.training.trainer import StackTrainer

ROUNDS, QUICK_ROUNDS = 15, 3
BASELINE = "Hugging Face loop"
CPU = torch.device("cpu")


def rounds(quick: bool) -> int:
    """How many turns every variant takes."""
    return QUICK_ROUNDS if quick else ROUNDS


def named() -> str:
    """This machine and its torch."""
    return f"one core of {device_name(CPU)}, torch {torch.__version__}"


def step_flops(trainer: StackTrainer) -> float:
    """Matrix product flop of one training step, forward and backward."""
    with FlopCounterMode(display=False) as counter:
        trainer.take_step()
    return float(counter.get_total_flops())


def peak_memory(turn: Callable[[], None]) -> float:
    """Peak resident memory of the process over one turn, in GiB (Linux only, else NaN)."""
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5")
        turn()
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 2**20
    except OSError:
        return float("nan")
