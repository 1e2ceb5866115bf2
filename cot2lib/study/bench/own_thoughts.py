"""Training on own thoughts beside teacher forcing, and the whole Pass@k of one model."""

from cot2lib.kit.timing import seconds, threads
from cot2lib.runs import load
from cot2lib.specs.profiles import spec
from cot2lib.study.analysis.costs import STACK, feeding_table
from cot2lib.study.analysis.passk import SAMPLES, measure
from cot2lib.study.bench import machine

FEW_SAMPLES = 28  # of a quick look


def sampling(quick: bool = False) -> str:
    """The second benchmark as printed text: steps of self-feeding and COCONUT, and one model's Pass@k."""
    with threads(1):
        table = feeding_table(rounds=machine.rounds(quick))
        spent = pass_at_k_seconds(samples=FEW_SAMPLES if quick else SAMPLES)
    return (
        f"Training step of one run in a stack of {STACK}, 2 layers, 2 heads, d=32, batch 64; {machine.named()}.\n\n"
        f"{table.round(2).to_string(index=False)}\n\n"
        f"Pass@k and Maj@k of one discrete model, 1 layer, d=24, k = 1..14, four temperatures, "
        f"{FEW_SAMPLES if quick else SAMPLES} samples of each validation input: {spent:.1f} s."
    )


def pass_at_k_seconds(samples: int) -> float:
    """How long the whole measurement of one shipped discrete model takes."""
    run = spec("discrete", d_model=24, layers=1, heads=1)
    model = load(run, missing="error")
    return seconds(lambda: measure(model, [run], samples))
