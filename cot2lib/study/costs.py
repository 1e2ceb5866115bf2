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
    """

    variant: str
    runs: int
    turn: Callable[[], object]
    work: float


def timed(variants: Sequence[Variant], rounds: int) -> pd.DataFrame:
    """A row for each way, in alternation: columns `variant`, `runs`, `rate`, `times`.

    `rate` is the work for one run in a second, a median over rounds; `times` how many times the first way's, a median
    over rounds of turns taken beside it.
    """
    taken = in_turns({one.variant: one.turn for one in variants}, rounds)
    rows, first = [], variants[0]
    for one in variants:
        own, base = ([spent / (of.work * of.runs) for spent in taken[of.variant]] for of in (one, first))
        rows.append((one.variant, one.runs, 1 / statistics.median(own), ratio(base, own)))
    return pd.DataFrame(rows, columns=["variant", "runs", "rate", "times"])


def steps_of(trainer: StackTrainer, steps: int) -> Callable[[], None]:
    """Takes so many training steps, the same ones each time it is called."""
    trainer.order[:] = trainer.data.order([s.seed for s in trainer.specs], 0, SEGMENT, trainer.recipe.batch)

    def turn() -> None:
        trainer.position.zero_()
        trainer.take_steps(steps)

    return turn


def feeding_table(rounds: int) -> pd.DataFrame:
    """Milliseconds of a run's training step by who is fed, and the ratio to teacher forcing."""
    made = {  # method, and the options that say whose thoughts are fed
        "teacher forcing": ("cot2", {}),
        "self-feeding": ("cot2", dict(self_fed_from=0.0)),
        "COCONUT, last stage": ("coconut", {}),
        "COCONUT with zero slots, last stage": ("coconut-slot", {}),
    }
    variants = []
    for name, (method, options) in made.items():
        trainer = SupervisedTrainer([spec(method, seed=42 + run, **options) for run in range(STACK)])
        trainer.progress.step = trainer.recipe.steps - 1 if method.startswith("coconut") else 0
        trainer.advance(1)
        variants.append(Variant(name, STACK, steps_of(trainer, STEPS), STEPS))
    found = timed(variants, rounds)
    costs = {"ms per run-step": 1000 / found["rate"], "times teacher forcing": 1 / found["times"]}
    return pd.DataFrame({"fed": found["variant"], **costs})
