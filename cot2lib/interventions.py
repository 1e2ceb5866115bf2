"""Interventions on what trained models feed themselves: what does the answer follow?

`thought` lets models of one shape think about their held-out inputs. `edits` replaces the last thought of each, or the
prompt before it; `Thinking.answered` gives the answers. A state is an *ancestor* if the right answer is reached from
it (`supervision.ancestors`); on numbers its mirror counts too, because reversed signs give the same absolute
sum. Every edit is evaluated on the inputs that it can change. An edit feeds in place of the last thought:

* `swap`: the thought of another input, whose frontier continues to another answer;
* `ancestors`, `one side`: the thought without a share of the ancestors' weight, with mirrors or without;
* `elsewhere`: the thought without as much weight of other states;
* `direction`: the thought moved as far as by `ancestors`, in a random direction;
* `inserted`: the thought with some weight on a state that no walk reaches, whose answer would be smaller by 2;
* `mean`, `noise`, `zero`: the mean of all thoughts, noise of the same norm, nothing;
* `early digit`, `late digit`: the same thought; a digit of the prompt before its last changes, or the last.

`earlier` exchanges any thought, or removes ancestors or other states from it; later thoughts are then computed from it
(`Thinking.recomputed`) or kept.

Interchange follows Zhang and Nanda (arXiv:2309.16042). Noise, mean and zero are the conditions of Kshirsagar
(arXiv:2607.20952). The paper edits no thought.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib.decode import PROMPTS_AT_ONCE, decode, replay, rules
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.model import GPT2Stack
from cot2lib.specs import RunSpec
from cot2lib.supervision import ancestors, as_tokens, graph_of, mirrored, push_mass, reachable
from cot2lib.tasks import MNNS, ProsQA, Task
from cot2lib.thoughts import Rule, State, Thought
from cot2lib.training.data import StackData, stack_data
from cot2lib.training.evaluation import rollouts

DOSES = (0.25, 0.5, 0.75, 0.9, 1.0)  # of the ancestors' weight
INSERTED = (1 / 32, 1 / 16, 1 / 8, 1 / 4)
LEAST, MOST = 0.02, 0.5  # weight of ancestors that can be taken away, and be taken elsewhere as well
LOWER_BY = 2  # an inserted state's answer; sums of one input are all even or all odd

Tokens = Int[Tensor, "run input"]
Where = Bool[Tensor, "run input"]
Fed = Float[Tensor, "run input thought d"]
Weights = Float[Tensor, "run input vocab"]
Chosen = Bool[Tensor, "run input vocab"]


@dataclass(frozen=True)
class Thinking:
    """Models of one shape and what they think about their held-out inputs.

    Attributes:
        stack: the models.
        data: what they were trained on.
        rows: which of the task's inputs each held-out one is.
        real: which are no padding.
        vectors: what is fed.
        weights: mixtures that the vectors are made of; None where thoughts are hidden states.
        answers: tokens without any edit.
        keys: random keys of the draws, (run, chunk of inputs).
        steps: the rule of each step.
    """

    stack: GPT2Stack
    data: StackData
    rows: Tokens
    real: Where
    vectors: Fed
    weights: Float[Tensor, "run input thought vocab"] | None
    answers: Tokens
    keys: Int[Tensor, "run chunk"]
    steps: Sequence[Rule]

    @property
    def task(self) -> Task:
        return self.data.task

    @property
    def last(self) -> Weights:
        """Mixtures of the last thought."""
        assert self.weights is not None
        return self.weights[:, :, -1]

    @property
    def right(self) -> Tokens:
        """The right answers."""
        return self.task.answer_ids[self.rows]

    def fed(self, weights: Weights, place: int = -1) -> Fed:
        """A copy of the thoughts, one of them, by default the last, made from other weights."""
        return self.exchanged(self.stack.mix(weights.float()[:, :, None])[:, :, 0], place)

    def exchanged(self, vector: Float[Tensor, "#run #input d"], place: int = -1) -> Fed:
        """A copy of the thoughts, with other vectors in place of one of them."""
        fed = self.vectors.clone()
        fed[:, :, place] = vector
        return fed

    def answered(self, fed: Fed, rows: Tokens | None = None) -> Tokens:
        """Answers after other thoughts, by default to the same prompts."""
        rows, parts = self.rows if rows is None else rows, []
        for part in torch.arange(rows.shape[1]).split(PROMPTS_AT_ONCE):
            index = rows[:, part]
            logits = replay(
                self.stack, self.data.prompts[index], fed[:, part], self.data.padding_of(index), sees=self.data.sees
            )
            parts.append(logits[:, :, -1].argmax(-1))
        return torch.cat(parts, 1)

    def recomputed(self, fed: Fed, count: int) -> Tokens:
        """Answers after the first `count` of some thoughts; the models compute the others from them."""
        parts = []
        for chunk, part in enumerate(torch.arange(self.rows.shape[1]).split(PROMPTS_AT_ONCE)):
            index = self.rows[:, part]
            steps = [*map(Given, fed[:, part, :count].unbind(2)), *self.steps[count:]]
            given = self.keys[:, chunk : chunk + 1], self.data.padding_of(index)
            rollout = decode(self.stack, self.data.prompts[index], steps, *given, rows=index, sees=self.data.sees)
            parts.append(rollout.answers)
        return torch.cat(parts, 1)


class Given(Rule):
    """Thoughts that are vectors made elsewhere; no field of a run, because ids cannot hold them."""

    vectors: Float[Tensor, "run input d"]

    def __init__(self, vectors: Float[Tensor, "run input d"]):
        object.__setattr__(self, "vectors", vectors)  # of a frozen class

    def __call__(self, state: State) -> Thought:
        return Thought(state.logits.softmax(-1), latent=self.vectors)


class Edit(NamedTuple):
    """Vectors that are fed, and the inputs that they are fed to.

    Attributes:
        name: of the edit.
        dose: share of the ancestors' weight moved, or weight inserted; else 1.
        fed: vectors of all thoughts.
        where: inputs on which the edit is evaluated.
        right: the answer that is right for the prompt.
        wanted: the answer that follows what is fed; -1 for none.
        rows: inputs whose prompts are fed, where they are others.
    """

    name: str
    dose: float
    fed: Fed
    where: Where
    right: Tokens
    wanted: Tokens
    rows: Tokens | None = None


def thought(stack: GPT2Stack, specs: Sequence[RunSpec]) -> Thinking:
    """The models' thoughts about all held-out inputs, by their own rule."""
    data, seeds = stack_data(specs, stack.device), [spec.seed for spec in specs]
    steps = rules(specs[0].thought, specs[0].outputs)
    made = [rollout for _, _, rollout in rollouts(stack, data, seeds, steps)]
    vectors = torch.cat([rollout.thoughts(stack) for rollout in made], 1)
    hidden = any(latent is not None for latent in made[0].latents)
    weights = None if hidden else torch.cat([rollout.weights[:, :, :-1] for rollout in made], 1)
    answers = torch.cat([rollout.answers for rollout in made], 1)
    keys = random.fold(random.run_keys(seeds, Site.DECODE)[:, None], torch.arange(len(made)))
    return Thinking(stack, data, data.held_out.index, data.held_out.real, vectors, weights, answers, keys, steps)


