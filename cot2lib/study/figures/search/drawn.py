"""Figures of the chapter `search`: a question hop by hop, learning curves, thoughts by hop, votes, and what dimension
and heads do."""

from collections.abc import Mapping
from itertools import product

import networkx
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cot2lib.study.claims.printed import paper_value
from cot2lib.study.figures.curves import accuracy_over_epochs, unique
from cot2lib.study.figures.style import (
    BLUE,
    GREEN,
    GREY,
    METHOD,
    ORANGE,
    SKY,
    YELLOW,
    Series,
    panels,
    seed_dots,
    series_legend,
)
from cot2lib.study.report import PERCENT, recipe
from cot2lib.tasks.reachability import Reachability

MOST_SIZE = 420.0  # of a node that holds a whole thought
MASSES = {
    "in_time": "can still reach the target",
    "frontier": "reached by so many hops",
    "unreached": "reached by no walk",
}
NAMING = {"fresh": "fresh names", "once": "names drawn once", "age": "names by age"}
READING = {"reachable": "is it reached?", "sign": "which sign?", "twins": "two halves alike"}
ACROSS = 4  # panels in a row
CLAIMED = {"CoT2": "cot2", "COCONUT": "coconut", "discrete CoT": "discrete", "no-CoT": "nocot"}
HEADS = {1: "1 head", 2: "2 heads", 4: "4 heads"}
SHAPE = Series(
    "shown",
    {
        "CoT2, 1 head": (SKY, "v", "--"),
        "CoT2, 2 heads": (BLUE, "o", "-"),
        "CoT2, 4 heads": (GREEN, "D", "-."),
        "discrete CoT, 2 heads": (ORANGE, "s", ":"),
    },
)


def question(task: Reachability, row: int, thoughts: Float[np.ndarray, "hop state"]) -> Figure:
    """The graph of a question, a panel for each hop: a node's area is the share of the thought that lies on it.

    Args:
        task, row: the question.
        thoughts: what a model thinks after each hop, by names.
    """
    edges = [tuple(edge) for edge in task.edges[row].tolist() if edge[0] >= 0]
    graph = networkx.DiGraph(edges)
    places, root = _places(graph), int(task.root[row])
    options = dict(zip(task.options[row].tolist(), ("target", "other")))
    figure, axes = panels(1, len(thoughts), width=2.9 * len(thoughts), height=3.9)
    for hop, (axis, thought) in enumerate(zip(axes[0], thoughts), start=1):
        _graph(axis, graph, places, thought)
        marks = {
            root: ("root", YELLOW),
            **{node: (name, GREEN if name == "target" else ORANGE) for node, name in options.items()},
        }
        for node, (name, colour) in marks.items():
            axis.scatter(*places[node], s=130, facecolors="none", edgecolors=colour, linewidths=1.8, zorder=4)
            axis.annotate(name, places[node], (0, 9), textcoords="offset points", ha="center", fontsize=7.5)
        axis.set_title(f"after hop {hop}", fontsize=9.5)
    return figure


def _places(graph: networkx.DiGraph) -> dict[int, tuple[float, float]]:
    """Nodes in rows, by the longest way that leads to each; every row is spread evenly."""
    layers = list(networkx.topological_generations(graph))
    places = {}
    for depth, layer in enumerate(layers):
        known = lambda node: np.mean([places[before][0] for before in graph.predecessors(node)] or [0.5])
        for place, node in enumerate(sorted(layer, key=lambda node: (known(node), node))):
            places[node] = ((place + 0.5) / len(layer) + 0.02 * (depth % 2), -float(depth))
    return places


def _graph(axis: Axes, graph: networkx.DiGraph, places: dict, thought: Float[np.ndarray, " state"]) -> None:
    for start, end in graph.edges:
        arrow = dict(arrowstyle="-|>", color="#bdbdbd", linewidth=0.8, shrinkA=3, shrinkB=4)
        axis.annotate("", places[end], places[start], arrowprops=arrow)
    at = np.array([places[node] for node in graph.nodes])
    axis.scatter(*at.T, s=12, color=GREY, zorder=2, linewidths=0)
    axis.scatter(*at.T, s=MOST_SIZE * thought[list(graph.nodes)], color=BLUE, alpha=0.75, zorder=3, linewidths=0)
    axis.margins(0.12)
    axis.set_axis_off()


