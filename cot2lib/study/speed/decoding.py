"""Answers after base thoughts, with keys and values kept, of untrained models, whose speed is the same."""

import torch

from cot2lib.decode import decode, rules
from cot2lib.study.costs import Variant
from cot2lib.study.speed.training import MAIN, runs_of
from cot2lib.study.speed.variants import BASELINE, CPU
from cot2lib.thoughts import Base
from cot2lib.training.data import stack_data
from cot2lib.training.supervised import build_stack

PROMPTS = 128  # decoded side by side


def stack(runs: int, device: torch.device = CPU) -> Variant:
    """Our stacked models."""
    specs = runs_of(runs)
    models, steps = build_stack(specs).to(device), rules(Base(), specs[0].outputs)
    prompts = stack_data(specs[:1], device).prompts[None, :PROMPTS]

    @torch.no_grad()
    def turn() -> None:
        decode(models, prompts, steps)

    return Variant(f"stack of {runs}", runs, turn, PROMPTS)


def hugging_face(device: torch.device = CPU) -> Variant:
    """One model of Hugging Face's, its cache, the whole batch, softmax times the embedding table."""
    run = MAIN()
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
