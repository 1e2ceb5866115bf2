"""The look of each series: colour, marker and line style, the same in every figure.

The palette is that of Okabe and Ito, so that colour-blind readers can tell series apart, and none depends on colour
alone. What a reader adds, say another budget, gets a look that is free.
"""

import itertools
from collections.abc import Sequence

import pandas as pd

from cot2lib.study.frame import called, ordered

Look = tuple[str, str, object]  # colour, marker, line style

BLUE, ORANGE, GREEN, YELLOW, SKY, PINK, BROWN, GREY = (
    "#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#B08D00", "#7A7A7A",
)  # fmt: skip
SOLID, DASHED, DOTTED, DASH_DOT = "", (4, 2), (1, 1.5), (4, 1.5, 1, 1.5)
LONG, LOOSE = (6, 1.5, 1, 1.5, 1, 1.5), (1, 3)
MAIN, OTHER, THIRD, LEVEL = (BLUE, "o", SOLID), (ORANGE, "s", DASHED), (GREEN, "D", DASH_DOT), (GREY, "^", DOTTED)
FOURTH, FIFTH, SIXTH, SEVENTH = (YELLOW, "^", DOTTED), (SKY, "v", LONG), (PINK, "p", DOTTED), (BROWN, "v", LOOSE)
PRINTED, REFERENCE = ("black", ".", SOLID), (GREY, ".", DOTTED)
FREE: tuple[Look, ...] = (  # for what no figure of the book has
    (BROWN, "P", (3, 1, 1, 1)),
    (PINK, "X", DASHED),
    ("#000000", "*", DOTTED),
    (GREY, "h", (6, 2, 2, 2)),
    ("#332288", "p", (2, 1)),
    ("#882255", "8", (8, 2)),
)
BOUND = "the paper's 2 \N{MINUS SIGN} 1/K"
# fmt: off
LOOKS: dict[str, dict[object, Look]] = {  # of every value that the book draws, in the order of legends
    "method": {
        "CoT2": MAIN, "COCONUT": THIRD, "COCONUT, zero slot": (SKY, "d", LONG),
        "discrete CoT": OTHER, "no-CoT": LEVEL, "no-CoT, pauses": SEVENTH,
    },
    "rule": {"Base": MAIN, "Discrete": OTHER, "MTS(k=3)": THIRD},
    "recipe": {"authors' recipe": MAIN, "quick recipe": (YELLOW, "v", DASHED)},
    "fed": {"teacher": MAIN, "self": SIXTH, "teacher, then self": THIRD},
    "budget": {1: OTHER, 2: FOURTH, 4: THIRD, 8: FIFTH, 16: MAIN},
    "tokens": {5: OTHER, 3: THIRD, 1: LEVEL},
    "embedding": {
        "learned": LEVEL, "cosine": MAIN, "cosine, frozen": OTHER,
        "fed its output": THIRD, "fed its mixture": SIXTH,
    },
    "variant": {
        "as-written": OTHER, "biased": MAIN, "mirrored": FOURTH,
        "repaired": THIRD, "fused": FIFTH, "residual": SIXTH,
    },
    "which": {"found": MAIN, "sufficient": (GREY, ".", DASHED)},
    "bound": {
        "the paper's formula": (ORANGE, ".", DASHED),
        "exact volumes": (BLUE, ".", SOLID),
        "volumes around the mean": (GREEN, ".", DASH_DOT),
    },
    "embeddings": {"random": (GREY, "o", DASHED), "widened": (BLUE, "s", SOLID), "trained": (ORANGE, "D", SOLID)},
    "answers": {
        "CoT2, one answer": (BLUE, "", SOLID), "discrete CoT, T = 0": (GREY, "v", LOOSE),
        "discrete CoT, T = 0.4": FOURTH, "discrete CoT, T = 0.8": THIRD, "discrete CoT, T = 1": OTHER,
    },
    "trained": {
        "frontier | frontier": MAIN, "a fresh path | that path": SIXTH,
        "discrete path | that path": OTHER, "answer | nothing": LEVEL,
    },
    "when": {"before": LEVEL, "after": MAIN},
    "layers": {1: MAIN, 2: (SKY, "v", DASHED)},
    "k": {1: OTHER, 3: THIRD, 6: MAIN, 12: SIXTH},
    "model": {"before": LEVEL, "discrete CoT": OTHER, "MTS": MAIN},
    "chain": {
        "tight bound": ("#bbbbbb", ".", SOLID), BOUND: PRINTED, "identity": OTHER, "lazy 0.1": FOURTH,
        "lazy 0.3": SEVENTH, "MNNS": MAIN, "random rows": FIFTH, "sharp rows": SIXTH,
    },
    "size": {"allowed": ("black", ".", DOTTED), "the paper's N": OTHER, "corrected N (Chebyshev)": MAIN},
    "models": {
        "1 layer, d = 24": MAIN, "1 layer, d = 32": (SKY, "v", DASHED),
        "2 layers, d = 32": THIRD, "other inputs": REFERENCE,
    },
    "way": {"fused": MAIN, "stack": (GREEN, "D", SOLID), "others": (GREY, "^", SOLID)},
    "output": {
        "step 2": (SKY, "o", SOLID), "step 3": (YELLOW, "v", DASHED),
        "step 4": (BLUE, "s", DASH_DOT), "1/K\N{SUPERSCRIPT TWO}": REFERENCE,
    },
    "ratio": {"geometric": OTHER, "product": MAIN, "per-draw": THIRD},
}
# fmt: on


def looks(column: str, values: Sequence) -> dict[object, Look]:
    """The look of each value; one that the book does not draw gets a free look."""
    known, free = LOOKS.get(column, {}), itertools.cycle(FREE)
    return {value: known.get(value) or next(free) for value in values}


def told_apart(frame: pd.DataFrame, hue: str) -> tuple[pd.DataFrame, dict]:
    """The frame with a column `series` that names each value of `hue` as the legend does, and seaborn's options."""
    values = list(ordered(frame[hue], tuple(LOOKS.get(hue, ()))).categories)
    names = {value: called(hue, value) for value in values}
    found = {names[value]: look for value, look in looks(hue, values).items()}
    part = lambda place: {name: look[place] for name, look in found.items()}
    series = pd.Categorical(frame[hue].map(names), list(found), ordered=True)
    options = {"hue": "series", "palette": part(0), "hue_order": list(found)}
    return frame.assign(series=series), options | {"markers": part(1), "dashes": part(2)}