def edits(thinking: Thinking) -> Iterator[Edit]:
    """Every edit that the task and the thoughts allow.

    A hidden state has no states to take away, and a task of sampled inputs may lack those with one other digit.
    """
    generator = torch.Generator().manual_seed(0)
    mixed = thinking.weights is not None
    yield from removals(thinking, generator) if mixed else ()
    yield from placebos(thinking, generator)
    if isinstance(thinking.task, MNNS):
        yield swap(thinking, generator)
        yield from insertions(thinking) if mixed else ()
        yield from changed_digits(thinking, generator) if thinking.task.inputs is None else ()


def removals(thinking: Thinking, generator: torch.Generator) -> Iterator[Edit]:
    """Weight taken from ancestors, from others, and as long a step in a random direction."""
    task, rows, weights = thinking.task, thinking.rows, thinking.last
    alone = ancestors(task, task.steps - 1, rows, as_states(task, thinking.right))
    both = mirrored(task, alone)
    chosen, one_side = (as_tokens(task, states) for states in (both, alone))
    where, wanted = _removable(weights, chosen), _next_best(thinking, both)
    noise = torch.randn(thinking.vectors[:, :, -1].shape, generator=generator)
    for dose in DOSES:
        kept = {
            "ancestors": weights * (1 - dose * chosen),
            "one side": weights * (1 - dose * one_side),
            "elsewhere": _less_elsewhere(weights, chosen, dose),
        }
        for name, left in kept.items():
            if name != "one side" or task.mirror is not None:
                yield Edit(name, dose, thinking.fed(_whole(left)), where, thinking.right, wanted)
        moved, fed = thinking.fed(_whole(kept["ancestors"]))[:, :, -1], thinking.vectors.clone()
        length = (moved - fed[:, :, -1]).norm(dim=-1, keepdim=True)
        fed[:, :, -1] += length * noise / noise.norm(dim=-1, keepdim=True)
        yield Edit("direction", dose, fed, where, thinking.right, wanted)


