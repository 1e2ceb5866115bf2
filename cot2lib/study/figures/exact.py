"""Figures and tables of which policy ratio is right: exact gradients, one parameter, dropout, several updates."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from torch import Tensor

from cot2lib import losses
from cot2lib.errors import SpecError
from cot2lib.model import GPT2Stack
from cot2lib.specs import GRPOSpec, Recipe, RunSpec
from cot2lib.specs.profiles import shortened, spec
from cot2lib.study.analysis import clipping, exact
from cot2lib.study.figures.style import panels
from cot2lib.study.report import recipe
from cot2lib.tasks import MNNS
from cot2lib.theory.one_parameter import Shared, entropies
from cot2lib.thoughts import MTS
from cot2lib.training.supervised import SupervisedTrainer

TASK = MNNS(1, 3, 2)
GROUP = 8  # samples per prompt
LISTED = 3  # largest K whose thoughts are all listed
BLOCKS = 8  # of lanes, for standard errors by the jackknife
TIME = 20.0  # updates times learning rate of the second small example
SHOWN = ("geometric", "product")  # "per-draw" has the product's gradient at equal weights
LOOKS = {"geometric": ("#D55E00", "s", "--"), "product": ("#0072B2", "o", "-")}
WARM = ("#D55E00", "#E69F00", "#CC79A7", "#7A7A7A", "#B08D00")
NAMES = {"geometric": "geometric mean", "product": "product", "per-draw": "per draw"}
UPDATES = Recipe(steps=12, batch=8, lr=1e-3, evaluate_every=12)

Starts = tuple[list[RunSpec], GPT2Stack]


def starts(seeds: Sequence[int], epochs: int) -> Starts:
    """Discrete models of two digits of 1-3, one layer, one head, d = 16, trained here for so many epochs.

    Raises:
        SpecError: without seeds or epochs.
    """
    if not seeds:
        raise SpecError("no seeds for the small models; give at least one, say [42].")
    specs = [shortened(spec("discrete", task=TASK, d_model=16, layers=1, heads=1, seed=s), epochs) for s in seeds]
    trainer = SupervisedTrainer(specs)
    trainer.train()
    return specs, trainer.stack


# Expected gradients


def exact_gradients(start: Starts, ks: Sequence[int]) -> pd.DataFrame:
    """How every ratio's expected gradient lies to that of J, for each K whose thoughts can be listed and each model.

    Columns `k`, `ratio`, `seed`; `cosine`, `length` beside the gradient of J; `balance`, the thought part's length
    over the answer part's; `scaled`, the cosine if a group's standard deviation divides; `J`. Raises SpecError if no
    K can be listed.
    """
    if not any(1 <= k <= LISTED for k in ks):
        raise SpecError(
            f"exact_ks={list(ks)}: give at least one from 1 to {LISTED}, whose thoughts can all be listed."
        )
    specs, stack = start
    return pd.concat([_listed(stack, [s.seed for s in specs], k) for k in ks if k <= LISTED], ignore_index=True)


def _listed(stack: GPT2Stack, seeds: Sequence[int], k: int) -> pd.DataFrame:
    law = exact.law(stack, TASK, MTS(k))
    weight = exact.group_weight(law.success.detach(), GROUP, True)
    thought, answer = (exact.gradient(value.mean(1), stack) for value in exact.parts(law))
    weighted = [exact.gradient((weight * value).mean(1), stack) for value in exact.parts(law)]
    rows, whole = [], thought + answer
    for ratio in SHOWN:
        share = 1 / k if ratio == "geometric" else 1.0
        found, scaled = share * thought + answer, share * weighted[0] + weighted[1]
        columns = {
            "cosine": torch.cosine_similarity(found, whole),
            "length": found.norm(dim=1) / whole.norm(dim=1),
            "balance": share * thought.norm(dim=1) / answer.norm(dim=1),
            "scaled": torch.cosine_similarity(scaled, whole),
            "J": exact.expected_reward(law).detach(),
        }
        rows.append(pd.DataFrame({name: value.tolist() for name, value in columns.items()} | {"seed": seeds}))
        rows[-1] = rows[-1].assign(k=k, ratio=ratio)
    return pd.concat(rows, ignore_index=True)


def sampled_gradients(start: Starts, ks: Sequence[int], lanes: int) -> pd.DataFrame:
    """The same of the first model from many sampled batches, with standard errors; rows by K, ratio and `measure`.

    Measures: `cosine` and `balance` as in `exact_gradients`; `noise`, one batch's standard deviation over its expected
    length; `along`, where thoughts can be listed, the mean's length along the gradient of J in units of it,
    over (G-1)/G: one if unbiased.
    """
    specs, stack = start
    one, rows = stack.select([0]), []
    for k in ks:
        found = exact.sampled_gradients(one, TASK, MTS(k), SHOWN, GROUP, lanes=lanes, seed=specs[0].seed)
        right = found["product"].sum(0)
        for ratio, mine in found.items():
            whole = mine.sum(0)
            measured = {
                "cosine": _jackknife(_cosine, whole, right),
                "balance": _jackknife(lambda thought, answer: _length(thought) / _length(answer), *mine),
                "noise": _jackknife(_noise, whole),
            }
            if k <= LISTED:
                goal = exact.gradient(exact.expected_reward(exact.law(one, TASK, MTS(k))), one)[0] * (1 - 1 / GROUP)
                along = whole @ goal / goal.square().sum()
                measured["along"] = float(along.mean()), float(along.std()) / lanes**0.5
            for name, (value, error) in measured.items():
                rows.append({"k": k, "ratio": ratio, "measure": name, "value": value, "error": error})
    return pd.DataFrame(rows)


def _length(a: Tensor) -> Tensor:
    """Length of an expected gradient, without what noise adds to that of the mean."""
    return exact.inner(a, a).clamp(min=0).sqrt()


def _cosine(a: Tensor, b: Tensor) -> Tensor:
    return exact.inner(a, b) / (_length(a) * _length(b))


def _noise(a: Tensor) -> Tensor:
    """Standard deviation of one lane's gradient over the expected length."""
    return (a.square().sum() / len(a) / exact.inner(a, a) - 1).clamp(min=0).sqrt()


