"""Figures and tables of the chapter `prosqa`."""

from collections.abc import Sequence
from pathlib import Path

import networkx
import numpy as np
import pandas as pd

from cot2lib.study import frame, graph_runs, graphs, look, show
from cot2lib.study.frame import called
from cot2lib.study.graph_tests import TEST_SEED
from cot2lib.study.look import Shown, panels
from cot2lib.study.prosqa import questions
from cot2lib.study.prosqa.runs import whole
from cot2lib.study.report import PERCENT
from cot2lib.study.series import BLUE, GREEN, GREY, ORANGE, YELLOW
from cot2lib.tasks import ProsQA
from cot2lib.tasks.variants import INPUTS
from cot2lib.training.supervised import build_stack

MOST_SIZE = 420.0  # of a node that holds a whole thought
ALL = "all"
USED = (*questions.RULES, questions.BEFORE, questions.MOVED, questions.IDLE, *questions.DISTRACTED)


# Models of all hops


def answers(rows: pd.DataFrame) -> pd.DataFrame:
    """Return right answers (%) to published questions with drawn names, by run and by `questions` (hops, or all)."""
    known = frame.at(rows, test=questions.PUBLISHED, asked="fresh")
    by = ["id", "method", "seed"]
    weighed = known.assign(strict=known["strict"] * known["inputs"]).groupby(by, observed=True)[["strict", "inputs"]]
    whole = weighed.sum().reset_index().assign(strict=lambda sums: sums["strict"] / sums["inputs"], questions=ALL)
    found = pd.concat([known.assign(questions=known["hops"].map("{:g} hops".format)), whole], ignore_index=True)
    return found.assign(questions=frame.ordered(found["questions"], sorted(found["questions"].unique())))  # all: last


def by_hops(rows: pd.DataFrame) -> Shown:
    """Draw the `answers` of every run by hops; bars are the paper's, over all questions."""
    wide = rows.query("questions == @ALL").pivot_table("strict", "seed", "method", observed=True)
    behind = wide.drop(columns="CoT2").mean().idxmax()
    finding = (
        f"CoT2 answers {wide['CoT2'].mean():.1f} % of the published validation questions on average, {behind} "
        f"{wide[behind].mean():.1f} %."
    )
    paper = lambda method, questions: graphs.stated("ProsQA", method) if questions == ALL else None
    options = dict(x="questions", col=None, y="strict", label="right answers (%)")
    return look.ends(rows, paper=paper, finding=finding, **options)


def systems(rows: pd.DataFrame) -> pd.DataFrame:
    """Tabulate accuracies (%) on published questions: `answers` by hops, and other systems, which print one number."""
    ours = show.cells(rows, ["method"], "questions", "strict", show.mean_of)
    ours.insert(1, "seeds", show.groups(rows, "method")["seed"].nunique().astype(str).to_numpy())
    ours["method"] = [f"{method}, ours" for method in ours["method"]]
    printed = pd.read_csv(Path(__file__).with_name("systems.csv"))
    others = {f"{row.system}, {{cite:t}}`{row.cite}`": f"{row.accuracy:g}" for row in printed.itertuples()}
    others |= {f"{method}, the paper": f"{graphs.stated('ProsQA', method):.2f}" for method in graphs.CLAIMED}
    theirs = pd.DataFrame({"method": others.keys(), ALL: others.values()})
    return pd.concat([ours, theirs], ignore_index=True).rename(columns={"method": "system"})


def size() -> str:
    """Describe the shape and the number of parameters of models of all hops."""
    run = whole("cot2")
    shape = [called(name, getattr(run.model, name)) for name in ("layers", "heads", "d_model")]
    parameters = sum(parameter.numel() for parameter in build_stack([run]).parameters())
    return f"{', '.join(shape)}; {parameters:,} parameters"


def used(rows: pd.DataFrame) -> pd.DataFrame:
    """Tabulate strict accuracies (%) on the tests `USED` by method."""
    found = frame.at(rows[rows["hops"].isna()], test=USED)
    found = found.assign(test=frame.ordered(found["test"], USED))
    return show.cells(found, ["test"], "method", "strict", show.mean_of)


