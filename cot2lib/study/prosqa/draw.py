"""Figures and tables of the chapter `prosqa`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import networkx
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes

from cot2lib import runs as lib
from cot2lib.runs.train import parameters
from cot2lib.specs import RunSpec
from cot2lib.study import frame, graphs, look, show
from cot2lib.study.frame import called
from cot2lib.study.graph_runs import CHOICES
from cot2lib.study.graph_tests import NAMED
from cot2lib.study.look import Shown, panels
from cot2lib.study.prosqa import following, questions, runs
from cot2lib.study.prosqa.questions import PUBLISHED
from cot2lib.study.report import PERCENT, RECIPES
from cot2lib.study.samples import hours
from cot2lib.study.series import BLUE, GREEN, GREY, ORANGE, YELLOW
from cot2lib.tasks.reachability import Reachability

MOST_SIZE = 420.0  # of a node that holds a whole thought
MEASURES = ["strict", "pair"]
PASSED = 60.0  # an accuracy (%) above a coin's
FEWEST = 10  # questions of one number of hops that a table shows
ASKED = {("fresh", "fresh"): "drawn", ("age", "age"): "ages", ("age", "fresh"): "ages, drawn anew"}


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


def measured(rows: pd.DataFrame, by: list[str], columns: str) -> pd.DataFrame:
    """Accuracies (%) of tested models, strict and of pairs in rows, by what columns are told apart by."""
    long = rows.melt([*by, columns], MEASURES, "accuracy", "share")
    long = long.assign(accuracy=frame.ordered(long["accuracy"], MEASURES))
    return show.cells(long, [*by, "accuracy"], columns, "share", show.mean_of)


def published(rows: pd.DataFrame) -> pd.DataFrame:
    """`measured` of published questions by hops and of all, and of generated graphs, by how names were given in
    training and in the question."""
    by_hops = rows[rows["hops"].notna()].sort_values("hops")
    generated = rows.assign(asked=rows["test"].map({test: naming for naming, test in NAMED.items()}))
    named = lambda part, what: part.assign(
        questions=[f"{what.format(**row)} ({row['inputs']:g})" for row in part.to_dict("records")]
    )
    parts = [
        named(by_hops[by_hops["inputs"] >= FEWEST], "{hops:g} hops"),
        named(weighed(by_hops, ["naming", "asked", "method", "seed"]), "all"),
        named(generated[generated["asked"].notna()], "generated"),
    ]
    found = pd.concat(parts, ignore_index=True)
    found = found.assign(named=[ASKED.get(pair) for pair in zip(found["naming"], found["asked"])]).dropna(
        subset="named"
    )
    ordered = {"named": ASKED.values(), "questions": found["questions"].unique()}
    ordered = {name: frame.ordered(found[name], tuple(known)) for name, known in ordered.items()}
    return measured(found.assign(**ordered), ["named", "method"], "questions")


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
HELD_OUT = "held-out graphs (%)"


def tested(specs: Sequence[RunSpec], name: str = "questions") -> pd.DataFrame:
    """The rows (%) that `cot2 collect questions` or `farther` has shipped of some runs, with what tells their graphs
    apart."""
    table = questions.shipped(name)
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
    return look.ends(drawn, stated=_stated, finding=finding, **options)


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


def sizes(seed: int) -> pd.DataFrame:
    """Accuracy (%) of models of all sizes on generated questions, by hops and over all."""
    specs = [*runs.sizes([seed]), *runs.chosen([seed], ["cot2"])]
    both = [tested(specs, name) for name in ("farther", "questions")]
    rows = frame.at(pd.concat(both, ignore_index=True), test=questions.GENERATED)
    shape = ["layers", "heads", "d_model", "parameters"]
    known = [{"id": run.id, "layers": run.model.layers, "parameters": parameters(run)} for run in specs]
    rows = rows.merge(pd.DataFrame(known), on="id")
    by_hops = rows.sort_values("hops").assign(questions=rows["hops"].map("{:g} hops".format))
    over_all = weighed(rows, shape).assign(questions=ALL)
    table = pd.concat([by_hops, over_all]).pivot_table("strict", shape, "questions")
    table = table[[*by_hops["questions"].unique(), ALL]].sort_values("parameters")
    return table.reset_index().rename_axis(columns=None)


FOLLOWED = {questions.BEFORE: "right, as they are", questions.MOVED: "right, with an edge moved"}


def followed() -> pd.DataFrame:
    """Right answers (`strict`, %) along a training of each method; `answers` says to which questions.

    These are questions as they are, and the same with one edge moved so that the answer moves.
    """
    rows = following.shipped()
    answers = frame.ordered(rows["test"].map(FOLLOWED), tuple(FOLLOWED.values()))
    methods = frame.ordered(rows["method"], frame.ORDER["method"])
    return rows.assign(answers=answers, method=methods, strict=PERCENT * rows["strict"], recipe=RECIPES["quick"])


def along_training(rows: pd.DataFrame, finding: str) -> Shown:
    """The rows of `followed` by step, a panel for each method."""
    labels = ("step", "right answers (%)")
    return look.curves(rows, "answers", "method", finding=finding, x="step", y="strict", labels=labels)


def changed() -> pd.DataFrame:
    """Accuracy (%) of CoT2 on held-out questions of its own task, by the one choice that differs."""
    parts = [frame.tidy(lib.recorded(specs)).assign(choice=words) for words, specs in runs.changed().items()]
    return pd.concat(parts, ignore_index=True)


def changed_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Accuracy (%) of each run of `changed`."""
    return rows[["choice", "last"]].rename(columns={"choice": "the task", "last": HELD_OUT})


