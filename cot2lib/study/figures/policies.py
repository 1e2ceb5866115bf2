"""What the chapters on policy gradients share: runs before and after, what their thoughts hold, gains of variants."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cot2lib import runs
from cot2lib.errors import RecordError, SpecError
from cot2lib.kit.provenance import resolve_device
from cot2lib.metrics import mean_interval, paired_interval
from cot2lib.specs import GRPOSpec, Recipe, RunSpec
from cot2lib.study.analysis import contents
from cot2lib.study.claims import samples
from cot2lib.study.claims.printed import paper_value
from cot2lib.study.figures.curves import unique
from cot2lib.study.figures.style import COLOURS, DASHES, MARKERS, PAPER, panels, seed_dots, series_legend
from cot2lib.study.report import describe
from cot2lib.tasks import MNNS
from cot2lib.thoughts import Rule
from cot2lib.training.grpo import GRPOTrainer

PERCENT = 100.0
DECODERS = {"own": "own sampler", "base": "base", "discrete": "discrete"}
STEPS = (1, 2, 3, 4)
HELD = {"support": "tokens held", "reachable": "weight in reach (%)", "on_the_way": "weight on the way (%)"}
SHIFT = 0.17  # of a moment from its group's place
LIVE_BATCH = 16  # prompts per live step
LIKE_CONSTANT = 0.3  # points


@dataclass(frozen=True)
class Group:
    """Runs that differ by seed alone: how a figure names them, their evaluations, and the paper's claim, if any."""

    label: str
    points: pd.DataFrame
    claim: str | None = None


def evaluations(requests: Mapping[str, Sequence[GRPOSpec]], retrained: str | None = None) -> pd.DataFrame:
    """Every evaluation of recorded runs, with accuracies (%) by own sampler (`own`), base and discrete decoding.

    Arguments and errors as `runs.by_profile`.
    """
    rows, points = runs.by_profile(requests, retrained)
    held_out = rows.drop_duplicates("id").set_index("id")[["inputs_a", "inputs_b"]].sum(axis=1)
    inputs = points["id"].map(held_out)
    shares = {name: PERCENT * (points[f"{name}_a"] + points[f"{name}_b"]) / inputs for name in ("base", "discrete")}
    return points.assign(own=PERCENT * points["accuracy"], reward=PERCENT * (1 - points["loss"]), **shares)


def of(points: pd.DataFrame, specs: Sequence[GRPOSpec]) -> pd.DataFrame:
    """The evaluations of some runs."""
    return points[points["id"].isin({spec.id for spec in specs})]