def _jackknife(measure: Callable[..., Tensor], *gradients: Tensor) -> tuple[float, float]:
    """A measure of lanes of gradients, and its standard error from leaving out one block of lanes at a time."""
    lanes = len(gradients[0])
    block = torch.arange(lanes) * BLOCKS // lanes
    left = torch.stack([measure(*(g[block != b] for g in gradients)) for b in range(BLOCKS)])
    error = ((BLOCKS - 1) / BLOCKS * (left - left.mean()).square().sum()).sqrt()
    return float(measure(*gradients)), float(error)


def gradients(listed: pd.DataFrame, sampled: pd.DataFrame) -> Figure:
    """Direction, balance and noise of both ratios' gradients over K: exact as lines, sampled as marks."""
    figure, axes = panels(1, 3, width=9.4, height=3.0)
    labels = {
        "cosine": "cosine with the gradient of J",
        "balance": "thought part / answer part",
        "noise": "noise of a batch / signal",
    }
    for axis, (measure, label) in zip(axes[0], labels.items()):
        for ratio, (colour, marker, dash) in LOOKS.items():
            if measure in listed:
                mine = listed[listed["ratio"] == ratio]
                for _, seed in mine.groupby("seed"):
                    axis.plot(seed["k"], seed[measure], color=colour, linestyle=dash, linewidth=1.1, alpha=0.5)
            points = sampled[(sampled["ratio"] == ratio) & (sampled["measure"] == measure)]
            axis.errorbar(
                points["k"], points["value"], 2 * points["error"], color=colour, fmt=marker, markersize=5, capsize=2,
                linestyle=dash if measure == "noise" else "none", linewidth=1.2, label=NAMES[ratio],
            )  # fmt: skip
        _count_axis(axis, sorted(sampled["k"].unique().tolist()))
        axis.set(xlabel="tokens K", ylabel=label)
    axes[0, 1].set_yscale("log")
    axes[0, 1].set_yticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
    axes[0, 1].yaxis.set_minor_locator(NullLocator())
    axes[0, 2].set_ylim(bottom=0)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
    return figure


def gradient_table(listed: pd.DataFrame, sampled: pd.DataFrame) -> pd.DataFrame:
    """The numbers of `gradients`: exact ones as mean over models, sampled ones with two standard errors."""
    rows = []
    for (k, ratio), points in sampled.groupby(["k", "ratio"], sort=False):
        row = {"K": str(k), "ratio": NAMES[ratio]}
        here = listed[(listed["k"] == k) & (listed["ratio"] == ratio)]
        if len(here):
            row |= {"cosine": here["cosine"].mean(), "length": here["length"].mean()}
            row |= {"cosine, scaled": here["scaled"].mean()}
        named = points.set_index("measure")
        for measure in ("cosine", "along", "noise"):
            if measure in named.index:
                value, error = named.loc[measure, ["value", "error"]]
                row[f"sampled {measure}"] = f"{value:.3f} ± {2 * error:.3f}"
        rows.append(row)
    return pd.DataFrame(rows)


def _count_axis(axis: Axes, ks: Sequence[int]) -> None:
    axis.set_xscale("log", base=2)
    axis.set_xticks(ks, [str(k) for k in ks])
    axis.xaxis.set_minor_locator(NullLocator())


