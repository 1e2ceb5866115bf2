"""Chapter `construction`: transformers that solve MNNS without being trained, and what training makes of them."""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pandas as pd
import torch
from jaxtyping import Int
from matplotlib.axes import Axes
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit.frozen import positive
from cot2lib.metrics import Values
from cot2lib.study import construction_layer as layer
from cot2lib.study import look, show
from cot2lib.study.construction_block import best_rates, last_steps
from cot2lib.study.look import Shown, panels
from cot2lib.study.report import PERCENT
from cot2lib.study.series import BLUE, LOOKS
from cot2lib.tasks import MNNS

from cot2lib.theory.construction import (  # isort: skip
    VARIANTS, TrigMNNS, checked_digits, multisets, optima, sufficient_sharpness,
)  # fmt: skip

PERFECT = 100.0
DRAWN = 6  # digits whose states can be drawn
PANELS_PER_ROW = 3
APART = 0.17  # angle between two labels on the circle
CHANGES = {
    "as-written": "nothing",
    "biased": "threshold of the sigmoid at the sum $-\\tfrac12$",
    "mirrored": "smallest $\\lvert s\\rvert$ by the softmax, sign by the sigmoid",
    "repaired": "threshold as in biased, pairs times $2^n$ before the read-off, positions hidden from the experts",
    "fused": "as repaired, read-off inside expert $n$",
    "residual": "as repaired, one residual stream",
}


# One input


def held(model: TrigMNNS, digits: Int[Tensor, "one digit"]) -> pd.DataFrame:
    """Sums that each token of one input holds, by pass: the angle of a sum's pair, and the slots that hold it."""
    found = []
    for step, token in enumerate(model.states(digits)[0, : model.length], start=1):
        x, y = token[: 2 ** (step + 1)].unflatten(0, (-1, 2)).unbind(1)
        sums, slots = torch.unique((torch.atan2(y, x) / model.omega).round(), return_counts=True)
        found.append(pd.DataFrame({"pass": step, "sum": sums.int(), "angle": model.omega * sums, "slots": slots}))
    return pd.concat(found, ignore_index=True)


