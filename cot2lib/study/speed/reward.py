"""Steps of policy gradients, rollouts and update: our stack and engine beside the same with Hugging Face's model."""

import pandas as pd
import torch

from cot2lib.decode import decode
from cot2lib.runs import load_stack
from cot2lib.specs import GRPOSpec, Recipe
from cot2lib.specs.profiles import spec
from cot2lib.study.costs import STEPS, Variant, steps_of
from cot2lib.study.speed.plain_grpo import PlainGRPO
from cot2lib.study.speed.variants import BASELINE, CPU, beside_the_limit, step_flops
from cot2lib.thoughts import MTS
from cot2lib.training.engines import preferred, unfit
from cot2lib.training.grpo import GRPOTrainer, replayed

SIZES = (1, 8, 16)  # runs side by side
FUSED_STEPS = 50  # in a turn of the engine, which is called once for a segment


def prompts(rounds: int, compiled: bool) -> pd.DataFrame:
    """Prompts of a run in a second by the loop and by stacks, beside the limit."""
    stacks = [stack(runs, fast) for runs in SIZES for fast in ((False, True) if compiled else (False,))]
    return beside_the_limit([hugging_face(), *stacks, *fused()], rounds, one_prompt())


def one_prompt() -> float:
    """Matrix product flop of our step for one prompt."""
    return step_flops(policy_trainer(1)) / policy_run().recipe.batch


def policy_run(seed: int = 42) -> GRPOSpec:
    """The paper's GRPO at K = 3 from a discrete start of the smaller model."""
    start = spec("discrete", d_model=24, layers=1, heads=1, seed=seed)
    return GRPOSpec(Recipe(steps=1000, batch=16, lr=5e-5, evaluate_every=1000), start, MTS(3))


def policy_trainer(runs: int, device: torch.device = CPU) -> GRPOTrainer:
    """Runs of several seeds, all from one shipped model."""
    stack = load_stack([policy_run().start] * runs, missing="error")
    return GRPOTrainer([policy_run(42 + run) for run in range(runs)], stack, device)


def stack(runs: int, compiled: bool = False, device: torch.device = CPU) -> Variant:
    """Our stacked trainer."""
    trainer = policy_trainer(runs, device)
    if compiled:
        trainer.decode, trainer.replayed = (torch.compile(part, dynamic=False) for part in (decode, replayed))
    turn = steps_of(trainer, STEPS)
    return Variant(f"stack of {runs}{', compiled' if compiled else ''}", runs, turn, STEPS * policy_run().recipe.batch)


def fused() -> list[Variant]:
    """The fused engine on one thread; none where it does not work."""
    if unfit(policy_run()):
        return []
    work = FUSED_STEPS * policy_run().recipe.batch
    turns = {runs: steps_of(preferred(policy_trainer(runs), 1), FUSED_STEPS) for runs in (SIZES[0], SIZES[-1])}
    return [Variant(f"fused, {runs} runs", runs, turn, work) for runs, turn in turns.items()]


def hugging_face(device: torch.device = CPU) -> Variant:
    """The same run's steps with Hugging Face's model."""
    trainer = policy_trainer(1, device=device)
    data, plain = trainer.data, PlainGRPO(trainer.spec, trainer.stack.to_hf(0).to(device))
    batches = data.order([trainer.spec.seed], 0, STEPS, trainer.recipe.batch)[0]

    def turn() -> None:
        for index in batches:
            plain.step(data.prompts[index], data.answers[index])

    return Variant(BASELINE, 1, turn, STEPS * trainer.recipe.batch)
