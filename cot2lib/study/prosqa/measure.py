"""Facts about questions of ProsQA, rules that answer without a search, and a model's thoughts about one."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib import runs, supervision
from cot2lib.errors import SpecError
from cot2lib.specs import RunSpec
from cot2lib.study.graph_facts import DENSE, INPUTS, ancestors, degrees, depths, mean, with_none
from cot2lib.study.graph_tests import Test, answered
from cot2lib.study.report import PERCENT
from cot2lib.tasks import ProntoQA, ProsQA
from cot2lib.tasks.published import published
from cot2lib.tasks.reachability import MOST_HOPS, SPECIALS, Reachability

PUBLISHED = (0.41, 0.44, 0.13, 0.02)  # shares of three to six hops in the published validation file, to a hundredth
FEWER = 200  # graphs where hardly any that grows has such a question
DEEPER, ANCESTORS = "farther from the nearest source", "more ancestors"  # rules that say more than chance


def looked_at(path: Path) -> dict[str, Reachability]:
    """Tasks by what tables call them: the published validation file, and ours."""
    return {
        "published": published(path, naming="age"),
        "28 names, 3-6 hops": ProsQA(inputs=INPUTS, names=28, hops=None, naming="age"),
        "28 names, published shares": ProsQA(inputs=INPUTS, names=28, hops=None, mixture=PUBLISHED, naming="age"),
        "28 names, 4 hops": ProsQA(inputs=INPUTS, names=28, naming="age"),
        "19 names, 4 hops": ProsQA(inputs=INPUTS, naming="age"),
    }


def beside() -> dict[str, Reachability]:
    """Tests of trained models beside graphs like those of training, and ProntoQA."""
    return {
        "19 names, 5 hops": ProsQA(inputs=FEWER, hops=5),
        "19 names, denser": ProsQA(inputs=INPUTS, parents=DENSE),
        "ProntoQA": ProntoQA(inputs=INPUTS),
    }


def facts_table(tasks: dict[str, Reachability]) -> pd.DataFrame:
    """A row for each fact, a column for each task."""
    table = pd.DataFrame({name: facts(task) for name, task in tasks.items()})
    return table.rename_axis("mean of").reset_index()


def facts(task: Reachability) -> dict[str, float]:
    """Means over the questions of a task: sizes, hops, frontiers, how many ways lead to the target."""
    into, out = degrees(task)
    walks, hops = forward(task), task.graphs.hops
    there = (into + out) > 0
    frontier = {f"frontier {t}": mean((walks[t] > 0).sum(1)[hops >= t]) for t in range(1, min(5, len(walks)))}
    ways = torch.stack(walks, 1)[torch.arange(task.size), hops]  # (input, state)
    paths = ways.gather(1, task.options[:, :1])[:, 0]
    return {
        "nodes": mean(there.sum(1)),
        "edges": mean(into.sum(1)),
        "sources": mean((there & (into == 0)).sum(1)),
        **{f"{t} hops (%)": PERCENT * mean(hops == t) for t in range(3, MOST_HOPS + 1)},
        **frontier,
        "one way (%)": PERCENT * mean(paths == 1),
        "target's share": mean(paths / ways.sum(1)),
    }


def forward(task: Reachability) -> list[Float[Tensor, "input state"]]:
    """Walks from the root to each name after 0, 1, ... hops."""
    graph = supervision.graph_of(task, slice(None))
    return supervision.forward_counts(graph, task.states, task.start)[:-1]


def guesses_table(tasks: dict[str, ProsQA]) -> pd.DataFrame:
    """A row for each rule, a column for each task, all with ages as names: the higher name is the younger node."""
    table = pd.DataFrame({name: guesses(task) for name, task in tasks.items()}).drop(index="higher name")
    return table.rename_axis("the target is the option that is, or has").reset_index()


def guesses(task: ProsQA) -> dict[str, float]:
    """How often (%) rules without a search from the root find the target of two options; ties count half."""
    found = {}
    for name, look in looks(task).items():
        target, other = look.gather(1, task.options).unbind(1)
        found[name] = PERCENT * (mean(target > other) + mean(target == other) / 2)
    return found


def looks(task: ProsQA) -> dict[str, Float[Tensor, "input name"] | Int[Tensor, "input name"]]:
    """By rule a value of every name: of two options the rule takes the one that has more of it."""
    into, out = degrees(task)
    place = torch.arange(task.names).expand(task.size, -1)
    return {
        "fewer parents": -into,
        "younger": torch.zeros_like(into).scatter(1, task.name_of, place),
        "higher name": place,
        "parents with more parents": _of_parents(task, into),
        "parents with fewer children": -_of_parents(task, out),
        DEEPER: depths(task),
        ANCESTORS: ancestors(task),
    }


def _of_parents(task: Reachability, values: Int[Tensor, "input name"]) -> Float[Tensor, "input name"]:
    """Mean of a value over the parents of each name; 0 without any."""
    start, end = task.ends
    wide = with_none(values)
    total = torch.zeros_like(wide).scatter_add(1, end, wide.gather(1, start))[:, :-1]
    return total / degrees(task)[0].clamp(min=1)


def growth_table(run: RunSpec, nodes: Sequence[int]) -> pd.DataFrame:
    """Costs of a run on larger graphs, on paper: with more names, and as many edges a node as it has.

    A row for each number of nodes: `positions` that the model reads, its `parameters`, and gigaflops of a training
    step, three times those of the forward pass. Attention alone grows with the square. The last layer has queries of
    the outputs alone. Whether the run's dimension holds so many names is not known.
    """
    d, layers, task = run.model.d_model, run.model.layers, run.task
    edges, outputs, rows = task.most_edges / task.names, task.steps, []
    for count in nodes:
        read = round(edges * count) + _read(task) - task.most_edges
        vocab = len(SPECIALS) + task.roles * count
        parts = [
            4 * d**2 * read + 20 * d**2 * asked + 4 * d * asked * read for asked in [read] * (layers - 1) + [outputs]
        ]
        forward = sum(parts) + 2 * d * vocab * outputs
        places = read + task.positions - _read(task)
        parameters = (vocab + places) * d + layers * (12 * d**2 + 13 * d) + 2 * d
        step = 3 * run.recipe.batch * forward / 1e9
        rows.append({"nodes": count, "positions": read, "parameters": parameters, "Gflop a step": step})
    return pd.DataFrame(rows)


def _read(task: ProsQA) -> int:
    """Positions of the longest question that a model reads: edges, what is asked, and thoughts."""
    few = replace(task, inputs=10)  # all questions are asked alike, and graphs take their time
    return task.most_edges + few.asked.shape[1] + task.steps - 1


def thoughts(spec: RunSpec, task: ProsQA, row: int) -> Float[np.ndarray, "hop state"]:
    """The thoughts of a run after each hop of one question, by names.

    Raises:
        SpecError: for a question that the task does not have.
        RecordError: if the run's weights are neither shipped nor stored.
    """
    if not 0 <= row < task.size:
        raise SpecError(f"question={row}: the test has questions 0..{task.size - 1}.")
    rollout = answered(runs.load(spec, missing="error"), spec, Test("one", task, torch.tensor([row])))
    return rollout.weights[0, 0, :-1, task.state_ids].numpy()
