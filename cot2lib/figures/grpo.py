"""Figures, tables and checks of the chapter `grpo_mts`: what policy gradients on sampled thoughts change."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cot2lib import paper, runs, sweeps
from cot2lib.errors import SpecError
from cot2lib.figures.curves import in_order, unique
from cot2lib.figures.style import COLOURS, DASHES, MARKERS, PAPER, panels, seed_dots, series_legend
from cot2lib.grpo import GRPOTrainer
from cot2lib.metrics import mean_interval, paired_interval
from cot2lib.provenance import resolve_device
from cot2lib.specs import GRPOSpec, Recipe, RunSpec
from cot2lib.thoughts import Rule

PERCENT = 100.0
DECODERS = {"own": "own sampler", "base": "base", "discrete": "discrete"}
STEPS = (1, 2, 3, 4)
MOST = 0.9  # of the runs, for which a checked claim must hold
POINTS_APART = 3.0
LIVE_BATCH = 16  # prompts per live step


def evaluations(requests: Mapping[str, Sequence[GRPOSpec]], retrained: str | None = None) -> pd.DataFrame:
    """Every evaluation of recorded runs, with accuracies (%) by own sampler (`own`), base and discrete decoding.

    Arguments and errors as `runs.by_profile`.
    """
    rows, points = runs.by_profile(requests, retrained)
    held_out = rows.drop_duplicates("id").set_index("id")[["inputs_a", "inputs_b"]].sum(axis=1)
    inputs = points["id"].map(held_out)
    shares = {name: PERCENT * (points[f"{name}_a"] + points[f"{name}_b"]) / inputs for name in ("base", "discrete")}
    return points.assign(own=PERCENT * points["accuracy"], reward=PERCENT * (1 - points["loss"]), **shares)


def ends(points: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """First (before any step) and last evaluation of every run, a row each, by profile and id."""
    ordered = points.sort_values("step", kind="stable").groupby(["profile", "id"], sort=False)
    return ordered.first().reset_index(), ordered.last().reset_index()


def best(points: pd.DataFrame) -> pd.Series:
    """Best accuracy (%) by the run's own sampler over all evaluations, by id."""
    return points.groupby("id")["own"].max()


# The table of the paper


def accuracy_by_k(points: pd.DataFrame) -> Figure:
    """Accuracy by own sampler before and after training over K, a panel per dimension; black bars are the paper's."""
    first, last = ends(points)
    dimensions, ks = in_order(points["d_model"]), in_order(points["k"])
    figure, axes = panels(1, len(dimensions), width=4.2 * len(dimensions), height=3.2, sharey=True)
    for axis, d_model in zip(axes[0], dimensions):
        for place, k in enumerate(ks):
            for shift, name, table in ((-0.17, "before", first), (0.17, "after", last)):
                chosen = table[(table["d_model"] == d_model) & (table["k"] == k)]
                if len(chosen):
                    seed_dots(axis, place + shift, chosen["own"], name, spread=0.06)
            axis.scatter([place + 0.17], [paper.paper_value(f"grpo-mts-d{d_model}-k{k}")], s=190, **PAPER)
        axis.axhline(paper.paper_value(f"grpo-mts-d{d_model}-sft"), color="black", linewidth=1.0, linestyle=":")
        axis.set_xticks(range(len(ks)), [f"K = {k}" for k in ks])
        axis.set(xlabel=f"tokens per thought (d = {d_model})", xlim=(-0.6, len(ks) - 0.4))
    axes[0, 0].set_ylabel("validation accuracy (%)")
    series_legend(figure, ["before", "after"])
    return figure


