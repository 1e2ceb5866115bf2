"""Figures and tables of the chapter `construction`: one input on the circle, all inputs, and what training gives."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from jaxtyping import Int
from matplotlib.axes import Axes
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.study import look, show
from cot2lib.study.construction.block import BATCH, best_rates, last_steps
from cot2lib.study.construction.measure import COSINE, PAPER, SOLVED
from cot2lib.study.frame import at
from cot2lib.study.look import Shown, panels
from cot2lib.study.report import RECIPES
from cot2lib.study.series import BLUE, LOOKS
from cot2lib.tasks import MNNS
from cot2lib.theory.construction import VARIANTS, TrigMNNS, checked_digits
from cot2lib.theory.matching import optima, signed_sums
from cot2lib.theory.tagged import collapsed

PERFECT = 100.0
DRAWN = 6  # digits whose states can be drawn
PANELS_PER_ROW = 3
APART = 0.17  # angle between two labels on the circle
SCALES = {  # length of the pairs that a variant reads
    **dict.fromkeys(("as-written", "biased", "mirrored"), "pairs of length $2^{-n}$"),
    **dict.fromkeys(("repaired", "fused", "residual"), "pairs of length 1"),
}
WIDTHS = dict(zip(VARIANTS, (4.0, 2.5, 1.2) * 2))  # so that curves on top of each other are seen
BLOCK, SEEN = "block", "block,\ninputs trained on"


# One input


def one_input(digits: Sequence) -> Int[Tensor, "one digit"]:
    """A row of digits to be drawn (SpecError for too many, none, or digits that no construction takes)."""
    if not all(isinstance(digit, int) for digit in digits):
        raise SpecError(f"live_digits={list(digits)}: digits are whole numbers.")
    if not 1 <= len(digits) <= DRAWN:
        raise SpecError(f"live_digits={list(digits)}: choose 1 to {DRAWN} digits, or the circle is too full.")
    return checked_digits([list(digits)], len(digits), max(1, sum(digits)))


def built(
    digits: Sequence[int], variant: str, sharpness: float | int | None = None
) -> tuple[TrigMNNS, Int[Tensor, "one digit"]]:
    """A construction of just the size that these digits need, and their row."""
    row = one_input(digits)
    return TrigMNNS(len(digits), max(1, int(row.sum())), variant, sharpness), row


def held(digits: Sequence[int], sharpness: float | int | None = None) -> pd.DataFrame:
    """Sums that each token of one input holds, by pass: the angle of a sum's pair, and the slots that hold it."""
    model, row = built(digits, "repaired", sharpness)
    found = []
    for step, token in enumerate(model.states(row)[0, : len(digits)], start=1):
        x, y = token[: 2 ** (step + 1)].unflatten(0, (-1, 2)).unbind(1)
        sums, slots = torch.unique((torch.atan2(y, x) / model.omega).round(), return_counts=True)
        found.append(pd.DataFrame({"pass": step, "sum": sums.int(), "angle": model.omega * sums, "slots": slots}))
    return pd.concat(found, ignore_index=True)


def read_pairs(digits: Sequence[int], sharpness: float | int | None = None) -> pd.DataFrame:
    """Pairs that the variants emit for one input, and their answers."""
    rows = []
    for name in VARIANTS:
        model, row = built(digits, name, sharpness)
        x, y = model.states(row)[0, -1, :2]
        found = f"{model.sharpness.softmax:.3g}", float(x.hypot(y)), float(torch.atan2(y, x)) / model.omega
        rows.append((name, *found, int(model.solve(row)), int(optima(row))))
    return pd.DataFrame(rows, columns=["variant", "c", "length", "angle / ω", "answer", "optimum"])