def on_the_circle(digits: Sequence[int], sharpness: float | int | None = None) -> Shown:
    """The pairs that each token of one input holds, a panel per pass, and what two read-offs make of the last.

    Pairs are drawn at length 1, the printed read-off's too; areas grow with the number of slots that hold a sum.
    SpecError if the digits cannot be drawn.
    """
    if not 1 <= len(digits) <= DRAWN:
        raise SpecError(f"live_digits={list(digits)}: choose 1 to {DRAWN} digits, or the circle is too full.")
    largest, count = max(1, sum(digits)), len(digits) + 1
    row = checked_digits([list(digits)], len(digits), largest)
    models = {name: TrigMNNS(len(digits), largest, name, sharpness) for name in ("as-written", "repaired")}
    sums, answers = held(models["repaired"], row), {name: int(model.solve(row)) for name, model in models.items()}
    figure, axes = panels(-(-count // PANELS_PER_ROW), PANELS_PER_ROW, width=5.7, height=3.15)
    for axis in axes.flat[count:]:
        axis.set_visible(False)
    *passes, last = axes.flat[:count]
    for axis, digit, (_, part) in zip(passes, digits, sums.groupby("pass")):
        _circle(axis, f"after ±{digit}")
        _pairs(axis, part)
    _circle(last, "read-off")
    for name, model in models.items():
        x, y = (model.states(row)[0, -1, :2] * (1 if VARIANTS[name].rescaled else 2 ** len(digits))).tolist()
        colour, marker, dash = LOOKS["variant"][name]
        last.plot([0, x], [0, y], color=colour, linestyle=(0, dash or (1, 0)), linewidth=1.6)
        last.scatter(x, y, s=70, color=colour, marker=marker, zorder=3, label=f"{name} reads {answers[name]}")
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    (written, repaired), optimum = answers.values(), int(optima(row))
    row_of = ", ".join(map(str, digits))
    answered = f"{written} and the repaired one {repaired} for the digits {row_of} (optimum {optimum})"
    return Shown(figure, sums, f"The printed construction answers {answered}.")


def _circle(axis: Axes, label: str) -> None:
    angles = np.linspace(-np.pi / 2, np.pi / 2, 100)
    axis.plot(np.cos(angles), np.sin(angles), color="#bbbbbb", linewidth=1)
    axis.plot([0, 1], [0, 0], color="#bbbbbb", linewidth=1)
    axis.set(xlim=(-0.12, 1.42), ylim=(-1.25, 1.25), aspect="equal", xlabel=label, xticks=[], yticks=[])
    axis.grid(False)
    axis.spines[:].set_visible(False)


def _pairs(axis: Axes, part: pd.DataFrame) -> None:
    """The sums of one pass, with labels beside as many as there is room for, from zero outwards."""
    area = 200 * part["slots"] / part["slots"].sum() + 12
    colours = np.where(part["sum"] >= 0, BLUE, "#9a9a9a")
    axis.scatter(np.cos(part["angle"]), np.sin(part["angle"]), s=area, color=colours, zorder=3)
    taken: list[float] = []
    for number, angle in part.sort_values("angle", key=abs, kind="stable")[["sum", "angle"]].itertuples(index=False):
        if all(abs(angle - other) > APART for other in taken):
            taken.append(angle)
            words = f"{number}".replace("-", "\N{MINUS SIGN}")
            axis.text(1.2 * np.cos(angle), 1.14 * np.sin(angle), words, ha="center", va="center", fontsize=9)


# All inputs


def exact_table(length: int) -> pd.DataFrame:
    """Exact match of every variant over all inputs of digits 1..9, in both precisions, at its default sharpness."""
    task, rows = MNNS(length=length), []
    for name, changed in CHANGES.items():
        right = {}
        for which, dtype in {"float64": torch.float64, "float32": torch.float32}.items():
            model = TrigMNNS(length, task.bound, name, dtype=dtype)
            right[f"right of {task.size}, {which}"] = int((model.solve(task.digits) == task.answers).sum())
        sizes = {"d": model.layout.width, "passes": model.passes, "c": f"{model.sharpness:.0f}"}
        rows.append({"variant": name, "changed": changed} | right | sizes)
    return pd.DataFrame(rows)


def smallest(lengths: Sequence[int]) -> pd.DataFrame:
    """The smallest c that solves every input of digits 1..9, for the scale 2^-n and for scale 1, and what suffices."""
    positive(**{f"lengths[{place}]": length for place, length in enumerate(lengths)})
    rows = [
        (n, name, layer.smallest_sharpness(n, name), sufficient_sharpness(n, 9 * n, VARIANTS[name]))
        for n, name in product(lengths, ("biased", "repaired"))
    ]
    return pd.DataFrame(rows, columns=["n", "variant", "found", "sufficient"])


def proposition_table(length: int, sharpnesses: Values) -> pd.DataFrame:
    """The statements of the four propositions, each measured on its part of the layer at some sharpness."""
    sums = layer.sum_sets()
    truth = layer.smallest_non_negative(sums)
    error = f"{layer.partial_sum_error(multisets(length)):.0e}"
    right = lambda read, c: f"{PERCENT * float((layer.read_off(sums, 5, read, c) == truth).double().mean()):.1f} %"
    mass = lambda c, *passes: f"{min(layer.attention_mass(length, c, step) for step in passes):.4f}"
    measured: dict[str, Callable[[float], str]] = {
        "attention: least weight of the right token, passes 1 to n + 2": lambda c: mass(c, *range(1, length + 3)),
        "attention: the same in pass n + 3": lambda c: mass(c, length + 3),
        "routing: least weight of the right expert": lambda c: f"{layer.routing(length, c).diagonal().min():.4f}",
        "partial sums: largest error of a coordinate": lambda c: error,
        "read-off as printed: 4-tuples of sums read right": lambda c: right("sigmoid", c),
        "read-off with the moved threshold: the same": lambda c: right("biased", c),
    }
    rows = [{"measured": what} | {f"c = {c:g}": take(c) for c in sharpnesses} for what, take in measured.items()]
    return pd.DataFrame(rows)


# Trained


def trained_accuracies(rows: pd.DataFrame, blocks: pd.DataFrame, finding: str = "") -> Shown:
    """Closing accuracy of every GPT-2 run, and of the block at its best rates; black lines are the paper's "perfect".

    Accuracy is on validation inputs, and of the block also on the inputs it was trained on. Recipes without a
    trigonometric run are left out. `embedding` of the block is what one pass hands to the next.
    """
    known = rows.loc[rows["embedding"] != "learned", "recipe"].unique()
    models = rows[rows["recipe"].isin(known)].sort_values(["recipe", "d_model"], kind="stable")
    models = models.astype({"embedding": str, "recipe": str})
    models = models.assign(model="GPT-2, d = " + models["d_model"].astype(str) + "\n" + models["recipe"])
    fed = last_steps(best_rates(blocks)).assign(embedding=lambda found: "fed its " + found["feed"])
    sides = {"block": fed["accuracy"], "block,\ninputs trained on": fed["seen"]}
    parts = [models, *(fed.assign(model=name, last=side) for name, side in sides.items())]
    data = pd.concat(parts)[["model", "embedding", "seed", "last"]]
    said = lambda embedding, model: None if embedding == "learned" else PERFECT
    shown = look.ends(data, "embedding", "model", None, paper=said, finding=finding, label="accuracy (%)")
    shown.figure.set_size_inches(8.6, 3.6)
    shown.figure.axes[0].set(ylim=(min(65.0, data["last"].min() - 2), 101))
    return shown


def block_table(blocks: pd.DataFrame) -> pd.DataFrame:
    """Closing accuracy (%) of the block for every feed and learning rate, on validation inputs and those trained on.

    Means have their interval; `best seed` is the best one's, and so many seeds are perfect.
    """
    last = last_steps(blocks).rename(columns={"feed": "hands on its", "lr": "rate"})
    last["rate"] = last["rate"].map("{:g}".format)
    perfect = lambda values: f"{(values >= PERFECT).sum()} of {len(values)}"
    columns = {"accuracy (%)": ("accuracy", show.mean_of), "best seed": ("accuracy", "max")}
    columns |= {"perfect seeds": ("accuracy", perfect), "trained on (%)": ("seen", show.mean_of)}
    columns |= {"perfect there": ("seen", perfect)}
    return show.groups(last, ["hands on its", "rate"]).agg(**columns).reset_index()
