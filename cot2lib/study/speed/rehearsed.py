"""Training, reward and decoding on one device, beside the same loops with Hugging Face's model on that device."""

from collections.abc import Callable, Iterable, Sequence

import pandas as pd
import torch

from cot2lib.decode import decode, rules
from cot2lib.study.costs import Variant, timed
from cot2lib.study.speed import reward, training
from cot2lib.study.speed.variants import BASELINE
from cot2lib.thoughts import Base
from cot2lib.training.data import stack_data
from cot2lib.training.supervised import build_stack

SIZES = {"cpu": (1, 16), "cuda": (1, 64, 256, 1024)}  # runs side by side
REWARD_SIZES = {"cpu": (1, 8), "cuda": (1, 16, 64)}
PROMPTS = 128  # decoded side by side
ROUNDS = 3
COLUMNS = ["what", "variant", "runs", "rate", "times", "memory"]
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
    """Answers after base thoughts, with keys and values kept, of untrained models, whose speed is the same."""
    return [_plain_decoding(device), *(_stacked_decoding(runs, device) for runs in SIZES[device.type][:2])]


def _stacked_decoding(runs: int, device: torch.device) -> Variant:
    """Our stacked models."""
    specs = training.runs_of(runs)
    models, steps = build_stack(specs).to(device), rules(Base(), specs[0].outputs)
    prompts = stack_data(specs[:1], device).prompts[None, :PROMPTS]
    return Variant(f"stack of {runs}", runs, torch.no_grad()(lambda: decode(models, prompts, steps)), PROMPTS)


def _plain_decoding(device: torch.device) -> Variant:
    """One model of Hugging Face's, its cache, the whole batch, softmax times the embedding table."""
    run = training.MAIN()
    model = build_stack([run]).to_hf(0).to(device)
    prompts, table = stack_data([run], device).prompts[:PROMPTS], model.transformer.wte.weight

    @torch.no_grad()
    def turn() -> None:
        out = model(input_ids=prompts, use_cache=True)
        for _ in range(run.outputs - 1):
            fed = out.logits[:, -1:].softmax(-1) @ table
            out = model(inputs_embeds=fed, past_key_values=out.past_key_values, use_cache=True)
        out.logits[:, -1].argmax(-1)

    return Variant(BASELINE, 1, turn, PROMPTS)


WAYS: dict[str, Callable[[torch.device], Sequence[Variant]]] = {
    "training": _training,
    "reward": _reward,
    "decoding": _decoding,
}


def measure(what: str, device: torch.device) -> pd.DataFrame:
    """The rows (`COLUMNS`) of one of `WAYS` on a device; the loop comes first."""
    return timed(WAYS[what](device), ROUNDS).assign(what=what)[COLUMNS]


def best_stack(timed: pd.DataFrame) -> int:
    """The number of runs in the fastest stack."""
    stacks = timed[timed["variant"].str.startswith("stack of")]
    return int(stacks.loc[stacks["rate"].idxmax(), "runs"])


def _that_fit(variants: Iterable[Variant], device: torch.device) -> list[Variant]:
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
