"""What the chapters on policy gradients share: figures and tables of runs before and after, and of variants."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cot2lib.specs import GRPOSpec
from cot2lib.study.analysis.policies import best, collapsed, ends, gains, gradient_lengths, lost, sides
from cot2lib.study.claims.printed import paper_value
from cot2lib.study.figures.style import PAPER, PROFILE, WHEN, Look, panels, seed_dots, series_legend
from cot2lib.study.figures.words import difference, mean_of
from cot2lib.study.sweeps import STEPS

DECODERS = {"own": "own sampler", "base": "base", "discrete": "discrete"}
HELD = {"support": "tokens held", "reachable": "weight in reach (%)", "on_the_way": "weight on the way (%)"}
SHIFT = 0.17  # of a moment or a recipe from its group's place

Named = Callable[[pd.Series], str]  # what figures call a variant, from the columns of its runs


@dataclass(frozen=True)
class Group:
    """Runs that differ by seed alone, as figures draw them.

    Attributes:
        value: what sets them apart from the other groups of a panel, say their K.
        label: how figures name them.
        points: their evaluations.
        look: their colour, marker and line style where groups share a panel.
        claim: the paper's claim about them, if any.
    """

    value: object
    label: str
    points: pd.DataFrame
    look: Look
    claim: str | None = None


Panels = Mapping[str, Sequence[Group]]  # the groups of each panel, by its title


def moments(points: pd.DataFrame) -> tuple[tuple[float, str, pd.DataFrame], ...]:
    """Where, under which name and what a figure draws of a group before and after."""
    first, last = ends(points)
    return (-SHIFT, "before", first), (SHIFT, "after", last)


def on_split(run: GRPOSpec) -> str:
    """What sentences add to a run whose split is not that of its seed."""
    return "" if run.start.split is None else ", one split"


# Figures


def accuracies(chosen: Mapping[str, Panels], decoder: str, starts: Mapping[str, str]) -> Figure:
    """Accuracy by a decoder before and after, a row per recipe; black bars are the paper's, `starts` its starts."""
    columns = list(dict.fromkeys(title for row in chosen.values() for title in row))
    width = max(4.2 * len(columns), 6.0)
    figure, axes = panels(len(chosen), len(columns), width=width, height=2.9, sharey=True)  # recipes may lack groups
    for row, (recipe, parts) in zip(axes, chosen.items()):
        row[0].set_ylabel(f"accuracy (%), {recipe}")
        for axis, title in zip(row, columns):
            _accuracy(axis, parts.get(title, ()), decoder)
            axis.axhline(paper_value(starts[title]), color="black", linewidth=1.0, linestyle=":")
    for axis, title in zip(axes[-1], columns):
        axis.set_xlabel(title)
    series_legend(figure, WHEN.known)
    return figure


def _accuracy(axis: Axes, groups: Sequence[Group], decoder: str) -> None:
    """Every seed before and after, group by group, and the paper's accuracy after."""
    for place, group in enumerate(groups):
        for shift, name, table in moments(group.points):
            seed_dots(axis, place + shift, table[decoder], WHEN.known[name], spread=0.06)
        if group.claim:
            axis.scatter([place + SHIFT], [paper_value(group.claim)], s=190, **PAPER)
    if groups:
        axis.set_xticks(range(len(groups)), [group.label for group in groups])
        axis.set_xlim(-0.6, len(groups) - 0.4)


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
    series_legend(figure, WHEN.known)
    return figure


def held(chosen: Sequence[Group], table: pd.DataFrame) -> Figure:
    """What each step's distribution holds before and after, a row per measure and a panel per group.

    `table` is of `cot2lib.study.analysis.thoughts_held`.
    """
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
    series_legend(figure, WHEN.known, paper=False)
    return figure


def _step_dots(axis: Axes, name: str, shift: float, values: Sequence[pd.Series]) -> None:
    """Every seed and their mean at each step."""
    colour, marker, _ = WHEN.known[name]
    look = dict(color=colour, marker=marker)
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
            (colour, _, dash), part = group.look, group.points[group.points["step"] > 0]
            for _, run in part.groupby("id"):
                axis.plot(run["epoch"], run[column], color=colour, linewidth=0.6, alpha=0.4)
            mean = part.groupby("step")[["epoch", column]].mean()
            axis.plot(mean["epoch"], mean[column], color=colour, linestyle=dash)
        axis.set(xlabel="epoch", ylabel=label, ylim=(0, None))
    series_legend(figure, {group.label: group.look for group in chosen}, paper=False)
    return figure


# Tables


