"""Trained models on other graphs, under other names, and by majority votes; what their thoughts hold.

A record of a run says how often it is right on held-out graphs. Here every model answers test graphs of another seed,
and is looked at hop by hop: how much of a thought lies on nodes that walks of that many hops reach, on those of them
from which the target is still in time, and on nodes that no walk reaches at all.

Accuracy is strict, the likeliest token of the whole vocabulary, or of pairs: the right answer before the other one,
which is the target before the other option on ProsQA, and True before False, or False before True, on ProntoQA.

Votes are Maj@k, exact from counts with ties shared. The paper goes up to k = 21 and repeats fresh samples ten times;
here three times as many samples as the largest k are drawn once for each held-out graph. Discrete chain of thought
samples from all tokens.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib import passk, runs, supervision
from cot2lib.decode import PROMPTS_AT_ONCE, Rollout, decode, rules
from cot2lib.model import GPT2Stack
from cot2lib.specs import RunSpec
from cot2lib.study.graph_runs import OFFICIAL
from cot2lib.tasks import ProsQA
from cot2lib.tasks.prontoqa import READINGS
from cot2lib.tasks.published import fetch, published
from cot2lib.tasks.reachability import MOST_HOPS, Reachability, token
from cot2lib.tasks.variants import DENSE, INPUTS, LEAVES, MOVED, Blocked, Distracted, depths, with_room

OF_WHICH_FEW_HAVE_ROOM = 6  # times as many graphs are drawn, for a sixth to have room for distractors
TEST_SEED = 1  # of the graphs that nothing is trained on or chosen by
MOST = 21  # samples of the largest vote
SAMPLES = 3 * MOST
HERE = Path(__file__).parents[2] / "tests" / "data" / "prosqa_valid.json"  # in a clone


UNSEEN, AGES, SEEN, RENAMED = "drawn names", "ages", "seen graphs", "seen graphs, new names"
DEEPER, AS_DEEP, NEARER = DEPTHS = ("target deeper", "as deep", "other deeper")
FEW, ELSEWHERE, ON_THE_WAY = (
    "few nodes",
    *(f"few nodes, {LEAVES} leaves {where}" for where in ("elsewhere", "on the way")),
)
NAMED = {"age": AGES, "fresh": UNSEEN}  # what tests call graphs that are named so
PUBLISHED = {  # tests by hops and naming; names of tests stand in the records
    (hops, naming): f"published, {hops} hops, {words}"
    for naming, words in NAMED.items()
    for hops in range(3, MOST_HOPS + 1)
}
FAR = ("3 hops", "5 hops", "denser", FEW, ELSEWHERE, ON_THE_WAY)  # unlike the graphs of training
ORDER = (UNSEEN, AGES, SEEN, RENAMED, *DEPTHS, *FAR, *MOVED, *PUBLISHED.values())


def published_file() -> Path:
    """The published validation file: the clone's, or else downloaded."""
    return HERE if HERE.exists() else fetch()


class Test(NamedTuple):
    """Graphs that a model answers.

    Attributes:
        name: how tables call them.
        task: that holds them.
        rows: which of them.
    """

    name: str
    task: Reachability
    rows: Int[Tensor, " input"]


def tests(specs: Sequence[RunSpec]) -> Iterator[Test]:
    """Tests of runs of one shape; seen graphs are those that all of them were trained on."""
    task, rows = specs[0].task, torch.arange(INPUTS)
    unseen = replace(task, inputs=INPUTS, seed=TEST_SEED, naming="fresh")
    yield Test(UNSEEN, unseen, rows)
    seen = torch.stack([task.split(one.split_seed) for one in specs]).all(0)
    trained = seen.nonzero()[:INPUTS, 0]
    yield Test(SEEN, task, trained)
    yield Test(RENAMED, replace(task, naming="fresh", deal=1), trained)
    if isinstance(task, ProsQA):
        yield from _tests_of_shape(specs[0], task)
    elif task.reading == READINGS[0]:
        yield from (Test(rule, Blocked(**asdict(unseen), rule=rule), rows) for rule in MOVED)