def entropies(points: pd.DataFrame) -> Figure:
    """Entropy of each step before and after, a row per dimension and a panel per K; black bars are the paper's."""
    first, last = ends(points)
    dimensions, ks = in_order(points["d_model"]), in_order(points["k"])
    figure, axes = panels(len(dimensions), len(ks), width=8.6, height=2.5, sharey=True, sharex=True)
    for row, d_model in zip(axes, dimensions):
        for axis, k in zip(row, ks):
            for shift, name, table in ((-0.17, "before", first), (0.17, "after", last)):
                chosen = table[(table["d_model"] == d_model) & (table["k"] == k)]
                _entropy_dots(axis, chosen, name, shift, f"grpo-mts-d{d_model}-k{k}")
            axis.set_xticks(STEPS)
        row[0].set_ylabel(f"entropy (nat), d = {d_model}")
    for axis, k in zip(axes[-1], ks):
        axis.set_xlabel(f"token (K = {k})")
    series_legend(figure, ["before", "after"])
    return figure


def _entropy_dots(axis: Axes, table: pd.DataFrame, name: str, shift: float, claim: str) -> None:
    suffix = "-sft" if name == "before" else ""
    for step in STEPS:
        values, x = table[f"entropy_{step}"], step + shift
        look = dict(color=COLOURS[name], marker=MARKERS[name])
        axis.scatter([x] * len(values), values, s=14, alpha=0.5, linewidths=0, **look)
        axis.scatter([x], [values.mean()], s=34, edgecolors="white", zorder=3, **look)
        axis.scatter([x], [paper.paper_value(f"{claim}-entropy{step}{suffix}")], s=70, **PAPER | {"linewidths": 1.6})


def entropy_table(points: pd.DataFrame) -> pd.DataFrame:
    """Accuracies (%) and entropies (nat) before and after, by dimension and K, means over seeds with the paper's."""
    first, last = ends(points)
    rows = []
    for (d_model, k), after in last.groupby(["d_model", "k"]):
        before = first[(first["d_model"] == d_model) & (first["k"] == k)]
        claim = f"grpo-mts-d{d_model}-k{k}"
        row = {"d": d_model, "K": k, "own sampler": f"{before['own'].mean():.1f} to {after['own'].mean():.1f}"}
        row["the paper"] = f"{paper.claims().loc[f'grpo-mts-d{d_model}-sft', 'paper_value']} to "
        row["the paper"] += str(paper.claims().loc[claim, "paper_value"])
        for step in STEPS:
            ours = f"{before[f'entropy_{step}'].mean():.2f} to {after[f'entropy_{step}'].mean():.2f}"
            stated = [paper.paper_value(f"{claim}-entropy{step}{suffix}") for suffix in ("-sft", "")]
            row[f"token {step} (paper)"] = f"{ours} ({stated[0]:.2f} to {stated[1]:.2f})"
        rows.append(row)
    return pd.DataFrame(rows)


def accuracy_table(points: pd.DataFrame) -> pd.DataFrame:
    """Accuracy (%) by each decoder before and after, and the best epoch by own sampler, with 95 % t-intervals."""
    first, last = ends(points)
    chosen, rows = best(points), []
    for (d_model, k), after in last.groupby(["d_model", "k"]):
        before = first[(first["d_model"] == d_model) & (first["k"] == k)]
        row = {"d": d_model, "K": k}
        for name, title in DECODERS.items():
            row[f"{title}, before"], row[f"{title}, after"] = _interval(before[name]), _interval(after[name])
        rows.append(row | {"own sampler, best epoch": _interval(after["id"].map(chosen))})
    return pd.DataFrame(rows)


def _interval(values: pd.Series) -> str:
    interval = mean_interval(values, 0.0, PERCENT)
    return paper.describe(interval.mean, interval.low, interval.high)


def learning(points: pd.DataFrame, d_model: int) -> Figure:
    """Reward of rollouts, accuracy by own sampler and gradient norm over epochs, a line per K; thin ones are seeds."""
    chosen = points[points["d_model"] == d_model]
    labels = {"reward": "reward of rollouts (%)", "own": "validation accuracy (%)", "gradient_norm": "gradient norm"}
    figure, axes = panels(1, 3, width=9.0, height=2.8)
    for axis, (column, label) in zip(axes[0], labels.items()):
        for k, part in chosen[chosen["step"] > 0].groupby("k"):
            name = f"K = {k}"
            for _, run in part.groupby("id"):
                axis.plot(run["epoch"], run[column], color=COLOURS[name], linewidth=0.6, alpha=0.4)
            mean = part.groupby("step")[["epoch", column]].mean()
            axis.plot(mean["epoch"], mean[column], color=COLOURS[name], linestyle=DASHES[name])
        axis.set(xlabel="epoch", ylabel=label, ylim=(0, None))
    series_legend(figure, [f"K = {k}" for k in in_order(chosen["k"])], paper=False)
    return figure


