"""What a continuous token costs beside a discrete one: E^T alpha against the projection and a whole step."""

import pandas as pd

from cot2lib.kit.timing import threads
from cot2lib.study.analysis import overhead
from cot2lib.study.bench import machine

SHAPES = ((32, 2, 2), (768, 12, 12))  # width, layers, heads of the models


def decoding(quick: bool = False) -> str:
    """The third benchmark as printed text: E^T alpha beside the projection and a whole step, over vocabularies."""
    with threads(1):
        shapes = SHAPES[:1] if quick else SHAPES
        table = pd.concat([overhead.measured(*shape, rounds=machine.rounds(quick)) for shape in shapes])
    return (
        f"One decoding step at batch 1 with {overhead.CONTEXT} positions in the cache, d=32 with 2 layers"
        f"{'' if quick else ', d=768 with 12'}; {machine.named()}. "
        f"Ratios are medians of turns taken in alternation.\n\n{table.round(2).to_string(index=False)}"
    )
