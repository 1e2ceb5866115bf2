"""Supervised training of a small language model on stories and their chains: what policy gradients start from."""

import math
from collections.abc import Sequence
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from cot2lib.kit import random, timing
from cot2lib.kit.hugging_face import LanguageModel, Tokenizer
from cot2lib.kit.random import Site
from cot2lib.llm.stories import Story

IGNORED = -100  # a label that is not scored


def labelled(
    tokenizer: Tokenizer, stories: Sequence[Story]
) -> tuple[Int[Tensor, "story token"], Int[Tensor, "story token"]]:
    """Stories with chains and an end token, padded on the right, and labels: the chain and the end."""
    prompts = [tokenizer(story.text)["input_ids"] for story in stories]
    chains = [[*tokenizer(story.chain)["input_ids"], tokenizer.eos_token_id] for story in stories]
    ids = [torch.tensor(prompt + chain) for prompt, chain in zip(prompts, chains)]
    labels = [torch.tensor([IGNORED] * len(prompt) + chain) for prompt, chain in zip(prompts, chains)]
    padded = partial(pad_sequence, batch_first=True)
    return padded(ids, padding_value=tokenizer.pad_token_id), padded(labels, padding_value=IGNORED)


def train(
    model: LanguageModel, tokenizer: Tokenizer, stories: Sequence[Story], steps: int, batch: int, lr: float, seed: int
) -> Float[Tensor, " step"]:
    """AdamW with a rate that rises over a twentieth of the steps and falls to zero by a cosine; each step's loss.

    Batches are drawn with replacement, as a function of seed and step alone.
    """
    ids, labels = labelled(tokenizer, stories)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.0)
    rise = max(1, steps // 20)
    share = lambda step: min((step + 1) / rise, (1 + math.cos(math.pi * step / steps)) / 2)
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, share)
    keys, found = random.run_keys([seed], Site.ORDER), []
    with timing.told("learning stories", steps) as tell:
        for step in range(steps):
            rows = (random.uniform(random.fold(keys, step), batch)[0] * len(ids)).long()
            loss = model(input_ids=ids[rows], labels=labels[rows]).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rate.step()
            found.append(loss.detach())
            tell(step + 1)
    return torch.stack(found)
