"""The chapter `construction`: transformers that solve MNNS without being trained, and what training makes of them.

One input on the circle; which inputs each variant solves, and how sharp it must be; what training gives.
"""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pandas as pd
import torch
from jaxtyping import Int
from matplotlib.axes import Axes
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.metrics import Values
from cot2lib.specs import RunSpec
from cot2lib.study import look, measured, show
from cot2lib.study.construction_block import BATCH, best_rates, last_steps
from cot2lib.study.frame import at, tidy
from cot2lib.study.look import Shown, panels
from cot2lib.study.report import PERCENT, RECIPES
from cot2lib.study.series import BLUE, LOOKS
from cot2lib.study.sweeps import LARGE, methods, trigonometric
from cot2lib.tasks import MNNS
from cot2lib.theory import propositions as layer
from cot2lib.theory.construction import VARIANTS, Layout, TrigMNNS, checked_digits, sufficient_sharpness
from cot2lib.theory.propositions import exact_match, multisets, optima, signed_sums, smallest_sharpness
from cot2lib.theory.variants import CosineMNNS, TaggedMNNS, collapsed

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


def on_the_circle(digits: Sequence[int], sharpness: float | int | None = None) -> Shown:
    """The pairs that each token of one input holds, a panel per pass, and what two read-offs make of the last.

    Pairs are drawn at length 1, the printed read-off's too; areas grow with the number of slots that hold a sum.
    """
    sums, answers = held(digits, sharpness), {}
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
        model, row = built(digits, name, sharpness)
        answers[name] = int(model.solve(row))
        x, y = (model.states(row)[0, -1, :2] * (1 if VARIANTS[name].rescaled else 2 ** len(digits))).tolist()
        colour, marker, dash = LOOKS["variant"][name]
        last.plot([0, x], [0, y], color=colour, linestyle=(0, dash or (1, 0)), linewidth=1.6)
        last.scatter(x, y, s=70, color=colour, marker=marker, zorder=3, label=f"{name} reads {answers[name]}")
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    (written, repaired), optimum = answers.values(), int(optima(one_input(digits)))
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


def collapse(digits: Sequence[int]) -> str:
    """The rest of one input's signed sums if each has one pair and the pairs are averaged, in a sentence."""
    model, row = built(digits, "as-written")
    number, pair = len(signed_sums(row).unique()), collapsed(row, model.omega)[0].tolist()
    return (
        f"For the digits {', '.join(map(str, digits))} the {number} different sums, averaged with their shares, leave "
        f"the pair ({pair[0]:.4f}, {pair[1]:.0f}): one number for all of them."
    )


# All inputs


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


def match_curves(curves: pd.DataFrame) -> Shown:
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
    """Both dimensions (`dimensions`) against the number of digits."""
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


def models(profile: str, seeds: Sequence[int]) -> list[RunSpec]:
    """CoT2 with one layer and one head by its embeddings: learned, trigonometric at the start, or throughout."""
    return [*methods(profile, seeds, LARGE, ("cot2",), layers=1), *trigonometric(profile, seeds)]


def blocks() -> pd.DataFrame:
    """The shipped training curves of the block, tidy."""
    return tidy(measured.read("experts"))


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
    shown = look.ends(data, "embedding", "model", None, paper=_stated, finding=finding, label="accuracy (%)")
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
    perfect = lambda values: f"{(values >= PERFECT).sum()} of {len(values)}"
    columns = {"accuracy (%)": (value, show.mean_of), "best seed": (value, "max"), "perfect seeds": (value, perfect)}
    return show.headed(show.groups(rows, by).agg(**columns))


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