def ends(points: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """First (before any step) and last evaluation of every run, a row each, by profile and id."""
    ordered = points.sort_values("step", kind="stable").groupby(["profile", "id"], sort=False)
    return ordered.first().reset_index(), ordered.last().reset_index()


def best(points: pd.DataFrame, decoder: str = "own") -> pd.Series:
    """Best accuracy (%) by a decoder over all evaluations, by id."""
    return points.groupby("id")[decoder].max()


def lost(points: pd.DataFrame, decoder: str = "own") -> pd.Series:
    """What the last evaluation of each run lacks of its best (points) by a decoder, by id."""
    return best(points, decoder) - ends(points)[1].set_index("id")[decoder]


def interval(values: pd.Series, most: float = PERCENT) -> str:
    """Mean and 95 % t-interval within 0..most."""
    found = mean_interval(values, 0.0, most)
    return describe(found.mean, found.low, found.high)


def moments(points: pd.DataFrame) -> tuple[tuple[float, str, pd.DataFrame], ...]:
    """Where, under which name and what a figure draws of a group before and after."""
    first, last = ends(points)
    return (-SHIFT, "before", first), (SHIFT, "after", last)


# Figures


def before_after(chosen: Mapping[str, Sequence[Group]], decoder: str, starts: Mapping[str, str]) -> Figure:
    """Accuracy by a decoder before and after, a panel per entry; black bars are the paper's, `starts` its start."""
    figure, axes = panels(1, len(chosen), width=max(4.2 * len(chosen), 6.0), height=3.2, sharey=True)
    for axis, (title, groups) in zip(axes[0], chosen.items()):
        for place, group in enumerate(groups):
            for shift, name, table in moments(group.points):
                seed_dots(axis, place + shift, table[decoder], name, spread=0.06)
            if group.claim:
                axis.scatter([place + SHIFT], [paper_value(group.claim)], s=190, **PAPER)
        axis.axhline(paper_value(starts[title]), color="black", linewidth=1.0, linestyle=":")
        axis.set_xticks(range(len(groups)), [group.label for group in groups])
        axis.set(xlabel=title, xlim=(-0.6, len(groups) - 0.4))
    axes[0, 0].set_ylabel("validation accuracy (%)")
    series_legend(figure, ["before", "after"])
    return figure


def entropies(chosen: Mapping[str, Sequence[Group]]) -> Figure:
    """Entropy of each step before and after, a row per entry and a panel per group; black bars are the paper's."""
    columns = max(map(len, chosen.values()))
    figure, axes = panels(len(chosen), columns, width=2.9 * columns, height=2.5, sharey=True, sharex=True)
    for row, (title, groups) in zip(axes, chosen.items()):
        row[0].set_ylabel(f"entropy (nat), {title}")
        for axis, group in zip(row, groups):
            for shift, name, table in moments(group.points):
                _step_dots(axis, name, shift, [table[f"entropy_{step}"] for step in STEPS])
                suffix = "-sft" if name == "before" else ""
                stated = [paper_value(f"{group.claim}-entropy{step}{suffix}") for step in STEPS]
                axis.scatter(np.add(STEPS, shift), stated, s=70, **PAPER | {"linewidths": 1.6})
            axis.set_xticks(STEPS)
            axis.set_xlabel(f"token ({group.label})")
    series_legend(figure, ["before", "after"])
    return figure


def held(chosen: Sequence[Group], table: pd.DataFrame) -> Figure:
    """What each step's distribution holds before and after (`contents`), a row per measure and a panel per group."""
    figure, axes = panels(len(HELD), len(chosen), width=2.9 * len(chosen), height=2.3, sharey="row", sharex=True)
    for row, (column, label) in zip(axes, HELD.items()):
        row[0].set_ylabel(label)
        for axis, group in zip(row, chosen):
            mine = table[table["id"].isin(group.points["id"])]
            for shift, name in ((-SHIFT, "before"), (SHIFT, "after")):
                part = mine[mine["when"] == name]
                _step_dots(axis, name, shift, [part.loc[part["step"] == step, column] for step in STEPS])
        row[0].set_ylim(bottom=0)  # of the whole row, which shares it, once all is drawn
    for axis, group in zip(axes[-1], chosen):
        axis.set_xticks(STEPS)
        axis.set_xlabel(f"token ({group.label})")
    series_legend(figure, ["before", "after"], paper=False)
    return figure


def _step_dots(axis: Axes, name: str, shift: float, values: Sequence[pd.Series]) -> None:
    """Every seed and their mean at each step."""
    look = dict(color=COLOURS[name], marker=MARKERS[name])
    for step, part in zip(STEPS, values):
        axis.scatter([step + shift] * len(part), part, s=14, alpha=0.5, linewidths=0, **look)
        axis.scatter([step + shift], [part.mean()], s=34, edgecolors="white", zorder=3, **look)


def learning(chosen: Sequence[Group], decoder: str = "own") -> Figure:
    """Reward of rollouts, accuracy and gradient norm over epochs, a line per group; thin ones are seeds."""
    labels = {"reward": "reward of rollouts (%)", decoder: f"accuracy (%), {DECODERS[decoder]}"}
    return over_epochs(chosen, labels | {"gradient_norm": "gradient norm"})


def over_epochs(chosen: Sequence[Group], labels: Mapping[str, str]) -> Figure:
    """Columns of the evaluations over epochs, a panel each, as `learning`."""
    figure, axes = panels(1, len(labels), width=3.0 * len(labels), height=2.8)
    for axis, (column, label) in zip(axes[0], labels.items()):
        for group in chosen:
            part = group.points[group.points["step"] > 0]
            for _, run in part.groupby("id"):
                axis.plot(run["epoch"], run[column], color=COLOURS[group.label], linewidth=0.6, alpha=0.4)
            mean = part.groupby("step")[["epoch", column]].mean()
            axis.plot(mean["epoch"], mean[column], color=COLOURS[group.label], linestyle=DASHES[group.label])
        axis.set(xlabel="epoch", ylabel=label, ylim=(0, None))
    series_legend(figure, [group.label for group in chosen], paper=False)
    return figure


# Tables


def accuracy_table(chosen: Mapping[str, Sequence[Group]], columns: tuple[str, str], best_by: str) -> pd.DataFrame:
    """Accuracy (%) by each decoder before and after, and the best epoch by one of them, with 95 % t-intervals.

    `columns` name the two parts of what a group is called.
    """
    rows = []
    for title, groups in chosen.items():
        for group in groups:
            row = dict(zip(columns, (title, group.label))) | accuracy_cells(group.points, DECODERS)
            rows.append(row | {f"{DECODERS[best_by]}, best epoch": interval(best(group.points, best_by))})
    return pd.DataFrame(rows)


def accuracy_cells(points: pd.DataFrame, decoders: Iterable[str]) -> dict[str, str]:
    """Accuracy (%) before and after by some decoders, with 95 % t-intervals."""
    cells = {}
    for decoder in decoders:
        for moment, table in zip(("before", "after"), ends(points)):
            cells[f"{DECODERS[decoder]}, {moment}"] = interval(table[decoder])
    return cells


def entropy_table(chosen: Mapping[str, Sequence[Group]], columns: tuple[str, str]) -> pd.DataFrame:
    """Entropies (nat) before and after, means over seeds, and the paper's in brackets; `columns` as above."""
    rows = []
    for title, groups in chosen.items():
        for group in groups:
            before, after = ends(group.points)
            row = dict(zip(columns, (title, group.label)))
            for step in STEPS:
                ours = f"{before[f'entropy_{step}'].mean():.2f} to {after[f'entropy_{step}'].mean():.2f}"
                stated = [paper_value(f"{group.claim}-entropy{step}{suffix}") for suffix in ("-sft", "")]
                row[f"token {step} (paper)"] = f"{ours} ({stated[0]:.2f} to {stated[1]:.2f})"
            rows.append(row)
    return pd.DataFrame(rows)


# What thoughts hold


def contents_of(specs: Sequence[GRPOSpec], profile: str, retrained: bool = False) -> pd.DataFrame:
    """`contents.measure` of runs: the shipped table, or measured here on what was trained here.

    Raises:
        RecordError: if the shipped table lacks a run, or what was trained here is not there.
    """
    if retrained:
        return contents.measure_all(specs, runs.load_starts, partial(runs.load_stack, missing="error", retrain=True))
    table = samples.contents(profile)
    if absent := {spec.id for spec in specs} - set(table["id"]):
        raise RecordError(
            f"no measure of what the thoughts of run {min(absent)} hold; make it with `cot2 collect thoughts "
            f"--profile {profile}` where the run was trained, or ask with retrain=True."
        )
    return table


# Variants


def labelled(points: pd.DataFrame, variants: Mapping[str, Sequence[GRPOSpec]]) -> pd.DataFrame:
    """The evaluations of each variant's runs, as far as there are any, with its name in the column `variant`."""
    return pd.concat([of(points, specs).assign(variant=name) for name, specs in variants.items()], ignore_index=True)


def gains(points: pd.DataFrame, decoders: Sequence[str] = ("own", "discrete")) -> Figure:
    """Gain in accuracy (points) by decoder over training, by `variant`: dots are seeds, larger ones their mean."""
    names = unique(points["variant"])
    figure, axes = panels(1, len(decoders), width=8.8, height=0.9 + 0.36 * len(names), sharey=True)
    for axis, decoder in zip(axes[0], decoders):
        for place, name in enumerate(names):
            gain = gain_of(points, name, decoder)
            axis.scatter(gain, [place] * len(gain), s=16, color=COLOURS["after"], alpha=0.5, linewidths=0)
            axis.scatter([gain.mean()], [place], s=42, color=COLOURS["after"], edgecolors="white", zorder=3)
        axis.axvline(0, color="black", linewidth=0.8)
        axis.set(xlabel=f"gain (points), {DECODERS[decoder]}", ylim=(len(names) - 0.5, -0.5))
    axes[0, 0].set_yticks(range(len(names)), names)
    return figure


def gain_of(points: pd.DataFrame, variant: str, decoder: str) -> np.ndarray:
    """Accuracy (%) after less that before, by seed."""
    before, after = _by_seed(points, variant, decoder)
    return (after - before).to_numpy()


def gradient_length(points: pd.DataFrame) -> str:
    """Mean length of a run's gradient over its evaluations, with the interval over runs."""
    return interval(points[points["step"] > 0].groupby("id")["gradient_norm"].mean(), float("inf"))


def _by_seed(points: pd.DataFrame, variant: str, decoder: str) -> tuple[pd.Series, pd.Series]:
    first, last = ends(points[points["variant"] == variant])
    return first.set_index("seed")[decoder].sort_index(), last.set_index("seed")[decoder].sort_index()


def gain_table(points: pd.DataFrame) -> pd.DataFrame:
    """The numbers of `gains` by all decoders, where runs start, what the last epoch lacks of the best, how long
    gradients are on average, and how many runs collapsed."""
    rows = []
    for name in unique(points["variant"]):
        mine = points[points["variant"] == name]
        first, last = ends(mine)
        row = {"variant": name, "start, own sampler": interval(first["own"])}
        for decoder, title in DECODERS.items():
            before, after = _by_seed(mine, name, decoder)
            gap = paired_interval(after, before)
            row[f"gain, {title}"] = describe(gap.mean, gap.low, gap.high)
        row["lost at the end"] = interval(lost(mine))
        row |= {"gradient": gradient_length(mine), "collapsed": f"{int(collapsed(last).sum())} of {len(last)}"}
        rows.append(row)
    return pd.DataFrame(rows)


def collapsed(last: pd.DataFrame) -> pd.Series:
    """Which runs of four digits 1-9 end at the accuracy of one answer to everything, by every decoder."""
    apart = last[list(DECODERS)].sub(last["seed"].map(constant_answer), axis=0).abs()
    return apart.max(axis=1) < LIKE_CONSTANT


@cache
def constant_answer(seed: int) -> float:
    """Share (%) of the validation inputs of a seed that have the most frequent answer."""
    task = MNNS()
    answers = task.answers[~task.split(seed)]
    return PERCENT * answers.bincount().max().item() / len(answers)


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