# Four hops


def four_hops(seeds: Sequence[int], age_seeds: Sequence[int]) -> tuple[graphs.Requests, graphs.Requests]:
    """Return runs on graphs of at most 19 names by recipe: by naming, and over dimensions. Runs by the authors' recipe
    with ages as names have more seeds."""
    seven = graph_runs.dimension("paper", age_seeds[: len(graph_runs.SEVEN)], (32,))
    named = {"paper": graph_runs.naming("paper", seeds) + seven, "quick": graph_runs.naming("quick", seeds)}
    widths = {"paper": graph_runs.dimension("paper", seeds) + seven, "quick": graph_runs.dimension("quick", seeds)}
    return named | {graphs.BARE: graph_runs.bare(seeds) + graph_runs.bare_by_age(age_seeds)}, widths


def question(row: int, seed: int) -> Shown:
    """Draw the graph of an unseen question of four hops, a panel for each hop; a node's area is its share of CoT2's
    thought. `row` is the question's place in the test."""
    task = ProsQA(inputs=INPUTS, seed=TEST_SEED)
    (run,) = graph_runs.naming("quick", [seed], ("cot2",), ("fresh",))
    thoughts = questions.thoughts(run, task, row)
    edges = [tuple(edge) for edge in task.edges[row].tolist() if edge[0] >= 0]
    graph = networkx.DiGraph(edges)
    places, root, (target, other) = by_layers(graph), int(task.root[row]), task.options[row].tolist()
    asked = {root: ("root", YELLOW), target: ("reached leaf", GREEN), other: ("other leaf", ORANGE)}
    figure, axes = panels(2, 2, width=7.4, height=3.6)
    for hop, (axis, thought) in enumerate(zip(axes.flat, thoughts), start=1):
        for start, end in graph.edges:
            arrow = dict(arrowstyle="-|>", color="#bdbdbd", linewidth=0.8, shrinkA=3, shrinkB=4)
            axis.annotate("", places[end], places[start], arrowprops=arrow)
        at = np.array([places[node] for node in graph.nodes])
        axis.scatter(*at.T, s=12, color=GREY, zorder=2, linewidths=0)
        axis.scatter(*at.T, s=MOST_SIZE * thought[list(graph.nodes)], color=BLUE, alpha=0.75, zorder=3, linewidths=0)
        axis.margins(0.12)
        axis.set_axis_off()
        for node, (name, colour) in asked.items():
            axis.scatter(*places[node], s=130, facecolors="none", edgecolors=colour, linewidths=1.8, zorder=4)
            axis.annotate(name, places[node], (0, 9), textcoords="offset points", ha="center", fontsize=7.5)
        axis.set_title(f"after hop {hop}", fontsize=9.5)
    shares = pd.DataFrame(PERCENT * thoughts[:, list(graph.nodes)].T, index=pd.Index(graph.nodes, name="node"))
    shares.columns = pd.RangeIndex(1, len(thoughts) + 1, name="hop")
    reached, missed = shares.loc[[target, other]].iloc[:, -1]
    finding = (
        f"The last thought puts {reached:.1f} % of its weight on the reached leaf, {missed:.1f} % on the other leaf."
    )
    return Shown(figure, shares.stack().rename("share (%)").reset_index(), finding)


def by_layers(graph: networkx.DiGraph) -> dict[int, tuple[float, float]]:
    """Place nodes in rows, by the longest path that leads to each; spread every row evenly."""
    layers = list(networkx.topological_generations(graph))
    places = {}
    for depth, layer in enumerate(layers):
        known = lambda node: np.mean([places[before][0] for before in graph.predecessors(node)] or [0.5])
        for place, node in enumerate(sorted(layer, key=lambda node: (known(node), node))):
            places[node] = ((place + 0.5) / len(layer) + 0.02 * (depth % 2), -float(depth))
    return places
