"""Figures and tables of the chapter `prosqa`."""

from collections.abc import Sequence
from pathlib import Path

import networkx
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes

from cot2lib.runs.train import parameters
from cot2lib.specs import RunSpec
from cot2lib.study import frame, graphs, look, measured, show
from cot2lib.study.frame import called
from cot2lib.study.look import Shown, panels
from cot2lib.study.prosqa import runs
from cot2lib.study.prosqa.questions import PUBLISHED
from cot2lib.study.report import PERCENT, RECIPES
from cot2lib.study.series import BLUE, GREEN, GREY, ORANGE, YELLOW
from cot2lib.tasks.reachability import Reachability

MOST_SIZE = 420.0  # of a node that holds a whole thought
MEASURES = ["strict", "pair"]


def question(task: Reachability, row: int, thoughts: Float[np.ndarray, "hop state"]) -> Shown:
    """The graph of a question, a panel for each hop: a node's area is the share of the thought that lies on it.

    Args:
        task, row: the question.
        thoughts: what a model thinks after each hop, by names.
    """
    edges = [tuple(edge) for edge in task.edges[row].tolist() if edge[0] >= 0]
    graph = networkx.DiGraph(edges)
    places, root, (target, other) = by_layers(graph), int(task.root[row]), task.options[row].tolist()
    asked = {root: ("root", YELLOW), target: ("target", GREEN), other: ("other", ORANGE)}
    columns = min(2, len(thoughts))
    figure, axes = panels(-(-len(thoughts) // columns), columns, width=3.7 * columns, height=3.6)
    for axis in axes.flat[len(thoughts) :]:
        axis.remove()
    for hop, (axis, thought) in enumerate(zip(axes.flat, thoughts), start=1):
        _graph(axis, graph, places, thought)
        for node, (name, colour) in asked.items():
            axis.scatter(*places[node], s=130, facecolors="none", edgecolors=colour, linewidths=1.8, zorder=4)
            axis.annotate(name, places[node], (0, 9), textcoords="offset points", ha="center", fontsize=7.5)
        axis.set_title(f"after hop {hop}", fontsize=9.5)
    shares = pd.DataFrame(PERCENT * thoughts[:, list(graph.nodes)].T, index=pd.Index(graph.nodes, name="node"))
    shares.columns = pd.RangeIndex(1, len(thoughts) + 1, name="hop")
    at_target, at_other = shares.loc[[target, other]].iloc[:, -1]
    finding = f"After the last hop {at_target:.1f} % of the thought lies on the target, {at_other:.1f} % on the other."
    return Shown(figure, shares.stack().rename("share (%)").reset_index(), finding)


def by_layers(graph: networkx.DiGraph) -> dict[int, tuple[float, float]]:
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


def weighed(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Accuracies on questions of every number of hops together, by columns that tell runs and tests apart."""
    sums = (
        rows.assign(**rows[MEASURES].mul(rows["inputs"], axis=0))
        .groupby(by, observed=True)[["inputs", *MEASURES]]
        .sum()
    )
    return sums.assign(**sums[MEASURES].div(sums["inputs"], axis=0)).reset_index()


# Models of all hops

ALL = "all"
LONGER = f"3 to {max(runs.REACHES)} hops, three times as long"


def tested(specs: Sequence[RunSpec], name: str = "questions") -> pd.DataFrame:
    """The rows (%) that `cot2 measure questions` or `farther` has shipped of some runs, with what tells their graphs
    apart."""
    table = measured.read(name)
    table = table[table["id"].isin({run.id for run in specs})]
    shares = [name for name in table if name in MEASURES or name.rpartition("_")[0] in graphs.MASSES]
    return graphs.described(table.assign(**PERCENT * table[shares]), specs)


def answers(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of tests by hops, of which one more is over all questions of a test; `questions` says how many hops they
    have."""
    known = rows[rows["hops"].notna()]
    known = known.assign(questions=known["hops"].map("{:g} hops".format))
    by = ["id", "method", "seed", "test", "asked"]
    whole = weighed(known, by).assign(questions=ALL)
    found = pd.concat([known[[*by, "questions", "inputs", *MEASURES]], whole], ignore_index=True)
    methods = frame.ordered(found["method"], frame.ORDER["method"])
    return found.assign(questions=frame.ordered(found["questions"], _in_order(found)), method=methods)


def _in_order(found: pd.DataFrame) -> list[str]:
    """Numbers of hops by size, then all of them."""
    return [*sorted(set(found["questions"]) - {ALL}), ALL]


def by_hops(rows: pd.DataFrame, finding: str) -> Shown:
    """Strict accuracy of every run of `answers` on published questions with drawn names, by hops; bars are the
    paper's."""
    drawn = frame.at(rows, test=PUBLISHED, asked="fresh")
    options = dict(x="questions", col=None, y="strict", label="right answers (%)")
    return look.ends(drawn, paper=_stated, finding=finding, **options)


def _stated(method: str, questions: str) -> float | None:
    """The paper's accuracy of a method, which is over all questions."""
    return graphs.stated("ProsQA", method) if questions == ALL else None


def systems(rows: pd.DataFrame) -> pd.DataFrame:
    """Accuracies (%) on published questions by hops, of `answers` and of others, which print one over all."""
    drawn = frame.at(rows, test=PUBLISHED, asked="fresh")
    ours = show.cells(drawn, ["method"], "questions", "strict", show.mean_of)
    seeds = show.groups(drawn, ["method"])["seed"].nunique().reset_index()["seed"].astype(str)
    ours.insert(1, "seeds", seeds)
    ours["method"] = [f"{method}, ours" for method in ours["method"]]
    others = {f"{row.system}, {{cite:t}}`{row.cite}`": row.accuracy for row in printed().itertuples()}
    others |= {f"{method}, the paper": graphs.stated("ProsQA", method) for method in graphs.CLAIMED}
    theirs = pd.DataFrame({"method": others.keys(), ALL: [f"{value:g}" for value in others.values()]})
    return pd.concat([ours, theirs], ignore_index=True).rename(columns={"method": "system"})


def printed() -> pd.DataFrame:
    """Accuracies (%) on ProsQA that other publications print, the paper apart."""
    return pd.read_csv(Path(__file__).with_name("systems.csv"))


def size(run: RunSpec) -> str:
    """A model's shape and number of parameters, in words."""
    shape = [called(name, getattr(run.model, name)) for name in ("layers", "heads", "d_model")]
    return f"{', '.join(shape)}; {parameters(run):,} parameters"


def farther(rows: pd.DataFrame, finding: str) -> Shown:
    """Strict accuracy on generated questions by hops, of models that learnt questions up to some number of hops."""
    labels = ("hops of the question", "right answers (%)")
    told = rows.assign(recipe=RECIPES["quick"])
    return look.curves(told, "learnt", None, finding=finding, x="hops", y="strict", labels=labels, height=3.2)


def reached() -> pd.DataFrame:
    """Tests of models on graphs of up to 60 nodes; `learnt` says which questions they were trained on."""
    learnt = {f"3 to {reach} hops": runs.farther(reaches=[reach]) for reach in runs.REACHES}
    learnt |= {LONGER: runs.longer()}
    parts = [tested(specs, "farther").assign(learnt=words) for words, specs in learnt.items()]
    found = pd.concat(parts, ignore_index=True)
    return found.assign(learnt=frame.ordered(found["learnt"], tuple(learnt)))


def tests(rows: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Accuracies (%) on some tests without a number of hops, strict and of pairs, by method."""
    found = frame.at(rows[rows["hops"].isna()], test=list(names))
    long = found.melt(["test", "method"], MEASURES, "accuracy", "share")
    long = long.assign(
        test=frame.ordered(long["test"], tuple(names)), accuracy=frame.ordered(long["accuracy"], MEASURES)
    )
    return show.cells(long, ["test", "accuracy"], "method", "share", show.mean_of)
