"""Figures of the chapter `construction` on one input: its tokens on the circle, and what each variant reads off."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.study.figures.style import BLUE, legend_above, panels
from cot2lib.theory.construction import VARIANTS, TrigMNNS, checked_digits
from cot2lib.theory.matching import optima, signed_sums
from cot2lib.theory.tagged import collapsed

VARIANT_LOOKS = {  # variant: colour, marker, line style
    "as-written": ("#D55E00", "s", "--"),
    "biased": ("#0072B2", "o", "-"),
    "mirrored": ("#E69F00", "^", ":"),
    "repaired": ("#009E73", "D", "-"),
    "fused": ("#56B4E9", "v", "--"),
    "residual": ("#CC79A7", "P", ":"),
}
DRAWN = 6  # digits whose states can be drawn
PANELS_PER_ROW = 3


def one_input(digits: Sequence) -> Int[Tensor, "one digit"]:
    """A row of digits to be drawn (SpecError for too many, none, or digits that no construction takes)."""
    if not all(isinstance(digit, int) for digit in digits):
        raise SpecError(f"live_digits={list(digits)}: digits are whole numbers.")
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
    rows = -(-(length + 1) // PANELS_PER_ROW)
    figure, axes = panels(rows, PANELS_PER_ROW, width=1.9 * PANELS_PER_ROW, height=3.15)
    for axis in axes.flat[length + 1 :]:
        axis.set_visible(False)
    for step, axis in enumerate(axes.flat[:length], start=1):
        _circle(axis, f"after ±{digits[step - 1]}")
        _pairs(axis, states[step - 1, : 2 ** (step + 1)] * 2**step, omega)
    _read(axes.flat[length], models, row)
    legend_above(figure, axes.flat[length], 2)
    return figure


def _circle(axis: Axes, label: str) -> None:
    angles = np.linspace(-np.pi / 2, np.pi / 2, 100)
    axis.plot(np.cos(angles), np.sin(angles), color="#bbbbbb", linewidth=1)
    axis.plot([0, 1], [0, 0], color="#bbbbbb", linewidth=1)
    axis.set(xlim=(-0.12, 1.42), ylim=(-1.25, 1.25), aspect="equal", xlabel=label, xticks=[], yticks=[])
    axis.grid(False)
    for side in axis.spines.values():
        side.set_visible(False)


def _pairs(axis: Axes, content: Float[Tensor, " coordinate"], omega: float) -> None:
    pairs = content.unflatten(0, (-1, 2))
    sums, copies = torch.unique((torch.atan2(pairs[:, 1], pairs[:, 0]) / omega).round(), return_counts=True)
    angles = (omega * sums).numpy()
    positive = sums.numpy() >= 0
    area = 200 * copies.numpy() / copies.sum().item() + 12
    for kept, colour in ((positive, BLUE), (~positive, "#9a9a9a")):
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


def _read(axis: Axes, models: dict[str, TrigMNNS], row: Int[Tensor, "one digit"]) -> None:
    """The emitted pairs of both read-offs, the printed one's at the length that it has after undoing 2^-n."""
    _circle(axis, "read-off")
    for name, model in models.items():
        colour, marker, dash = VARIANT_LOOKS[name]
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


def collapse(digits: Sequence[int]) -> str:
    """One sentence: what remains of one input's signed sums if each has one pair and the pairs are averaged."""
    row = one_input(digits)
    omega = TrigMNNS(len(digits), max(1, int(row.sum()))).omega
    number, pair = len(signed_sums(row).unique()), collapsed(row, omega)[0].tolist()
    return (
        f"For the digits {', '.join(map(str, digits))} the {number} different sums, averaged with their shares, leave "
        f"the pair ({pair[0]:.4f}, {pair[1]:.0f}): one number for all of them."
    )