def _tests_of_shape(spec: RunSpec, task: ProsQA) -> Iterator[Test]:
    """Tests by what graphs of ProsQA are like; all questions of ProntoQA have one shape."""
    unseen, rows = replace(task, inputs=INPUTS, seed=TEST_SEED), torch.arange(INPUTS)
    yield Test(AGES, replace(unseen, naming="age"), rows)
    named = replace(unseen, naming=task.naming)
    by = deeper(named)
    for name, kept in zip(DEPTHS, (by > 0, by == 0, by < 0)):
        yield Test(name, named, kept.nonzero()[:, 0])
    if spec.supervision.every is not None:
        for hops in (task.hops - 1, task.hops + 1):
            yield Test(f"{hops} hops", replace(unseen, naming="fresh", hops=hops), rows)
    yield Test("denser", replace(unseen, naming="fresh", parents=DENSE), rows)
    yield from _with_distractors(replace(unseen, naming="fresh", inputs=OF_WHICH_FEW_HAVE_ROOM * INPUTS))


def _with_distractors(task: ProsQA) -> Iterator[Test]:
    """Graphs that have room for more nodes, as they are and with them."""
    rows = with_room(task)[:INPUTS]
    yield Test(FEW, task, rows)
    for name, passed in ((ELSEWHERE, False), (ON_THE_WAY, True)):
        yield Test(name, Distracted(**asdict(task), passed=passed), rows)


def deeper(task: ProsQA) -> Int[Tensor, " input"]:
    """By how many hops the target is farther from its nearest source than the other option is."""
    target, other = depths(task).gather(1, task.options).unbind(1)
    return target - other


def published_tests(path: Path) -> Iterator[Test]:
    """The published questions by hops, named by age and with drawn names."""
    for (hops, naming), name in PUBLISHED.items():
        task = published(path, naming=naming)
        yield Test(name, task, (task.graphs.hops == hops).nonzero()[:, 0])


class Held(NamedTuple):
    """Which states are what after each hop.

    Attributes:
        frontier: walks of so many hops reach them.
        in_time: of these, from where the target is reached in the hops that are left.
        reached: any walk reaches them.
    """

    frontier: Bool[Tensor, "input hop state"]
    in_time: Bool[Tensor, "input hop state"]
    reached: Bool[Tensor, "input state"]


def _answers(task: Reachability) -> Int[Tensor, "input 2"]:
    """The right answer of every input, and the other one, as tokens."""
    both = torch.tensor([token("True"), token("False")])
    known = task.state_ids[task.options] if isinstance(task, ProsQA) else both.expand(task.size, -1)
    other = known.sum(1) - task.answer_ids
    return torch.stack([task.answer_ids, other], 1)


def thoughts_of(task: Reachability, rows: Int[Tensor, " input"]) -> int:
    """How many thoughts the given inputs have: those that the task waits, or the hops of the first, which are those of
    all."""
    return int(task.graphs.hops[rows[0]]) if task.waiting is None else task.waiting


def held_states(task: Reachability, rows: Int[Tensor, " input"]) -> Held:
    """The states of the given inputs, all with as many thoughts as the first."""
    hops = thoughts_of(task, rows)
    graph = supervision.graph_of(task, rows)[:hops]
    forward = supervision.forward_counts(graph, task.states, task.start[rows])
    target = torch.nn.functional.one_hot(task.options[rows, 0], task.states).double()
    backward = supervision.backward_counts(graph, target)
    further = forward
    for _ in range(task.states - hops):  # no way without a repetition is longer
        further = [*further, supervision.spread(further[-1], graph[0])]
    frontier = torch.stack(forward[1:], 1) > 0
    reached = torch.stack(further[1:], 1).sum(1) > 0
    return Held(frontier, frontier & (torch.stack(backward[1:], 1) > 0), reached)


