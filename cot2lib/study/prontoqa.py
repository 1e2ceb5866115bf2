"""The chapter `prontoqa`: tests of models, exhibits, and rules that answer ProntoQA without a search."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace

import pandas as pd
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from cot2lib import runs
from cot2lib.specs import RunSpec
from cot2lib.specs.profiles import PROFILES
from cot2lib.study import frame, graph_runs, graphs, look, show, sweeps
from cot2lib.study.graph_tests import TEST_SEED, Rows, by_question, summed
from cot2lib.study.report import PERCENT
from cot2lib.tasks import ProntoQA
from cot2lib.tasks.prontoqa import HOPS, READINGS, TWINS
from cot2lib.tasks.reachability import token
from cot2lib.tasks.variants import INPUTS, MOVED, NEITHER, Blocked, ancestry, degrees

# Names of tests, which stand in the records
UNSEEN, SEEN, RENAMED = "drawn names", "seen graphs", "seen graphs, new names"
HEADS = {UNSEEN: "as in training", NEITHER: "neither (same edges moved elsewhere)"}  # of columns


def measure(specs: Sequence[RunSpec]) -> pd.DataFrame:
    """Measure accuracies and shares of thoughts of trained runs of one shape on `tests`: a row for each run and test.

    RecordError if the weights of one are not here.
    """
    stack = runs.load_stack(specs, missing="error")
    parts = [summed(by_question(stack, specs, task, rows), test=name) for name, task, rows in tests(specs)]
    return pd.concat(parts, ignore_index=True)


def tests(specs: Sequence[RunSpec]) -> Iterator[tuple[str, ProntoQA, Rows]]:
    """Yield the tests of runs of one shape; all these runs were trained on the seen graphs."""
    task, rows = specs[0].task, torch.arange(INPUTS)
    unseen = replace(task, inputs=INPUTS, seed=TEST_SEED, naming="fresh")
    yield UNSEEN, unseen, rows
    seen = torch.stack([task.split(one.split_seed) for one in specs]).all(0)
    trained = seen.nonzero()[:INPUTS, 0]
    yield SEEN, task, trained
    yield RENAMED, replace(task, naming="fresh", deal=1), trained
    if task.reading == READINGS[0]:
        yield from ((rule, Blocked(**asdict(unseen), rule=rule), rows) for rule in MOVED)


def tested(seeds: Sequence[int]) -> pd.DataFrame:
    """Return answers and thoughts of `graph_runs.followed` on `tests` (%), a row for each run and test."""
    rows = graphs.tested("searched", graph_runs.followed(seeds))
    return rows.assign(test=frame.ordered(rows["test"], (UNSEEN, SEEN, RENAMED, *MOVED)))


def requests(seeds: Sequence[int]) -> tuple[graphs.Requests, graphs.Requests]:
    """Return runs by recipe: methods by reading, also without dropout and decay, and both methods over dimensions."""
    asked = {name: graph_runs.prontoqa(name, seeds) for name in PROFILES}
    asked |= {graphs.BARE: sweeps.sweep("prontoqa_bare", "paper", seeds[:5])}
    return asked, {name: graph_runs.widened(name, seeds) for name in PROFILES}


# Exhibits


def blocked(rows: pd.DataFrame) -> pd.DataFrame:
    """Tabulate strict accuracies (%) on unseen questions, as in training and where rules without a search fail."""
    asked = frame.at(rows, reading=READINGS[0], test=[UNSEEN, *MOVED])
    return show.cells(asked, ["d_model", "method"], "test", "strict", show.mean_of).rename(columns=HEADS)


def moved(rows: pd.DataFrame, lost: Mapping[str, pd.Series]) -> look.Shown:
    """Draw strict accuracy as in training and where edges are moved that block no rule, by dimension; `lost` are the
    points that each model loses, by method."""
    words = {UNSEEN: HEADS[UNSEEN], NEITHER: "edges moved"}
    drawn = frame.at(rows, reading=READINGS[0], test=[*words], method=[*lost])
    thinking, chains = lost["CoT2"], lost["discrete CoT"]
    finding = (
        f"Moved edges cost {(thinking > 30).sum()} of {len(thinking)} CoT2 models with "
        f"d \N{GREATER-THAN OR EQUAL TO} 32 over 30 points, discrete models at most {chains.max():.1f}."
    )
    drawn = drawn.assign(asked=drawn["test"].map(words).astype(str))
    return look.ends(drawn, x="asked", col="d_model", y="strict", label="strict accuracy (%)", finding=finding)


def concepts() -> pd.DataFrame:
    """Tabulate the runs by the recipe of all of ProsQA: accuracy (%) at the end; where edges are moved that block no
    rule, strict accuracy and the last thought's share on its frontier."""
    specs = graph_runs.of_concepts()
    rows = graphs.recorded(specs).set_index("id")
    asked = frame.at(graphs.tested("searched", specs), test=NEITHER).set_index("id")
    columns = {
        "at the end (%)": rows["last"],
        "edges moved (%)": asked["strict"],
        "last thought on its frontier (%)": asked[f"frontier_{HOPS}"],
    }
    table = rows[["reading", "method", "seed"]].join(pd.DataFrame(columns)).sort_values(["reading", "method", "seed"])
    return show.headed(table.set_index("reading"))


# Rules without a search


def shortcuts_table() -> pd.DataFrame:
    """Tabulate the `shortcuts`: a column for each reading, for the control, and for moved edges."""
    tasks = {reading: ProntoQA(reading=reading, naming="once") for reading in (*READINGS, TWINS)}
    tasks |= {rule: Blocked(naming="once", rule=rule) for rule in MOVED}
    table = pd.DataFrame({name: shortcuts(task) for name, task in tasks.items()})
    return table.rename(columns=HEADS).rename_axis("the answer is yes if").reset_index()


def shortcuts(task: ProntoQA) -> dict[str, float]:
    """Return how often (%) rules without a search answer ProntoQA.

    All but the first look at the concepts before the property in question. If one of them fits the rule, the answer is
    yes; under the sign reading, yes means that the sign of its edge is the question's.
    """
    into, out = degrees(task)
    start, end = task.ends
    asked = end == task.asked[:, :1] - task.state_ids[0]  # (input, edge)
    no = task.asked[:, 1] == token("not in")
    stands = (task.graphs.negative == no[:, None]) & asked if task.reading == "sign" else asked

    def has(counts: Int[Tensor, "input name"], least: int) -> Bool[Tensor, " input"]:
        return (stands & (torch.nn.functional.pad(counts, (0, 1)).gather(1, start) >= least)).any(1)

    yes = {
        "the question says in": ~no,
        "something leads to the concept before the property": has(into, 1),
        "the concept before the property leads elsewhere too": has(out, 2),
        "the concept before the property leads to two others or more": has(out, 3),
        "the concept before the property has two ancestors or more": has(ancestry(task), 2),
    }
    return {
        name: PERCENT * (said == (task.answer_ids == token("True"))).double().mean().item()
        for name, said in yes.items()
    }