def _removable(weights: Weights, chosen: Chosen) -> Where:
    """Inputs whose chosen states have enough weight to remove, and leave as much elsewhere."""
    share = (weights * chosen).sum(-1)
    return (share >= LEAST) & (share <= MOST)


def _less_elsewhere(weights: Weights, chosen: Chosen, dose: float) -> Weights:
    """The weights without a dose of the chosen states' share, taken from the other states."""
    share = (weights * chosen).sum(-1, keepdim=True)  # (run, input, 1)
    return weights * (1 - dose * ~chosen * share / (1 - share).clamp(min=MOST))  # exact where it is removable


def placebos(thinking: Thinking, generator: torch.Generator) -> Iterator[Edit]:
    """Thoughts that say nothing about the input: the mean of all, noise of the same norm, zero."""
    last, real = thinking.vectors[:, :, -1], thinking.real[..., None]
    mean = (last * real).sum(1, keepdim=True) / real.sum(1, keepdim=True)
    noise = torch.randn(last.shape, generator=generator)
    noise *= last.norm(dim=-1, keepdim=True) / noise.norm(dim=-1, keepdim=True)
    for name, fed in (("mean", mean), ("noise", noise), ("zero", torch.zeros_like(last))):
        never = torch.full_like(thinking.rows, -1)
        yield Edit(name, 1.0, thinking.exchanged(fed), thinking.real, thinking.right, never)


def swap(thinking: Thinking, generator: torch.Generator) -> Edit:
    """Another held-out input's last thought; asked where the two frontiers continue to different answers."""
    task, rows = thinking.task, thinking.rows
    other = others(rows.shape[1], generator)
    wanted = led_by_frontiers(task, rows, rows[:, other])
    where = thinking.real[:, other] & (wanted != thinking.right)
    fed = thinking.exchanged(thinking.vectors[:, other, -1])
    return Edit("swap", 1.0, fed, where, thinking.right, wanted)


def others(inputs: int, generator: torch.Generator) -> Int[Tensor, " input"]:
    """Another input for each, on one random cycle through all."""
    order = torch.randperm(inputs, generator=generator)
    return torch.empty_like(order).index_copy_(0, order, order.roll(1))


