"""What questions about graphs are like, and what can be answered without a search."""

from pathlib import Path

import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib import supervision
from cot2lib.study.analysis.shortcuts import MOVED, Blocked
from cot2lib.study.report import PERCENT
from cot2lib.tasks import ProntoQA, ProsQA
from cot2lib.tasks.prontoqa import READINGS, TWINS
from cot2lib.tasks.published import published
from cot2lib.tasks.reachability import FRONTIERS, MOST_HOPS, Reachability, token

INPUTS = 1000  # graphs that are looked at
DENSE = 2.0  # parents of a node, against 1.5 in training


def degrees(task: Reachability) -> tuple[Int[Tensor, "input name"], Int[Tensor, "input name"]]:
    """Edges that enter and that leave each name."""
    start, end = task.ends
    zeros = torch.zeros(task.size, task.names + 1, dtype=torch.int64)
    into, out = (zeros.scatter_add(1, side, torch.ones_like(side))[:, :-1] for side in (end, start))
    return into, out


def forward(task: Reachability) -> list[Float[Tensor, "input state"]]:
    """Walks from the root to each name after 0, 1, ... hops."""
    graph = supervision.graph_of(task, slice(None))
    return supervision.forward_counts(graph, task.states, task.start)[:-1]


def facts(task: Reachability) -> dict[str, float]:
    """Means over the questions of a task: sizes, hops, frontiers, how many ways lead to the target."""
    into, out = degrees(task)
    walks, hops = forward(task), task.graphs.hops
    there = (into + out) > 0
    frontier = {f"frontier {t}": _mean((walks[t] > 0).sum(1)[hops >= t]) for t in range(1, min(5, len(walks)))}
    ways = torch.stack(walks, 1)[torch.arange(task.size), hops]  # (input, state)
    paths = ways.gather(1, task.options[:, :1])[:, 0]
    return {
        "nodes": _mean(there.sum(1)),
        "edges": _mean(into.sum(1)),
        "sources": _mean((there & (into == 0)).sum(1)),
        **{f"{t} hops (%)": PERCENT * _mean(hops == t) for t in range(3, MOST_HOPS + 1)},
        **frontier,
        "one way (%)": PERCENT * _mean(paths == 1),
        "target's share": _mean(paths / ways.sum(1)),
    }


def guesses(task: ProsQA) -> dict[str, float]:
    """How often (%) rules without a search from the root find the target of two options; ties count half."""
    into, out = degrees(task)
    place = torch.arange(task.names).expand(task.size, -1)
    looks = {
        "fewer parents": -into,
        "younger": torch.zeros_like(into).scatter(1, task.name_of, place),
        "higher name": place,
        "parents with more parents": _of_parents(task, into),
        "parents with fewer children": -_of_parents(task, out),
        "farther from the nearest source": depths(task),
        "more ancestors": ancestors(task),
    }
    found = {}
    for name, look in looks.items():
        target, other = look.gather(1, task.options).unbind(1)
        found[name] = PERCENT * (_mean(target > other) + _mean(target == other) / 2)
    return found


def depths(task: Reachability) -> Int[Tensor, "input name"]:
    """Hops from the nearest node that nothing leads to."""
    into, _ = degrees(task)
    return away(task, into == 0)


def away(task: Reachability, sources: Bool[Tensor, "input name"]) -> Int[Tensor, "input name"]:
    """Hops from the nearest of some nodes; as many as there are names where no way leads."""
    start, end = task.ends
    far = torch.full((task.size, task.names + 1), task.names)
    far[:, :-1] = torch.where(sources, 0, task.names)
    for _ in range(task.names):
        far = far.scatter_reduce(1, end, far.gather(1, start) + 1, "amin")
        far[:, -1] = task.names
    return far[:, :-1].clamp(max=task.names)


def ancestors(task: Reachability) -> Int[Tensor, "input name"]:
    """How many nodes each name is reached from."""
    start, end = task.ends
    reached = torch.zeros(task.size, task.names + 1, task.names + 1)
    reached[torch.arange(task.size)[:, None], start, end] = 1.0
    reached = reached[:, :-1, :-1]  # (input, from, to)
    for _ in range((task.names - 1).bit_length()):  # ways twice as long
        reached = (reached + reached @ reached).clamp(max=1)
    return reached.sum(1).long()


