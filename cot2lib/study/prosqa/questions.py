"""Questions of the whole of ProsQA: what models answer, and what rules answer without a search from the root.

`cot2 prosqa FILE` asks the shipped models the questions of a published file. `cot2 measure questions` measures every
trained model on the published validation file and on generated questions: by hops, by whether rules without a search
answer them, with one edge moved (`cot2lib.tasks.variants`), and with added leaves that are no options.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float

from cot2lib import runs
from cot2lib.errors import SpecError
from cot2lib.kit import timing
from cot2lib.specs import RunSpec, by_shape
from cot2lib.study.graph_tests import TEST_SEED, Rows, answered, by_question, summed
from cot2lib.study.prosqa.runs import with_weights
from cot2lib.tasks import ProsQA
from cot2lib.tasks.prosqa import FEWEST_HOPS, fetch, published
from cot2lib.tasks.reachability import MOST_HOPS, NAMINGS
from cot2lib.tasks.variants import INPUTS, LEAVES, Distracted, Rewritten, ancestry, can_be_rewritten, depths, has_room

AT_ONCE = 500  # questions of a file, between two looks at the progress
HERE = Path(__file__).parents[3] / "tests" / "data" / "prosqa_valid.json"  # in a clone
# Names of tests, which stand in the records
GENERATED, PUBLISHED = "generated", "published"
BEFORE, MOVED, IDLE = "before the move", "edge and answer moved", "another edge moved"
RULES = ("both rules are right", "one rule is right", "no rule is right")
DEPTHS = ("target deeper", "as deep", "other deeper")
DISTRACTED = ("few nodes", *(f"few nodes, {LEAVES} leaves {where}" for where in ("elsewhere", "on the way")))


def published_file() -> Path:
    """Return the published validation file: the clone's, or else downloaded."""
    return HERE if HERE.exists() else fetch()


def of_file(path: Path, naming: str = "fresh") -> pd.DataFrame:
    """Return the answers of the shipped models to a published file: a row for each method, seed and question.

    Columns: `method`, `seed`, `question` (its place in the file, from 0), `hops`; `strict`, whether the right node is
    the likeliest token of all (1 or 0), and `pair`, whether it is likelier than the other option.

    Args:
        path: the file.
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
            named = pd.DataFrame([{"id": run.id, "method": run.method, "seed": run.seed} for run in specs])
            for rows in torch.arange(task.size).split(AT_ONCE):
                parts.append(by_question(stack, specs, task, rows).merge(named, on="id"))
                done += len(rows)
                tell(done)
    columns = ["method", "seed", "question", "hops", "strict", "pair"]
    return pd.concat(parts, ignore_index=True)[columns].astype({"strict": int, "pair": int})


def by_hops(rows: pd.DataFrame) -> pd.DataFrame:
    """Return strict accuracies (shares) of `of_file` by method and hops, and over all; means over seeds."""
    found = rows.pivot_table("strict", "method", "hops", sort=False, margins=True, margins_name="all")
    return found.drop(index="all")


def thoughts(spec: RunSpec, task: ProsQA, row: int) -> Float[np.ndarray, "hop state"]:
    """Return the thoughts of a run after each hop of one question, by names; SpecError for a question that the task
    does not have."""
    if not 0 <= row < task.size:
        raise SpecError(f"question={row}: the test has questions 0..{task.size - 1}.")
    rollout = answered(runs.load(spec, missing="error"), spec, task, torch.tensor([row]))
    return rollout.weights[0, 0, :-1, task.state_ids].numpy()


# Measurements


def measure(specs: Sequence[RunSpec]) -> pd.DataFrame:
    """Measure accuracies and shares of thoughts of trained runs of one shape.

    A row for each run, test, naming (`asked`) and number of hops (missing where a test has all of them); further
    columns are those in `cot2lib.study.graph_tests.by_question`, means over `inputs` questions. RecordError if the
    weights of one are not here.
    """
    ask, parts = partial(by_question, runs.load_stack(specs, missing="error"), specs), []
    for naming in NAMINGS[::2]:  # ages, as they are published, and fresh names
        task = published(published_file(), naming=naming, padding_counts=True, waiting=MOST_HOPS)
        each = ask(task, torch.arange(task.size))
        parts.append(summed(each, test=PUBLISHED, asked=naming, hops=each["hops"]))
    unseen = generated(specs[0].task)
    each = ask(unseen, torch.arange(unseen.size))
    parts.append(summed(each, test=GENERATED, asked=unseen.naming, hops=each["hops"]))
    for names in (by_depth(unseen), rules(unseen)):
        parts.append(summed(each, test=[names[question] for question in each["question"]], asked=unseen.naming))
    for names, (rows, *others) in ((DISTRACTED, leaves(unseen)), ((BEFORE, MOVED, IDLE), moves(unseen))):
        tests = [each[each["question"].isin(rows.tolist())], *(ask(task, rows) for task in others)]
        parts += [summed(part, test=name, asked=unseen.naming) for name, part in zip(names, tests)]
    return pd.concat(parts, ignore_index=True)


def generated(task: ProsQA) -> ProsQA:
    """Return unseen graphs like a task's, `INPUTS` for each number of hops that it has thoughts for."""
    kinds = task.steps - FEWEST_HOPS  # numbers of hops
    return replace(task, inputs=kinds * INPUTS, mixture=(1 / kinds,) * kinds, seed=TEST_SEED)


def by_depth(task: ProsQA) -> list[str]:
    """Say which option of each question is farther from its nearest source."""
    target, other = depths(task).gather(1, task.options).unbind(1)
    return [DEPTHS[1 - int(sign)] for sign in (target - other).sign()]


def rules(task: ProsQA) -> list[str]:
    """Count for each question how many of the two rules that beat chance on our graphs are right: to take the option
    that is farther from its nearest source, or has more ancestors. No rule is right in a tie."""
    right = torch.zeros(task.size, dtype=torch.int64)
    for values in (depths(task), ancestry(task)):
        target, other = values.gather(1, task.options).unbind(1)
        right += target > other
    return [RULES[2 - count] for count in right.tolist()]


def moves(task: ProsQA) -> tuple[Rows, ProsQA, ProsQA]:
    """Return questions that have an edge to move, and the tasks with the answer moved and unmoved."""
    rows = can_be_rewritten(task)
    rows = rows[torch.linspace(0, len(rows) - 1, min(INPUTS, len(rows))).long()]  # spread over all of them
    return rows, *(Rewritten(**asdict(task), moved=moved) for moved in (True, False))


def leaves(task: ProsQA) -> tuple[Rows, ProsQA, ProsQA]:
    """Return questions whose graphs have room for more leaves, and the tasks with leaves elsewhere and on the way."""
    rows = has_room(task).nonzero()[:INPUTS, 0]
    return rows, *(Distracted(**asdict(task), passed=passed) for passed in (False, True))
