"""Transformers that solve MNNS without being trained: which inputs each variant solves, and how sharp it must be."""

from collections.abc import Callable, Sequence
from itertools import product

import pandas as pd
import torch

from cot2lib.errors import SpecError
from cot2lib.metrics import Values
from cot2lib.study.report import PERCENT
from cot2lib.tasks import MNNS
from cot2lib.theory import propositions as parts
from cot2lib.theory.blocks import Layout
from cot2lib.theory.construction import VARIANTS, TrigMNNS, sufficient_sharpness
from cot2lib.theory.cosine import CosineMNNS
from cot2lib.theory.matching import exact_match, multisets, optima, smallest_sharpness
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
TAGGED = 160  # inputs that are solved through a vocabulary of pairs
PAPER, COSINE = "paper, $2^{n+1}$", "cosine, $S + 1$"  # constructions by their content dimension


def solved_by(model: TrigMNNS | CosineMNNS, task: MNNS) -> int:
    """Inputs of the task that a construction answers right."""
    return int((model.solve(task.digits) == task.answers).sum())


def exact_table(length: int) -> pd.DataFrame:
    """Exact match of every variant over all inputs of digits 1..9, in both precisions, at its default sharpness.

    Raises:
        SpecError: for a length whose inputs cannot be listed.
    """
    task, rows = MNNS(length=length), []
    for name, changed in CHANGES.items():
        models = {which: TrigMNNS(length, task.bound, name, dtype=dtype) for which, dtype in PRECISIONS.items()}
        right = {f"right of {task.size}, {which}": solved_by(model, task) for which, model in models.items()}
        one = models["float64"]
        sizes = {"d": one.layout.width, "passes": one.passes, "c": f"{one.sharpness.softmax:.0f}"}
        rows.append({"variant": name, "changed": changed} | right | sizes)
    return pd.DataFrame(rows)


def failures(length: int) -> pd.DataFrame:
    """Inputs of digits 1..9 by optimum, how many the printed construction answers right, and its answers."""
    task = MNNS(length=length)
    given = TrigMNNS(length, task.bound).solve(task.digits)
    found = pd.DataFrame({"optimum": task.answers, "given": given}).assign(right=lambda f: f["given"] == f["optimum"])
    span = lambda answers: " to ".join(map(str, sorted({answers.min(), answers.max()})))
    columns = {"inputs": ("given", "size"), "answered right": ("right", "sum"), "answers given": ("given", span)}
    return found.groupby("optimum").agg(**columns).reset_index()


def exact_curves(length: int, sharpnesses: Values) -> pd.DataFrame:
    """Share of the inputs (%) that each variant solves, by c and precision; one order of each multiset is solved."""
    digits = multisets(length)
    grid = pd.DataFrame(product(PRECISIONS, VARIANTS, map(float, sharpnesses)), columns=["precision", "variant", "c"])
    models = (TrigMNNS(length, BOUND * length, v, c, dtype=PRECISIONS[p]) for p, v, c in grid.itertuples(index=False))
    return grid.assign(**{SOLVED: [PERCENT * exact_match(model, digits) for model in models]})


def tagged_curves(lengths: Sequence[int], heads: Values) -> pd.DataFrame:
    """Share of some inputs (%) solved through a vocabulary of (slot, sum) pairs, by the c of its softmax.

    Inputs are multisets, every k-th of them so that at most about `TAGGED` are used.
    """
    rows = []
    for n in lengths:
        digits = multisets(n)
        digits = digits[:: -(-len(digits) // TAGGED)]
        for (precision, dtype), head in product(PRECISIONS.items(), heads):
            model = TaggedMNNS(float(head), n, BOUND * n, "repaired", dtype=dtype)
            right = (model.solve(digits) == optima(digits)).double().mean()
            rows.append({"digits": n, "precision": precision, "c": head, SOLVED: PERCENT * float(right)})
    return pd.DataFrame(rows)


def smallest(lengths: Sequence[int]) -> pd.DataFrame:
    """The smallest c that solves every input of digits 1..9, for the scale 2^-n and for scale 1, and what suffices.

    Raises:
        SpecError: for no lengths, or one below 1.
    """
    if not lengths or min(lengths) < 1:
        raise SpecError(f"lengths={list(lengths)}: give numbers of digits from 1 on.")
    grid = pd.DataFrame(product(lengths, ("biased", "repaired")), columns=["n", "variant"])
    law = [sufficient_sharpness(n, BOUND * n, VARIANTS[name]) for n, name in grid.itertuples(index=False)]
    least = [smallest_sharpness(n, name) for n, name in grid.itertuples(index=False)]
    return grid.assign(**{"smallest c": least, "sufficient c": law})


def dimensions(lengths: Sequence[int]) -> pd.DataFrame:
    """Coordinates that hold sums in either construction, for digits 1..9; the positions add n + 2 to the paper's."""
    return pd.DataFrame([{"n": n, PAPER: Layout(n).content, COSINE: BOUND * n + 1} for n in lengths])


def propositions(length: int, sharpnesses: Values) -> pd.DataFrame:
    """The statements of the four propositions, each measured on its part of the layer at some sharpness."""
    sums = parts.sum_sets()
    truth = parts.smallest_non_negative(sums)
    error = f"{parts.partial_sum_error(multisets(length)):.0e}"
    right = lambda read, c: f"{PERCENT * float((parts.read_off(sums, 5, read, c) == truth).double().mean()):.1f} %"
    mass = lambda c, *passes: f"{min(parts.attention_mass(length, c, step) for step in passes):.4f}"
    measured: dict[str, Callable[[float], str]] = {
        "attention: least weight of the right token, passes 1 to n + 2": lambda c: mass(c, *range(1, length + 3)),
        "attention: the same in pass n + 3": lambda c: mass(c, length + 3),
        "routing: least weight of the right expert": lambda c: f"{parts.routing(length, c).diagonal().min():.4f}",
        "partial sums: largest error of a coordinate": lambda c: error,
        "read-off as printed: sets of four sums read right": lambda c: right("sigmoid", c),
        "read-off with the threshold: the same": lambda c: right("biased", c),
    }
    rows = [{"measured": what} | {f"c = {c:g}": take(c) for c in sharpnesses} for what, take in measured.items()]
    return pd.DataFrame(rows)


def cosine_table(sampled: dict[int, int | None]) -> pd.DataFrame:
    """Inputs that the cosine construction solves: all of a length, or as many as are sampled."""
    rows = []
    for length, inputs in sampled.items():
        task = MNNS(length=length, inputs=inputs)
        models = {f"right, {name}": CosineMNNS(length, task.bound, dtype) for name, dtype in PRECISIONS.items()}
        right = {name: solved_by(model, task) for name, model in models.items()}
        rows.append({"n": length, "dimension": task.bound + 1, "inputs": task.size} | right)
    return pd.DataFrame(rows)
