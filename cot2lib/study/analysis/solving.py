"""Transformers that solve MNNS without being trained: which inputs each variant solves, and how sharp it must be."""

from collections.abc import Sequence

import pandas as pd
import torch

from cot2lib.errors import SpecError
from cot2lib.metrics import Values
from cot2lib.tasks import MNNS
from cot2lib.theory.blocks import Layout
from cot2lib.theory.construction import VARIANTS, TrigMNNS, sufficient_sharpness
from cot2lib.theory.cosine import CosineMNNS
from cot2lib.theory.matching import exact_match, multisets, optima, smallest_sharpness
from cot2lib.theory.propositions import (
    attention_mass,
    partial_sum_error,
    read_off,
    routing,
    smallest_non_negative,
    sum_sets,
)
from cot2lib.theory.tagged import TaggedMNNS

CHANGES = {
    "as-written": "nothing",
    "biased": "threshold of the sigmoid half a step below zero",
    "mirrored": "smallest $\\lvert s\\rvert$ by the softmax, sign by the sigmoid",
    "repaired": "threshold, read-off times $2^n$, positions hidden from the experts",
    "fused": "as repaired, read-off inside expert $n$",
    "residual": "as repaired, one residual stream",
}
PRECISIONS = {"float64": torch.float64, "float32": torch.float32}
SOLVED = "inputs solved (%)"
BOUND = 9  # largest digit of the inputs that are counted


# Exact match


def exact_table(length: int) -> pd.DataFrame:
    """Exact match of every variant over all inputs of digits 1..9, in both precisions, at its default sharpness.

    Raises:
        SpecError: for a length whose inputs cannot be listed.
    """
    task = MNNS(length=length)
    rows = []
    for name in VARIANTS:
        entry: dict = {"variant": name, "changed": CHANGES[name]}
        for precision, dtype in PRECISIONS.items():
            model = TrigMNNS(length, task.bound, name, dtype=dtype)
            right = int((model.solve(task.digits) == task.answers).sum())
            entry[f"right of {task.size}, {precision}"] = right
        entry |= {"d": model.layout.width, "passes": model.passes, "c": f"{model.sharpness.softmax:.0f}"}
        rows.append(entry)
    return pd.DataFrame(rows)


def failures(length: int) -> pd.DataFrame:
    """By optimum: inputs of digits 1..9, how many the printed construction answers right, and what it answers."""
    task = MNNS(length=length)
    given = TrigMNNS(length, task.bound).solve(task.digits)
    rows = []
    for optimum in task.answers.unique().tolist():
        answers = given[task.answers == optimum]
        told = f"{int(answers.min())} to {int(answers.max())}" if answers.min() < answers.max() else int(answers[0])
        rows.append(
            {
                "optimum": optimum,
                "inputs": len(answers),
                "answered right": int((answers == optimum).sum()),
                "answers given": str(told),
            }
        )
    return pd.DataFrame(rows)


def exact_curves(length: int, sharpnesses: Values) -> pd.DataFrame:
    """Share of the inputs (%) that each variant solves, by c and precision; one order of each multiset is solved."""
    digits = multisets(length)
    rows = []
    for precision, dtype in PRECISIONS.items():
        for name in VARIANTS:
            for c in sharpnesses:
                match = exact_match(TrigMNNS(length, BOUND * length, name, float(c), dtype=dtype), digits)
                rows.append({"precision": precision, "variant": name, "c": float(c), SOLVED: 100 * match})
    return pd.DataFrame(rows)


# Sharpness and dimension


def smallest(lengths: Sequence[int]) -> pd.DataFrame:
    """The smallest c that solves every input of digits 1..9, for the scale 2^-n and for scale 1, and what suffices.

    Raises:
        SpecError: for no lengths, or one below 1.
    """
    if not lengths or min(lengths) < 1:
        raise SpecError(f"lengths={list(lengths)}: give numbers of digits from 1 on.")
    rows = []
    for n in lengths:
        for name in ("biased", "repaired"):
            law = sufficient_sharpness(n, BOUND * n, VARIANTS[name])
            rows.append({"n": n, "variant": name, "smallest c": smallest_sharpness(n, name), "sufficient c": law})
    return pd.DataFrame(rows)


def dimensions(lengths: Sequence[int]) -> pd.DataFrame:
    """Coordinates that hold sums in either construction, for digits 1..9; the positions add n + 2 to both."""
    rows = [{"n": n, "paper, $2^{n+1}$": Layout(n).content, "cosine, $S + 1$": BOUND * n + 1} for n in lengths]
    return pd.DataFrame(rows)


# The propositions and the alternatives


def propositions(length: int, sharpnesses: Values) -> pd.DataFrame:
    """What each of the four propositions says, measured at some sharpness."""
    steps = range(1, length + 3)
    sums = sum_sets()
    truth = smallest_non_negative(sums)
    right = lambda read, c: f"{100 * float((read_off(sums, 5, read, c) == truth).double().mean()):.1f} %"
    error = f"{partial_sum_error(multisets(length)):.0e}"
    measured = {
        "attention: least weight of the right token, passes 1 to n + 2": lambda c: _share(
            min(attention_mass(length, c, step) for step in steps)
        ),
        "attention: the same in pass n + 3": lambda c: _share(attention_mass(length, c, length + 3)),
        "routing: least weight of the right expert": lambda c: _share(float(routing(length, c).diagonal().min())),
        "partial sums: largest error of a coordinate": lambda c: error,
        "read-off as printed: sets of four sums read right": lambda c: right("sigmoid", c),
        "read-off with the threshold: the same": lambda c: right("biased", c),
    }
    at = lambda take: {f"c = {c:g}": take(c) for c in sharpnesses}
    return pd.DataFrame([{"measured": what} | at(take) for what, take in measured.items()])


def _share(value: float) -> str:
    return f"{value:.4f}"


def cosine_table(sampled: dict[int, int | None]) -> pd.DataFrame:
    """Inputs that the cosine construction solves: all of a length, or as many as are sampled."""
    rows = []
    for length, inputs in sampled.items():
        task = MNNS(length=length, inputs=inputs)
        entry: dict = {"n": length, "dimension": task.bound + 1, "inputs": task.size}
        for precision, dtype in PRECISIONS.items():
            answers = CosineMNNS(length, task.bound, dtype).solve(task.digits)
            entry[f"right, {precision}"] = int((answers == task.answers).sum())
        rows.append(entry)
    return pd.DataFrame(rows)


def tagged_curves(lengths: Sequence[int], heads: Values, most: int = 160) -> pd.DataFrame:
    """Share of some inputs (%) solved through a vocabulary of (slot, sum) pairs, by the c of its softmax.

    Inputs are multisets, every k-th of them so that at most about `most` are used.
    """
    rows = []
    for length in lengths:
        digits = multisets(length)
        digits = digits[:: -(-len(digits) // most)]
        for precision, dtype in PRECISIONS.items():
            for head in heads:
                model = TaggedMNNS(float(head), length, BOUND * length, "repaired", dtype=dtype)
                right = float((model.solve(digits) == optima(digits)).double().mean())
                rows.append({"n": length, "precision": precision, "c": head, SOLVED: 100 * right})
    return pd.DataFrame(rows)