def paper_accuracy(task: str, method: str) -> float | None:
    """The paper's accuracy (%) of a method on a task, where it gives one."""
    return paper_value(f"main-{task}-{CLAIMED[method]}") if method in CLAIMED else None


def learning(curves: pd.DataFrame) -> Figure:
    """Validation accuracy on ProsQA over epochs: a row per recipe, a column per way of naming, a line per method."""
    return _learning(curves, "naming", NAMING, "prosqa")


def learning_prontoqa(curves: pd.DataFrame) -> Figure:
    """As `learning`, on ProntoQA, a column per reading."""
    return _learning(curves, "reading", READING, "prontoqa")


def _learning(curves: pd.DataFrame, by: str, names: Mapping[str, str], task: str) -> Figure:
    order, profiles = [*names], unique(curves["profile"])
    place = curves["profile"].map(profiles.index) * len(order) + curves[by].map(order.index)
    ordered = curves.loc[place.sort_values(kind="stable").index]
    stated = lambda method, _: paper_accuracy(task, str(method))  # it says nothing of names
    return accuracy_over_epochs(ordered.assign(**{by: ordered[by].map(names)}), METHOD, by, "{}", stated)


def dimensions(curves: pd.DataFrame) -> Figure:
    """Validation accuracy on one task over epochs: a row per recipe, a column per dimension, a line per method."""
    return accuracy_over_epochs(curves, METHOD, "d", "d = {}")


def hops(tested: pd.DataFrame) -> Figure:
    """Share of a thought on three kinds of nodes after each hop, a panel per method; thin lines are seeds."""
    methods = [*METHOD.looks(tested.loc[tested["frontier_1"].notna(), "method"])]
    looks = dict(zip(MASSES.values(), ((GREEN, "D", "-."), (BLUE, "o", "-"), (ORANGE, "s", "--"))))
    figure, axes = panels(1, len(methods), width=4.0 * len(methods), height=3.0, sharey=True)
    for axis, method in zip(axes[0], methods):
        runs = tested[tested["method"] == method]
        for stem, name in MASSES.items():
            columns = [column for column in runs if column.startswith(f"{stem}_") and runs[column].notna().all()]
            shares = PERCENT * runs[columns].to_numpy(dtype=float)  # (run, hop)
            colour, marker, dash = looks[name]
            steps = range(1, len(columns) + 1)
            axis.plot(steps, shares.T, color=colour, linewidth=0.7, alpha=0.4)
            axis.plot(steps, shares.mean(0), color=colour, linestyle=dash, marker=marker, markersize=4)
            axis.set(xticks=list(steps), xlabel=f"hop ({method})", ylim=(-2, 102))
    axes[0, 0].set_ylabel("share of the thought (%)")
    series_legend(figure, looks, paper=False)
    return figure


def surface(rows: pd.DataFrame) -> Figure:
    """Last-epoch accuracy over dimension, a panel per number of names, a series per method and number of heads."""
    sizes = sorted(unique(rows["names"]))
    rows = rows.assign(shown=[f"{method}, {HEADS[heads]}" for method, heads in zip(rows["method"], rows["heads"])])
    looks = SHAPE.looks(rows["shown"])
    figure, axes = panels(1, len(sizes), width=4.2 * len(sizes), height=3.2, sharey=True)
    for axis, size in zip(axes[0], sizes):
        part = rows[rows["names"] == size]
        widths = sorted(unique(part["d_model"]))
        for place, width in enumerate(widths):
            for shift, (shape, look) in zip(np.linspace(-0.3, 0.3, len(looks)), looks.items()):
                values = part.loc[(part["d_model"] == width) & (part["shown"] == shape), "last"]
                if len(values):
                    seed_dots(axis, place + shift, PERCENT * values, look, spread=0.05)
        axis.set_xticks(range(len(widths)), [f"d = {width}" for width in widths])
        axis.set(xlabel=f"at most {size} names", ylim=(0, 102))
    axes[0, 0].set_ylabel("validation accuracy (%)")
    series_legend(figure, {SHAPE.named(shape): look for shape, look in looks.items()}, paper=False)
    return figure


