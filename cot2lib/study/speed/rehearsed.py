"""Training, reward and decoding on one device, beside the same loops with Hugging Face's model on that device."""

from collections.abc import Callable, Iterator, Sequence

import pandas as pd
import torch

from cot2lib.study.costs import Variant, timed
from cot2lib.study.speed import decoding, reward, training

SIZES = {"cpu": (1, 16), "cuda": (1, 64, 256, 1024)}  # runs side by side
REWARD_SIZES = {"cpu": (1, 8), "cuda": (1, 16, 64)}
ROUNDS = 3
COLUMNS = ("what", "variant", "runs", "rate", "times", "memory")
ROOM = 0.8  # of a GPU's memory that the largest stack may take


def _training(device: torch.device) -> list[Variant]:
    """Steps of the main model by the authors' recipe."""
    stacks = (training.stack(runs, device=device) for runs in SIZES[device.type])
    engine = training.fused(SIZES["cpu"]) if device.type == "cpu" else []
    return [training.hugging_face(device), *_that_fit(stacks, device), *engine]


def _reward(device: torch.device) -> list[Variant]:
    """Policy gradients, rollouts and update, K = 3, of the smaller model; from a shipped start."""
    return [reward.hugging_face(device), *(reward.stack(runs, device=device) for runs in REWARD_SIZES[device.type])]


def _decoding(device: torch.device) -> list[Variant]:
    return [decoding.hugging_face(device), *(decoding.stack(runs, device) for runs in SIZES[device.type][:2])]


WAYS: dict[str, Callable[[torch.device], Sequence[Variant]]] = {
    "training": _training,
    "reward": _reward,
    "decoding": _decoding,
}


def measure(what: str, device: torch.device) -> pd.DataFrame:
    """The rows (`COLUMNS`) of one of `WAYS` on a device; the loop comes first."""
    return timed(WAYS[what](device), ROUNDS).assign(what=what)[[*COLUMNS]]


def best_stack(timed: pd.DataFrame) -> int:
    """The number of runs in the fastest stack."""
    stacks = timed[timed["variant"].str.startswith("stack of")]
    return int(stacks.loc[stacks["rate"].idxmax(), "runs"])


def _that_fit(variants: Iterator[Variant], device: torch.device) -> list[Variant]:
    """Variants with the memory that each took on a GPU, up to the first that would not leave room for the next."""
    if device.type == "cpu":
        return list(variants)
    kept, whole = [], torch.cuda.get_device_properties(device).total_memory
    for variant in variants:
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        variant.turn()  # captures its graph
        torch.cuda.synchronize(device)
        taken = torch.cuda.max_memory_allocated(device) - before
        variant.memory = taken / 2**30
        kept.append(variant)
        if 4 * taken > ROOM * (whole - torch.cuda.memory_allocated(device)):
            break
    return kept
