"""Answers of models of the whole of ProsQA to questions of all hops: of a file, question by question, and on tests.

`cot2 prosqa FILE` asks the shipped models the questions of a published file. `cot2 measure questions` measures every
trained model on generated questions of each number of hops, on the published validation file, where rules without a
search say the right option or do not, where an edge is moved (`cot2lib.tasks.variants`), and where leaves are
added that answer nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import pandas as pd
import torch
from jaxtyping import Int
from torch import Tensor

from cot2lib import runs
from cot2lib.kit import timing
from cot2lib.model import GPT2Stack
from cot2lib.specs import RunSpec, by_shape
from cot2lib.study.graph_tests import (
    AS_DEEP,
    DEEPER,
    ELSEWHERE,
    FEW,
    NEARER,
    ON_THE_WAY,
    TEST_SEED,
    Test,
    by_question,
    deeper,
    published_file,
)
from cot2lib.study.prosqa.measure import ANCESTORS, looks
from cot2lib.study.prosqa.measure import DEEPER as FARTHER
from cot2lib.study.prosqa.runs import evenly_mixed, with_weights
from cot2lib.tasks import ProsQA
from cot2lib.tasks.published import published
from cot2lib.tasks.reachability import MOST_HOPS, NAMINGS
from cot2lib.tasks.variants import INPUTS, Distracted, Rewritten, can_be_rewritten, with_room

Rows = Int[Tensor, " question"]

AT_ONCE = 500  # questions of a file, between two looks at the progress
GENERATED, PUBLISHED = "generated", "published"
BEFORE, MOVED, IDLE = "before the move", "edge and answer moved", "another edge moved"
RULES = ("both rules are right", "one rule is right", "no rule is right")
DEPTHS = (DEEPER, AS_DEEP, NEARER)
LEAVES = (FEW, ELSEWHERE, ON_THE_WAY)


def of_file(path: Path, naming: str = "fresh") -> pd.DataFrame:
    """Answers of the shipped models to the questions of a published file: a row for each method, seed and question.

    Columns: `method`, `seed`, `question` (its place in the file, from 0), `hops`; `strict`, whether the right node is
    the likeliest token of all (1 or 0), and `pair`, whether it is likelier than the other option.

    Args:
        path: of the file.
        naming: "fresh" or "once" draws names; "age" takes node numbers as they are.

    Raises:
        SpecError: for a file that holds no such questions, or an unknown naming.
        RecordError: if the models are neither shipped nor stored.
    """
    task = published(path, naming=naming, padding_counts=True, waiting=MOST_HOPS)
    groups, parts, done = by_shape(with_weights()), [], 0
    with timing.told(f"{Path(path).name}, answers", task.size * len(groups)) as tell:
        for specs in groups:
            stack = runs.load_stack(specs, missing="error")
            for rows in torch.arange(task.size).split(AT_ONCE):
                parts.append(_answers(stack, specs, Test(PUBLISHED, task, rows)))
                done += len(rows)
                tell(done)
    return pd.concat(parts, ignore_index=True)


def _answers(stack: GPT2Stack, specs: Sequence[RunSpec], test: Test) -> pd.DataFrame:
    """The rows of `of_file` of runs of one shape and some questions."""
    told = pd.DataFrame([{"id": run.id, "method": run.method, "seed": run.seed} for run in specs])
    rows = by_question(stack, specs, test).astype({"strict": int, "pair": int}).merge(told, on="id")
    return rows[["method", "seed", "question", "hops", "strict", "pair"]]


def by_hops(rows: pd.DataFrame) -> pd.DataFrame:
    """Strict accuracies (shares) of the rows of `of_file` by method, hops and over all; means over seeds."""
    found = rows.pivot_table("strict", "method", "hops", sort=False, margins=True, margins_name="all")
    return found.drop(index="all")


def measure(specs: Sequence[RunSpec]) -> pd.DataFrame:
    """Accuracies and shares of thoughts of trained runs of one shape.

    A row for each run, test, naming (`asked`) and number of hops, which is missing where a test has all of them;
    columns as of `cot2lib.study.graph_tests.measured`.

    Raises:
        RecordError: if the weights of one are not here.
    """
    return pd.concat(_tests(runs.load_stack(specs, missing="error"), specs), ignore_index=True)


def _tests(stack: GPT2Stack, specs: Sequence[RunSpec]) -> Iterator[pd.DataFrame]:
    ask = partial(_asked, stack, specs)
    for naming in NAMINGS[::2]:  # ages, as they are published, and fresh names
        task = published(published_file(), naming=naming, padding_counts=True, waiting=MOST_HOPS)
        yield _all_hops(ask(task, torch.arange(task.size)), PUBLISHED, naming)
    unseen = generated(specs[0].task)
    each = ask(unseen, torch.arange(unseen.size))
    yield _all_hops(each, GENERATED, unseen.naming)
    for names in (depths(unseen), rules(unseen)):
        yield summed(each, [names[question] for question in each["question"]], unseen.naming)
    for names, variants in ((LEAVES, leaves(unseen)), ((BEFORE, MOVED, IDLE), moves(unseen))):
        rows, *others = variants
        parts = [each[each["question"].isin(rows.tolist())], *(ask(task, rows) for task in others)]
        for name, part in zip(names, parts):
            yield summed(part, [name] * len(part), unseen.naming)


def measure_hops(specs: Sequence[RunSpec]) -> pd.DataFrame:
    """The rows of `measure` that are of generated questions of each number of hops; errors as there."""
    unseen = generated(specs[0].task)
    each = _asked(runs.load_stack(specs, missing="error"), specs, unseen, torch.arange(unseen.size))
    return _all_hops(each, GENERATED, unseen.naming)


def _asked(stack: GPT2Stack, specs: Sequence[RunSpec], task: ProsQA, rows: Rows) -> pd.DataFrame:
    return by_question(stack, specs, Test("", task, rows))


def generated(task: ProsQA) -> ProsQA:
    """Unseen graphs like a task's, `INPUTS` of each number of hops that it has thoughts for."""
    even = evenly_mixed(task.steps - 1)
    return replace(task, inputs=len(even) * INPUTS, mixture=even, seed=TEST_SEED)


