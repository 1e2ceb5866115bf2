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
FREE: tuple[Look, ...] = (  # for what no figure of the book has
    (BROWN, "P", (3, 1, 1, 1)),
    (PINK, "X", DASHED),
    ("#000000", "*", DOTTED),
    (GREY, "h", (6, 2, 2, 2)),
    ("#332288", "p", (2, 1)),
    ("#882255", "8", (8, 2)),
)
LOOKS: dict[str, dict[object, Look]] = {  # of every value that the book draws
    "method": {
        "CoT2": (BLUE, "o", SOLID),
        "COCONUT": (GREEN, "D", DASH_DOT),
        "COCONUT, zero slot": (SKY, "d", LONG),
        "discrete CoT": (ORANGE, "s", DASHED),
        "no-CoT": (GREY, "^", DOTTED),
        "no-CoT, pauses": (BROWN, "v", LOOSE),
    },
    "rule": {"Base": (BLUE, "o", SOLID), "Discrete": (ORANGE, "s", DASHED), "MTS(k=3)": (GREEN, "D", DASH_DOT)},
    "recipe": {"authors' recipe": (BLUE, "o", SOLID), "quick recipe": (YELLOW, "v", DASHED)},
    "fed": {"teacher": (BLUE, "o", SOLID), "self": (PINK, "s", DASHED), "teacher, then self": (GREEN, "D", DASH_DOT)},
    "budget": {
        1: (ORANGE, "s", DASHED),
        2: (YELLOW, "^", DOTTED),
        4: (GREEN, "D", DASH_DOT),
        8: (SKY, "v", LONG),
        16: (BLUE, "o", SOLID),
    },
    "tokens": {5: (ORANGE, "s", DASHED), 3: (GREEN, "D", DASH_DOT), 1: (GREY, "^", DOTTED)},
    "embedding": {
        "learned": (GREY, "^", DOTTED),
        "cosine": (BLUE, "o", SOLID),
        "cosine, frozen": (ORANGE, "s", DASHED),
        "fed its output": (GREEN, "D", DASH_DOT),
        "fed its mixture": (PINK, "v", LONG),
    },
    "variant": {
        "as-written": (ORANGE, "s", DASHED),
        "biased": (BLUE, "o", SOLID),
        "mirrored": (YELLOW, "^", DOTTED),
        "repaired": (GREEN, "D", DASH_DOT),
        "fused": (SKY, "v", LONG),
        "residual": (PINK, "P", LOOSE),
    },
    "which": {"found": (BLUE, "o", SOLID), "sufficient": (GREY, ".", DASHED)},
    "construction": {"paper, $2^{n+1}$": (ORANGE, "s", DASHED), "cosine, $S + 1$": (BLUE, "o", SOLID)},
    "precision": {"float64": (BLUE, "o", SOLID), "float32": (ORANGE, "s", DASHED)},
    "bound": {
        "the paper's formula": (ORANGE, ".", DASHED),
        "exact volumes": (BLUE, ".", SOLID),
        "volumes around the mean": (GREEN, ".", DASH_DOT),
        "no such margin exists": (GREY, ".", DOTTED),
    },
    "embeddings": {
        "random": (GREY, "o", DASHED),
        "widened": (BLUE, "s", SOLID),
        "trained": (ORANGE, "D", SOLID),
    },
    "held": {
        "in_time": (GREEN, "D", DASH_DOT),
        "frontier": (BLUE, "o", SOLID),
        "unreached": (ORANGE, "s", DASHED),
    },
    "answers": {
        "CoT2, one answer": (BLUE, "", SOLID),
        "discrete CoT, T = 0": (GREY, "v", LOOSE),
        "discrete CoT, T = 0.4": (YELLOW, "^", DOTTED),
        "discrete CoT, T = 0.8": (GREEN, "D", DASH_DOT),
        "discrete CoT, T = 1": (ORANGE, "s", DASHED),
    },
    "shape": {
        "CoT2, 1 head": (SKY, "v", LONG),
        "CoT2, 2 heads": (BLUE, "o", SOLID),
        "CoT2, 4 heads": (GREEN, "D", DASH_DOT),
        "discrete CoT, 2 heads": (ORANGE, "s", DASHED),
    },
    "trained": {
        "frontier | frontier": (BLUE, "o", SOLID),
        "a fresh path | that path": (GREEN, "D", DASH_DOT),
        "discrete path | that path": (ORANGE, "s", DASHED),
        "answer | nothing": (GREY, "^", DOTTED),
    },
    "when": {"before": (GREY, "^", DOTTED), "after": (BLUE, "o", SOLID)},
    "layers": {1: (BLUE, "o", SOLID), 2: (SKY, "v", DASHED)},
    "counted": {
        "discrete CoT, Pass@k": (ORANGE, "s", SOLID),
        "discrete CoT, Maj@k": (GREY, "^", DOTTED),
        "CoT2, one trace": (BLUE, "o", SOLID),
    },
    "k": {1: (ORANGE, "s", DASHED), 3: (GREEN, "D", DASH_DOT), 6: (BLUE, "o", SOLID), 12: (PINK, "v", DOTTED)},
    "model": {
        "before": (GREY, "^", DOTTED),
        "discrete CoT": (ORANGE, "s", DASHED),
        "MTS": (BLUE, "o", SOLID),
        "MTS, asked to answer at once": (GREY, "v", DOTTED),
    },
    "gamma": {
        1.0: (ORANGE, "s", DASHED),
        10.0: (GREEN, "D", DASH_DOT),
        20.0: (BLUE, "o", SOLID),
        40.0: (PINK, "v", DOTTED),
    },
    "chain": {
        "tight bound": ("#bbbbbb", ".", SOLID),
        "the paper's 2 \N{MINUS SIGN} 1/K": ("black", ".", SOLID),
        "identity": (ORANGE, "s", DASHED),
        "lazy 0.1": (YELLOW, "^", DASH_DOT),
        "lazy 0.3": (BROWN, "v", DOTTED),
        "MNNS": (BLUE, "o", SOLID),
        "random rows": (SKY, "D", DOTTED),
        "sharp rows": (PINK, "d", LONG),
    },
    "kind": {
        "the paper's 2 \N{MINUS SIGN} 1/K": ("black", ".", SOLID),
        "K independent traces": (GREY, "^", DOTTED),
        "MTS, exact": (BLUE, ".", SOLID),
        "MTS, simulated": (BLUE, "o", SOLID),
        "MTS": (BLUE, "o", SOLID),
        "Dirichlet, simulated": (ORANGE, "D", DASH_DOT),
        "systematic": (GREEN, "v", DASHED),
    },
    "estimate": {
        "one token": (ORANGE, "s", DASHED),
        "K tokens": (BLUE, "o", SOLID),
        "the distribution": (GREEN, "D", DASH_DOT),
        "K independent traces": (GREY, "^", DOTTED),
    },
    "size": {
        "allowed": ("black", ".", DOTTED),
        "the paper's N": (ORANGE, "s", DASHED),
        "corrected N (Chebyshev)": (BLUE, "o", SOLID),
    },
    "models": {
        "1 layer, d = 24": (BLUE, "o", SOLID),
        "1 layer, d = 32": (SKY, "v", DASHED),
        "2 layers, d = 32": (GREEN, "D", DASH_DOT),
        "other inputs": (GREY, ".", DOTTED),
    },
    "way": {"fused": (BLUE, "o", SOLID), "stack": (GREEN, "D", SOLID), "others": (GREY, "^", SOLID)},
    "output": {
        "step 2": (SKY, "o", SOLID),
        "step 3": (YELLOW, "v", DASHED),
        "step 4": (BLUE, "s", DASH_DOT),
        "1/K\N{SUPERSCRIPT TWO}": (GREY, ".", DOTTED),
    },
    "origin": {
        "discrete CoT, 1 layer": (ORANGE, "s", DASHED),
        "discrete CoT, 2 layers": (YELLOW, "^", DOTTED),
        "CoT2, 1 layer": (BLUE, "o", SOLID),
    },
    "begun": {
        "d = 24": (ORANGE, "s", DASHED),
        "d = 32": (BLUE, "o", SOLID),
        "d = 24, better start": (GREEN, "D", DASH_DOT),
    },
    "ratio": {
        "geometric": (ORANGE, "s", DASHED),
        "product": (BLUE, "o", SOLID),
        "per-draw": (GREEN, "D", DASH_DOT),
    },
}


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