# Variants


def variants(points: pd.DataFrame) -> pd.DataFrame:
    """Evaluations of d = 24, labelled in the column `variant` by what was changed; recorded ones alone."""
    here = points[points["d_model"] == 24]
    usual, better = here["lr"].max(), {spec.id for spec in sweeps.small("quick")}
    columns = ["k", "temperature", "ratio", "kl", "lr", "start"]
    labels = [_label(row, usual, row.start in better) for row in here[columns].itertuples()]
    return here.assign(variant=labels).sort_values(["variant", "id", "step"], kind="stable")


def _label(row, usual: float, better: bool) -> str:
    """What is unusual about a run."""
    changes = {
        "logits / K": row.temperature != 1,
        "product": row.ratio == "product" and row.temperature == 1,
        f"\N{GREEK SMALL LETTER BETA} = {row.kl:g}": row.kl > 0,
        "no learning": row.lr == 0,
        "a tenth of the rate": 0 < row.lr < usual,
        "better start": better,
    }
    changed = [name for name, holds in changes.items() if holds]
    return f"K = {row.k}, {', '.join(changed) or 'as usual'}"


def gains(points: pd.DataFrame) -> Figure:
    """Gain in accuracy (points) by each decoder over training, by variant: dots are seeds, larger ones their mean."""
    first, last = ends(points)
    names = unique(points["variant"])
    figure, axes = panels(1, 2, width=8.8, height=0.9 + 0.36 * len(names), sharey=True)
    for axis, decoder in zip(axes[0], ("own", "discrete")):
        for place, name in enumerate(names):
            gain = _gain(first, last, name, decoder)
            axis.scatter(gain, [place] * len(gain), s=16, color=COLOURS["after"], alpha=0.5, linewidths=0)
            axis.scatter([gain.mean()], [place], s=42, color=COLOURS["after"], edgecolors="white", zorder=3)
        axis.axvline(0, color="black", linewidth=0.8)
        axis.set(xlabel=f"gain (points), {DECODERS[decoder]}", ylim=(len(names) - 0.5, -0.5))
    axes[0, 0].set_yticks(range(len(names)), names)
    return figure


def _gain(first: pd.DataFrame, last: pd.DataFrame, variant: str, decoder: str) -> np.ndarray:
    before, after = (t[t["variant"] == variant].set_index("seed")[decoder].sort_index() for t in (first, last))
    return (after - before).to_numpy()


def gain_table(points: pd.DataFrame) -> pd.DataFrame:
    """The numbers of `gains`, with where the runs start and 95 % t-intervals."""
    first, last = ends(points)
    rows = []
    for name in unique(points["variant"]):
        row = {"variant": name, "start, own sampler": _interval(first.loc[first["variant"] == name, "own"])}
        for decoder, title in DECODERS.items():
            before, after = (t[t["variant"] == name].set_index("seed")[decoder].sort_index() for t in (first, last))
            gap = paired_interval(after, before)
            row[f"gain, {title}"] = paper.describe(gap.mean, gap.low, gap.high)
        rows.append(row)
    return pd.DataFrame(rows)


