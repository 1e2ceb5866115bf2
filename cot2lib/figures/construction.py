"""Figures, tables and checks of the chapter `construction`: transformers that solve MNNS without being trained."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cot2lib.errors import SpecError
from cot2lib.figures.style import COLOURS, panels
from cot2lib.tasks import MNNS
from cot2lib.theory.blocks import Layout
from cot2lib.theory.construction import VARIANTS, TrigMNNS, checked_digits, sufficient_sharpness
from cot2lib.theory.cosine import CosineMNNS
from cot2lib.theory.matching import exact_match, multisets, optima, signed_sums, smallest_sharpness
from cot2lib.theory.propositions import (
    attention_mass,
    partial_sum_error,
    read_off,
    routing,
    smallest_non_negative,
    sum_sets,
)
from cot2lib.theory.tagged import TaggedMNNS, collapsed

LOOKS = {  # variant: colour, marker, line style
    "as-written": ("#D55E00", "s", "--"),
    "biased": ("#0072B2", "o", "-"),
    "mirrored": ("#E69F00", "^", ":"),
    "repaired": ("#009E73", "D", "-"),
    "fused": ("#56B4E9", "v", "--"),
    "residual": ("#CC79A7", "P", ":"),
}
SCALES = {  # which variants read pairs of which length
    "pairs of length $2^{-n}$": ("biased", "as-written", "mirrored"),
    "pairs of length 1": ("repaired", "fused", "residual"),
}
CHANGES = {
    "as-written": "nothing",
    "biased": "threshold of the sigmoid half a step below zero",
    "mirrored": "smallest $\\lvert s\\rvert$ by the softmax, sign by the sigmoid",
    "repaired": "threshold, read-off times $2^n$, positions hidden from the experts",
    "fused": "as repaired, read-off inside expert $n$",
    "residual": "as repaired, one residual stream",
}
PRECISIONS = {"float64": torch.float64, "float32": torch.float32}
DRAWN = 6  # digits whose states can be drawn
COLUMNS = 3
SOLVED = "inputs solved (%)"
BOUND = 9  # largest digit of the inputs that are counted


def one_input(digits: Sequence[int]) -> torch.Tensor:
    """A row of digits to be drawn (SpecError for too many, none, or digits that no construction takes)."""
    if not 1 <= len(digits) <= DRAWN:
        raise SpecError(f"live_digits={list(digits)}: choose 1 to {DRAWN} digits, or the circle is too full.")
    return checked_digits([list(digits)], len(digits), max(1, sum(digits)))


def on_the_circle(digits: Sequence[int], sharpness: float | int | None = None) -> Figure:
    """The pairs that each token of one input holds, a panel per pass, and what two read-offs make of the last.

    Pairs are drawn at length 1, the printed read-off's too; areas grow with the number of slots that hold a sum.
    """
    row = one_input(digits)
    length, bound = len(digits), max(1, int(row.sum()))
    models = {name: TrigMNNS(length, bound, name, sharpness) for name in ("as-written", "repaired")}
    states, omega = models["repaired"].states(row)[0], models["repaired"].omega
    rows = -(-(length + 1) // COLUMNS)
    figure, axes = panels(rows, COLUMNS, width=1.9 * COLUMNS, height=3.15)
    for axis in axes.flat[length + 1 :]:
        axis.set_visible(False)
    for step, axis in enumerate(axes.flat[:length], start=1):
        _circle(axis, f"after ±{digits[step - 1]}")
        _pairs(axis, states[step - 1, : 2 ** (step + 1)] * 2**step, omega)
    _read(axes.flat[length], models, row)
    _legend_above(figure, axes.flat[length], 2)
    return figure


def _circle(axis: Axes, label: str) -> None:
    angles = np.linspace(-np.pi / 2, np.pi / 2, 100)
    axis.plot(np.cos(angles), np.sin(angles), color="#bbbbbb", linewidth=1)
    axis.plot([0, 1], [0, 0], color="#bbbbbb", linewidth=1)
    axis.set(xlim=(-0.12, 1.42), ylim=(-1.25, 1.25), aspect="equal", xlabel=label, xticks=[], yticks=[])
    axis.grid(False)
    for side in axis.spines.values():
        side.set_visible(False)


def _pairs(axis: Axes, content: torch.Tensor, omega: float) -> None:
    pairs = content.unflatten(0, (-1, 2))
    sums, copies = torch.unique((torch.atan2(pairs[:, 1], pairs[:, 0]) / omega).round(), return_counts=True)
    angles = (omega * sums).numpy()
    positive = sums.numpy() >= 0
    area = 200 * copies.numpy() / copies.sum().item() + 12
    for kept, colour in ((positive, COLOURS["CoT2"]), (~positive, "#9a9a9a")):
        axis.scatter(np.cos(angles[kept]), np.sin(angles[kept]), s=area[kept], color=colour, zorder=3)
    _labels(axis, sums.tolist(), angles)


def _labels(axis: Axes, sums: list[float], angles: np.ndarray) -> None:
    """The sums beside their points, as many as there is room for, from zero outwards."""
    taken: list[float] = []
    for place in np.argsort(np.abs(angles), kind="stable"):
        if all(abs(angles[place] - other) > 0.17 for other in taken):
            taken.append(angles[place])
            x, y = 1.2 * np.cos(angles[place]), 1.14 * np.sin(angles[place])
            axis.text(x, y, f"{sums[place]:.0f}".replace("-", "−"), ha="center", va="center", fontsize=9)


def _read(axis: Axes, models: dict[str, TrigMNNS], row: torch.Tensor) -> None:
    """The emitted pairs of both read-offs, the printed one's at the length that it has after undoing 2^-n."""
    _circle(axis, "read-off")
    for name, model in models.items():
        colour, marker, dash = LOOKS[name]
        pair = model.states(row)[0, -1, :2]
        pair = (pair if model.design.rescaled else pair * 2**model.length).tolist()
        axis.plot([0, pair[0]], [0, pair[1]], color=colour, linestyle=dash, linewidth=1.6)
        label = f"{name} reads {int(model.solve(row))}"
        axis.scatter(*pair, s=70, color=colour, marker=marker, zorder=3, label=label)


