"""Benchmarks: ratios measured side by side in one process, never a verdict of a test.

`train` times the paper's training step (batch 16, dropout, AdamW) of the main experiment's CoT2 model, written with
Hugging Face's model and a plain loop, batched over runs by `torch.func.vmap` and by JAX, and with our stack at several
sizes, eager, compiled and by the fused engine. `sampling` times training on own thoughts beside teacher forcing, and
the whole Pass@k of the paper's experiment. `decoding` times what a continuous token costs beside a discrete one.
`grpo` times steps of policy gradients, rollouts and update, beside the same steps with Hugging Face's model. `engines`
trains whole runs by the fused engine and compares them with shipped ones. Variants take turns, so that a machine that
speeds up or slows down does so for all.
"""

from cot2lib.study.bench.decoding_step import decoding
from cot2lib.study.bench.own_thoughts import sampling
from cot2lib.study.bench.policy_step import grpo
from cot2lib.study.bench.train_step import train
from cot2lib.study.bench.whole_runs import engines

__all__ = ["decoding", "engines", "grpo", "measure", "sampling", "train"]

WHATS = {"train": train, "sampling": sampling, "decoding": decoding, "grpo": grpo, "engines": engines}


def measure(what: str, quick: bool = False) -> str:
    """One benchmark as printed text; `what` is a key of `WHATS`, `quick` takes fewer rounds and compiles nothing."""
    return WHATS[what](quick=quick)