def findings(points: pd.DataFrame) -> list[str]:
    """A sentence per dimension and K: accuracies and entropies before and after, and how many seeds gained."""
    first, last = ends(points)
    said = []
    for (d_model, k), after in last.groupby(["d_model", "k"]):
        before = first[(first["d_model"] == d_model) & (first["k"] == k)].set_index("id").loc[after["id"]]
        gained = int((after["own"].to_numpy() > before["own"].to_numpy()).sum())
        gap = paired_interval(after["own"], before["own"])
        own, discrete = (f"{before[d].mean():.1f} % to {after[d].mean():.1f} %" for d in ("own", "discrete"))
        said.append(
            f"**d = {d_model}, K = {k}**: by its own sampler {own}, a gain of "
            f"{paper.describe(gap.mean, gap.low, gap.high)} points, on {gained} of {len(after)} seeds; discrete "
            f"decoding {discrete}."
        )
    return said


def checks(points: pd.DataFrame, variants: pd.DataFrame) -> dict[str, bool]:
    """The chapter's claims about recorded runs."""
    first, last = ends(points)
    paired = last.merge(first, on=["profile", "id"], suffixes=("", "_first"))
    still = variants[variants["variant"].str.contains("no learning")]
    held = still.groupby("id")["discrete"].agg(lambda values: float(np.ptp(values)))
    closing = ends(variants)[1].groupby("variant")[["own", "discrete"]].mean()
    gap = lambda k: abs(closing["own"][f"K = {k}, as usual"] - closing["own"][f"K = {k}, product"])
    ks = [k for k in in_order(variants["k"]) if f"K = {k}, product" in closing.index]
    scaled = _gain(*ends(variants), "K = 3, logits / K", "discrete").mean()
    return {
        "policy gradients raise accuracy by the own sampler on most runs": bool(
            (paired["own"] > paired["own_first"]).mean() > MOST
        ),
        "the first and the last token become more certain on most runs": bool(
            (
                (paired["entropy_1"] < paired["entropy_1_first"]) & (paired["entropy_4"] < paired["entropy_4_first"])
            ).mean()
            > MOST - 0.1
        ),
        "without a learning rate nothing changes": bool(len(held) and held.max() == 0),
        "the product and its root end within three points": bool(ks) and all(gap(k) < POINTS_APART for k in ks),
        "logits / K starts lower and brings greedy decoding no point": bool(
            first_mean(variants, "K = 3, logits / K") < first_mean(variants, "K = 3, as usual") and scaled < 1
        ),
    }


def first_mean(variants: pd.DataFrame, name: str) -> float:
    """Mean accuracy (%) by own sampler of a variant before training."""
    first = ends(variants)[0]
    return float(first.loc[first["variant"] == name, "own"].mean())


# Live


def live_rewards(starts: Sequence[RunSpec], rule: Rule, steps: int, lr: float, device: str = "cpu") -> pd.DataFrame:
    """Share (%) of rollouts that are right, step by step, in a short training from shipped starts; a column per seed.

    Raises:
        SpecError: for less than two steps, or what `GRPOSpec` does not take.
        RecordError: if a start's weights are neither shipped nor stored.
    """
    if steps < 2:
        raise SpecError(f"live_steps={steps}: train for at least two.")
    specs = [GRPOSpec(Recipe(steps, LIVE_BATCH, lr, steps), start, rule) for start in starts]
    trainer = GRPOTrainer(specs, runs.load_stack(starts, missing="error"), resolve_device(device))
    rewards = []
    while trainer.progress.step < steps:
        taken = trainer.ahead()
        trainer.advance(taken)
        rewards.append(PERCENT * (1 - trainer.losses[:, :taken].T.cpu().numpy()))
    return pd.DataFrame(np.concatenate(rewards), columns=[spec.seed for spec in specs])


def live(rewards: pd.DataFrame) -> Figure:
    """Share of right rollouts over steps: thin lines are seeds, smoothed; the thick one their mean."""
    smooth = rewards.ewm(span=max(2, len(rewards) // 5)).mean()
    figure, axes = panels(1, 1, width=6.0, height=3.0)
    axis = axes[0, 0]
    axis.plot(smooth, color=COLOURS["after"], linewidth=0.8, alpha=0.5)
    axis.plot(smooth.mean(axis=1), color=COLOURS["after"])
    axis.set(xlabel="step", ylabel="right rollouts (%)", ylim=(0, PERCENT))
    return figure