def read_pairs(digits: Sequence[int], sharpness: float | int | None = None) -> pd.DataFrame:
    """The numbers of `on_the_circle`'s last panel: what each variant emits for one input, and the answer."""
    row = one_input(digits)
    rows = []
    for name in VARIANTS:
        model = TrigMNNS(len(digits), max(1, int(row.sum())), name, sharpness)
        pair = model.states(row)[0, -1, :2]
        entry = {"variant": name, "c": f"{model.sharpness.softmax:.3g}", "length": float(pair.norm())}
        angle = float(torch.atan2(pair[1], pair[0])) / model.omega
        rows.append(entry | {"angle / ω": angle, "answer": int(model.solve(row)), "optimum": int(optima(row))})
    return pd.DataFrame(rows)


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


def exact_curves(length: int, sharpnesses: Sequence[float]) -> pd.DataFrame:
    """Share of the inputs (%) that each variant solves, by c and precision; one order of each multiset is solved."""
    digits = multisets(length)
    rows = []
    for precision, dtype in PRECISIONS.items():
        for name in VARIANTS:
            for c in sharpnesses:
                match = exact_match(TrigMNNS(length, BOUND * length, name, float(c), dtype=dtype), digits)
                rows.append({"precision": precision, "variant": name, "c": float(c), SOLVED: 100 * match})
    return pd.DataFrame(rows)


