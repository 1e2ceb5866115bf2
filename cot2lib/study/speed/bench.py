"""`cot2 bench`: ratios measured side by side in one process, as printed text; never a verdict of a test.

`train` times the paper's training step (batch 16, dropout, AdamW) of the main experiment's CoT2 model, written with
Hugging Face's model and a plain loop, batched over runs by `torch.func.vmap` and by JAX, and with our stack at several
sizes, eager, compiled and by the fused engine. `sampling` times training on own thoughts beside teacher forcing, and
the whole Pass@k of the paper's experiment. `decoding` times what a continuous token costs beside a discrete one.
`grpo` times steps of policy gradients, rollouts and update, beside the same steps with Hugging Face's model. `engines`
trains whole runs by the fused engine and compares them with shipped ones. Variants take turns, so that a machine that
speeds up or slows down does so for all.
"""

import time

import pandas as pd

from cot2lib.kit.timing import seconds, threads
from cot2lib.runs import load
from cot2lib.specs.profiles import spec
from cot2lib.study import overhead, passk
from cot2lib.study.costs import STACK, feeding_table
from cot2lib.study.speed import reward, training, whole_runs
from cot2lib.study.speed.variants import QUICK_ROUNDS, ROUNDS, named

HEADINGS = {
    "times": "times the loop",
    "share": "share of sgemm (%)",
    "memory": "peak memory (GiB)",
    "minutes": "minutes per paper run",
}
OF_GROWTH = {"variant": "model", "stack": "stack, run-steps/s", "rate": "fused", "times": "times the stack"}
SHAPES = ((32, 2, 2), (768, 12, 12))  # width, layers, heads of the models that decode
FEW_SAMPLES = 28  # of a quick look at Pass@k


def measure(what: str, quick: bool = False) -> str:
    """One benchmark as printed text; `what` is a key of `WHATS`, `quick` takes fewer rounds and compiles nothing."""
    return WHATS[what](quick, QUICK_ROUNDS if quick else ROUNDS)


@threads(1)
def train(quick: bool, rounds: int) -> str:
    """Machine, tables, and what the numbers are."""
    table, flops = training.steps(rounds, compiled=not quick), training.one_step()
    sgemm = table.pop("sgemm").iloc[0]
    growth = training.growth(QUICK_ROUNDS, list(training.GROWTH)[: 2 if quick else None], sgemm)
    return (
        f"Training step of CoT2, 2 layers, 2 heads, d=32, batch 16, dropout .1; {named()}.\n"
        f"One step of one run is {flops / 1e6:.1f} Mflop of matrix products; the best sgemm here {sgemm:.0f} "
        f"Gflop/s. Medians of turns taken in alternation.\n\n"
        f"{_text(table.drop(columns='runs'), {'rate': 'run-steps/s'} | HEADINGS)}\n\n"
        f"{training.MOST} runs, on graphs {training.FEW}: the fused engine beside the eager stack.\n\n"
        f"{_text(growth, HEADINGS | OF_GROWTH)}"
    ) + "".join(f"\n\nLeft out: {reason}" for reason in training.left_out(training.PEERS))


@threads(1)
def sampling(quick: bool, rounds: int) -> str:
    """Steps of self-feeding and COCONUT, and one model's Pass@k."""
    table, samples = feeding_table(rounds), FEW_SAMPLES if quick else passk.SAMPLES
    return (
        f"Training step of one run in a stack of {STACK}, 2 layers, 2 heads, d=32, batch 64; {named()}.\n\n"
        f"{_text(table)}\n\n"
        f"Pass@k and Maj@k of one discrete model, 1 layer, d=24, k = 1..14, four temperatures, "
        f"{samples} samples of each validation input: {pass_at_k_seconds(samples):.1f} s."
    )


def pass_at_k_seconds(samples: int) -> float:
    """Seconds that the whole measurement of one shipped discrete model takes."""
    run = spec("discrete", d_model=24, layers=1, heads=1)
    model = load(run, missing="error")
    return seconds(lambda: passk.measure(model, [run], samples))


@threads(1)
def decoding(quick: bool, rounds: int) -> str:
    """E^T alpha beside the projection and a whole step, over vocabularies."""
    table = pd.concat([overhead.measured(*shape, rounds=rounds) for shape in SHAPES[: 1 if quick else None]])
    return (
        f"One decoding step at batch 1 with {overhead.CONTEXT} positions in the cache, d=32 with 2 layers"
        f"{'' if quick else ', d=768 with 12'}; {named()}. "
        f"Ratios are medians of turns taken in alternation.\n\n{_text(table)}"
    )


@threads(1)
def grpo(quick: bool, rounds: int) -> str:
    """Machine, table, and what the numbers are."""
    table, flops, run = reward.prompts(rounds, compiled=not quick), reward.one_prompt(), reward.policy_run()
    sgemm = table.pop("sgemm").iloc[0]
    return (
        f"GRPO step, rollouts and update, 1 layer, 1 head, d=24, G={run.group}, K={run.thought.k}, {run.recipe.batch} "
        f"prompts; {named()}.\nOne prompt of ours is "
        f"{flops / 1e6:.2f} Mflop of matrix products; sgemm here {sgemm:.0f} Gflop/s. Medians of turns taken in "
        f"alternation.\n\n{_text(table.drop(columns=['runs', 'memory']), {'rate': 'prompts/s'} | HEADINGS)}"
    )


def engines(quick: bool, rounds: int) -> str:
    """Whole runs anew by the fused engine; `quick` takes the quick profile, else it is the authors' recipe.

    Raises:
        SpecError: where the engine does not work.
    """
    profile, began = "quick" if quick else "paper", time.perf_counter()
    shipped, trained = whole_runs.both(profile)
    spent = time.perf_counter() - began
    return (
        f"{len(trained)} whole runs under {profile}, d = 32, by the fused engine; {named()}. "
        f"{spent / 60:.1f} min here now, {trained['seconds'].sum() / 60:.1f} min of training in all.\n"
        f"Mean accuracy over training, in points, fused minus shipped, paired by seed.\n\n"
        f"{_text(whole_runs.compared(shipped, trained))}"
    )


def _text(table: pd.DataFrame, headings: dict[str, str] | None = None) -> str:
    return table.rename(columns=headings or {}).round(2).to_string(index=False)


WHATS = {one.__name__: one for one in (train, sampling, decoding, grpo, engines)}
