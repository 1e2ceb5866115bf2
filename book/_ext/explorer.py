"""Sphinx extension: what the component `two-minds` runs in a browser, two trained models for each of its tasks.

Writes `_static/two-minds-data-<task>.js` into the built book, from the package's records, so that it cannot go stale.
A script and no JSON: a page that is opened from a folder may load the one and not the other. The models and the
questions are data; the component takes whatever stands in `SHOWN`.
"""

import base64
import json
import string
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import networkx
import numpy as np
import torch
from jaxtyping import Bool, Int
from sphinx.application import Sphinx
from torch import Tensor

import cot2lib
from cot2lib.decode import decode, rules
from cot2lib.model import GPT2Stack
from cot2lib.specs import RunSpec
from cot2lib.specs.profiles import spec
from cot2lib.study.graph_runs import BOTH, naming
from cot2lib.study.graph_tests import TEST_SEED
from cot2lib.study.prosqa.draw import by_layers
from cot2lib.study.report import RECIPES
from cot2lib.tasks import ProsQA, Task
from cot2lib.tasks.mnns import BOS, SPECIALS

LABELS = {"cot2": "CoT2", "discrete": "discrete chain of thought"}
RULES = {"cot2": "base", "discrete": "greedy"}  # how each thinks by itself, as `explorer-rules.js` calls it
LETTERS = [letter + dash for dash in ("", "\N{PRIME}") for letter in string.ascii_uppercase]  # names of nodes
UNSEEN = 200  # graphs that questions are chosen from
CHOSEN = {(True, False): 6, (False, True): 1, (False, False): 1, (True, True): 4}  # by which of both are right
TRAINED = {"mnns": "paper", "prosqa": "quick"}  # profile by task
SHOWN: dict[str, dict[str, RunSpec]] = {
    "mnns": {name: spec(name, TRAINED["mnns"], layers=2, heads=2, d_model=32) for name in BOTH},
    "prosqa": dict(zip(BOTH, naming(TRAINED["prosqa"], (42,), BOTH, ("fresh",)))),
}


def setup(app: Sphinx) -> dict:
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True}


def write(app: Sphinx, exception: Exception | None) -> None:
    """The data beside the component's scripts, unless the build failed or makes no HTML."""
    if exception is None and app.builder.format == "html":
        for name, data in (("mnns", mnns()), ("prosqa", prosqa())):
            write_script(Path(app.outdir) / "_static", name, data)


def write_script(folder: Path, name: str, data: dict) -> None:
    """A script that leaves a task's data where the component looks for them."""
    text = f"(window.COT2_DATA ??= {{}}).{name} = {json.dumps(data)};\n"
    (folder / f"two-minds-data-{name}.js").write_text(text)


def described(task: str) -> str:
    """Which models of a task think on a page, in words."""
    run = SHOWN[task]["cot2"]
    shape = f"{run.model.layers} layers, d = {run.model.d_model}, seed {run.seed}"
    return f"{' and '.join(LABELS.values())} ({RECIPES[TRAINED[task]]}, {shape})"


class Mind(NamedTuple):
    name: str
    run: RunSpec
    stack: GPT2Stack


def minds(task: str) -> list[Mind]:
    """The models of a task, CoT2 first."""
    return [Mind(name, run, cot2lib.load(run, missing="error")) for name, run in SHOWN[task].items()]


def packed(mind: Mind, task: Task) -> dict:
    """A model for the page: its shape, how it reads, and its weights in base64."""
    name, run, stack = mind
    weights = {key: value[0].numpy() for key, value in stack.state_dict().items()}
    tensors, offset = {}, 0
    for key, value in weights.items():
        tensors[key] = [offset, *value.shape]
        offset += value.size
    flat = np.concatenate([value.ravel() for value in weights.values()])
    bare, whole = (task.prompt(arrow)[0].tolist() for arrow in (False, run.supervision.arrow))
    return {
        "name": name,
        "label": LABELS[name],
        "rule": RULES[name],
        "layers": run.model.layers,
        "heads": run.model.heads,
        "d": run.model.d_model,
        "vocab": task.vocab_size,
        "tail": whole[len(bare) :],
        "tensors": tensors,
        "data": base64.b64encode(flat.astype("<f4").tobytes()).decode(),
    }


