"""Replay of finished rollouts by the fused CPU engine, gradients included, in the place of `cot2lib.decode.replay`.

Rollouts, rewards, densities and the objective stay torch's, so every thought rule and every ratio trains this way.
Only the forward that carries gradients, and its backward, are the engine's.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.decode import Rollout
from cot2lib.model import Branches, Dropout, GPT2Stack
from cot2lib.thoughts import Sampled
from cot2lib.training.grpo import Densities, GRPOTrainer, densities

Parameters = Float[Tensor, "run parameter"]
Thoughts = Float[Tensor, "run rollout thought d"]
Logits = Float[Tensor, "run rollout step vocab"]


class FusedReplay:
    """Takes the place of `cot2lib.training.grpo.replayed` for the runs of a trainer.

    A backward pass follows its own forward pass, since both use the same arrays.

    Args:
        trainer: whose rollouts are replayed, without dropout.
        threads: how many runs are computed at a time.
    """

    def __init__(self, trainer: GRPOTrainer, threads: int = 1):
        from cot2lib.fast.forward import Noise, Shape, work

        sizes, prompt, group = trainer.stack.shape, trainer.data.prompts.shape[1], trainer.group
        branches = group * (trainer.spec.outputs - 1)
        self.shape = Shape(
            vocab=sizes["vocab_size"],
            places=sizes["positions"],
            width=sizes["d_model"],
            layers=sizes["layers"],
            heads=sizes["heads"],
            batch=trainer.recipe.batch,
            positions=prompt + branches,
            scored=1 + branches,
        )
        layout, places = Branches(prompt, group), torch.arange(self.shape.positions)
        visible = (~layout.blocked(places, places)).numpy()
        depths = np.array([layout.depth(place) for place in places.tolist()])
        self.works = [work(self.shape, visible, depths) for _ in trainer.specs]
        self.silent = Noise(np.uint64(0), np.zeros(0, np.uint64), np.int32(0), np.float32(1))
        self.threads = threads

    def __call__(
        self,
        stack: GPT2Stack,
        thought: Sampled,
        prompts: Int[Tensor, "run prompt token"],
        padding: Int[Tensor, "run prompt"] | None,
        rollout: Rollout,
        dropout: Dropout | None = None,
    ) -> Densities:
        """The density of every draw of a rollout under a stack."""
        flat = torch.cat([parameter.flatten(1) for parameter in stack.parameters()], 1)  # (run, parameter)
        logits = _Replay.apply(flat, rollout.thoughts(stack), self, self.data(prompts, padding))
        return densities(stack, thought, logits, rollout)

    def data(self, prompts: Int[Tensor, "run prompt token"], padding: Int[Tensor, "run prompt"] | None) -> list:
        """Each run's prompts, as the engine takes inputs; they have no targets."""
        from cot2lib.fast.forward import Data

        padding = torch.zeros_like(prompts[..., 0]) if padding is None else padding
        none, nothing = np.zeros(0, np.int64), np.zeros(0, np.float32)
        return [
            Data(prompt, pad, none, none, none, nothing, steps=0, mean=False, sequence=False)
            for prompt, pad in zip(prompts.numpy(), padding.numpy())
        ]

    def each(self, task: Callable[[int], None]) -> None:
        """A task for every run."""
        runs = range(len(self.works))
        if self.threads == 1:
            for run in runs:
                task(run)
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(task, runs))


class _Replay(torch.autograd.Function):
    """Logits of thoughts that are fed after prompts, with gradients to parameters and thoughts."""

    @staticmethod
    def forward(ctx, flat: Parameters, thoughts: Thoughts, engine: FusedReplay, data: Sequence) -> Logits:
        from cot2lib.fast.step import replay

        runs, rollouts, fed, _ = thoughts.shape
        logits = thoughts.new_empty(runs, rollouts, fed + 1, engine.shape.vocab)
        inputs, weights, given, out = _inputs(engine), flat.numpy(), thoughts.contiguous().numpy(), logits.numpy()

        def task(run: int) -> None:
            replay(
                weights[run], engine.shape, data[run], inputs, given[run], engine.silent, out[run], engine.works[run]
            )

        engine.each(task)
        ctx.engine, ctx.data, ctx.fed = engine, data, thoughts.shape
        ctx.save_for_backward(flat)
        return logits

    @staticmethod
    def backward(ctx, d_logits: Logits) -> tuple[Parameters, Thoughts, None, None]:
        from cot2lib.fast.step import replay_back

        engine, (flat,) = ctx.engine, ctx.saved_tensors
        d_flat, d_thoughts = torch.empty_like(flat), flat.new_empty(ctx.fed)
        inputs, weights, given, out = _inputs(engine), flat.numpy(), d_logits.contiguous().numpy(), d_thoughts.numpy()

        def task(run: int) -> None:
            work, data = engine.works[run], ctx.data[run]
            replay_back(weights[run], engine.shape, data, inputs, given[run], engine.silent, out[run], work)
            d_flat[run] = torch.from_numpy(work.gradient)

        engine.each(task)
        return d_flat, d_thoughts, None, None


def _inputs(engine: FusedReplay) -> np.ndarray:
    """Rows of the prompts of a batch: all of them."""
    return np.arange(engine.shape.batch)