def on_the_circle(digits: Sequence[int], sharpness: float | int | None = None) -> Shown:
    """The pairs that each token of one input holds, a panel per pass, and what two read-offs make of the last.

    Pairs are drawn at length 1, the printed read-off's too; areas grow with the number of slots that hold a sum.
    """
    sums, read = held(digits, sharpness), read_pairs(digits, sharpness).set_index("variant")
    count = len(digits) + 1
    figure, axes = panels(-(-count // PANELS_PER_ROW), PANELS_PER_ROW, width=5.7, height=3.15)
    for axis in axes.flat[count:]:
        axis.set_visible(False)
    *passes, last = axes.flat[:count]
    for axis, digit, (_, part) in zip(passes, digits, sums.groupby("pass")):
        _circle(axis, f"after ±{digit}")
        _pairs(axis, part)
    _circle(last, "read-off")
    for name in ("as-written", "repaired"):
        length = read.loc[name, "length"] * (1 if VARIANTS[name].rescaled else 2 ** len(digits))
        _arrow(last, name, read.loc[name], length, built(digits, name)[0].omega)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    written, repaired, optimum = read["answer"]["as-written"], read["answer"]["repaired"], read["optimum"].iloc[0]
    told = f"the printed read-off answers {written}, the repaired one {repaired}; the optimum is {optimum}."
    return Shown(figure, sums, f"For the digits {', '.join(map(str, digits))} {told}")


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


def _arrow(axis: Axes, name: str, read: pd.Series, length: float, omega: float) -> None:
    colour, marker, dash = LOOKS["variant"][name]
    x, y = (length * part(read["angle / ω"] * omega) for part in (np.cos, np.sin))
    axis.plot([0, x], [0, y], color=colour, linestyle=(0, dash or (1, 0)), linewidth=1.6)
    axis.scatter(x, y, s=70, color=colour, marker=marker, zorder=3, label=f"{name} reads {read['answer']}")


def collapse(digits: Sequence[int]) -> str:
    """The rest of one input's signed sums if each has one pair and the pairs are averaged, in a sentence."""
    model, row = built(digits, "as-written")
    number, pair = len(signed_sums(row).unique()), collapsed(row, model.omega)[0].tolist()
    return (
        f"For the digits {', '.join(map(str, digits))} the {number} different sums, averaged with their shares, leave "
        f"the pair ({pair[0]:.4f}, {pair[1]:.0f}): one number for all of them."
    )


# All inputs


def exact_match(curves: pd.DataFrame) -> Shown:
    """Exact match against c, a panel per scale; lines are float64, crosses float32."""
    scaled = curves.assign(scale=curves["variant"].map(SCALES))
    double, single = (at(scaled, precision=name) for name in ("float64", "float32"))
    most = double.groupby("variant")[SOLVED].max()
    said = "The printed variant solves at most {:.1f} % of the inputs, every repair {:.0f} % if c is large enough."
    said = said.format(most["as-written"], most.drop("as-written").min())
    labels = "sharpness c", SOLVED
    shown = look.lines(double, "c", SOLVED, "variant", labels, "scale", said, WIDTHS, height=3.4)
    for axis, scale in zip(shown.figure.axes, dict.fromkeys(SCALES.values())):
        part = at(single, scale=scale)
        axis.scatter(part["c"], part[SOLVED], s=22, color="black", marker="+", linewidths=0.8, zorder=5)
    shown.figure.axes[0].set(xscale="log", ylim=(0, 104))  # panels share their axes
    return Shown(shown.figure, curves, said)


def smallest_by_length(table: pd.DataFrame) -> Shown:
    """The smallest c that was found and the one that suffices, by the number of digits; a panel per variant."""
    long = table.rename(columns={"smallest c": "found", "sufficient c": "sufficient"})
    long = long.melt(["n", "variant"], ["found", "sufficient"], "which", "c")
    last = at(table, n=table["n"].max()).pivot(index="n", columns="variant", values="smallest c").reset_index()
    told = "To solve all inputs of {n} digits takes c = {biased:.0f} with the printed halving, {repaired:.0f} without."
    labels = "digits n", "sharpness c"
    shown = look.lines(
        long, "n", "c", "which", labels, "variant", show.finding(last, told), {"found": 0.0}, height=2.9
    )
    shown.figure.axes[0].set(yscale="log", xticks=sorted(table["n"]))  # panels share their axes
    return shown


def dimension_curves(table: pd.DataFrame) -> Shown:
    """Both dimensions (`measure.dimensions`) against the number of digits."""
    fewer = table.loc[table[COSINE] < table[PAPER], "n"].min()
    said = f"From {fewer} digits on the cosine construction needs fewer coordinates."
    long, labels = table.melt("n", var_name="construction", value_name="d"), ("digits n", "content dimension")
    shown = look.lines(long, "n", "d", "construction", labels, finding=said, aspect=1.7)
    shown.figure.axes[0].set(yscale="log", xticks=table["n"])
    return shown


def tagged_window(table: pd.DataFrame) -> Shown:
    """Inputs solved against the c of the tagged vocabulary's softmax, a panel per length."""
    most = at(table, precision="float32").groupby("digits")[SOLVED].max()
    said = ", ".join(f"{share:.1f} % of the inputs of {n} digits" for n, share in most.items())
    said, labels = f"In single precision the best c solves {said}.", ("c of the vocabulary's softmax", SOLVED)
    shown = look.lines(table, "c", SOLVED, "precision", labels, "digits", said)
    shown.figure.axes[0].set(xscale="log", ylim=(0, 103))  # panels share their axes
    return shown


# Trained


def together(models: pd.DataFrame, blocks: pd.DataFrame) -> pd.DataFrame:
    """Rows or curves of the GPT-2 runs, and of the block at its best rates; `model` names what was trained.

    Recipes without a trigonometric run are left out. `embedding` tells the kinds of a model apart: for the block, what
    one pass hands to the next.
    """
    known = models.loc[models["embedding"] != "learned", "recipe"].unique()
    models = models[models["recipe"].isin(known)].sort_values(["recipe", "d_model"], kind="stable")
    models = models.assign(model="GPT-2, d = " + models["d_model"].astype(str))
    fed = best_rates(blocks)
    fed = fed.assign(model=BLOCK, embedding="fed its " + fed["feed"], recipe=RECIPES["quick"])
    return pd.concat([models.astype({"embedding": str, "recipe": str}), fed], ignore_index=True)


def trained_accuracies(rows: pd.DataFrame, blocks: pd.DataFrame, finding: str = "") -> Shown:
    """Closing accuracy of every run and block; black lines are the paper's "perfect".

    Accuracy is on validation inputs, and of the block also on the inputs it was trained on.
    """
    both = together(rows, last_steps(blocks))
    fed, models = at(both, model=BLOCK), both[both["model"] != BLOCK]
    models = models.assign(model=models["model"] + "\n" + models["recipe"])
    parts = [models, fed.assign(last=fed["accuracy"]), fed.assign(model=SEEN, last=fed["seen"])]
    data = pd.concat(parts)[["model", "embedding", "seed", "last"]]
    shown = look.ends(data, "embedding", "model", None, stated=_stated, finding=finding, label="accuracy (%)")
    shown.figure.set_size_inches(8.6, 3.6)
    shown.figure.axes[0].set(ylim=(min(65.0, data["last"].min() - 2), 101))
    return shown


def trained_curves(curves: pd.DataFrame, blocks: pd.DataFrame, finding: str = "") -> Shown:
    """Validation accuracy over epochs, a panel per model; thin lines are seeds."""
    task, seeds = MNNS(), blocks["seed"].unique().tolist()
    inputs = {seed: int(task.split(seed).sum()) for seed in seeds}  # that are trained on
    both = together(curves, blocks.assign(epoch=blocks["step"] * BATCH / blocks["seed"].map(inputs)))
    return look.curves(both, "embedding", "model", _stated, finding, sharex=False)


def _stated(embedding: str, model: str) -> float | None:
    """The paper's remark on training with trigonometric embeddings, as an accuracy (%)."""
    return None if embedding == "learned" else PERFECT


def accuracies(rows: pd.DataFrame, by: Sequence[str], value: str) -> pd.DataFrame:
    """Closing accuracy (%) of each group with its interval, the best seed's, and how many seeds are perfect."""
    columns = {"accuracy (%)": (value, show.mean_of), "best seed": (value, "max"), "perfect seeds": (value, perfect)}
    return show.headed(show.groups(rows, by).agg(**columns))


def perfect(values: pd.Series) -> str:
    """Seeds that reach 100 %, of how many."""
    return f"{(values >= PERFECT).sum()} of {len(values)}"


def block_table(blocks: pd.DataFrame) -> pd.DataFrame:
    """`accuracies` of the construction's block for every feed and learning rate, and on what it was trained on."""
    last = last_steps(blocks).rename(columns={"feed": "fed its", "lr": "rate"})
    last["rate"] = last["rate"].map("{:g}".format)
    by = ["fed its", "rate"]
    seen = accuracies(last, by, "seen").drop(columns="best seed")
    seen = seen.rename(columns={"accuracy (%)": "trained on (%)", "perfect seeds": "perfect there"})
    return accuracies(last, by, "accuracy").merge(seen, on=by)


def best_of(rows: pd.DataFrame) -> str:
    """The number of perfect trigonometric runs, and the kind of model with the highest mean, in a sentence."""
    trigonometric = rows[rows["embedding"] != "learned"]
    kinds = show.groups(rows, ["embedding", "d_model", "recipe"])["last"]
    embedding, d_model, recipe = best = kinds.mean().idxmax()
    return (
        f"Of the {len(trigonometric)} trigonometric GPT-2 runs {(trigonometric['last'] >= PERFECT).sum()} reach "
        f"{PERFECT:g} %; the highest mean of all is that of {embedding}, d = {d_model}, {recipe}: "
        f"{show.mean_of(kinds.get_group(best))} %."
    )