@torch.no_grad()
def right(mind: Mind, task: Task, rows: Int[Tensor, " input"]) -> Bool[Tensor, " input"]:
    """Which questions of a task a model answers rightly when it thinks by its own rule."""
    padding = None if task.padding is None else task.padding[None, rows]
    prompts = task.prompt(mind.run.supervision.arrow)[None, rows]
    answers = decode(mind.stack, prompts, rules(mind.run.thought, task.steps), padding=padding).answers[0]
    return task.right(answers, rows)


def counted(kind: str, rights: Sequence[Bool[Tensor, " input"]]) -> str:
    """How many of some questions each model answers, in words."""
    one, other = (f"{int(found.sum()):,}" for found in rights)
    first, second = LABELS.values()
    return f"Of {len(rights[0]):,} {kind}, {first} gets {one} right and {second} {other}."


def mnns() -> dict:
    """Both models on sums of digits, the inputs that were held out from them, and one that tells them apart."""
    both = minds("mnns")
    task = both[0].run.task
    rows = (~task.split(both[0].run.split_seed)).nonzero()[:, 0]  # held out from both
    one, other = rights = [right(mind, task, rows) for mind in both]
    written = lambda digits: "".join(map(str, digits))
    return {
        "models": [packed(mind, task) for mind in both],
        "about": counted("inputs that were held out", rights),
        "bos": BOS,
        "digit0": len(SPECIALS),
        "zero": task.state_id(0),
        "bound": task.bound,
        "low": task.low,
        "high": task.high,
        "length": task.length,
        "start": written(task.digits[rows[one & ~other][0]].tolist()),
        "held_out": sorted({written(sorted(digits)) for digits in task.digits[rows].tolist()}),
    }


def prosqa() -> dict:
    """Both models on graphs, and questions that neither has seen."""
    both = minds("prosqa")
    task = unseen(both[0].run.task)
    rights = [right(mind, task, torch.arange(task.size)) for mind in both]
    found = lambda first, second: ((rights[0] == first) & (rights[1] == second)).nonzero()[:, 0].tolist()
    rows = sorted(row for which, count in CHOSEN.items() for row in found(*which)[:count])
    kinds = f"The {len(rows)} here show every outcome: both models are right, only one is, or neither is."
    return {
        "models": [packed(mind, task) for mind in both],
        "about": f"{counted('unseen questions', rights)} {kinds}",
        "start": next(place for place, row in enumerate(rows) if rights[0][row] and not rights[1][row]),
        "questions": [question(task, row) for row in rows],
    }


def unseen(task: ProsQA) -> ProsQA:
    """Graphs like a task's that nothing was trained on."""
    return replace(task, inputs=UNSEEN, seed=TEST_SEED)


def question(task: ProsQA, row: int) -> dict:
    """A question for the page, its nodes as tokens: what a model reads, and where each node is drawn."""
    token = task.state_ids.tolist()
    edges = [tuple(edge) for edge in task.edges[row].tolist() if edge[0] >= 0]
    where = by_layers(networkx.DiGraph(edges))
    order = sorted(where, key=lambda node: (-where[node][1], where[node][0]))  # as one reads
    return {
        "row": row,
        "tokens": task.prompt(False)[row, task.padding[row] :].tolist(),
        "thoughts": task.steps - 1,
        "root": token[task.root[row]],
        "right": int(task.answer_ids[row]),
        "options": sorted((token[node] for node in task.options[row]), key=[token[node] for node in order].index),
        "edges": [[token[start], token[end]] for start, end in edges],
        "nodes": [[token[node], letter, *where[node]] for letter, node in zip(LETTERS, order)],
    }
