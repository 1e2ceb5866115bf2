"""Costs of training and sampling: ways that take turns on one machine, as rates and as ratios.

The book times training steps by whose thoughts are fed, and our ways beside others'.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd

from cot2lib.kit.timing import in_turns, ratio
from cot2lib.specs.profiles import spec
from cot2lib.training.supervised import SupervisedTrainer
from cot2lib.training.trainer import SEGMENT, StackTrainer

STACK = 8  # runs side by side in `feeding_table`
STEPS = 6  # training steps in a turn


@dataclass
class Variant:
    """A way to do some work.

    Attributes:
        variant: how tables call it.
        runs: runs that are done side by side.
        turn: does `work` for each of them.
        work: steps or prompts of one run in a turn.
        memory: peak memory (GiB); NaN where unknown.
    """

    variant: str
    runs: int
    turn: Callable[[], object]
    work: float
    memory: float = float("nan")


def timed(variants: Sequence[Variant], rounds: int) -> pd.DataFrame:
    """A row for each way, in alternation: columns `variant`, `runs`, `rate`, `times`, `memory`.

    `rate` is the work for one run in a second, a median over rounds; `times` how many times the first way's, a median
    over rounds of turns taken beside it.
    """
    taken = in_turns({one.variant: one.turn for one in variants}, rounds)
    each = [[spent / (one.work * one.runs) for spent in taken[one.variant]] for one in variants]
    rows = [
        (one.variant, one.runs, 1 / statistics.median(own), ratio(each[0], own), one.memory)
        for one, own in zip(variants, each)
    ]
    return pd.DataFrame(rows, columns=["variant", "runs", "rate", "times", "memory"])


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
    variants = []
    for name, (options, place) in made.items():
        trainer = SupervisedTrainer([spec(**options, seed=42 + run) for run in range(STACK)])
        trainer.progress.step = place % trainer.recipe.steps
        trainer.advance(1)
        variants.append(Variant(name, STACK, steps_of(trainer), STEPS))
    found = timed(variants, rounds)
    costs = {"ms per run-step": 1000 / found["rate"], "times teacher forcing": 1 / found["times"]}
    return pd.DataFrame({"fed": found["variant"], **costs})
