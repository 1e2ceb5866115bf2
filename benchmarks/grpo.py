"""Steps of policy gradients, rollouts and update, side by side on one core: `python benchmarks/grpo.py [--quick]`.

A plain loop with Hugging Face's model and its cache beside our stack and our fused engine. The loop's arithmetic is
that of `cot2lib.training.grpo` for the geometric-mean ratio without divergence; a test compares the two. It needs
the extra `llm`.
"""

import pandas as pd
import torch
from shared import (
    BASELINE,
    QUICK_ROUNDS,
    ROUNDS,
    STEPS,
    Variant,
    beside_the_limit,
    fused,
    options,
    show,
    stack,
    step_flops,
)
from torch import Tensor

from cot2lib.kit.timing import threads
from cot2lib.runs import load_stack
from cot2lib.specs import GRPOSpec, Recipe
from cot2lib.specs.profiles import spec
from cot2lib.thoughts import MTS
from cot2lib.training.grpo import GRPOTrainer

SIZES = (1, 8, 16)  # runs side by side


def multinomial(chances: Tensor, count: int) -> Tensor:
    return torch.multinomial(chances, count, replacement=True)


class PlainGRPO:
    """GRPO with multi-token sampling as one writes it: one model, all prompts times all rollouts in a batch.

    Args:
        spec: a run by `MTS` at temperature 1.
        model: a `transformers.GPT2LMHeadModel` to train.
    """

    def __init__(self, spec: GRPOSpec, model: torch.nn.Module):
        self.spec, self.model = spec, model
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=spec.recipe.lr, weight_decay=spec.recipe.weight_decay, fused=True
        )

    def step(self, prompts: Tensor, answers: Tensor) -> None:
        """Roll out, reward, and descend once."""
        group = self.spec.group
        prompts, answers = prompts.repeat_interleave(group, 0), answers.repeat_interleave(group)
        thoughts, answered = self.roll_out(prompts)
        rewards = (answered[:, 0] == answers).float().view(-1, group)
        centred = rewards - rewards.mean(1, keepdim=True)
        gain = (centred / rewards.std(1, correction=0, keepdim=True).clamp(min=1e-12)).flatten()
        new = self.log_densities(prompts, thoughts, answered)
        self.optimizer.zero_grad()
        self.objective(new, tuple(part.detach() for part in new), gain).backward()
        self.optimizer.step()

    @torch.no_grad()
    def roll_out(self, prompts: Tensor, draw=multinomial) -> tuple[Tensor, Tensor]:
        """The tokens of every thought (rollout, thought, draw) and the answer (rollout, one)."""
        out, thoughts = self.model(input_ids=prompts, use_cache=True), []
        for _ in range(self.spec.outputs - 1):
            thoughts.append(draw(out.logits[:, -1].softmax(-1), self.spec.thought.k))
            fed = self.mean_embedding(thoughts[-1])[:, None]
            out = self.model(inputs_embeds=fed, past_key_values=out.past_key_values, use_cache=True)
        return torch.stack(thoughts, 1), draw(out.logits[:, -1].softmax(-1), 1)

    def mean_embedding(self, tokens: Tensor) -> Tensor:
        return self.model.transformer.wte(tokens).mean(-2)

    def log_densities(self, prompts: Tensor, thoughts: Tensor, answered: Tensor) -> tuple[Tensor, Tensor]:
        """Log-densities of what was drawn, in one forward with gradients."""
        inputs = torch.cat([self.model.transformer.wte(prompts), self.mean_embedding(thoughts)], 1)
        scores = self.model(inputs_embeds=inputs, use_cache=False).logits[:, -self.spec.outputs :].log_softmax(-1)
        return scores[:, :-1].gather(-1, thoughts), scores[:, -1].gather(-1, answered)

    def objective(self, new: tuple[Tensor, Tensor], old: tuple[Tensor, Tensor], gain: Tensor) -> Tensor:
        """Minus the clipped surrogate, mean over steps and rollouts."""
        change = torch.cat([(new[0] - old[0]).mean(-1), new[1] - old[1]], 1)
        ratio, gain = change.exp(), gain[:, None]
        return -torch.minimum(ratio * gain, ratio.clamp(1 - self.spec.clip, 1 + self.spec.clip) * gain).mean()


def policy_run(seed: int = 42) -> GRPOSpec:
    """The paper's GRPO at K = 3 from a discrete start of the smaller model."""
    start = spec("discrete", d_model=24, layers=1, heads=1, seed=seed)
    return GRPOSpec(Recipe(steps=1000, batch=16, lr=5e-5, evaluate_every=1000), start, MTS(3))


def trainer(runs: int, compiled: bool = False) -> GRPOTrainer:
    """Ours, of several seeds from one shipped model."""
    start = load_stack([policy_run().start] * runs, missing="error")
    made = GRPOTrainer([policy_run(42 + run) for run in range(runs)], start, torch.device("cpu"))
    if compiled:
        made.decode, made.replayed = (torch.compile(part, dynamic=False) for part in (made.decode, made.replayed))
    return made


def hugging_face() -> Variant:
    """The same run's steps with Hugging Face's model."""
    ours = trainer(1)
    data, batch, plain = ours.data, ours.recipe.batch, PlainGRPO(ours.spec, ours.stack.to_hf(0))
    batches = data.order([ours.spec.seed], 0, STEPS, batch)[0]

    def turn() -> None:
        for index in batches:
            plain.step(data.prompts[index], data.answers[index])

    return Variant(BASELINE, 1, turn, STEPS * batch)


def prompts(rounds: int, compiled: bool) -> pd.DataFrame:
    """Prompts of a run in a second by the loop, by stacks and by the engine."""
    batch = policy_run().recipe.batch
    stacks = [stack(trainer(n, fast), fast, batch) for n in SIZES for fast in ([False, True] if compiled else [False])]
    engines = [way for runs in (SIZES[0], SIZES[-1]) for way in fused(trainer(runs), batch)]
    return beside_the_limit([hugging_face(), *stacks, *engines], rounds, step_flops(trainer(1)) / batch)


if __name__ == "__main__":
    asked = options(__doc__.partition(":")[0]).parse_args()
    with threads(1):
        show(prompts(QUICK_ROUNDS if asked.quick else ROUNDS, not asked.quick))
