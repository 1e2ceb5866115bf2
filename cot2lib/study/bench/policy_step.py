"""Steps of policy gradients, rollouts and update: our stack beside the same steps with Hugging Face's model."""

import statistics
from collections.abc import Callable

import pandas as pd

from cot2lib.kit.timing import in_turns, ratio, threads
from cot2lib.runs import load_stack, sgemm_rate
from cot2lib.specs import GRPOSpec, Recipe
from cot2lib.specs.profiles import spec
from cot2lib.study.analysis.costs import STEPS, steps_of
from cot2lib.study.bench import machine
from cot2lib.study.bench.machine import BASELINE, CPU
from cot2lib.study.bench.plain_grpo import PlainGRPO
from cot2lib.thoughts import MTS
from cot2lib.training.grpo import GRPOTrainer

SIZES = (1, 8, 16)  # runs side by side


def grpo(quick: bool = False) -> str:
    """The fourth benchmark as printed text: machine, table, and what the numbers are."""
    with threads(1):
        table, flops, sgemm = grpo_table(rounds=machine.rounds(quick), compiled=not quick)
    run = policy_run()
    return (
        f"GRPO step, rollouts and update, 1 layer, 1 head, d=24, G={run.group}, K={run.thought.k}, {run.recipe.batch} "
        f"prompts; {machine.named()}.\nOne prompt of ours is "
        f"{flops / 1e6:.2f} Mflop of matrix products; sgemm here {sgemm / 1e9:.0f} Gflop/s. Medians of turns taken in "
        f"alternation.\n\n{table.round(2).to_string(index=False)}"
    )


def grpo_table(rounds: int, compiled: bool) -> tuple[pd.DataFrame, float, float]:
    """Speed of policy gradients by stack; matrix product flop of our step per prompt; the measured sgemm rate."""
    sgemm, turns, prompts = [], {BASELINE: (plain_policy(), 1)}, policy_run().recipe.batch
    for size in SIZES:
        for fast in (False, True) if compiled else (False,):
            turns[f"stack of {size}{', compiled' if fast else ''}"] = steps_of(policy_trainer(size, fast)), size
    taken = in_turns(
        {name: turn for name, (turn, _) in turns.items()}
        | {"sgemm": lambda: sgemm.append(sgemm_rate(CPU, repeats=1))},
        rounds,
    )
    each = {name: [spent / (STEPS * size * prompts) for spent in taken[name]] for name, (_, size) in turns.items()}
    flops, rate = machine.step_flops(policy_trainer(1)) / prompts, statistics.median(sgemm)
    rows = [
        {
            "variant": name,
            "prompts/s": round(1 / statistics.median(own)),
            "times the loop": ratio(each[BASELINE], own),
            "share of sgemm (%)": 100 * flops / statistics.median(own) / rate,
        }
        for name, own in each.items()
    ]
    return pd.DataFrame(rows), flops, rate


def policy_run(seed: int = 42) -> GRPOSpec:
    """The paper's GRPO at K = 3 from a discrete start of the smaller model."""
    start = spec("discrete", d_model=24, layers=1, heads=1, seed=seed)
    return GRPOSpec(Recipe(steps=1000, batch=16, lr=5e-5, evaluate_every=1000), start, MTS(3))


def policy_trainer(runs: int, compiled: bool = False) -> GRPOTrainer:
    """Runs of several seeds, all from one shipped model."""
    stack = load_stack([policy_run().start] * runs, missing="error")
    return GRPOTrainer([policy_run(42 + run) for run in range(runs)], stack, compile=compiled)


def plain_policy() -> Callable[[], None]:
    """The same run's steps with Hugging Face's model."""
    trainer = policy_trainer(1)
    data, plain = trainer.data, PlainGRPO(trainer.spec, trainer.stack.to_hf(0))
    batches = data.order([trainer.spec.seed], 0, STEPS, trainer.recipe.batch)[0]

    def turn() -> None:
        for index in batches:
            plain.step(data.prompts[index], data.answers[index])

    return turn