# Examples of one parameter


def examples(ks: Sequence[int], updates: int) -> Figure:
    """Expected reward over updates where thought and answer share a parameter; final entropy where they do not."""
    figure, axes = panels(1, 2, width=8.6, height=3.2)
    left, right = axes[0]
    steps, model = np.arange(1, updates + 1), Shared()
    product = model.climb([max(ks)], "product", updates)
    left.plot(steps, product[1:, 0], color=LOOKS["product"][0], label="product, every K", linewidth=5, alpha=0.4)
    for place, (k, climb) in enumerate(zip(ks, model.climb(ks, "geometric", updates).T)):
        colour, dash = WARM[place % len(WARM)], ("--", "-.", ":")[place % 3]
        left.plot(steps, climb[1:], color=colour, linestyle=dash, label=f"geometric mean, K = {k}")
    left.axhline(float(product[0, 0]), color="black", linewidth=1, linestyle=":", label="start")
    left.set(xscale="log", xlabel="update", ylabel="expected reward J")
    for ratio, (colour, marker, dash) in LOOKS.items():
        found = entropies(ks, ratio, TIME)
        right.plot(ks, found, color=colour, marker=marker, linestyle=dash, label=NAMES[ratio])
    right.axhline(np.log(8), color="black", linewidth=1, linestyle=":")
    _count_axis(right, ks)
    right.set(xlabel="tokens K", ylabel="entropy of a thought (nat)", ylim=(0, None))
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return figure


def example_table(ks: Sequence[int], updates: int) -> pd.DataFrame:
    """Where both examples end, by K and ratio."""
    columns = {f"J, {NAMES[ratio]}": Shared().climb(ks, ratio, updates)[-1] for ratio in SHOWN}
    columns |= {f"entropy, {NAMES[ratio]}": entropies(ks, ratio, TIME) for ratio in SHOWN}
    return pd.DataFrame({"K": [str(k) for k in ks], **{name: value.tolist() for name, value in columns.items()}})


# Dropout in the current policy alone


def dropout(models: dict[str, Starts], ks: Sequence[int], probability: float) -> pd.DataFrame:
    """`analysis.clipping.one_sided_dropout` of each profile's models, by K: three ratios, and logits / K.

    Raises:
        SpecError: for a probability outside 0..1.
    """
    if not 0 <= probability < 1:
        raise SpecError(f"dropout={probability}: choose 0 <= dropout < 1.")
    parts = []
    for profile, (specs, stack) in models.items():
        for k in ks:
            plain = clipping.one_sided_dropout(stack, specs, MTS(k), probability=probability)
            divided = clipping.one_sided_dropout(stack, specs, MTS(k, float(k)), ["product"], probability)
            plain["rule"], divided["rule"] = plain["ratio"].map(NAMES), "product, logits / K"
            parts += [part.assign(profile=profile, k=k) for part in (plain, divided)]
    return pd.concat(parts, ignore_index=True)


def dropout_table(found: pd.DataFrame) -> pd.DataFrame:
    """Shares (%) of ratios outside the clip range, mean and range over seeds, by models, rule and K."""
    rows = []
    for (profile, rule), part in found.groupby(["profile", "rule"], sort=False):
        row = {"models": recipe(profile), "ratio": rule}
        for step in ("thoughts", "answers"):
            for k, seeds in part.groupby("k"):
                row[f"{step}, K = {k}"] = _range(100 * seeds[step])
        rows.append(row)
    return pd.DataFrame(rows)


def _range(values: pd.Series) -> str:
    return f"{values.mean():.0f} ({values.min():.0f}–{values.max():.0f})"


# Several updates on a batch


def several_updates(start: Starts, k: int, updates: Sequence[int], recipe: Recipe = UPDATES) -> pd.DataFrame:
    """`analysis.clipping.several_updates` by ratio and number of updates per batch; equally many batches for all.

    Raises:
        SpecError: for a K whose thoughts are too many to list.
    """
    if not 1 <= k <= LISTED:
        raise SpecError(f"updates_k={k}: choose 1 to {LISTED}, whose thoughts can all be listed.")
    specs, stack = start
    parts = []
    for ratio in losses.RATIOS:
        for count in updates:
            runs = [GRPOSpec(recipe, one, MTS(k), ratio, updates=count) for one in specs]
            parts.append(clipping.several_updates(runs, stack).assign(ratio=ratio, updates=count))
    return pd.concat(parts, ignore_index=True)