def led_by_frontiers(task: Task, rows: Int[Tensor, "*batch"], given: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch"]:
    """Tokens of the best answers to inputs that the last frontiers of other, given inputs lead to."""
    last = task.steps - 1
    return task.state_ids[continued(task, last, rows, reachable(task, last, given))]


def earlier(thinking: Thinking, taken: int) -> Iterator[Edit]:
    """Edits of the thought after `taken` steps: another input's, ancestors removed, as much removed elsewhere.

    A thought of one token is read as its state, any other as the frontier. In a swap `wanted` is the best answer that
    follows from there.
    """
    task, rows, place = thinking.task, thinking.rows, taken - 1
    other = others(rows.shape[1], torch.Generator().manual_seed(taken))
    states = reachable(task, taken, rows[:, other])
    there = thinking.real[:, other]
    weights = None if thinking.weights is None else thinking.weights[:, :, place]
    if weights is not None and weights.amax(-1).eq(1).all():  # tokens, some of which may name no state
        named = as_states(task, weights[:, other].argmax(-1))
        there = there & (named >= 0)
        states = torch.nn.functional.one_hot(named.clamp(min=0), task.states).bool()
    if isinstance(task, MNNS):
        wanted = task.state_ids[continued(task, taken, rows, states)]
        fed = thinking.exchanged(thinking.vectors[:, other, place], place)
        yield Edit(f"swap {taken}", 1.0, fed, there & (wanted != thinking.right), thinking.right, wanted)
    if weights is None:
        return
    chosen = as_tokens(task, mirrored(task, ancestors(task, taken, rows, as_states(task, thinking.right))))
    where = _removable(weights, chosen) & thinking.real
    never = torch.full_like(rows, -1)
    removed = _whole(weights * ~chosen)
    yield Edit(f"ancestors {taken}", 1.0, thinking.fed(removed, place), where, thinking.right, never)
    moved = _whole(_less_elsewhere(weights, chosen, 1.0))
    yield Edit(f"elsewhere {taken}", 1.0, thinking.fed(moved, place), where, thinking.right, never)


def insertions(thinking: Thinking) -> Iterator[Edit]:
    """A state that no walk reaches, by weight; the last digit leads from it to an answer lower by `LOWER_BY`."""
    task, rows, weights = thinking.task, thinking.rows, thinking.last
    assert isinstance(task, MNNS)
    lower = as_states(task, thinking.right) - task.start - LOWER_BY  # (run, input), as a sum
    state = lower - task.digits[rows, -1] + task.start
    token = task.state_ids[state.clamp(min=0)]
    one = torch.zeros_like(weights).scatter_(2, token[..., None], 1.0)
    wanted = task.state_ids[(lower + task.start).clamp(min=0)]
    for dose in INSERTED:
        fed = thinking.fed((1 - dose) * weights + dose * one)
        yield Edit("inserted", dose, fed, (lower >= 0) & (state >= 0), thinking.right, wanted)


def changed_digits(thinking: Thinking, generator: torch.Generator) -> Iterator[Edit]:
    """Prompts with one other digit, after thoughts about the old one; asked where the answer changes.

    The task has every input, in the order of the numbers that its digits write.
    After an early digit's change the answer may follow the old digits, after the last one's the new one.
    """
    task, rows = thinking.task, thinking.rows
    assert isinstance(task, MNNS)
    values = task.high - task.low + 1
    early = torch.randint(task.length - 1, rows.shape, generator=generator)
    for name, place in (("early digit", early), ("late digit", torch.full_like(rows, task.length - 1))):
        old = task.digits[rows].gather(2, place[..., None])[..., 0]
        by = torch.randint(1, values, rows.shape, generator=generator)
        new = (old - task.low + by) % values + task.low
        changed = rows + (new - old) * values ** (task.length - 1 - place)
        right = task.answer_ids[changed]
        wanted = thinking.right if name == "early digit" else right
        yield Edit(name, 1.0, thinking.vectors, right != thinking.right, right, wanted, changed)


def continued(
    task: Task, step: int, rows: Int[Tensor, "*batch"], states: Bool[Tensor, "*batch state"]
) -> Int[Tensor, "*batch"]:
    """The best final state of each input that is reached from a set of states after `step` steps."""
    mass = states.flatten(0, -2).double()
    for children in graph_of(task, rows.flatten())[step:]:
        mass = push_mass(mass, children)
    worst = int(task.preference.max()) + 1
    return torch.where(mass > 0, task.preference, worst).argmin(-1).view(rows.shape)


def _next_best(thinking: Thinking, removed: Bool[Tensor, "run input state"]) -> Tokens:
    """The answer that is left without some states: on graphs the other option."""
    task, rows = thinking.task, thinking.rows
    if isinstance(task, ProsQA):
        return task.state_ids[task.options[rows]].sum(-1) - thinking.right
    left = reachable(task, task.steps - 1, rows) & ~removed
    return task.state_ids[continued(task, task.steps - 1, rows, left)]


def as_states(task: Task, tokens: Tokens) -> Tokens:
    """The states that some tokens name."""
    states = torch.full((task.vocab_size,), -1).index_copy_(0, task.state_ids, torch.arange(task.states))
    return states[tokens]


def _whole(weights: Weights) -> Weights:
    return weights / weights.sum(-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)