def _all_hops(each: pd.DataFrame, test: str, naming: str) -> pd.DataFrame:
    return summed(each, [test] * len(each), naming, ["hops"])


def summed(each: pd.DataFrame, tests: Sequence[str], naming: str, by: Sequence[str] = ()) -> pd.DataFrame:
    """Means over questions, by run, test and further columns."""
    measures = [name for name in each if name not in ("id", "question", "hops")]
    found = each.assign(test=tests, asked=naming).groupby(["id", "test", "asked", *by], sort=False)
    return found[measures].mean().join(found.size().rename("inputs")).reset_index()


def depths(task: ProsQA) -> list[str]:
    """Which option of each question is farther from its nearest source."""
    return [DEPTHS[1 - int(sign)] for sign in deeper(task).sign()]


def rules(task: ProsQA) -> list[str]:
    """How many of the two rules that say more than chance on our graphs are right, for each question; in a tie a rule
    says nothing."""
    right, known = torch.zeros(task.size, dtype=torch.int64), looks(task)
    for rule in (FARTHER, ANCESTORS):
        target, other = known[rule].gather(1, task.options).unbind(1)
        right += target > other
    return [RULES[2 - count] for count in right.tolist()]


def moves(task: ProsQA) -> tuple[Rows, ProsQA, ProsQA]:
    """Questions that have an edge to move, with the answer and without; and both tasks."""
    rows = evenly(can_be_rewritten(task), INPUTS)
    return rows, *(Rewritten(**asdict(task), moved=moved) for moved in (True, False))


def evenly(rows: Rows, most: int) -> Int[Tensor, " chosen"]:
    """At most so many of some rows, spread over all of them."""
    return rows[torch.linspace(0, len(rows) - 1, min(most, len(rows))).long()]


def leaves(task: ProsQA) -> tuple[Rows, ProsQA, ProsQA]:
    """Questions whose graphs have room for more leaves; with leaves elsewhere, and with leaves on the way."""
    rows = with_room(task)[:INPUTS]
    return rows, *(Distracted(**asdict(task), passed=passed) for passed in (False, True))