def exact_match_by_sharpness(curves: pd.DataFrame) -> Figure:
    """Exact match against c, a panel per scale; lines are float64, markers float32."""
    figure, axes = panels(1, 2, width=8.4, height=3.2, sharey=True)
    for axis, (scale, names) in zip(axes[0], SCALES.items()):
        for name, width in zip(names, (4.5, 2.8, 1.4)):
            colour, marker, dash = LOOKS[name]
            own = curves[curves["variant"] == name].set_index("precision")
            double, single = own.loc["float64"], own.loc["float32"]
            axis.plot(double["c"], double[SOLVED], color=colour, linestyle=dash, linewidth=width)
            axis.scatter(single["c"], single[SOLVED], s=9 * width + 8, color=colour, marker=marker, zorder=3)
            axis.plot([], [], color=colour, linestyle=dash, marker=marker, label=name)
        axis.set(xscale="log", xlabel=f"sharpness c, {scale}", ylim=(0, 104))
        axis.legend(frameon=True, edgecolor="none", loc="center right" if "1$" not in scale else "lower right")
    axes[0, 0].set_ylabel("inputs solved (%)")
    return figure


def _legend_above(figure: Figure, axis: Axes, columns: int) -> None:
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False)


def curve_table(curves: pd.DataFrame) -> pd.DataFrame:
    """The numbers of `exact_match_by_sharpness` at whole powers of ten."""
    chosen = curves[np.isclose(np.log10(curves["c"]) % 1, 0)]
    wide = chosen.pivot(index=["variant", "precision"], columns="c", values=SOLVED)
    wide.columns = [f"c = {c:.0e}" for c in wide.columns]
    return wide.loc[[(name, precision) for name in VARIANTS for precision in PRECISIONS]].reset_index()


# Sharpness and dimension


def smallest(lengths: Sequence[int]) -> pd.DataFrame:
    """The smallest c that solves every input of digits 1..9, for the scale 2^-n and for scale 1, and what suffices."""
    rows = []
    for n in lengths:
        for name in ("biased", "repaired"):
            law = sufficient_sharpness(n, BOUND * n, VARIANTS[name])
            rows.append({"n": n, "variant": name, "smallest c": smallest_sharpness(n, name), "law": law})
    return pd.DataFrame(rows)


def smallest_by_length(table: pd.DataFrame) -> Figure:
    """Smallest c (points) and ln(2 d / w) / gap (lines) against the number of digits."""
    figure, axes = panels(1, 1, width=5.6, height=3.3)
    axis = axes[0, 0]
    for name, part in table.groupby("variant", sort=False):
        colour, marker, dash = LOOKS[name]
        axis.scatter(part["n"], part["smallest c"], s=36, color=colour, marker=marker, label=f"{name}, measured")
        axis.plot(part["n"], part["law"], color=colour, linestyle=dash, label=f"{name}, sufficient", linewidth=1.4)
    axis.set(yscale="log", xlabel="digits n", ylabel="sharpness c", xticks=sorted(table["n"].unique()))
    _legend_above(figure, axis, 2)
    return figure


def dimensions(lengths: Sequence[int]) -> pd.DataFrame:
    """Coordinates that hold sums in either construction, for digits 1..9; the positions add n + 2 to both."""
    rows = [{"n": n, "paper, $2^{n+1}$": Layout(n).content, "cosine, $S + 1$": BOUND * n + 1} for n in lengths]
    return pd.DataFrame(rows)


def dimension_curves(lengths: Sequence[int]) -> Figure:
    """Both dimensions against the number of digits."""
    table = dimensions(lengths)
    figure, axes = panels(1, 1, width=5.2, height=3.0)
    axis = axes[0, 0]
    axis.plot(
        table["n"], table.iloc[:, 1], color=LOOKS["as-written"][0], linestyle="--", marker="s", label=table.columns[1]
    )
    axis.plot(table["n"], table.iloc[:, 2], color=LOOKS["biased"][0], marker="o", label=table.columns[2])
    axis.set(yscale="log", xlabel="digits n", ylabel="content dimension", xticks=list(lengths))
    axis.legend(frameon=False)
    return figure


# The propositions and the alternatives


