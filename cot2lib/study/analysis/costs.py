"""What ways of training and sampling cost: turns taken in alternation on one machine, as ratios.

The book times a training step by whose thoughts are fed, and rollouts by how many are drawn.
"""

import statistics
from collections.abc import Callable, Sequence

import pandas as pd
import torch

from cot2lib.decode import decode, rules
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.kit.timing import in_turns, ratio
from cot2lib.model import GPT2Stack
from cot2lib.specs import RunSpec
from cot2lib.specs.profiles import spec
from cot2lib.study.analysis.passk import Stacks
from cot2lib.thoughts import Discrete
from cot2lib.training.data import StackData, stack_data
from cot2lib.training.supervised import SupervisedTrainer
from cot2lib.training.trainer import SEGMENT, StackTrainer

STACK = 8  # runs side by side in `feeding_table`
STEPS = 6  # training steps in a turn
ROLLOUT_ROUNDS = 5


def steps_of(trainer: StackTrainer, steps: int | None = None) -> Callable[[], None]:
    """Takes training steps, `STEPS` by default, the same ones each time it is called."""
    trainer.order[:] = trainer.data.order([s.seed for s in trainer.specs], 0, SEGMENT, trainer.recipe.batch)

    def turn() -> None:
        trainer.position.zero_()
        trainer.take_steps(STEPS if steps is None else steps)

    return turn


def feeding_table(rounds: int) -> pd.DataFrame:
    """Milliseconds of a run's training step by who is fed, and the ratio to teacher forcing."""
    made = {
        "teacher forcing": (dict(method="cot2"), 0),
        "self-feeding": (dict(method="cot2", self_fed_from=0.0), 0),
        "COCONUT, last stage": (dict(method="coconut"), -1),
        "COCONUT with zero slots, last stage": (dict(method="coconut-slot"), -1),
    }
    turns = {}
    for name, (options, place) in made.items():
        trainer = SupervisedTrainer([spec(**options, seed=42 + run) for run in range(STACK)])
        trainer.progress.step = place % trainer.recipe.steps
        trainer.advance(1)
        turns[name] = steps_of(trainer)
    taken = in_turns(turns, rounds)
    return pd.DataFrame(
        [
            {
                "fed": name,
                "ms per run-step": 1000 * statistics.median(own) / (STEPS * STACK),
                "times teacher forcing": ratio(own, taken["teacher forcing"]),
            }
            for name, own in taken.items()
        ]
    )


def rollout_costs(stacks: Stacks, ks: Sequence[int], prompts: int = 64) -> pd.DataFrame:
    """What k rollouts per prompt cost: positions a model computes, and seconds beside one CoT2 trace.

    Columns `method`, `k`, `positions` (prompt once, then one per fed thought and rollout), `ratio` (median over rounds
    taken in alternation of the time over that of one CoT2 trace).
    """
    turns = {}
    for method, (stack, specs) in stacks.items():
        data = stack_data(specs, stack.device)
        for k in ks if method == "discrete CoT" else (1,):
            turns[method, k] = _rollout(stack, data, specs, k, prompts)
    taken, rows = in_turns(turns, ROLLOUT_ROUNDS), []
    for (method, k), seconds in taken.items():
        spec = stacks[method][1][0]
        prompt = spec.task.prompt(spec.supervision.arrow).shape[1]
        positions = prompt + k * (spec.outputs - 1)
        times = ratio(seconds, taken["CoT2", 1])
        rows.append({"method": method, "k": k, "positions": positions, "ratio": times})
    return pd.DataFrame(rows)


def _rollout(stack: GPT2Stack, data: StackData, specs: Sequence[RunSpec], k: int, prompts: int):
    index = data.held_out.index[:, :prompts]
    rule = Discrete(1.0) if k > 1 else specs[0].thought
    keys = random.run_keys([spec.seed for spec in specs], Site.DECODE)

    @torch.no_grad()
    def turn() -> None:
        decode(stack, data.prompts[index], rules(rule, specs[0].outputs), keys, data.padding_of(index), samples=k)

    return turn