def shortcuts(task: ProntoQA) -> dict[str, float]:
    """How often (%) rules without a search answer ProntoQA.

    All but the first look at the concepts before the property that is asked for. Where one of them is as the rule
    says, the answer is yes; under the sign reading, it is whether the sign of its edge is the question's.
    """
    into, out = degrees(task)
    start, end = task.ends
    asked = end == task.asked[:, :1] - task.state_ids[0]  # (input, edge)
    no = task.asked[:, 1] == token("not in")
    stands = (task.graphs.negative == no[:, None]) & asked if task.reading == "sign" else asked

    def has(counts: Int[Tensor, "input name"], least: int) -> Bool[Tensor, " input"]:
        return (stands & (_with_none(counts).gather(1, start) >= least)).any(1)

    yes = {
        "the question says in": ~no,
        "something leads to the concept before the property": has(into, 1),
        "the concept before the property leads elsewhere too": has(out, 2),
        "it leads to two others or more": has(out, 3),
        "it has two ancestors or more": has(ancestors(task), 2),
    }
    return {name: PERCENT * _mean(said == (task.answer_ids == token("True"))) for name, said in yes.items()}


def shortcuts_table() -> pd.DataFrame:
    """A row for each of the `shortcuts`, a column for each reading, for the control, and where edges are moved."""
    tasks = {reading: ProntoQA(reading=reading, naming="once") for reading in (*READINGS, TWINS)}
    tasks |= {rule: Blocked(naming="once", rule=rule) for rule in MOVED}
    table = pd.DataFrame({name: shortcuts(task) for name, task in tasks.items()})
    return table.rename_axis("the answer is yes if").reset_index()


def _of_parents(task: Reachability, values: Int[Tensor, "input name"]) -> Float[Tensor, "input name"]:
    """Mean of a value over the parents of each name; 0 without any."""
    start, end = task.ends
    wide = _with_none(values)
    total = torch.zeros_like(wide).scatter_add(1, end, wide.gather(1, start))[:, :-1]
    return total / degrees(task)[0].clamp(min=1)


def _with_none(values: Int[Tensor, "input name"]) -> Int[Tensor, "input end"]:
    """A zero after the values of all names, which ends of edges that a graph does not have point at."""
    return torch.cat([values, torch.zeros_like(values[:, :1])], 1)


def _mean(values: Int[Tensor, " input"] | Float[Tensor, " input"] | Bool[Tensor, " input"]) -> float:
    return float(values.double().mean())


def looked_at(path: Path) -> dict[str, Reachability]:
    """Tasks by what tables call them: the published validation file, and ours."""
    return {
        "published": published(path, naming="age"),
        "28 names, 3-6 hops": ProsQA(inputs=INPUTS, names=28, hops=None, naming="age"),
        "28 names, 4 hops": ProsQA(inputs=INPUTS, names=28, naming="age"),
        "19 names, 4 hops": ProsQA(inputs=INPUTS, naming="age"),
    }


def beside() -> dict[str, Reachability]:
    """What trained models are tested on beside graphs like those of training, and ProntoQA."""
    return {
        "19 names, 5 hops": ProsQA(inputs=INPUTS, hops=5),
        "19 names, denser": ProsQA(inputs=INPUTS, parents=DENSE),
        "ProntoQA": ProntoQA(inputs=INPUTS),
    }


def facts_table(tasks: dict[str, Reachability]) -> pd.DataFrame:
    """A row for each fact, a column for each task."""
    table = pd.DataFrame({name: facts(task) for name, task in tasks.items()})
    return table.rename_axis("mean of").reset_index()


def guesses_table(tasks: dict[str, ProsQA]) -> pd.DataFrame:
    """A row for each rule, a column for each task, all with ages as names: the higher name is the younger node."""
    table = pd.DataFrame({name: guesses(task) for name, task in tasks.items()}).drop(index="higher name")
    return table.rename_axis("the target is the option that is, or has").reset_index()


def frontier_distances(path: Path) -> pd.DataFrame:
    """Mean total variation between targets of each definition and those of "walks", hop by hop."""
    tasks = {
        "ProsQA, published": lambda frontier: published(path, frontier=frontier),
        "ProsQA, 19 names": lambda frontier: ProsQA(inputs=INPUTS, frontier=frontier),
        "ProntoQA": lambda frontier: ProntoQA(inputs=INPUTS, frontier=frontier),
    }
    return pd.DataFrame([row for name, make in tasks.items() for row in _distances(name, make)])


def _distances(name: str, make) -> list[dict]:
    main = make("walks")
    hops, targets = main.graphs.hops, supervision.hindsight_targets(main)
    rows = []
    for frontier in FRONTIERS[1:]:
        apart = (supervision.hindsight_targets(make(frontier)) - targets).abs().sum(-1) / 2  # (input, step)
        means = {f"hop {t}": _mean(apart[hops >= t, t - 1]) for t in range(1, int(hops.max()) + 1)}
        rows.append({"task": name, "targets": frontier, **means})
    return rows