def choices(found: Mapping[str, pd.DataFrame]) -> Figure:
    """Validation accuracy over graphs seen, a panel for each thing changed: thick lines with the change, thin without.

    Args:
        found: curves of one seed by what was changed, with `seen` graphs; the first are of the recipe as it is.
    """
    usual, *changed = found
    rows = -(-len(changed) // ACROSS)
    figure, axes = panels(rows, ACROSS, width=8.6, height=1.75, sharey=True)
    looks = METHOD.looks(found[usual]["method"])
    for axis, change in zip(axes.flat, changed):
        without = found[usual][found[usual]["method"].isin(found[change]["method"])]
        for curves, style in ((without, dict(linewidth=0.7, alpha=0.6)), (found[change], dict(linewidth=1.8))):
            for method, curve in curves.groupby("method", sort=False):
                colour, _, dash = looks[method]
                axis.plot(curve["seen"] / 1000, PERCENT * curve["accuracy"], color=colour, linestyle=dash, **style)
        axis.set_title(change, fontsize=8)
    for axis in axes.flat[len(changed) :]:
        axis.remove()
    for axis in axes.flat[max(0, len(changed) - ACROSS) : len(changed)]:
        axis.set_xlabel("graphs seen (thousands)")
    axes[0, 0].set_ylim(0, 102)
    for axis in axes[:, 0]:
        axis.set_ylabel("accuracy (%)")
    series_legend(figure, {METHOD.named(method): look for method, look in looks.items()}, paper=False)
    return figure


def votes(table: pd.DataFrame) -> Figure:
    """Maj@k of discrete CoT, a line per temperature, and level lines of CoT2's one answer; a row of
    panels per task, a column per recipe."""
    tasks, profiles = unique(table["task"]), unique(table["profile"])
    figure, axes = panels(len(tasks), len(profiles), width=max(8.0, 4.4 * len(profiles)), height=3.0, sharey=True)
    marks = ((GREY, "v", (0, (1, 3))), (YELLOW, "^", ":"), (GREEN, "D", "-."), (ORANGE, "s", "--"))
    looks = dict(zip((0.0, 0.4, 0.8, 1.0), marks))
    for axis, (task, profile) in zip(axes.flat, product(tasks, profiles)):
        part = table[(table["task"] == task) & (table["profile"] == profile)]
        if part.empty:
            axis.remove()
            continue
        for temperature, (colour, _, dash) in looks.items():
            sampled = part[(part["method"] == "discrete CoT") & np.isclose(part["temperature"], temperature)]
            by_seed = sampled.pivot(index="k", columns="seed", values="maj_at_k")
            axis.plot(by_seed, color=colour, linewidth=0.6, alpha=0.4)
            axis.plot(by_seed.mean(axis=1), color=colour, linestyle=dash)
        single = part[(part["method"] == "CoT2") & (part["temperature"] == 0) & (part["k"] == 1)]["pass_at_k"]
        for level in single:
            axis.axhline(level, color=BLUE, linewidth=0.6, alpha=0.5)
        axis.axhline(single.mean(), color=BLUE)
        axis.set(xlabel=f"samples k ({task}, {recipe(profile)})", ylim=(0, 102), xticks=range(1, 22, 4))
    for axis in axes[:, 0]:
        axis.set_ylabel("right majorities (%)")
    named = {f"discrete CoT, T = {temperature:g}": look for temperature, look in looks.items()}
    series_legend(figure, {"CoT2, one answer": (BLUE, "", "-"), **named}, paper=False)
    return figure