def trials(rows: pd.DataFrame) -> pd.DataFrame:
    """Every trial of the search: accuracy (%) on held-out generated graphs at the end, and what it cost."""
    told = rows.assign(minutes=60 * hours(rows))
    table = told[["method", "heads", "lr", "steps", "last", "minutes"]].sort_values(["method", "heads", "lr"])
    return table.rename(columns={"lr": "rate", "last": HELD_OUT}).astype({"rate": str})


def tests(rows: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Accuracies (%) on some tests without a number of hops, strict and of pairs, by method."""
    found = frame.at(rows[rows["hops"].isna()], test=list(names))
    return measured(found.assign(test=frame.ordered(found["test"], tuple(names))), ["test"], "method")


def choice_rows(asked: Mapping[str, Sequence[RunSpec]], again: bool = False) -> pd.DataFrame:
    """Tidy rows by `choice`, with `passed`: thousands of graphs seen when a run was right on more than `PASSED`."""
    specs = {run: choice for choice, part in asked.items() for run in part}
    rows = graphs.described(frame.tidy(lib.recorded([*specs], again)), [*specs])
    curves = frame.tidy(lib.curves([run for run in specs if run.id in set(rows["id"])], again))
    first = curves[curves["accuracy"] > PASSED].groupby("id")["step"].min()
    choice = frame.ordered(rows["id"].map({run.id: choice for run, choice in specs.items()}), tuple(CHOICES))
    return rows.assign(choice=choice, passed=rows["id"].map(first) * rows["batch"] / 1000)


def choices_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Accuracy (%) at the end, and in brackets `passed`, by choice."""
    cells = [f"{last:.1f}" + ("" if np.isnan(n) else f" ({n:.0f})") for last, n in zip(rows["last"], rows["passed"])]
    table = rows.assign(cell=cells).pivot(index="choice", columns="method", values="cell").fillna("").reset_index()
    table.insert(0, "about", [CHOICES[choice].about for choice in table["choice"]])
    return table.assign(choice=[CHOICES[choice].words for choice in table["choice"]])


def shapes(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with `shape`, the method and its heads in words."""
    return rows.assign(shape=rows["method"].astype(str) + rows["heads"].map(lambda n: f", {n} head{'s' * (n > 1)}"))