def propositions(length: int, sharpnesses: Sequence[float]) -> pd.DataFrame:
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


def tagged_curves(lengths: Sequence[int], heads: Sequence[float], most: int = 160) -> pd.DataFrame:
    """Share of some inputs (%) solved through a vocabulary of (slot, sum) pairs, by the c of its softmax.

    Inputs are multisets, every k-th of them so that at most about `most` are used.
    """
    rows = []
    for length in lengths:
        digits = multisets(length)
        digits = digits[:: -(-len(digits) // most)]
        for precision, dtype in PRECISIONS.items():
            for head in heads:
                model = TaggedMNNS(head, length, BOUND * length, "repaired", dtype=dtype)
                right = float((model.solve(digits) == optima(digits)).double().mean())
                rows.append({"n": length, "precision": precision, "c": head, SOLVED: 100 * right})
    return pd.DataFrame(rows)


def tagged_window(table: pd.DataFrame) -> Figure:
    """Inputs solved against the c of the tagged vocabulary's softmax, a panel per length."""
    lengths = list(table["n"].unique())
    figure, axes = panels(1, len(lengths), width=4.2 * len(lengths), height=3.0, sharey=True)
    for axis, (length, part) in zip(axes[0], table.groupby("n")):
        for (precision, line), (colour, marker, dash) in zip(
            part.groupby("precision", sort=False), (LOOKS["biased"], LOOKS["as-written"])
        ):
            axis.plot(
                line["c"],
                line[SOLVED],
                color=colour,
                marker=marker,
                linestyle=dash,
                markersize=4,
                label=precision,
            )
        axis.set(xscale="log", xlabel=f"c of the vocabulary's softmax (n = {length})", ylim=(0, 103))
    axes[0, 0].set_ylabel("inputs solved (%)")
    _legend_above(figure, axes[0, 0], 2)
    return figure


def collapse(digits: Sequence[int]) -> str:
    """One sentence: what remains of one input's signed sums if each has one pair and the pairs are averaged."""
    row = one_input(digits)
    omega = TrigMNNS(len(digits), max(1, int(row.sum()))).omega
    number, pair = len(signed_sums(row).unique()), collapsed(row, omega)[0].tolist()
    return (
        f"For the digits {', '.join(map(str, digits))} the {number} different sums, averaged with their shares, leave "
        f"the pair ({pair[0]:.4f}, {pair[1]:.0f}): one number for all of them."
    )


def checks(
    exact: pd.DataFrame,
    failed: pd.DataFrame,
    curves: pd.DataFrame,
    least: pd.DataFrame,
    cosine: pd.DataFrame,
    tagged: pd.DataFrame,
) -> dict[str, bool]:
    """The chapter's claims about what it has computed."""
    right = exact.set_index("variant").filter(like="right of")
    total = int(failed["inputs"].sum())
    zero = failed["optimum"] == 0
    in_single = tagged[tagged["precision"] == "float32"].groupby("n")[SOLVED].max()
    return {
        "as printed, the inputs with optimum 0 and no others are answered wrong": bool(
            (failed.loc[zero, "answered right"] == 0).all()
            and (failed.loc[~zero, "answered right"] == failed.loc[~zero, "inputs"]).all()
        ),
        "every repair solves every input in both precisions": bool((right.drop("as-written") == total).all(axis=None)),
        "single and double precision agree to half a point at every sharpness": bool(
            np.ptp([part[SOLVED] for _, part in curves.groupby("precision")], axis=0).max() < 0.5
        ),
        "the sufficient sharpness suffices": bool((least["smallest c"] < least["law"]).all()),
        "the cosine construction solves every input in both precisions": all(
            (cosine[column] == cosine["inputs"]).all() for column in cosine.filter(like="right")
        ),
        "through a tagged vocabulary some c solves four digits in single precision, none six": bool(
            in_single.loc[4] == 100 and in_single.loc[6] < 95
        ),
    }