def updates_table(found: pd.DataFrame) -> pd.DataFrame:
    """Means over models: shares outside the clip range and without gradient (%), J after, divergence (nat)."""
    columns = {
        "thoughts": "thoughts outside (%)",
        "thoughts_cut": "thoughts cut (%)",
        "answers_cut": "answers cut (%)",
        "after": "J after",
        "reweighted": "J after, reweighted by geometric means",
        "divergence": "KL from start",
    }
    means = found.groupby(["updates", "ratio"], sort=False)[[*columns]].mean().reset_index()
    for name in ("thoughts", "thoughts_cut", "answers_cut"):
        means[name] = [f"{100 * share:.1f}" for share in means[name]]
    means = means.assign(updates=means["updates"].astype(str), ratio=means["ratio"].map(NAMES))
    return means.sort_values("updates", kind="stable").rename(columns={**columns, "updates": "updates per batch"})


def findings(listed: pd.DataFrame, sampled: pd.DataFrame, dropped: pd.DataFrame, updates: pd.DataFrame) -> list[str]:
    """What the section's tables say, a sentence or two each."""
    k = int(listed["k"].max())
    away = listed[(listed["k"] == k) & (listed["ratio"] == "geometric")]
    angles = np.degrees(np.arccos(away["cosine"].clip(-1, 1)))
    scaled = listed.loc[listed["ratio"] == "product", "scaled"].min()
    noise = sampled[sampled["measure"] == "noise"].pivot(index="k", columns="ratio", values="value")
    most = int(noise.index.max())
    shares = 100 * dropped.groupby(["profile", "rule", "k"])["thoughts"].mean()
    mean = updates.groupby(["updates", "ratio"])["after"].mean().unstack()
    fewest, last, before = mean.index.min(), mean.index.max(), updates["before"].mean()
    said = lambda count: ", ".join(f"{NAMES[ratio]} {mean.loc[count, ratio]:.3f}" for ratio in losses.RATIOS)
    return [
        f"**Direction**: at K = {k} the geometric mean's expected gradient is {angles.min():.0f} to "
        f"{angles.max():.0f} degrees away from that of J, and {away['length'].min():.2f} to "
        f"{away['length'].max():.2f} times as long. "
        f"Division by the group's standard deviation changes the product's direction little: its cosine stays at or "
        f"above {scaled:.3f}.",
        f"**Noise**: at K = {most} one batch's deviation is {noise.loc[most, 'product']:.1f} times the signal for the "
        f"product and {noise.loc[most, 'geometric']:.1f} times for the geometric mean, each against "
        "its own expectation.",
        f"**Dropout**: with dropout in the current policy alone, {shares.min():.0f} to {shares.max():.0f} % of the "
        "thoughts' ratios are outside the clip range before anything was learnt.",
        f"**Updates**: J was {before:.3f} at the start (mean over models); after equally many batches it is, with "
        f"{fewest} per batch, {said(fewest)}, and with {last}, {said(last)}. In so short a training "
        f"the ratios differ by at most {(mean.max(axis=1) - mean.min(axis=1)).max():.3f}.",
    ]


# What holds


def checks(
    listed: pd.DataFrame, sampled: pd.DataFrame, dropped: pd.DataFrame, silent: pd.DataFrame, updates: pd.DataFrame
) -> dict[str, bool]:
    """The section's claims; `silent` is `dropout` with probability 0."""
    by = lambda ratio, frame: frame[frame["ratio"] == ratio]
    along = by("product", sampled)
    along = along[along["measure"] == "along"]
    geometric, above = by("geometric", listed), lambda frame: frame[frame["k"] > 1]
    ends = example_table((1, 2, 6), 4000).set_index("K")
    first, more = updates[updates["updates"] == 1], updates[updates["updates"] > 1]
    return {
        "the product's expected gradient is that of J": bool((by("product", listed)["cosine"] > 1 - 1e-5).all()),
        "sampled gradients of the product agree with it": bool(
            ((along["value"] - 1).abs() < 5 * along["error"]).all()
        ),
        "the geometric mean's points elsewhere from K = 2 on": bool((above(geometric)["cosine"] < 1 - 1e-4).all()),
        "with a shared parameter it lowers the reward for K = 2 and 6": bool(
            (ends.loc[["2", "6"], "J, geometric mean"] < 0.4).all() and (ends["J, product"] > 0.49).all()
        ),
        "without dropout no ratio leaves one": bool((silent[["thoughts", "answers", "spread"]] == 0).all(axis=None)),
        "dropout in the current policy alone moves most ratios out of the clip range": bool(
            (dropped.groupby(["profile", "rule", "k"])["thoughts"].mean() > 0.5).all()
        ),
        "with one update per batch the clip cuts nothing": bool((first[["thoughts", "answers"]] == 0).all(axis=None)),
        "with several it does": bool((more.groupby("updates")["thoughts_cut"].mean() > 0).all()),
    }
