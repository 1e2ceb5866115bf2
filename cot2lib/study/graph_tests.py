"""What trained models answer to questions about graphs, what their thoughts contain, and majority votes.

A record has a run's accuracy on held-out graphs. Here models answer graphs of another seed, and thoughts are measured
hop by hop: the share on nodes that walks of that many hops reach, on the nodes among them from which the remaining
hops reach the target, and on nodes that no walk reaches.

Accuracy is strict (the right token is the likeliest of the whole vocabulary) or of pairs (the right answer is likelier
than the other one: the other option on ProsQA, the other truth value on ProntoQA).

Votes are Maj@k, exact from counts with ties shared. The paper goes up to k = 21 and repeats fresh samples ten
times; here three times as many samples as the largest k are drawn once for each held-out graph. Discrete chain of
thought samples from all tokens.
"""

from collections.abc import Sequence

import pandas as pd
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from cot2lib import passk, runs, supervision
from cot2lib.decode import PROMPTS_AT_ONCE, Rollout, decode, rules
from cot2lib.model import GPT2Stack
from cot2lib.specs import RunSpec
from cot2lib.tasks import ProsQA
from cot2lib.tasks.reachability import Reachability, token

TEST_SEED = 1  # of the graphs that nothing is trained on or chosen by
MOST = 21  # samples of the largest vote
SAMPLES = 3 * MOST

Rows = Int[Tensor, " question"]


def thoughts_of(task: Reachability, rows: Rows) -> int:
    """Return the number of thoughts of some questions: the task's `waiting`, or the hops of the first."""
    return int(task.graphs.hops[rows[0]]) if task.waiting is None else task.waiting


def held_states(task: Reachability, rows: Rows) -> dict[str, Bool[Tensor, "input hop state"]]:
    """Return kinds of states after each hop of the given inputs, all with as many thoughts as the first.

    The `frontier` is what walks of so many hops reach; from states `in_time` among it the remaining hops reach the
    target; no walk reaches what is `unreached`.
    """
    hops = thoughts_of(task, rows)
    graph = supervision.graph_of(task, rows)[:hops]
    forward = supervision.forward_counts(graph, task.states, task.start[rows])
    target = torch.nn.functional.one_hot(task.options[rows, 0], task.states).double()
    backward = supervision.backward_counts(graph, target)
    further = forward
    for _ in range(task.states - hops):  # no way without a repetition is longer
        further = [*further, supervision.push_mass(further[-1], graph[0])]
    frontier = torch.stack(forward[1:], 1) > 0
    unreached = torch.stack(further[1:], 1).sum(1) == 0
    in_time = frontier & (torch.stack(backward[1:], 1) > 0)
    return {"frontier": frontier, "in_time": in_time, "unreached": unreached[:, None].expand_as(frontier)}


@torch.no_grad()
def answered(stack: GPT2Stack, spec: RunSpec, task: Reachability, rows: Rows) -> Rollout:
    """Return every run's answers to questions of a task, and its thoughts, on CPU."""
    steps = rules(spec.thought, len(spec.supervision.output_steps(thoughts_of(task, rows) + 1)))
    prompts, padding = task.prompt(spec.supervision.arrow)[rows], task.padding[rows]
    parts = [
        decode(stack, prompts[None, chunk], steps, padding=padding[None, chunk])
        for chunk in torch.arange(len(prompts)).split(PROMPTS_AT_ONCE)
    ]
    join = lambda name: torch.cat([getattr(part, name) for part in parts], 1)
    return Rollout(join("logits"), join("weights"), join("answers"), [], [])


def by_question(stack: GPT2Stack, specs: Sequence[RunSpec], task: Reachability, rows: Rows) -> pd.DataFrame:
    """Return answers and thoughts, a row for each run and question.

    Columns: `id`, `question`, `hops`; `strict` and `pair`, whether the answer is right; for each hop t the shares of
    the thought `frontier_t`, `in_time_t` and `unreached_t`, which a model without thoughts lacks.
    """
    rollout = answered(stack, specs[0], task, rows)
    last, right = rollout.logits[:, :, -1], task.answer_ids[rows]  # (run, input, vocab), (input,)
    words = torch.tensor([token("True"), token("False")])
    both = task.state_ids[task.options[rows]] if isinstance(task, ProsQA) else words.expand(len(rows), -1)
    of = lambda ids: last.gather(2, ids.expand(len(specs), -1)[..., None])[..., 0]
    columns = {"strict": rollout.answers == right, "pair": of(right) > of(both.sum(1) - right)}
    thoughts = rollout.weights[:, :, :-1, task.state_ids].double()  # (run, input, hop, state)
    columns |= {
        f"{name}_{hop + 1}": (thoughts[:, :, hop] * states[:, hop]).sum(-1)
        for name, states in held_states(task, rows).items()
        for hop in range(thoughts.shape[2])
    }
    about = {"question": rows, "hops": task.graphs.hops[rows]}
    return pd.DataFrame(
        {"id": [spec.id for spec in specs for _ in rows]}
        | {name: value.repeat(len(specs)).tolist() for name, value in about.items()}
        | {name: value.double().flatten().tolist() for name, value in columns.items()}
    )


def summed(each: pd.DataFrame, **by: str | Sequence[str]) -> pd.DataFrame:
    """Average `by_question` over the questions of each run, by further columns `by`; `inputs` counts them."""
    measures = [name for name in each if name not in ("id", "question", "hops")]
    found = each.assign(**by).groupby(["id", *by], sort=False)
    return found[measures].mean().join(found.size().rename("inputs")).reset_index()


def votes(specs: Sequence[RunSpec]) -> pd.DataFrame:
    """Measure Maj@k (%) of trained runs of one shape; raises RecordError if the weights of one are not here."""
    return passk.measure(runs.load_stack(specs, missing="error"), specs, samples=SAMPLES, most=MOST, kept=(None,))