def over_recipes(tables: Mapping[str, pd.DataFrame], made: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    """One table of what is made of each recipe's evaluations, with the recipe in the first column."""
    parts = [made(points) for points in tables.values()]
    for name, part in zip(tables, parts):
        part.insert(0, "recipe", name)
    return pd.concat(parts, ignore_index=True)


def said_of(tables: Mapping[str, pd.DataFrame], said: Callable[[pd.DataFrame], Sequence[str]]) -> list[str]:
    """What is said of each recipe's evaluations, sentence by sentence."""
    return [f"{name[0].upper()}{name[1:]}, {text}" for name, points in tables.items() for text in said(points)]


def accuracy_table(chosen: Mapping[str, Sequence[Group]], columns: tuple[str, str], best_by: str) -> pd.DataFrame:
    """Accuracy (%) by each decoder before and after, and the best epoch by one of them, with 95 % t-intervals.

    `columns` name the two parts of what a group is called.
    """
    rows = []
    for title, groups in chosen.items():
        for group in groups:
            row = dict(zip(columns, (title, group.label))) | accuracy_cells(group.points, DECODERS)
            rows.append(row | {f"{DECODERS[best_by]}, best epoch": mean_of(best(group.points, best_by))})
    return pd.DataFrame(rows)


def split_table(chosen: Iterable[Group], column: str, best_by: str) -> pd.DataFrame:
    """Accuracy (%) before, by discrete decoding, and at the best epoch, by `best_by`, beside the paper's best, and how
    many runs collapsed."""
    rows = []
    for group in chosen:
        first, last = ends(group.points)
        before, after = mean_of(first["discrete"]), mean_of(best(group.points, best_by))
        row = {column: group.label, "discrete, before": before, f"{DECODERS[best_by]}, best epoch": after}
        row["paper, best epoch"] = f"{paper_value(group.claim):.1f}"
        rows.append(row | {"collapsed": _collapsed(last)})
    return pd.DataFrame(rows)


def _collapsed(last: pd.DataFrame) -> str:
    return f"{int(collapsed(last).sum())} of {len(last)}"


def accuracy_cells(points: pd.DataFrame, decoders: Iterable[str]) -> dict[str, str]:
    """Accuracy (%) before and after by some decoders, with 95 % t-intervals."""
    cells = {}
    for decoder in decoders:
        for moment, table in zip(("before", "after"), ends(points)):
            cells[f"{DECODERS[decoder]}, {moment}"] = mean_of(table[decoder])
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


# Variants


def gains_by_variant(
    tables: Mapping[str, pd.DataFrame], named: Named, decoders: Sequence[str] = ("own", "discrete")
) -> Figure:
    """Gain in accuracy (points) by decoder over training, by `variant` and recipe: dots are seeds, larger ones means.

    Args:
        tables: of each recipe (`cot2lib.study.analysis.policies.variants_by_recipe`).
        named: what a row is called.
        decoders: a panel each.
    """
    parts = {name: each_variant(points, named) for name, points in tables.items()}
    rows = list(each_variant(pd.concat(tables.values()), named))
    looks = {name: look for profile, look in PROFILE.known.items() if (name := PROFILE.named(profile)) in parts}
    shifts = dict(zip(looks, (-SHIFT, SHIFT) if len(looks) > 1 else (0.0,)))
    figure, axes = panels(1, len(decoders), width=8.8, height=1.2 + 0.4 * len(rows), sharey=True)
    for axis, decoder in zip(axes[0], decoders):
        for name, (colour, marker, _) in looks.items():
            for variant, part in parts[name].items():
                found, place = gains(part, decoder), rows.index(variant) + shifts[name]
                axis.scatter(found, [place] * len(found), s=16, color=colour, marker=marker, alpha=0.5, linewidths=0)
                axis.scatter([found.mean()], [place], s=42, color=colour, marker=marker, edgecolors="white", zorder=3)
        axis.axvline(0, color="black", linewidth=0.8)
        axis.set(xlabel=f"gain (points), {DECODERS[decoder]}", ylim=(len(rows) - 0.5, -0.5))
    axes[0, 0].set_yticks(range(len(rows)), rows)
    series_legend(figure, looks, paper=False)
    return figure


def each_variant(points: pd.DataFrame, named: Named) -> dict[str, pd.DataFrame]:
    """The evaluations of each variant by its name, in the order of the list of variants."""
    parts = [part for _, part in points.groupby("variant")]
    return {named(part.iloc[0]): part for part in parts}


def gain_table(points: pd.DataFrame, named: Named) -> pd.DataFrame:
    """The numbers of `gains_by_variant` by all decoders, and how runs fared.

    That is: where they start, what the last epoch lacks of the best, how long gradients are on average, and how many
    runs collapsed.
    """
    rows = []
    for name, part in each_variant(points, named).items():
        first, last = ends(part)
        row = {"variant": name, "start, own sampler": mean_of(first["own"])}
        for decoder, title in DECODERS.items():
            before, after = sides(part, decoder)
            row[f"gain, {title}"] = difference(after, before)
        row["lost at the end"] = mean_of(lost(part))
        row |= {"gradient": mean_gradient(part), "collapsed": _collapsed(last)}
        rows.append(row)
    return pd.DataFrame(rows)


def mean_gradient(points: pd.DataFrame) -> str:
    """Mean length of a run's gradient over its evaluations, with the interval over runs."""
    return mean_of(gradient_lengths(points), float("inf"))
