"""Masks on attention that keep each step local: it reads the thought before it and its own part of the prompt.

A run trains and is evaluated under such a mask if its supervision says so (`Supervision.sees`). On sums a frontier
can be computed under it, because it follows from the frontier before and the step's own digit. A discrete path cannot:
its first token has to lead to an answer that depends on all digits. The paper has no such runs.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Bool
from torch import Tensor

from cot2lib.tasks import Task

Sees = Literal["all", "local", "strict"]
Mask = Bool[Tensor, "depth depth"]  # which positions (columns) each may attend to, counted along a branch


def causal(positions: int) -> Mask:
    """Attention as GPT-2 has it: each position sees itself and all before it."""
    return torch.ones(positions, positions, dtype=torch.bool).tril()


def seen(task: Task, sees: Sees, tokens: int) -> Mask | None:
    """What the positions of a task's sequences may attend to; None for all before them.

    The query of a step is the position from which its output is predicted: the arrow for the first step, then each fed
    thought. Under "local" and "strict" it sees itself and the tokens that `Task.reads` names. Tokens of
    the prompt see all before them under "local". Under "strict" they see themselves alone, so that no token carries
    what earlier ones say. `tokens` is the length of the prompts.
    """
    if sees == "all":
        return None
    positions, needed = task.positions, task.reads
    assert needed is not None
    mask = torch.eye(positions, dtype=torch.bool)
    if sees == "local":
        mask[: tokens - 1] = causal(positions)[: tokens - 1]
    steps, named = needed.shape
    mask[tokens - 1 : tokens - 1 + steps, :named] |= needed
    return mask


def masks(task: Task, tokens: int) -> dict[str, list[Mask]]:
    """Masks for the evaluation of trained models: the query of one step, or of each, sees some places alone.

    Each name has one mask, or several of a kind. Every query sees itself, which is the thought before its step or the
    arrow. All other positions see what they saw in training, so a digit's position has read the digits before it. Many
    models attend to `<BOS>` where nothing else matters; a mask without it shows less than one with it.

    The task's `reads` names one token a step, its digit. Prompts begin with `<BOS>` and end with the arrow; `tokens`
    is their length.
    """
    assert task.reads is not None
    digits, steps = task.reads.int().argmax(1), range(task.steps)
    queries = [tokens - 1 + step for step in steps]
    bos, arrow, prompt = ([places] * task.steps for places in ([0], [tokens - 1], [*range(tokens)]))
    earlier, own = [[*range(tokens, query)] for query in queries], digits[:, None].tolist()
    others = [digits.roll(by)[:, None].tolist() for by in range(1, task.steps)]

    def restricted(chosen: Sequence[int], *named: Sequence[list[int]]) -> Mask:
        mask = causal(tokens + task.steps - 1)
        for step in chosen:
            seen = [queries[step], *(place for places in named for place in places[step])]
            mask[queries[step]] = False
            mask[queries[step], seen] = True
        return mask

    found = {f"step {step + 1}: own digit, <BOS>": [restricted([step], own, bos)] for step in steps}
    for name, chosen in (("answer", [task.steps - 1]), ("steps", [*steps])):
        kinds = {
            "own digit": [restricted(chosen, own)],
            "own digit, arrow": [restricted(chosen, own, arrow)],
            "own digit, <BOS>": [restricted(chosen, own, bos)],
            "own digit, <BOS>, arrow": [restricted(chosen, own, bos, arrow)],
            "another digit": [restricted(chosen, other) for other in others],
            "another digit, <BOS>": [restricted(chosen, other, bos) for other in others],
            "no earlier thoughts": [restricted(chosen, prompt)],
            "no digits": [restricted(chosen, bos, arrow, earlier)],
        }
        found |= {f"{name}: {kind}": made for kind, made in kinds.items()}
    return found
