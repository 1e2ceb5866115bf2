"""Policy ratios: how far they go, and what the clip does to them.

With one update per batch and no dropout every ratio is one, whatever clip range is chosen. Two things
move it: dropout in the current policy alone, as in the authors' code, and further updates on a batch.
Both are measured here, the first on models that the chapters ship, the second on small tasks whose
reward and divergence are exact (`cot2lib.policy_gradient`).
"""

from collections.abc import Sequence

import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from cot2lib import losses, policy_gradient
from cot2lib.decode import ANSWER, decode, rules
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.model import Dropout, GPT2Stack
from cot2lib.specs import GRPOSpec, RunSpec
from cot2lib.thoughts import MTS
from cot2lib.training.data import stack_data
from cot2lib.training.grpo import Densities, GRPOTrainer, There, Traces, replayed

CLIP, GROUP, PROMPTS = 0.1, 8, 32  # of the measurement with dropout


def log_ratios(new: Densities, old: Densities, ratio: str) -> list[Float[Tensor, "run rollout _ _"]]:
    """Log-ratios that the clip looks at (`losses.log_ratios`), of thoughts and of answers."""
    return [losses.log_ratios(*pair, ratio) for pair in zip(new, old)]


def cut(
    log_ratio: Float[Tensor, "run rollout step draw"], gain: Float[Tensor, "run rollout"], clip: float
) -> Bool[Tensor, "run rollout step draw"]:
    """Ratios that lose their gradient: those that already went the way their advantage pushes."""
    return losses.outside_clip(log_ratio, clip) & (log_ratio * gain[..., None, None] > 0)


def shares_outside(new: Densities, old: Densities, ratio: str, clip: float) -> dict[str, Float[Tensor, " run"]]:
    """Shares of ratios outside 1 - clip .. 1 + clip: of `thoughts` and of `answers`."""
    parts = zip(("thoughts", "answers"), log_ratios(new, old, ratio))
    return {name: _share(losses.outside_clip(log_ratio, clip)) for name, log_ratio in parts}


def _share(held: Bool[Tensor, "run rollout step draw"]) -> Float[Tensor, " run"]:
    return held.double().mean((1, 2, 3))


@torch.no_grad()
def one_sided_dropout(
    stack: GPT2Stack,
    specs: Sequence[RunSpec],
    thought: MTS,
    ratios: Sequence[str] = losses.RATIOS,
    probability: float = 0.1,
) -> pd.DataFrame:
    """Ratios at equal weights if the current policy alone drops out, on held-out prompts of trained models.

    One row per ratio and run: `ratio`, `seed`; `thoughts`, `answers`, shares of ratios outside 1 - clip .. 1 + clip;
    `spread`, the standard deviation of the thoughts' log-ratios. `PROMPTS` of each run are rolled out `GROUP` times.
    """
    data, seeds = stack_data(specs, stack.device), [spec.seed for spec in specs]
    index = data.held_out.index[:, :PROMPTS]
    inputs, padding, steps = data.prompts[index], data.padding_of(index), rules(thought, specs[0].outputs, ANSWER)
    rollout = decode(stack, inputs, steps, random.run_keys(seeds, Site.ROLLOUT), padding, GROUP)
    keys = random.run_keys(seeds, Site.DROPOUT, device=stack.device)
    counter = stack.dropout_counter(index.shape[1] * GROUP, inputs.shape[2] + len(steps))
    dropout = Dropout(keys, counter, probability) if probability else None
    old, new = (replayed(stack, thought, inputs, padding, rollout, mask) for mask in (None, dropout))
    parts = []
    for ratio in ratios:
        spread = log_ratios(new, old, ratio)[0].flatten(1).std(1)
        columns = shares_outside(new, old, ratio, CLIP) | {"spread": spread}
        columns = {name: value.tolist() for name, value in columns.items()}
        parts.append(pd.DataFrame({"ratio": ratio, "seed": seeds} | columns))
    return pd.concat(parts, ignore_index=True)


class WatchedTrainer(GRPOTrainer):
    """A trainer that notes, at the last update on every batch, which ratios left the clip range."""

    def __init__(self, *options, **named):
        super().__init__(*options, **named)
        self.noted: list[dict[str, Tensor]] = []
        self.updates = 0

    def objective(
        self, new: Densities, old: Densities, advantages: Traces, **rest: Densities | There
    ) -> Float[Tensor, " run"]:
        self.updates += 1
        if self.updates % self.spec.updates == 0:
            ratio, clip, now = self.spec.ratio, self.spec.clip, [part.detach() for part in new]
            lost = [_share(cut(log_ratio, advantages, clip)) for log_ratio in log_ratios(now, old, ratio)]
            found = shares_outside(now, old, ratio, clip) | dict(zip(("thoughts_cut", "answers_cut"), lost))
            self.noted.append(found)
        return super().objective(new, old, advantages, **rest)


def several_updates(specs: Sequence[GRPOSpec], start: GPT2Stack) -> pd.DataFrame:
    """Train runs of one shape on two digits; one row per run, all of it exact but the shares.

    Columns: `seed`; `thoughts`, `answers`, shares of ratios outside the clip range at the last update on a batch, mean
    over batches; `thoughts_cut`, `answers_cut`, shares that lose their gradient; `before`, `after`, expected rewards
    over all prompts; `reweighted`, the latter as the start's traces tell it by geometric means; `divergence` from the
    start, in nats per trace.
    """
    spec = specs[0]
    trainer = WatchedTrainer(specs, start)
    trainer.advance(spec.recipe.steps)
    with torch.no_grad():
        old, new = (policy_gradient.law(stack, spec.task, spec.thought) for stack in (start, trainer.stack))
        values = {"before": policy_gradient.expected_reward(old), "after": policy_gradient.expected_reward(new)}
        values["reweighted"] = policy_gradient.reweighted(new, old, "geometric")
        values["divergence"] = policy_gradient.divergence(new, old)
    shares = {name: torch.stack([seen[name] for seen in trainer.noted]).mean(0) for name in trainer.noted[0]}
    columns = {name: value.tolist() for name, value in (shares | values).items()}
    return pd.DataFrame({"seed": [spec.seed for spec in specs], **columns})