@torch.no_grad()
def answered(stack: GPT2Stack, spec: RunSpec, test: Test) -> Rollout:
    """Every run's answers to a test, and thoughts, on CPU."""
    steps = rules(spec.thought, len(spec.supervision.output_steps(thoughts_of(test.task, test.rows) + 1)))
    prompts, padding = test.task.prompt(spec.supervision.arrow)[test.rows], test.task.padding[test.rows]
    parts = [
        decode(stack, prompts[None, chunk], steps, padding=padding[None, chunk])
        for chunk in torch.arange(len(prompts)).split(PROMPTS_AT_ONCE)
    ]
    join = lambda name: torch.cat([getattr(part, name) for part in parts], 1)
    return Rollout(join("logits"), join("weights"), join("answers"), [], [])


def measured(stack: GPT2Stack, specs: Sequence[RunSpec], test: Test) -> pd.DataFrame:
    """A row for each run: accuracies, and for each hop what a thought's mass lies on.

    Columns: `id`, `test`, `inputs`, `strict`, `pair`, then `frontier_t`, `in_time_t` and `unreached_t`, shares of 1.
    """
    each = by_question(stack, specs, test).drop(columns=["question", "hops"])
    table = each.groupby("id", sort=False).mean().reset_index()
    return table.assign(test=test.name, inputs=len(test.rows))


def by_question(stack: GPT2Stack, specs: Sequence[RunSpec], test: Test) -> pd.DataFrame:
    """A row for each run and question, with the accuracies and shares of `measured`, each of this question alone."""
    rollout = answered(stack, specs[0], test)
    ids = _answers(test.task)[test.rows]  # (input, 2)
    last = rollout.logits[:, :, -1]  # (run, input, vocab)
    target, other = (last.gather(2, ids[:, place].expand(len(specs), -1)[..., None])[..., 0] for place in (0, 1))
    columns = {"strict": rollout.answers == test.task.answer_ids[test.rows], "pair": target > other}
    columns |= _masses(rollout, test)
    told = {"question": test.rows, "hops": test.task.graphs.hops[test.rows]}
    return pd.DataFrame(
        {"id": [spec.id for spec in specs for _ in test.rows]}
        | {name: value.repeat(len(specs)).tolist() for name, value in told.items()}
        | {name: value.double().flatten().tolist() for name, value in columns.items()}
    )


def _masses(rollout: Rollout, test: Test) -> dict[str, Float[Tensor, "run input"]]:
    """Shares of thoughts on kinds of nodes, by hop; nothing for a model without thoughts."""
    held = held_states(test.task, test.rows)
    thoughts = rollout.weights[:, :, :-1, test.task.state_ids].double()  # (run, input, hop, state)
    unreached = ~held.reached[:, None].expand_as(held.frontier)
    there = {"frontier": held.frontier, "in_time": held.in_time, "unreached": unreached}
    return {
        f"{name}_{hop + 1}": (thoughts[:, :, hop] * states[:, hop]).sum(-1)
        for name, states in there.items()
        for hop in range(thoughts.shape[2])
    }


def measure(specs: Sequence[RunSpec]) -> pd.DataFrame:
    """`measured` of trained runs of one shape; raises RecordError if the weights of one are not here."""
    stack = runs.load_stack(specs, missing="error")
    chosen = [*tests(specs), *(published_tests(published_file()) if specs[0].task.names == OFFICIAL else ())]
    return pd.concat([measured(stack, specs, test) for test in chosen], ignore_index=True)


def votes(specs: Sequence[RunSpec]) -> pd.DataFrame:
    """Maj@k (%) of trained runs of one shape; raises RecordError if the weights of one are not here."""
    return passk.measure(runs.load_stack(specs, missing="error"), specs, samples=SAMPLES, most=MOST, kept=(None,))
